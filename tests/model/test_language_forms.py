"""The page of the language lists the forms as the parser takes them."""

from __future__ import annotations

from pathlib import Path

from palio.model.language_forms import accepted, pages, refused

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "language.md"


def test_the_page_lists_what_the_parser_says() -> None:
    assert pages() in PAGE.read_text(), "python -m palio.model.language_forms, into language.md"


def test_more_is_accepted_than_refused() -> None:
    assert len(refused().splitlines()) < len(accepted().splitlines()) / 3
