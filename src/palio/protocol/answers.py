"""Answers: what is wanted by whom, asked for many messages at once.

    messages   0  1  2  3  4
    codes      1  0  1  1  2         which answer each gets
    answers    (x), (y), (x, y)      who wants it

There are few different answers, so Python has something to do for each of them, and nothing for
each message of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from palio.model.predicate import Filter
from palio.protocol.run_codes import UNKNOWN
from palio.protocol.runs import Run, with_room
from palio.routing.data_path import DataPath, Peers
from palio.routing.packets import Peer

T = TypeVar("T")


class Matched(Generic[T]):
    """What each message of a run matches."""

    __slots__ = ("answers", "codes")

    def __init__(self, answers: Sequence[tuple[T, ...]], codes: Any) -> None:
        self.answers = answers
        self.codes = codes

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[tuple[T, ...]]:
        return iter([self.answers[code] for code in self.codes.tolist()])

    def parts(self) -> list[tuple[tuple[T, ...], list[int]]]:
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


class Answers(Generic[T]):
    """`meaning` is what is answered for a peer that wants a message."""

    def __init__(self, meaning: Callable[[Peer], T]) -> None:
        self._meaning = meaning
        self._paths = DataPath()
        # what the interfaces of `_paths` mean, as far as messages have matched them
        self._peers: Peers | None = None
        self._places: dict[Peer, int] = {}
        self._alone: list[tuple[T, ...]] = []
        self._codes: Any = None

    def change(self, peer: Peer, news: Mapping[Filter, bool]) -> None:
        """A peer wants messages (True), or no longer."""
        self._paths.change(peer, news)

    def of(self, texts: Sequence[bytes]) -> list[tuple[T, ...]]:
        """What is wanted of messages, which are JSON objects; InvalidValue if one is not."""
        meaning = self._meaning
        found = self._paths.peers_of(texts) if texts else []
        return [tuple([meaning(peer) for peer in peers]) for peers in found]

    def of_run(self, run: Run) -> Matched[T]:
        """The same for a run."""
        matches = self._paths.matches(run.attributes())
        if matches is None:  # one by one is quicker
            answers: dict[tuple[T, ...], int] = {}
            found = self.of([text for _, _, text, _ in run])
            codes = [answers.setdefault(one, len(answers)) for one in found]
            return Matched(list(answers), np.array(codes, np.int64))
        ends, interfaces = matches.ends, matches.found
        self._learn(matches.peers, interfaces)
        counts = np.diff(ends)
        if len(interfaces) == len(run) and (counts == 1).all():
            return Matched(self._alone, self._codes[interfaces])
        return self._mixed(ends, self._codes[interfaces], counts)

    def _learn(self, peers: Peers, found: Any) -> None:
        """Interfaces of one peer mean the same."""
        if self._peers is not peers:
            self._peers, self._places, self._alone = peers, {}, []
            self._codes = np.empty(0, np.int64)
        self._codes = with_room(self._codes, found)
        for interface in np.unique(found[self._codes[found] == UNKNOWN]).tolist():
            peer = peers[interface]
            code = self._codes[interface] = self._places.setdefault(peer, len(self._alone))
            if code == len(self._alone):
                self._alone.append((self._meaning(peer),))

    def _mixed(self, ends: Any, found: Any, counts: Any) -> Matched[T]:
        """Some messages match none or several: each such set is an answer of its own."""
        nobody, answers = len(self._alone), [*self._alone, ()]
        codes = np.full(len(counts), nobody, np.int64)
        one = counts == 1
        codes[one] = found[ends[:-1][one]]
        sets: dict[tuple[int, ...], int] = {}
        for row in np.flatnonzero(counts > 1).tolist():
            own = tuple(dict.fromkeys(found[ends[row] : ends[row + 1]].tolist()))
            code = own[0] if len(own) == 1 else sets.get(own)
            if code is None:
                code = sets[own] = len(answers)
                answers.append(tuple([self._alone[i][0] for i in own]))
            codes[row] = code
        return Matched(answers, codes)
