"""A rehearsal before the broker listens: two cores in memory do once what a broker does.

Whatever is loaded or compiled at its first use (kernels, the parser, readers of stored messages) is
ready then, and no client waits for it. What the cores say to each other and to a client is passed on
here; nothing is stored, and no clock is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from palio.protocol.broker.access import EVERYTHING, Access, Identity
from palio.protocol.broker.broker import Broker
from palio.protocol.broker.settings import Neighbour, Settings
from palio.protocol.broker.snapshot import Snapshot
from palio.protocol.wire.control import (
    VERSION,
    Acknowledge,
    AdvertiseRequest,
    ControlMessage,
    Credit,
    Explain,
    Hello,
    Quench,
    SubscribeRequest,
    UnsubscribeRequest,
)
from palio.protocol.wire.frames import control_frame, message_frame
from palio.protocol.wire.headers import PublishHeader

_SUBSCRIPTIONS = 300
"""More than a table that is not compiled has. Most are `x = ...`, which cost least to compare."""
_HOT_KEY = 24
"""Subscriptions that begin with the same constraint: more than are looked at one by one."""
_MESSAGES = 100
"""More bytes than Python reads by itself."""
_ROUNDS_MAX = 200
_SECRET = b"of the rehearsal only"
_PREDICATES = (
    "x = {i}", "x > {i} AND y < 2.5", "s = 's{i}'", "s LIKE 'a%' AND x = {i}", "s LIKE '%b' OR b",
    "s LIKE '%c%' AND NOT x = {i}", "x IN ({i}, 1, 2)", "s IN ('a', 'b{i}')", "x IS NULL AND z = {i}",
    "x BETWEEN 1 AND {i}", "t > TIMESTAMP '2026-01-01 00:00:00' AND x <> {i}",
    "lower(s) = 's{i}'", "x < y + {i}", "s LIKE '%a_c%{i}' AND x >= 0", "s RLIKE '^[a-c]+{i}'", "abs(y - {i}.5) < 1.5",
    "array_contains(a, {i})", "exists(a, e -> e = {i}) AND x = 1", "year(t) = 2026", "CAST(x AS STRING) = '{i}'",
    "coalesce(z, {i}) = 1", "get_json_object(s, '$.a') = 'b{i}'", "trim(s) = 'x{i}'",
)  # fmt: skip
_CLIENT = 1


class _Memory:
    """A store that forgets everything in the end."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        return self._values.get(key)

    def scan(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        return iter([(k, v) for k, v in sorted(self._values.items()) if k.startswith(prefix)])

    def put(self, key: str, value: bytes) -> None:
        self._values[key] = value

    def delete(self, key: str) -> None:
        self._values.pop(key, None)


class _Stage:
    """Two cores that are linked; a client of the first one sends, and a client of each receives."""

    def __init__(self, random: Callable[[int], bytes]) -> None:
        self._random = random
        self._stores = {"a": _Memory(), "b": _Memory()}
        self.cores = {name: self._core(name) for name in self._stores}
        self.now_us = 1
        self._number = 0

    def _core(self, name: str) -> Broker:
        anybody = Access(anonymous=Identity("anybody", EVERYTHING, EVERYTHING, admin=True))
        other = {"a": "b", "b": "a"}[name]
        settings = Settings(name, anybody, {other: Neighbour(_SECRET)})
        return Broker(settings, self._stores[name], 1, self._random, defers=True)

    def begin(self, link: int) -> None:
        """Link the two, and let a client connect to each."""
        self.cores["b"].open(link, self.now_us)
        self.cores["a"].open(link, self.now_us, dials="b")
        for core in self.cores.values():
            core.open(_CLIENT, self.now_us)
        self.say("a", Hello(VERSION, "client", "one"))
        self.say("b", Hello(VERSION, "client", "two"))
        self.settle()

    def restart(self, name: str) -> None:
        """The core of this name begins anew with what is stored."""
        self.cores[name] = self._core(name)

    def say(self, name: str, *messages: ControlMessage) -> None:
        data = b"".join(map(control_frame, messages))
        self.cores[name].receive(_CLIENT, data, self.now_us)

    def publish(self, count: int, *, durable: bool) -> None:
        frames = []
        for i in range(count):
            self._number += 1
            text = json.dumps(
                {"x": i, "y": 1.5, "s": f"a{i}b", "b": True, "z": None, "a": [i]}
            ).encode()
            header = PublishHeader(self._number, self._number, durable)
            frames.append(message_frame(header, text, b"body"))
        self.cores["a"].receive(_CLIENT, b"".join(frames), self.now_us)
        self.settle()

    def settle(self) -> None:
        """Pass on what is said until nothing is, with commits and jobs."""
        for _ in range(_ROUNDS_MAX):
            self.now_us += 1000
            said = [self._round(name) for name in self.cores]
            if not any(said):
                return

    def _round(self, name: str) -> bool:
        core, other = self.cores[name], self.cores["b" if name == "a" else "a"]
        effects = core.take()
        for job in effects.jobs:
            job.run()
            core.finished(job, self.now_us)
        if effects.commit is not None:
            core.committed(effects.commit, self.now_us)
        said = [(link, frames) for link, frames in effects.writes.items() if link != _CLIENT]
        for link, frames in said:
            other.receive(link, b"".join(frames), self.now_us)
        return bool(said or effects.jobs or effects.has_more or effects.commit is not None)

    def wake(self) -> None:
        self.now_us += 2_000_000
        for core in self.cores.values():
            core.wake(self.now_us)
        self.settle()


def rehearse(random: Callable[[int], bytes]) -> dict[str, Snapshot]:
    """Do once what a broker does; gives what the cores have counted."""
    stage = _Stage(random)
    stage.begin(2)
    for name in stage.cores:
        stage.say(
            name,
            SubscribeRequest(1001, "x >= 0 AND s IS NOT NULL", durable="all"),
            SubscribeRequest(1002, "x = 1 OR x = 2", group="group"),
            SubscribeRequest(1003, pattern="[x = 1] then [x = 2] within 1 minute"),
            AdvertiseRequest(1, ("x >= 0", "s IS NOT NULL")),
            Quench(2, True),
            *(SubscribeRequest(i, p.format(i=i), credit=1000) for i, p in enumerate(_PREDICATES)),
        )
        stage.settle()
    stage.wake()
    for name in stage.cores:
        stage.say(name, Quench(4, False))
    many = [f"x = 0 AND y > {i}" for i in range(_HOT_KEY)]
    many += [f"x = {i}" for i in range(len(_PREDICATES) + _HOT_KEY, _SUBSCRIPTIONS)]
    numbered = enumerate(many, start=len(_PREDICATES))
    stage.say("a", *(SubscribeRequest(i, text, credit=1000) for i, text in numbered))
    stage.settle()
    for durable in (False, True):
        stage.publish(1, durable=durable)
        stage.publish(_MESSAGES, durable=durable)
    for name, core in stage.cores.items():
        stage.say(name, Explain(3, '{"x": 1, "s": "ab"}'), Credit(1, 10), Acknowledge(1001, (1, 2)))
        core.receive(_CLIENT, message_frame(PublishHeader(10**6, 1, False), b"{", b""), 1)
        stage.say(name, *(UnsubscribeRequest(i) for i in range(0, len(_PREDICATES), 2)))
        stage.settle()
    stage.publish(_MESSAGES, durable=True)
    stage.wake()
    stage.restart("a")
    stage.cores["b"].close(2, stage.now_us)
    stage.begin(3)
    stage.say("a", SubscribeRequest(1, "x >= 0", durable="again", since=0, credit=1000))
    stage.say("a", SubscribeRequest(2, "x >= 0 AND s IS NOT NULL", durable="all", credit=1000))
    stage.settle()
    return {name: core.snapshot() for name, core in stage.cores.items()}
