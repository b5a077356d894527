"""One line of the table: a function and all that is told of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from palio.model.expressions.number_functions import Computed

MANY = 1000
"""Arguments: of those that take any number."""
LISTED = 1 << 24
"""Of IN, whose literals come as one list."""


@dataclass(frozen=True, slots=True)
class Function:
    """`arguments` names them: those in brackets may be missing, dots stand for any number.

    A strict function is NULL where an argument is.
    """

    name: str
    compute: Callable[..., Computed | None]
    arguments: str
    meaning: str
    example: str
    is_strict: bool = True
    words: str = ""  # in SQL, where not only the name
    written: str = ""  # in SQL, where not name(arguments)
    is_of_spark: bool = True  # not one of Palio's own
    most: int = 0

    def __post_init__(self) -> None:
        if not self.most:
            most = MANY if "..." in self.arguments else len(self.arguments.split())
            object.__setattr__(self, "most", most)

    @property
    def least(self) -> int:
        return sum("[" not in one and "..." not in one for one in self.arguments.split())

    @property
    def in_words(self) -> tuple[str, ...]:
        """What stands before the parenthesis in SQL."""
        own = self.name if not self.written and self.name.isidentifier() else ""
        return tuple(f"{own} {self.words}".upper().split())


def lines(*functions: Function) -> dict[str, Function]:
    return {function.name: function for function in functions}
