"""The blocking client, in threads, against the stand-in broker in a loop of another thread."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

import palio
from palio import blocking
from palio.errors import (
    ClientClosed,
    InvalidValue,
    RefusedByBroker,
    SubscriptionEnded,
    Unreachable,
)
from palio.protocol.wire import control
from tests.net.served import Served

ROOT = Path(__file__).parents[3]


class Background:
    """The stand-in in a thread; `do` runs something there."""

    def __init__(self) -> None:
        self.served = Served()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.served.start(), self._loop).result(10)

    def do(self, function: Callable[[], object]) -> None:
        async def there() -> None:
            function()
            self.served.flush()

        asyncio.run_coroutine_threadsafe(there(), self._loop).result(10)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self.served.stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


@pytest.fixture
def background() -> Iterator[Background]:
    background = Background()
    yield background
    background.stop()


@pytest.fixture
def url(background: Background) -> str:
    return background.served.url


def test_publish_and_subscribe(background: Background, url: str) -> None:
    with blocking.connect(url, name="ann") as client:
        with client.subscribe("x >= 0", durable="d", timeout=0.2) as subscription:
            number = client.publish({"x": 1}, b"body", headers={"trace": "7f"}, expires_in=60)
            assert client.publish_many([{"x": 2}, ({"x": 3}, b"three")]) == 2
            notes = list(subscription)  # until it is silent
            assert [note.attributes["x"] for note in notes] == [1, 2, 3]
            assert [set(note.headers) for note in notes] == [{"trace", "expires_us"}, set(), set()]
            assert (notes[0].number, notes[0].body, notes[2].body) == (number, b"body", b"three")
            for note in notes[:2]:
                note.ack()
        with pytest.raises(SubscriptionEnded):
            notes[2].ack()
        with client.subscribe("x >= 0", durable="d") as subscription:
            assert subscription.next(5).attributes["x"] == 3
            with pytest.raises(TimeoutError, match=r"nothing came within 0\.05 s"):
                subscription.next(0.05)
        assert (client.name, client.broker, client.identity) == ("ann", "stand-in", "anyone")
        assert (client.unacknowledged, client.rejected, client.quenched) == (0, 0, 0)
        assert client.is_connected


def test_the_zone_of_the_text(background: Background, url: str) -> None:
    with blocking.connect(url) as client:
        text = "at = TIMESTAMP '2024-03-01 10:00:00'"
        with client.subscribe(text, zone="America/New_York", timeout=5) as subscription:
            for hour in (10, 15):
                client.publish({"at": datetime(2024, 3, 1, hour, tzinfo=UTC)})
            assert subscription.next(5).attributes["at"].hour == 15  # type: ignore[union-attr]
        with pytest.raises(InvalidValue, match="no time zone"):
            client.watch("[x = 1] then [x = 2]", zone="Nowhere")


def test_requests(background: Background, url: str) -> None:
    with blocking.connect(url) as client:
        assert client.topology()[0].broker == "stand-in"
        assert client.explain({"x": 1}).hops[0].broker == "stand-in"
        client.unadvertise(client.advertise("x > 1"))
        client.quench()
        assert client.publish({"x": 1}) is None
        watch = client.watch("[x = 1] then [x = 2]", timeout=5)
        (link,) = background.served.core.links
        occurred = control.Occurred(watch._source._id, (control.PatternItem('{"x":1}', "p", 1, 0),))
        background.do(lambda: background.served.core.say(link, occurred))
        assert [note.attributes["x"] for note in next(watch)] == [1]
        watch.close()
        with pytest.raises(SubscriptionEnded):
            watch.next()


def test_errors_are_those_of_the_client(background: Background, url: str) -> None:
    background.served.core.refuses = "secret"
    with blocking.connect(url) as client:
        with pytest.raises(RefusedByBroker, match="no grant covers"):
            client.subscribe("secret = 1")
        with pytest.raises(palio.InvalidValue):
            client.publish({"x": {1}})
    with pytest.raises(ClientClosed):
        client.publish({"x": 1})
    client.close()
    with pytest.raises(Unreachable, match="no broker at"):
        blocking.connect("palio://127.0.0.1:1")
    assert not [thread for thread in threading.enumerate() if thread.name == "palio-client"]


def test_many_threads(background: Background, url: str) -> None:
    """Threads publish, others share a subscription, and the connection is cut meanwhile."""
    got: list[object] = []
    with blocking.connect(url) as client:
        subscription = client.subscribe("x >= 0", durable="d", credit=50)

        def publish(start: int) -> None:
            for x in range(start, start + 50):
                client.publish({"x": x})

        def consume() -> None:
            for note in subscription:
                got.append(note.attributes["x"])
                note.ack()

        consumers = [threading.Thread(target=consume) for _ in range(3)]
        for thread in consumers:
            thread.start()
        with ThreadPoolExecutor(4) as pool:
            results = [pool.submit(publish, start) for start in range(0, 200, 50)]
            for _ in range(5):
                time.sleep(0.02)
                background.do(background.served.cut_all)
            for result in results:
                result.result(30)
        deadline = time.monotonic() + 10
        while len(got) < 200 and time.monotonic() < deadline:
            time.sleep(0.01)
        subscription.close()
        for thread in consumers:
            thread.join(10)
    assert sorted(got) == [*range(200)]  # type: ignore[type-var]


def test_a_timeout_loses_nothing(background: Background, url: str) -> None:
    with blocking.connect(url) as client:
        subscription = client.subscribe("x >= 0", durable="d")
        publisher = threading.Thread(
            target=lambda: [client.publish({"x": x}) for x in range(300)], daemon=True
        )
        publisher.start()
        got = []
        while len(got) < 300:
            try:
                note = subscription.next(0.0005)
            except TimeoutError:
                continue
            got.append(note.attributes["x"])
            note.ack()
        assert got == [*range(300)]


@pytest.fixture
def interrupts() -> Iterator[None]:
    """SIGINT is a KeyboardInterrupt, whatever event loops of other tests made of it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_ends_the_wait_and_loses_nothing(background: Background, url: str) -> None:
    with blocking.connect(url) as client:
        subscription = client.subscribe("x >= 0")
        me = threading.get_ident()
        timer = threading.Timer(0.1, lambda: signal.pthread_kill(me, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            subscription.next(20)
        client.publish({"x": 1})
        assert subscription.next(5).attributes["x"] == 1


def test_ctrl_c_ends_a_program(background: Background, url: str) -> None:
    script = (
        "from palio import blocking\n"
        f"with blocking.connect({url!r}) as client:\n"
        "    with client.subscribe('x = 1') as notes:\n"
        "        print('ready', flush=True)\n"
        "        for note in notes: pass\n"
    )
    program = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors
    assert program.returncode not in (0, None)


def test_the_contract_is_the_same() -> None:
    """Each public name of the client is there, as a name of the twin."""
    from palio.net.client import Client

    names = {name for name in vars(Client) if not name.startswith("_")} - {"open"}
    assert names <= {*vars(blocking.Client), "quenched"}
