"""What one durable message over three brokers costs in Python, and how often it is parsed."""

from __future__ import annotations

from palio.lab.demo.walk import DURABLE, LIVE, walk

CALLS_MAX = 550
FILES_MAX = 27
"""They were 22 before messages had headers, which admission reads, and times at which they expire, and before
`recipients.py` and `uncommitted.py` were taken out of longer files."""


def test_a_message_is_parsed_at_most_once_a_broker() -> None:
    found = walk()
    assert sorted(found.deliveries) == [(DURABLE, True), (LIVE, False)]
    assert dict(found.parses) == {"a": 1, "b": 1, "c": 1}


def test_the_walk_is_short() -> None:
    found = walk()
    assert found.calls <= CALLS_MAX
    assert len(found.files) <= FILES_MAX, sorted(found.files)
