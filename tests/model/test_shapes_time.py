"""No text that a stranger sends keeps the parser busy: adversarial nestings of every word that it may
read, each within a bound of processor time."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import palio
from palio.model import shapes
from tests.seeds import sizes

WORDS = sorted(shapes._BEFORE_PARENTHESIS)
OTHERS = (
    "x", "DISTINCT", "DATE", "TIMESTAMP", "INTERVAL", "- ", "NOT ", "t -> ", "x LIKE ", "x IN", "`q`",
    "DECIMAL", "ARRAY<", "MAP<", "STRUCT", "x::", "x:a.", "BIGINT", "CASE WHEN", "x IS",
)  # fmt: skip
FORMS = (
    "{w}({r})", "{w}(x, {r})", "{w}({r}, x)", "{w}(x, x, {r})", "{w} {r}", "{w}[{r}]", "{w}({r} AS INT)",
    "{w}(x FROM {r})", "({w} {r})", "{w}(t -> {r})", "{w}({r} = x", "{w}({r} WHEN", "{w}(x, t -> {r})",
    "CASE {w}({r}) WHEN x THEN y END", "x {w} ({r})", "{w}({r}) {w} x", "{w}({r})::STRING", "x < {w}({r})",
)  # fmt: skip
SECONDS_MAX = 1.5
"""Of processor time; they take some milliseconds."""


class TooSlow(BaseException):
    pass


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    def late(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def read(text: str) -> None:
    with bounded(SECONDS_MAX):
        try:
            palio.parse(text)
        except palio.PalioError:
            pass
        except TooSlow:
            pytest.fail(f"the parser takes too long for {text[:300]}")


def nested(layers: list[tuple[str, str]]) -> str:
    """The words and forms around each other, the first outermost."""
    begin, end = "", ""
    for word, form in layers:
        before, _, after = form.replace("{w}", word).partition("{r}")
        begin, end = begin + before, after.replace("{r}", "x") + end
    return f"{begin}x{end} = 1"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("depth", [12, 95])
def test_a_word_within_itself(form: str, depth: int) -> None:
    words = (*WORDS, *OTHERS) if depth == 12 else random.Random(form).sample(WORDS, 40)
    for word in words:
        read(nested([(word, form)] * depth))


@sizes(300, 5_000)
def test_words_within_words(size: int) -> None:
    draw = random.Random(17)
    everything = (*WORDS, *OTHERS)
    for _ in range(size):
        some = draw.choices([(w, f) for w in draw.choices(everything, k=3) for f in FORMS], k=4)
        read(nested([draw.choice(some) for _ in range(draw.choice((6, 20, 60)))]))


@pytest.mark.parametrize(
    "text", ["date(" * 40 + "x" + ")" * 40, "ARRAY[" * 30 + "x" + "]" * 30, "DATE[(" * 30 + "x" + ")]" * 30]
)  # fmt: skip
def test_what_was_slow(text: str) -> None:
    read(f"{text} = 1")


def test_elements_of_elements() -> None:
    assert palio.parse("x[y[z[0]]] = 1").matches({"x": [1], "y": [0], "z": [0]})
    with pytest.raises(palio.ParseError, match="brackets are nested more than 4 deep"):
        palio.parse("x[x[x[x[x[0]]]]] = 1")
