"""Reserved words that stand where names are meant."""

from __future__ import annotations

import pytest

from palio.errors import ParseError
from palio.model.language import parse
from palio.model.reserved_words import reserved_name
from palio.model.sql_text import RESERVED


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_whatever_is_refused_as_a_name_asks_for_backticks(word: str) -> None:
    assert str(parse(f"`{word}` = 'a'")) == f"`{word}` = 'a'"
    said = _refusal(f"x > 1 AND {word} = 'a'")
    wanted = ("backticks", "changes while messages pass", "not a matter of messages")
    assert said is None or any(part in said for part in wanted), said


def _refusal(text: str) -> str | None:
    try:
        parse(text)
    except ParseError as error:
        return error.reason
    return None


def test_what_is_no_name_stays() -> None:
    assert reserved_name("x = 0 AND", lambda _: False) is None
    assert reserved_name("x = 'from' AND `from` = 0", lambda _: True) is None
    assert reserved_name("a AND from = 0", lambda text: text == "a AND `from` = 0") == ("from", 6)
