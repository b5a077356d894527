"""What a night searches: each target draws cases from a seed, in chunks, and checks them.

    attributes     all readers of attributes (attribute_readers.py, broker_readers.py)
    core           frames of strangers, clients and neighbours to brokers (tests/protocol/broker/noise.py)
    frames         all readers of frames (frame_readers.py)
    predicates     the language and its two other forms: an error of ours, or what is printed is parsed
    patterns       likewise
    tables         files of forwarding tables, with a right checksum
    records        what a broker has stored, changed
    configuration  broker.toml
    requests, sockets, bodies   HTTP (http_readers.py)
    mqtt_packets, mqtt_clients   packets of MQTT, and connections (mqtt_targets.py)
    mqtt_sockets   MQTT over WebSocket (mqtt_sockets.py)
    subscriptions, sink_answers   CloudEvents (cloudevents_readers.py)

A case that fails is made smaller and raised as a Finding. The same seed gives the same cases.
"""

from __future__ import annotations

import random as randomness
import tempfile
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import palio
from palio.errors import InvalidFile, LimitExceeded, PalioError
from palio.model import json_form, notation
from palio.model.message import Message
from palio.net.config.reading import example
from palio.net.config.reading import read as read_config
from palio.protocol.broker.broker import Broker
from palio.protocol.broker.failure import BrokerFailed
from palio.protocol.broker.settings import ROUTINGS
from palio.protocol.wire.frames import Limits
from palio.routing import patterns
from tests.fuzz import frame_readers
from tests.fuzz.attribute_readers import BROKERS_SAMPLE, AttributeReaders
from tests.fuzz.broker_readers import BrokerReaders
from tests.fuzz.findings import Finding, failure_of, shrink
from tests.fuzz.frame_grammar import FrameStreams
from tests.fuzz.http_readers import Bodies, Requests, SocketBytes
from tests.fuzz.json_grammar import AttributeTexts
from tests.fuzz.target import Target
from tests.fuzz.test_parser import mutated as mutated_predicate
from tests.fuzz.test_parser import soup
from tests.matching.file import test_soundness as table_files
from tests.protocol.broker.noise import ROLES, Listening, Speaker
from tests.protocol.durability.memory_store import MemoryStore
from tests.protocol.exchange import Exchange, network
from tests.protocol.wire.mutation import mutated


class Attributes(Target):
    name, goal, chunk = "attributes", 72_000_000, 10_000

    @cached_property
    def _brokers(self) -> BrokerReaders:
        return BrokerReaders()

    def run(self, seed: int) -> int:
        random = Random(f"{self.name} {seed}")
        grammar = AttributeTexts(random)
        texts = [grammar.text() for _ in range(self.chunk)]
        try:
            AttributeReaders(random).check(texts)
            self._brokers.check(random.sample(texts, min(BROKERS_SAMPLE, len(texts))))
        except Finding as found:
            if failure_of(self.check, found.case) is None:  # a sample, or a whole batch
                raise
            raise Finding(found.what, shrink(found.case, self.check, tries=500)) from found
        return self.chunk

    def draw(self, random: Random) -> list[bytes]:
        return [AttributeTexts(random).text()]

    def check(self, case: list[bytes]) -> None:
        AttributeReaders().check(case)
        if case:
            BrokerReaders().check(case)


class CoreFrames(Target):
    """Brokers of this process. They are new with each seed, so that a seed alone repeats a failure."""

    name, goal, chunk = "core", 10_000_000, 5_000

    def run(self, seed: int) -> int:
        random = Random(f"{self.name} {seed}")
        speaker = Speaker(random)
        routing = random.choice(ROUTINGS)
        brokers = {role: Listening(random, routing) for role in ROLES}
        said = 0
        while said < self.chunk:
            (role,) = random.choices(ROLES, (4, 4, 1))
            frames: list[bytes] = []
            try:
                brokers[role].connect(role)
                for _ in range(random.randrange(1, 60)):
                    frames.append(speaker.frame(role))
                    if not brokers[role].hear(frames[-1]):
                        break
                brokers[role].leave()
            except Exception as error:
                raise self._finding(role, routing, frames, error) from error
            said += len(frames)
        for role in ("stranger", "client"):
            brokers[role].tidy()
        return said

    def _finding(self, role: str, routing: str, frames: list[bytes], error: Exception) -> Finding:
        """The last connection alone may fail too; else it is the seed that repeats it."""

        def check(case: list[bytes]) -> None:
            broker = Listening(Random(1), routing)
            broker.connect(role)
            for frame in case:
                if not broker.hear(frame):
                    break
            broker.leave()

        what = f"as {role} to a broker with {routing}: {type(error).__name__}: {error}"
        if failure_of(check, frames) is None:
            return Finding(f"{what}, after other connections", frames)
        return Finding(what, shrink(frames, check))

    def draw(self, random: Random) -> list[bytes]:
        return [Speaker(random).frame(random.choice(ROLES))]

    def check(self, case: list[bytes]) -> None:
        raise NotImplementedError


