"""What an expression cannot compute: its value is then NULL, and the error is counted."""

from __future__ import annotations


class ExpressionError(Exception):
    """Division by zero, an overflow, a bad cast, or a value of a type that the function does not take."""


UNCOMPUTABLE = (
    ExpressionError,
    ArithmeticError,
    ValueError,
    TypeError,
    LookupError,
    RecursionError,
)
"""What a call of a function may raise. The others are what nobody foresaw: a value of a stranger's
message must not fail the messages of others."""
