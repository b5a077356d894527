"""The page of functions is the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from palio.model.expressions.functions import FUNCTIONS
from palio.model.expressions.parsing import expression_of_text
from palio.model.expressions.reference import _FORMS, reference
from palio.model.expressions.words import FUNCTION_WORDS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "functions.md"


def test_the_page_is_what_the_table_says() -> None:
    assert PAGE.read_text() == reference(), (
        "python -m palio.model.expressions.reference > docs/reference/functions.md"
    )


def test_every_word_stands_on_the_page() -> None:
    page = reference().lower()
    assert [word for word in sorted(FUNCTION_WORDS) if word.lower() not in page] == []


@pytest.mark.parametrize("form", _FORMS, ids=[form[0] for form in _FORMS])
def test_forms_are_read(form: tuple[str, str, str]) -> None:
    if form[2]:
        expression_of_text(form[2])


def test_every_function_has_a_line() -> None:
    assert len(FUNCTIONS) == sum(line.startswith("| `") for line in reference().splitlines()) - len(
        _FORMS
    )
