"""The watchdog of the event loop: what it measures, and what it says."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from pathlib import Path

import pytest

from palio.net.broker.loop_watch import RECENT_S, LoopWatch
from palio.net.broker.server import serving
from palio.protocol.wire.control import Ping, Pong
from tests.net.peers import METRICS, Peer, asked, configured, get, run, until
from tests.net.stand_in import Cores


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def turn(watch: LoopWatch, clock: Clock, *parts: float, **requests: int) -> None:
    """A hold whose parts, receiving, core and sending, take so long."""
    began = clock.now
    receiving, core, sending = parts
    clock.now += receiving
    taking = clock.now
    clock.now += core
    acting = clock.now
    clock.now += sending
    watch.end(began, taking, acting, requests)


def test_a_hold_is_counted_and_a_long_one_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    watch = LoopWatch(0.05, clock, clock)
    with caplog.at_level(logging.WARNING, "palio.net"):
        turn(watch, clock, 0.001, 0.002, 0.001)
        assert caplog.records == []
        watch.events += ["close", "close", "wake"]
        turn(watch, clock, 0.1, 0.02, 0.003, SubscribeRequest=7)
        turn(watch, clock, 0.1, 0.02, 0.003)  # within a second: counted, not logged
        clock.now += 2
        turn(watch, clock, 0.0, 0.2, 0.0)
    first, second = [record.__dict__["fields"] for record in caplog.records]
    assert first == {
        "held_ms": 123.0, "cpu_ms": 123.0, "receiving_ms": 100.0, "core_ms": 20.0, "sending_ms": 3.0,
        "events": "2 close, 1 wake", "requests": "7 SubscribeRequest",
    }  # fmt: skip
    assert (second["more"], second["core_ms"]) == (1, 200.0)
    seen = watch.snapshot()
    assert (seen.count, seen.warnings) == (4, 3)
    assert seen.longest_s == seen.recent_s == pytest.approx(0.2)
    assert seen.p999_s >= 0.2


def test_the_processor_time_of_a_hold_tells_a_slow_broker_from_a_busy_machine(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, cpu = Clock(), Clock()
    watch = LoopWatch(0.05, clock, cpu)
    cpu.now += 0.03
    with caplog.at_level(logging.WARNING, "palio.net"):
        turn(watch, clock, 0.0, 0.2, 0.0)
    assert caplog.records[0].__dict__["fields"]["cpu_ms"] == 30.0
    cpu.now += 0.1  # in what is no hold
    clock.now += 2.0
    turn(watch, clock, 0.0, 0.02, 0.0)
    assert watch.snapshot().longest_cpu_s == pytest.approx(0.03)
    assert watch.cpu_holds.count == watch.holds.count == 2
    assert watch.cpu_holds.quantile(0.9) <= 0.05 < watch.holds.quantile(0.9)


def test_the_processor_time_is_not_read_for_short_holds() -> None:
    clock, readings = Clock(), 0

    def cpu() -> float:
        nonlocal readings
        readings += 1
        return 0.0

    watch = LoopWatch(0.05, clock, cpu)
    for _ in range(1000):
        turn(watch, clock, 0.0, 0.0001, 0.0)
    assert watch.cpu_holds.count == 1000
    assert readings <= 1 + 1000 * 0.0001 / 0.001 + 1


def test_the_recent_longest_is_forgotten_and_the_longest_is_not() -> None:
    clock = Clock()
    watch = LoopWatch(1.0, clock)
    turn(watch, clock, 0.3, 0.0, 0.0)
    clock.now += RECENT_S
    turn(watch, clock, 0.1, 0.0, 0.0)
    assert watch.snapshot().recent_s == pytest.approx(0.3)
    clock.now += RECENT_S
    assert watch.snapshot().recent_s == pytest.approx(0.1)
    clock.now += 5 * RECENT_S
    assert watch.snapshot().recent_s == 0
    assert watch.snapshot().longest_s == pytest.approx(0.3)


def test_a_late_timer_is_a_hold_unless_a_turn_was_the_reason() -> None:
    clock = Clock()
    watch = LoopWatch(1.0, clock)
    clock.now += 0.01
    due = clock.now
    clock.now += 0.2
    watch.late(due)  # nothing ran, and yet it is late
    assert watch.snapshot().longest_s == pytest.approx(0.2)
    due = clock.now + 0.01
    turn(watch, clock, 0.3, 0.0, 0.0)
    watch.late(due)
    assert watch.snapshot().count == 2, "the turn, and not the timer as well"
    clock.now += 0.002
    watch.late(clock.now - 0.002)
    assert watch.snapshot().count == 2, "timers are never exact"


@pytest.mark.usefixtures("loop")
def test_a_host_measures_what_its_core_does(tmp_path: Path, cores: Cores) -> None:
    held_s = 0.08

    async def scene() -> None:
        text = METRICS + '[times]\nloop_warning = "20 ms"\n'
        async with serving(configured(tmp_path, text), cores) as server:
            watch, receive = server.host.watch, cores.last.receive
            peer = await Peer.at(server.endpoint)
            peer.say(Ping(1))
            assert await peer.next() == Pong(1)
            before = watch.snapshot()
            assert before.count > 0

            def slowly(link: int, data: bytes, now_us: int) -> None:
                time.sleep(held_s)
                receive(link, data, now_us)

            cores.last.receive = slowly  # type: ignore[method-assign]
            peer.say(Ping(2))
            assert await peer.next() == Pong(2)
            await until(lambda: watch.snapshot().longest_s >= held_s)
            assert watch.snapshot().warnings > before.warnings
            _, _, body = await asked(server.metrics_endpoint, get("/metrics"))
            lines = dict(line.rsplit(" ", 1) for line in body.decode().splitlines())
            seen = float(lines['palio_loop_hold_max_seconds{broker="milan",since="start"}'])
            assert seen >= held_s
            assert float(lines['palio_loop_hold_seconds_count{broker="milan"}']) > 0
            used = float(lines['palio_loop_hold_cpu_max_seconds{broker="milan"}'])
            assert used < held_s, "it only slept"
            counts = [v for k, v in lines.items() if k.startswith("palio_loop_hold_seconds_bucket")]
            assert counts == sorted(counts, key=float)

    run(scene())


def test_a_thread_that_keeps_the_interpreter_is_noticed(tmp_path: Path, cores: Cores) -> None:
    """Nothing of the host runs meanwhile; only the timer is late."""
    size, held_s = 1_000_000, 0.0
    while held_s < 0.3:  # one call of C that keeps the interpreter
        size *= 2
        began = time.perf_counter()
        sum(range(size))
        held_s = time.perf_counter() - began

    async def scene() -> None:
        async with serving(configured(tmp_path), cores) as server:
            watch = server.host.watch
            before = watch.snapshot().longest_s
            server.host._schedule_turn()  # sets the timer
            await asyncio.sleep(0.001)
            threading.Thread(target=lambda: sum(range(size))).start()
            await until(lambda: watch.snapshot().longest_s > max(before, held_s / 4))

    run(scene())