class Frames(Target):
    name, goal, chunk = "frames", 7_000_000, 2_000

    def run(self, seed: int) -> int:
        random = Random(f"{self.name} {seed}")
        grammar = FrameStreams(random)
        count = 0
        while count < self.chunk:
            frames = grammar.stream()
            self._limits = grammar.limits(frames)
            self._cuts = grammar.cuts(sum(map(len, frames)))
            self._batch_max = random.choice((3, 8192))
            self.check_small(frames)
            count += len(frames)
        return count

    _limits = Limits()
    _cuts: ClassVar[list[int]] = []
    _batch_max = 8192

    def draw(self, random: Random) -> list[bytes]:
        return FrameStreams(random).stream()

    def check(self, case: list[bytes]) -> None:
        size = sum(map(len, case))
        cuts = [min(cut, size) for cut in self._cuts]
        frame_readers.check(case, cuts, self._limits, self._batch_max)


class Predicates(Target):
    name, goal, chunk = "predicates", 300_000, 500

    def draw(self, random: Random) -> list[bytes]:
        while True:
            text = soup(random) if random.random() < 0.4 else mutated_predicate(random)
            if len(text) < 2_000 or random.random() < 0.1:  # long ones take long
                break
        return [text.encode("utf-8", "surrogatepass")]

    def check(self, case: list[bytes]) -> None:
        text = b"".join(case).decode("utf-8", "replace")
        for parse in (palio.parse, notation.parse_predicate, json_form.from_json):
            try:
                predicate = parse(text)
            except PalioError:
                continue
            with suppress(LimitExceeded):  # written without NOT and brackets it is longer
                assert palio.parse(str(predicate)) == predicate, "the language"
            assert json_form.from_json(json_form.to_json(predicate)) == predicate, "JSON"
            printed = notation.print_predicate(predicate)
            assert notation.parse_predicate(printed) == predicate, "the notation"


PATTERNS = [
    "[x = 1] THEN [x = 2] WITHIN 1 minute",
    "([a > 1.5] AND [s LIKE 'a%']) THEN [b IS NULL] WITHIN 5 days SAME k, `two words`",
    "[x IN (1, 2)] OR ([y = TIMESTAMP '2013-01-31 10:00:00'] THEN [s = 'it''s']) within 10 seconds",
    "([x > 1] THEN [x > 2]) WITH [x > 2] WITH [y = 1] SAME k",
]
_PATTERN_WORDS = [
    "[",
    "]",
    "(",
    ")",
    "THEN",
    "AND",
    "WITH",
    "OR",
    "WITHIN",
    "SAME",
    "1 minute",
    "x = 1",
    "'",
    "`",
    ",",
]


class Patterns(Target):
    name, goal, chunk = "patterns", 300_000, 500

    def draw(self, random: Random) -> list[bytes]:
        text = list(random.choice(PATTERNS))
        for _ in range(random.choice((0, 1, 1, 2, 4))):
            at, kind = random.randrange(len(text) + 1), random.randrange(3)
            if kind == 0:
                text[at:at] = f" {random.choice(_PATTERN_WORDS)} "
            elif kind == 1:
                del text[at : at + random.randrange(1, 6)]
            else:
                text[at:at] = text[random.randrange(len(text) + 1) :][:25]
        return ["".join(text).encode()]

    def check(self, case: list[bytes]) -> None:
        text = b"".join(case).decode("utf-8", "replace")
        try:
            pattern = patterns.parse(text)
        except PalioError:
            return
        assert patterns.parse(str(pattern)) == pattern, "printing, then parsing"


