"""Where attacks happen: broker processes on loopback, a witness in its own process, attackers here.

    attackers (this process) ─▶ ┌─────────┐ ◀─ witness: publishes and subscribes all the time
                                │ brokers │
    /metrics ◀───────────────── └─────────┘    how long their event loops were held

`Arena.judged` is the end of every attack: the brokers live, the witness got everything in order, and
what their watchdogs measured.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Self, TypeAlias

from palio.net.cluster.ports import HOST, answers, free_ports
from palio.net.cluster.processes import BrokerProcesses
from palio.net.endpoint import Endpoint
from palio.protocol.broker.access import token_hash
from tests.attack.witness import Report
from tests.net.peers import asked, get
from tests.protocol.broker.test_broker_fuzz import resident_bytes

SECRET = "0123456789abcdef0123456789abcdef"
EVIL = "evil"
"""A neighbour that the brokers know and that never runs."""
LIMITED, PUBLISHER = "token-of-limited", "token-of-publisher"
"""Tokens of identities with small grants."""
DELAY_S_MAX = 30.0
"""A message of the witness that takes longer counts as lost."""
HOLD_S_MAX = 0.05
PATIENCE_S = 120.0
_LONGEST = "palio_loop_hold_max_seconds"

WORST_SCHEMA = {
    "properties": {
        "text": {"pattern": "(a|b|ab)*c{0,100}(x+x+)+y|(x?){50}z"},
        "unique": {"uniqueItems": True, "maxItems": 20_000},
        "several": {"anyOf": [{"items": {"const": i}} for i in range(20)]},
    },
    "patternProperties": {"^a.*b$": {"type": "string"}},
    "additionalProperties": {"type": "integer"},
}
"""Of what takes long in a schema, something of each."""
_CONFIG = f"""
[times]
keepalive = "10 s"  # attackers are slow when the machine is busy, and are not dead

[access]
anonymous = true
admin = true

[identities.limited]
token_sha256 = "{token_hash(LIMITED)}"
subscribe = "a = 1 AND s LIKE 'x%' OR b BETWEEN 1 AND 5"
publish = "TRUE"

[identities.publisher]
token_sha256 = "{token_hash(PUBLISHER)}"
publish = "p = 1"

[schemas.worst]
where = "worst = 1"
schema = "worst.json"

[neighbours.{EVIL}]
secret = "{SECRET}"
"""
SLOW_HOST = "127.0.0.2"
"""Where sinks may be."""
_SINKS = f"""
[sinks]
networks = ["{SLOW_HOST}/32"]
http = true
timeout = "2 s"
attempts = 2
retry = "100 ms"
"""
_witnesses = count(1)


Buckets: TypeAlias = dict[float, float]
"""Of a histogram: how many lie at each bound or below."""


@dataclass
class Holds:
    """Of one broker, since its start: by the clock, and in processor time of the loop's thread, which
    is the broker's own doing however busy the machine is."""

    longest_s: float
    buckets: Buckets
    cpu_longest_s: float
    cpu_buckets: Buckets

    @classmethod
    def read(cls, metrics: str) -> Self:
        """From the text of /metrics."""
        samples = {}
        for line in metrics.splitlines():
            key, _, value = line.rpartition(" ")
            samples[key] = float(value) if key[:1] != "#" else 0.0
        return cls(
            next(v for k, v in samples.items() if k.startswith(_LONGEST) and 'since="start"' in k),
            _buckets(samples, "palio_loop_hold_seconds_bucket"),
            next(v for k, v in samples.items() if k.startswith("palio_loop_hold_cpu_max_seconds")),
            _buckets(samples, "palio_loop_hold_cpu_seconds_bucket"),
        )

    @classmethod
    def together(cls, several: list[Self]) -> Self:
        """As if they were of one broker."""
        return cls(
            max(one.longest_s for one in several),
            _sum([one.buckets for one in several]),
            max(one.cpu_longest_s for one in several),
            _sum([one.cpu_buckets for one in several]),
        )

    @property
    def is_short(self) -> bool:
        return self.cpu_longest_s <= HOLD_S_MAX

    def __str__(self) -> str:
        return (
            f"held {1000 * self.longest_s:.0f} ms at most, p99.9 {_p999_ms(self.buckets):g} ms; "
            f"processor time {1000 * self.cpu_longest_s:.0f} ms, "
            f"p99.9 {_p999_ms(self.cpu_buckets):g} ms, {_beyond(self.cpu_buckets, 0.01):,.0f} turns above 10 ms"
        )


def _buckets(samples: dict[str, float], histogram: str) -> Buckets:
    return {
        float(key.rsplit('le="', 1)[1].split('"')[0].replace("+Inf", "inf")): count
        for key, count in samples.items()
        if key.startswith(histogram)
    }


def _sum(several: list[Buckets]) -> Buckets:
    return {bound: sum(one[bound] for one in several) for bound in several[0]}


def _p999_ms(buckets: Buckets) -> float:
    """The bound that 999 of 1,000 lie at or below; 0: there are fewer in all."""
    total = max(buckets.values(), default=0)
    return 1000 * min((s for s, n in buckets.items() if n >= 0.999 * total > 999), default=0.0)


def _beyond(buckets: Buckets, seconds: float) -> float:
    return max(buckets.values(), default=0) - buckets.get(seconds, 0)


