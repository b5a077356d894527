"""Words that the parser does not see."""

from __future__ import annotations

from palio.model.expressions.words import called, hidden


def test_a_hidden_word_keeps_its_place_and_comes_back() -> None:
    shape = "`lpad`(x) AND LPAD (x, 0) = md5(lower(y)) AND lpad = '1'"
    found = hidden(shape)
    assert len(found) == len(shape)
    assert found.replace("\ue04c", "L").replace("\ue06d", "m") == shape
    assert called("\ue04cPAD") == "LPAD"
    assert called("lower") == "lower"
    assert "lower(" in found