class _InFolder(Target):
    """A target that needs a file."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="palio-fuzz-")
        self.path = Path(self._folder.name) / "file"


class Tables(_InFolder):
    name, goal, chunk = "tables", 100_000, 100

    @cached_property
    def _contents(self) -> list[bytes]:
        entries = (table_files.ENTRIES, table_files.ONCE, table_files.HOT)
        folder = self.path.parent
        return [table_files.saved(folder, one).read_bytes() for one in entries]

    def draw(self, random: Random) -> list[bytes]:
        content = random.choice(self._contents)
        if random.random() < 0.8:
            return [table_files.changed(content, randomness.Random(random.random()))]
        return [mutated(random, [content])]

    def check(self, case: list[bytes]) -> None:
        self.path.unlink(missing_ok=True)  # a table that is mapped keeps its file
        self.path.write_bytes(b"".join(case))
        try:
            table = palio.ForwardingTable.load(self.path)
        except InvalidFile:
            return
        for row in table_files.ROWS.to_pylist():
            assert {*table.forward(Message(row))} <= {*table.interfaces}
        table.forward_batch(table_files.ROWS)


class Records(Target):
    """A case is the keys and values of a store, one after the other."""

    name, goal, chunk = "records", 200_000, 50

    @cached_property
    def _stores(self) -> tuple[Exchange, list[dict[str, bytes]]]:
        exchange = network([("a", "b")])
        ann, bob = exchange.client("a", "ann"), exchange.client("b", "bob")
        subscribe = ann.session.subscriptions.subscribe
        ids = [subscribe("x > 0", durable="d"), subscribe("x > 5", durable="e", group="g")]
        ann.session.subscriptions.subscribe(pattern=PATTERNS[0])
        exchange.run()
        ann.acks = False
        for x in range(40):
            for client in (ann, bob):
                client.publish({"x": x % 10, "s": "é"}, b"body")
        exchange.run()
        assert ids
        found = [dict(exchange.stores[name].safe) for name in ("a", "b")]
        return exchange, found

    def draw(self, random: Random) -> list[bytes]:
        values = dict(random.choice(self._stores[1]))
        for _ in range(random.choice((1, 1, 2, 4))):
            key = random.choice(list(values))
            roll = random.random()
            if roll < 0.7:
                values[key] = mutated(random, [values[key]])
            elif roll < 0.85:
                values[key] = values[random.choice(list(values))]
            else:
                del values[key]
        return [part for key, value in values.items() for part in (key.encode(), value)]

    def check(self, case: list[bytes]) -> None:
        store = MemoryStore()
        for key, value in zip(case[::2], case[1::2], strict=False):
            store.put(key.decode("utf-8", "replace"), value)
        store.commit()
        exchange = self._stores[0]
        owner = store.get("broker/name")
        settings = exchange.settings["b" if owner == b"b" else "a"]
        with suppress(PalioError, BrokerFailed):
            broker = Broker(settings, store, exchange.now_us, Random(1).randbytes)
            for _ in range(3):
                broker.wake(exchange.now_us + 10_000_000)
                commit = broker.take().commit
                if commit is not None:
                    store.commit()
                    broker.committed(commit, exchange.now_us + 10_000_000)


_CONFIG = """
[broker]
name = "rome"
listen = "127.0.0.1:7400"
routing = "PSF"
[neighbours.milan]
address = ["127.0.0.1:7401", "localhost:7402"]
secret = "0123456789abcdef0123456789abcdef"
weight = 2.5
[access.anonymous]
publish = "x > 1"
subscribe = "TRUE"
[limits]
body = "1 MiB"
connections = 10
[log]
keep = "1 day"
keep_bytes = "1 GiB"
[queues]
full = "drop"
bound = 100
[times]
keepalive = "5 s"
"""
_CONFIG_WORDS = [
    "[", "]", "[[", "=", '"', "'''", "\n", "{}", "{a=1}", "[]", "true", "nan", "inf", "-1", "0", "1e400",
    "9" * 30, '""', '"x"', "1979-05-27", "07:32:00", "0x1F", '"1 s"', '"-1 s"', '"1e999 GiB"', "\\", "#",
    '"é"', '"\\u0000"', "[broker]", "[limits]", "name = 5", "full", '"block"', '"/"', '"a" * 3', "null",
]  # fmt: skip


class Configuration(_InFolder):
    name, goal, chunk = "configuration", 100_000, 100

    @cached_property
    def _texts(self) -> list[str]:
        lines = example().splitlines()
        plain = "\n".join(line.removeprefix("# ") if " = " in line else line for line in lines)
        return [_CONFIG, plain, example()]

    def draw(self, random: Random) -> list[bytes]:
        text = list(random.choice(self._texts))
        for _ in range(random.choice((1, 1, 2, 5))):
            at, kind = random.randrange(len(text) + 1), random.randrange(5)
            if kind == 0:
                text[at:at] = random.choice(_CONFIG_WORDS)
            elif kind == 1:
                del text[at : at + random.randrange(1, 20)]
            elif kind == 2:
                text[at:at] = text[random.randrange(len(text) + 1) :][:60]
            elif kind == 3:
                equals = [i for i, c in enumerate(text) if c == "="]
                begin = random.choice(equals or [0])
                end = next((i for i in range(begin, len(text)) if text[i] == "\n"), len(text))
                text[begin:end] = f"= {random.choice(_CONFIG_WORDS)}"
            else:
                text[at : at + 1] = chr(
                    random.choice((random.randrange(128), random.randrange(0x3000)))
                )
        data = "".join(text).encode()
        return [mutated(random, [data]) if random.random() < 0.05 else data]

    def check(self, case: list[bytes]) -> None:
        self.path.write_bytes(b"".join(case))
        with suppress(PalioError):
            read_config(self.path)


def all_targets() -> list[Target]:
    from tests.fuzz.cloudevents_readers import SinkAnswers, Subscriptions
    from tests.fuzz.mqtt_sockets import MqttSockets
    from tests.fuzz.mqtt_targets import MqttClients, MqttReaders  # they are Targets

    kinds: list[Any] = [
        Attributes, CoreFrames, Frames, Predicates, Patterns, Tables, Records, Configuration,
        Requests, SocketBytes, Bodies,
        MqttReaders, MqttClients, MqttSockets,
        Subscriptions, SinkAnswers,
    ]  # fmt: skip
    return [kind() for kind in kinds]
