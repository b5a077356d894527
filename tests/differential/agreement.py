"""Palio's answers against an engine's, case by case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

import palio

Answers = Sequence[Sequence[bool]]  # for each predicate, whether it selects each row

SHOWN_MAX = 10


def assert_agree(texts: Sequence[str], table: pa.Table, answers: Answers, engine: str) -> float:
    """Every predicate, as written and as Palio prints it, selects the rows that the engine does.

    Returns the share of the cases that are selected.
    """
    messages = messages_of(table)
    assert len(texts) == len(answers)
    failures = [
        failure
        for text, expected in zip(texts, answers, strict=True)
        for failure in _disagreements(text, messages, expected, engine)
    ]
    shown = "\n".join(failures[:SHOWN_MAX])
    assert not failures, f"{len(failures)} of {len(texts)} predicates:\n{shown}"
    return sum(map(sum, answers)) / (len(texts) * len(messages))


def messages_of(table: pa.Table) -> list[palio.Message]:
    """One message a row: a null is an attribute that is not there."""
    return [palio.Message(row) for row in table.to_pylist()]


def _disagreements(
    text: str, messages: list[palio.Message], expected: Sequence[bool], engine: str
) -> Iterator[str]:
    """At most one: the first row that Palio and the engine see differently."""
    try:
        predicate = palio.parse(text)
        printed = str(predicate)
        read_back = palio.parse(printed)
    except palio.PalioError as error:
        yield f"\n  {text}\n  Palio refuses it: {error}"
        return
    for message, answer in zip(messages, expected, strict=True):
        found, found_back = predicate.matches(message), read_back.matches(message)
        if found is not answer or found_back is not answer:
            yield (
                f"\n  {text}\n  printed: {printed}\n  on {message!r}\n"
                f"  {engine}: {answer}, Palio: {found}, Palio on the printed text: {found_back}"
            )
            return
