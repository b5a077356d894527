"""The large dictionary is the same everywhere, and looks like the small one."""

from __future__ import annotations

import hashlib
from statistics import fmean

from palio.lab.data.english_words import DICTIONARY
from palio.lab.data.generated_words import WORDS, large_dictionary


def test_it_is_the_same_on_every_machine() -> None:
    digest = hashlib.sha256(" ".join(large_dictionary()).encode()).hexdigest()
    assert digest.startswith("99916ca0307313f9")


def test_the_words_are_distinct_lower_case_and_of_english_length() -> None:
    words = large_dictionary()
    assert len(words) == len(set(words)) == WORDS == 100_000
    assert words[: len(DICTIONARY)] == DICTIONARY
    assert all(word.isascii() and word.isalpha() and word.islower() for word in words)
    assert abs(fmean(map(len, words)) - fmean(map(len, DICTIONARY))) < 2
