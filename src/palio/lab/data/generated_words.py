"""A dictionary of 100,000 words: the English ones, and others that look like them.

The 2001 and 2003 papers sample a system's dictionary, which has tens of thousands of words or more
and differs from machine to machine. Ours has a few thousand; here, a chain over pairs of letters,
counted in these, spells further ones. Always: the same words, in the same order, on every machine;
none twice, all lower case ASCII.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from random import Random

from palio.lab.data.english_words import DICTIONARY

WORDS = 100_000
_LENGTH_MIN, _LENGTH_MAX = 3, 14
_END = "."


@cache
def large_dictionary() -> tuple[str, ...]:
    """The words; made once a process, in about a second."""
    followers = _followers()
    rng = Random(WORDS)
    words = dict.fromkeys(DICTIONARY)
    while len(words) < WORDS:
        word = _spell(followers, rng)
        if _LENGTH_MIN <= len(word) <= _LENGTH_MAX:
            words[word] = None
    return tuple(words)


def _followers() -> dict[str, str]:
    """After which two letters which letters come, each as often as it does."""
    found: dict[str, list[str]] = defaultdict(list)
    for word in DICTIONARY:
        padded = f"  {word}{_END}"
        for i in range(2, len(padded)):
            found[padded[i - 2 : i]].append(padded[i])
    return {pair: "".join(characters) for pair, characters in found.items()}


def _spell(followers: dict[str, str], rng: Random) -> str:
    word = "  "
    while word[-1] != _END and len(word) <= _LENGTH_MAX + 2:
        choices = followers[word[-2:]]
        word += choices[int(rng.random() * len(choices))]
    return word.strip().rstrip(_END)
