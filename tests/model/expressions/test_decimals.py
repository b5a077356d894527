"""Decimals: digits as in Spark SQL."""

from __future__ import annotations

import pytest

from palio.model.expressions.decimals import Exact
from palio.model.expressions.errors import ExpressionError


def test_sums_and_products_are_exact() -> None:
    tenth, fifth = Exact.of_text("0.1"), Exact.of_text("0.2")
    assert str(tenth.add(fifth).value) == "0.3"
    assert str(tenth.multiply(fifth).value) == "0.02"
    assert str(tenth.subtract(fifth).value) == "-0.1"


def test_quotients_have_the_scale_of_their_types() -> None:
    one, three = Exact.of_text("1.0"), Exact.of_int(3, is_literal=True)
    assert str(one.divide(three).value) == "0.333333"
    assert str(one.divide(Exact.of_int(3)).value) == "0.3333333333333333333333"
    assert str(Exact.of_text("7.5").mod(Exact.of_text("2.0")).value) == "1.5"


def test_there_are_38_digits() -> None:
    large = Exact.of_text("9" * 37 + ".0")
    with pytest.raises(ExpressionError, match="more than 38 digits"):
        large.multiply(large)
    with pytest.raises(ExpressionError, match="more than 38 digits"):
        Exact.of_text("9" * 39)


def test_zero_has_no_sign() -> None:
    zero, negative = Exact.of_text("0.0"), Exact.of_text("0.5").subtract(Exact.of_text("1.0"))
    assert str(zero.multiply(negative).value) == "0.00"
