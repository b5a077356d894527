"""Addressing: which durable subscriptions messages are for, wherever these live.

    messages   0  1  2  3  4
    codes      1  0  1  1  2         which answer each gets
    answers    (x), (y), (x, y)      Keys: brokers and names

There are few different answers, so Python has something to do for each of them, and nothing for
each message of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from palio.model.predicate import Filter
from palio.protocol.runs import Run
from palio.routing.data_path import DataPath
from palio.routing.packets import Peer

Keys: TypeAlias = tuple[tuple[str, str], ...]
"""Subscriptions that a message matches: their brokers and names."""


class Matched:
    """What each message of a run matches."""

    __slots__ = ("answers", "codes")

    def __init__(self, answers: Sequence[Keys], codes: Any) -> None:
        self.answers = answers
        self.codes = codes

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[Keys]:
        return iter([self.answers[code] for code in self.codes.tolist()])

    def parts(self) -> list[tuple[Keys, list[int]]]:
        """The answers that are there, and the places of the messages that get each."""
        order = np.argsort(self.codes, kind="stable")
        ordered = self.codes[order]
        begins = np.flatnonzero(np.diff(ordered, prepend=-1))
        places = order.tolist()
        ends = [*begins[1:].tolist(), len(places)]
        return [
            (self.answers[code], places[begin:end])
            for code, begin, end in zip(
                ordered[begins].tolist(), begins.tolist(), ends, strict=True
            )
        ]


class Addressing:
    def __init__(self) -> None:
        self._paths = DataPath()
        self._peers: list[Peer] | None = None  # the interfaces of `_paths`, and what they mean
        self._answers: list[Keys] = []
        self._codes: Any = None

    def add(self, broker: str, name: str, filters: Sequence[Filter]) -> None:
        self._paths.change(_peer(broker, name), dict.fromkeys(filters, True))

    def remove(self, broker: str, name: str, filters: Sequence[Filter]) -> None:
        self._paths.change(_peer(broker, name), dict.fromkeys(filters, False))

    def of(self, texts: Sequence[bytes]) -> list[Keys]:
        """What messages match, which are JSON objects."""
        return [_keys(peers) for peers in self._paths.peers_of(texts)] if texts else []

    def of_run(self, run: Run) -> Matched | None:
        """The same for a run. None: one by one is quicker."""
        matches = self._paths.matches(run.attributes())
        if matches is None:
            return None
        if self._peers is not matches.peers:
            self._learn(matches.peers)
        ends, found = matches.ends, matches.found
        counts = np.diff(ends)
        if len(found) == len(run) and (counts == 1).all():
            return Matched(self._answers, self._codes[found])
        return self._mixed(ends, found, counts)

    def _learn(self, peers: list[Peer]) -> None:
        """Interfaces of one peer mean the same."""
        codes: dict[Peer, int] = {}
        self._codes = np.array([codes.setdefault(peer, len(codes)) for peer in peers], np.int64)
        self._answers = [_key(peer) for peer in codes]
        self._peers = peers

    def _mixed(self, ends: Any, found: Any, counts: Any) -> Matched:
        """Some messages match none or several: each such set is an answer of its own."""
        answers: dict[Keys, int] = {keys: code for code, keys in enumerate(self._answers)}
        codes = np.full(len(counts), answers.setdefault((), len(answers)), np.int64)
        known = self._codes[found]
        one = counts == 1
        codes[one] = known[ends[:-1][one]]
        sets: dict[bytes, int] = {}
        for row in np.flatnonzero(counts > 1).tolist():
            own = known[ends[row] : ends[row + 1]]
            code = sets.get(own.tobytes())
            if code is None:
                keys = tuple([self._answers[i][0] for i in dict.fromkeys(own.tolist())])
                code = sets[own.tobytes()] = answers.setdefault(keys, len(answers))
            codes[row] = code
        return Matched(list(answers), codes)


def _peer(broker: str, name: str) -> Peer:
    return f"{broker}\n{name}"


def _keys(peers: list[Peer]) -> Keys:
    return _key(peers[0]) if len(peers) == 1 else tuple([_key(peer)[0] for peer in peers])


@lru_cache(1 << 16)
def _key(peer: Peer) -> Keys:
    broker, _, name = peer.partition("\n")
    return ((broker, name),)
