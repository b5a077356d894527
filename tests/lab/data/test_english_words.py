"""The lists of English words."""

from itertools import pairwise

from palio.lab.data import english_words as words


def test_words() -> None:
    for listed in (words.NEWS, words.DICTIONARY):
        assert len(set(listed)) == len(listed)
        assert all(word.isascii() and word.isalpha() and word.islower() for word in listed)
    assert len(words.NEWS) == 200
    assert all(a < b for a, b in pairwise(words.DICTIONARY))