class Arena:
    """`full`: as much as the attack takes; otherwise little of it, for `make test` and `make slow`."""

    def __init__(self, folder: Path, *, full: bool, brokers: int = 1) -> None:
        self.folder, self.full = folder, full
        self.names = [f"b{n + 1}" for n in range(brokers)]
        ports = free_ports(0, 3 * brokers + 2)
        self.ports = dict(zip(self.names, ports[:brokers], strict=True))
        self._pages = dict(zip(self.names, ports[brokers : 2 * brokers], strict=True))
        self._mqtt = dict(zip(self.names, ports[2 * brokers : -2], strict=True))
        self.http, self.mqtt_websocket = (Endpoint(HOST, port) for port in ports[-2:])
        """Of the first broker."""
        self.processes = BrokerProcesses()
        self._witness: asyncio.subprocess.Process | None = None
        self.reports: list[Report] = []
        self._before: list[Holds] = []

    def count(self, short: int, full: int) -> int:
        return full if self.full else short

    # ---- brokers

    def start(self) -> None:
        """Start all brokers that do not run."""
        for name in self.names:
            if name not in self.processes.running:
                path = self.folder / f"{name}.toml"
                path.write_text(self._config(name))
                (self.folder / "worst.json").write_text(json.dumps(WORST_SCHEMA))
                self.processes.start(name, path, self.folder / f"{name}.log")

    def _config(self, name: str) -> str:
        text = f'[broker]\nname = "{name}"\nlisten = "{HOST}:{self.ports[name]}"\ndata = "{name}"\n'
        text += f'secret = "{SECRET}"\n[metrics]\nlisten = "{HOST}:{self._pages[name]}"\n'
        at = self.names.index(name)
        text += f'[mqtt]\nlisten = "{HOST}:{self._mqtt[name]}"\n'
        if at == 0 and find_spec("websockets") is not None:
            text += f'websocket = "{self.mqtt_websocket}"\n'
        text += _CONFIG
        if at == 0 and find_spec("h11") is not None:
            text += f'[http]\nlisten = "{self.http}"\nreceive = "3 s"\nstalled = "5 s"\n{_SINKS}'
        if at:
            before = self.names[at - 1]
            text += f'[neighbours.{before}]\naddress = "{HOST}:{self.ports[before]}"\n'
        if at + 1 < len(self.names):
            text += f"[neighbours.{self.names[at + 1]}]\n"
        return text

    async def ready(self) -> None:
        """Wait until all brokers listen."""
        async with asyncio.timeout(PATIENCE_S):
            for port in self.ports.values():
                while not answers(port):
                    self.processes.check()
                    await asyncio.sleep(0.05)

    async def restart(self, name: str = "b1") -> None:
        """Stop a broker and start it again, with a new witness."""
        await self.end_witness()
        self._before.append(await self.holds(name))
        await asyncio.to_thread(self.processes.stop, name)
        self.start()
        await self.ready()
        await self.begin_witness()

    def close(self) -> None:
        self.processes.stop_all()

    def endpoint(self, name: str = "b1") -> Endpoint:
        return Endpoint(HOST, self.ports[name])

    def mqtt_endpoint(self, name: str = "b1") -> Endpoint:
        return Endpoint(HOST, self._mqtt[name])

    def page(self, name: str = "b1") -> Endpoint:
        return Endpoint(HOST, self._pages[name])

    def url(self, name: str = "b1") -> str:
        return f"palio://{HOST}:{self.ports[name]}"

    def log(self, name: str = "b1") -> str:
        return (self.folder / f"{name}.log").read_text("utf-8", "replace")

    def memory(self, name: str = "b1") -> int:
        return resident_bytes(self.processes.process_id(name))

    async def metric(self, prefix: str, name: str = "b1") -> float:
        """The sum of all samples whose name and labels begin like this."""
        _, _, body = await asked(self.page(name), get("/metrics"))
        lines = (line.rsplit(" ", 1) for line in body.decode().splitlines() if line[:1] != "#")
        return sum(float(value) for key, value in lines if key.startswith(prefix))

    async def holds(self, name: str = "b1") -> Holds:
        _, _, body = await asked(self.page(name), get("/metrics"))
        return Holds.read(body.decode())

    # ---- the witness

    async def begin_witness(self) -> None:
        name = f"witness{next(_witnesses)}"
        urls = [self.url(self.names[0]), self.url(self.names[-1])]
        self._witness = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.attack.witness", name, *urls,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip
        assert self._witness.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            line = await self._witness.stdout.readline()
        assert line == b"ready\n", f"the witness could not begin: {line!r}"

    async def end_witness(self) -> None:
        """Let the witness end; what it has seen is in `reports`."""
        if self._witness is None:
            return
        process, self._witness = self._witness, None
        async with asyncio.timeout(PATIENCE_S):
            out, _ = await process.communicate(b"")  # ends its input
        self.reports.append(Report(**json.loads(out)))

    def kill_witness(self) -> None:
        if self._witness is not None and self._witness.returncode is None:
            self._witness.kill()

    # ---- the end

    async def judged(self) -> list[Holds]:
        """What must hold after every attack; gives the holds of the event loops."""
        self.processes.check()
        await self.end_witness()
        self.processes.check()
        assert self.processes.running == self.names
        for report in self.reports:
            assert report.missing == 0, report
            assert report.is_ordered, report
            assert report.longest_s < DELAY_S_MAX, report
        assert "this is a bug" not in "".join(map(self.log, self.names))
        return [*self._before, *[await self.holds(name) for name in self.names]]
