"""A soak from the start to the verdict.

The first seconds go as fast as they can, which gives the maximal rate; the rest of the time the load is
half of that. Brokers keep what was published for a few seconds only, so that memory that grows is a
leak and not retention.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO

from palio.lab.soak.load import SoakLoad, running_load
from palio.lab.soak.sampling import Sample, read_metrics, rss_bytes, sample
from palio.lab.soak.verdict import Trend, trends
from palio.net.cluster import Cluster, local_cluster
from palio.net.cluster.ports import HOST, free_ports

_MAXIMAL_S = 8.0
_EVERY_S = 1.0
_SETTINGS = {"log": {"keep": "5 s", "memory": "8 MiB"}}


@dataclass(frozen=True)
class Soaked:
    samples: list[Sample]
    trends: list[Trend]
    maximal_rate: float
    """Messages a second that were published and delivered at most."""
    rate: float
    """The same, during the soak."""
    faults: dict[str, int]
    """Durable messages that were lost or doubled."""

    @property
    def is_flat(self) -> bool:
        return all(one.is_flat for one in self.trends)


def soak(seconds: float, out: Path, note: Callable[[str], None] = print) -> Soaked:
    """Run it; samples go to `out`/samples.jsonl as they are taken."""
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="palio-soak-") as folder, (out / "samples.jsonl").open("w") as file:  # fmt: skip
        return asyncio.run(_soak(seconds, Path(folder), file, note))


async def _soak(seconds: float, folder: Path, file: TextIO, note: Callable[[str], None]) -> Soaked:
    cluster = local_cluster(2, "line", data=folder, settings=_SETTINGS)
    pages = dict(zip(cluster.names, free_ports(0, 2), strict=True))
    for name, port in pages.items():
        cluster.own_settings[name] = {"metrics": {"listen": f"{HOST}:{port}"}}
    async with cluster, running_load(cluster.urls) as load:
        maximal_rate = await _measured(load)
        load.set_rate(maximal_rate / 2)
        note(f"at most {maximal_rate:,.0f} messages a second; the soak publishes half of that")
        await asyncio.sleep(3.0)  # what waits is worked off
        load.ages(durable=False), load.ages(durable=True)
        samples: list[Sample] = []
        sent, began = load.sent, time.monotonic()
        while (t_s := time.monotonic() - began) < seconds:
            await asyncio.sleep(max(0.0, _EVERY_S * (len(samples) + 1) - t_s))
            samples.append(await _sampled(load, cluster, pages, time.monotonic() - began))
            file.write(json.dumps(samples[-1]) + "\n")
            if len(samples) % 60 == 0:
                file.flush()
                note(_line(samples[-1]))
        rate = (load.sent - sent) / (time.monotonic() - began)
        return Soaked(samples, trends(samples), maximal_rate, rate, load.faults)


async def _measured(load: SoakLoad) -> float:
    """How many messages a second can be published, with what they cause."""
    load.set_rate(None)
    await asyncio.sleep(_MAXIMAL_S / 2)  # connections and kernels get warm
    sent, began = load.sent, time.monotonic()
    await asyncio.sleep(_MAXIMAL_S / 2)
    return (load.sent - sent) / (time.monotonic() - began)


async def _sampled(load: SoakLoad, cluster: Cluster, pages: dict[str, int], t_s: float) -> Sample:
    brokers = {}
    for name, port in pages.items():
        metrics = await asyncio.to_thread(read_metrics, f"{HOST}:{port}")
        brokers[name] = {"rss_bytes": float(rss_bytes(cluster.process_id(name))), "queues": 0.0, **metrics}  # fmt: skip
    return sample(load, t_s, brokers)


def _line(one: Sample) -> str:
    memory = ", ".join(f"{name} {values['rss_bytes'] / (1 << 20):.1f} MiB" for name, values in one["brokers"].items())  # fmt: skip
    live, durable = one["live"], one["durable"]
    return (
        f"{one['t_s'] / 60:6.1f} min: {memory}; live {live['p50']:.1f} / {live['p99']:.1f} ms, "
        f"durable {durable['p50']:.1f} / {durable['p99']:.1f} ms; {one['visits']:,} visits"
    )
