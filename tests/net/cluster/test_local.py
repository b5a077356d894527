"""A local cluster: real processes that are killed, stopped and started."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import palio
from palio.errors import PalioError
from palio.net import picture
from palio.net.cluster import Cluster, local_cluster

PATIENCE_S = 120.0


async def one(client: palio.net.client.Client, durable: str) -> object:
    async with client.subscribe("x > 0", durable=durable) as subscription:
        async for note in subscription:
            await note.ack()
            return note.attributes["x"]
    return None


@pytest.mark.slow
def test_a_message_outlives_its_broker(tmp_path: Path) -> None:
    """Stored at one that is killed for a subscriber at another that is down; both come back."""

    async def scene() -> None:
        async with local_cluster(3, "line", data=tmp_path) as cluster:
            async with palio.connect(cluster.url("b1")) as ann:
                async with ann.subscribe("x > 0", durable="all"):
                    pass
                await cluster.agreed()
            cluster.kill("b1")
            places = await cluster.agreed()
            assert [place.reachable for place in places] == [False, True, True]
            async with palio.connect(cluster.url("b3")) as bob:
                await bob.publish({"x": 1})
            cluster.kill("b3")
            assert cluster.running == ["b2"]
            cluster.start("b1")
            cluster.start("b3")
            assert all(place.reachable for place in await cluster.agreed())
            async with palio.connect(cluster.url("b1")) as ann:
                assert await one(ann, "all") == 1
            os.kill(cluster.process_id("b2"), signal.SIGKILL)
            with pytest.raises(PalioError, match="broker b2 ended"):
                await cluster.watched()

    asyncio.run(asyncio.wait_for(scene(), PATIENCE_S))


@pytest.mark.slow
def test_with_tls_and_without_asyncio(tmp_path: Path) -> None:
    with local_cluster(2, "line", tls=True, data=tmp_path / "new") as cluster:
        assert cluster.urls[0].startswith("palios://127.0.0.1:")
        assert not os.stat(tmp_path / "new" / "secret").st_mode & 0o077
        with palio.blocking.connect(cluster.urls[1], tls=cluster.authority) as client:
            assert [place.broker for place in client.topology()] == ["b1", "b2"]
        with pytest.raises(PalioError, match="certificate"):
            palio.blocking.connect(cluster.urls[1])


PARENT = """
import asyncio, sys
from palio.net.cluster import local_cluster
with local_cluster(1, "line", data=sys.argv[1]) as cluster:
    print(cluster.process_id("b1"), flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
def test_no_broker_outlives_a_parent_that_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert parent.stdin is not None
    assert parent.stdout is not None
    broker = int(parent.stdout.readline())
    os.kill(broker, 0)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + PATIENCE_S
    while is_alive(broker):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "broker stopped" in (tmp_path / "b1.log").read_text()
    parent.stdin.close()
    parent.stdout.close()


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_broker_that_ends_by_itself_is_told(tmp_path: Path) -> None:
    wrong = local_cluster(1, "line", data=tmp_path, settings={"limits": {"bdoy": 3}})
    with pytest.raises(PalioError, match=r"broker b1 ended: .* did you mean body"):
        wrong.__enter__()
    assert wrong.running == []


def test_mistakes_are_sentences(tmp_path: Path) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    for make, says in (
        (lambda: local_cluster(1, port=port), f"port {port} cannot be used"),
        (lambda: local_cluster(3, port=65_534), "ports end at 65535"),
        (lambda: local_cluster(3, "web"), "there is no shape 'web'"),
        (lambda: local_cluster(0), "at least one broker"),
        (lambda: local_cluster(3, routing="flooding"), "there is no routing"),
    ):
        with pytest.raises(PalioError, match=says):
            make()
    taken.close()
    with pytest.raises(PalioError, match="b1 does not run"):
        local_cluster(1).kill("b1")
    (tmp_path / "file").touch()
    with pytest.raises(PalioError, match="cannot be used"):
        local_cluster(1, data=tmp_path / "file").__enter__()


def test_waiting_inside_an_event_loop_is_a_sentence(tmp_path: Path) -> None:
    """Nothing is started, and nothing is left behind."""
    cluster = local_cluster(1, data=tmp_path / "new")

    async def scene() -> None:
        with pytest.raises(PalioError, match=r"use `async with local_cluster\(...\)`"), cluster:
            raise AssertionError("it runs")

    asyncio.run(scene())
    assert cluster.running == []
    assert not (tmp_path / "new").exists()


def test_addresses_can_be_replaced(tmp_path: Path) -> None:
    """So that a test can put something between two brokers."""
    made: Cluster = local_cluster(2, "line")
    made.addresses["b1", "b2"] = "127.0.0.1:1"
    made.folder = tmp_path
    assert 'address = "127.0.0.1:1"' in made._configuration.toml("b1")
    assert "address" not in made._configuration.toml("b2")


@pytest.mark.slow
def test_settings_and_variables_of_single_brokers(tmp_path: Path) -> None:
    def denied() -> bool:
        try:
            asyncio.run(connected(cluster.url("b2")))
        except palio.errors.RefusedByBroker:
            return True
        return False

    async def connected(url: str) -> None:
        async with palio.connect(url, token="t"):
            pass

    cluster = local_cluster(2, "line", data=tmp_path)
    cluster.own_settings["b2"] = {"times": {"keepalive": "2 s"}}
    cluster.variables["b2"] = {"CHAOS_CLOCK": "/nowhere"}
    with cluster:
        assert "keepalive" not in (tmp_path / "b1.toml").read_text()
        assert 'keepalive = "2 s"' in (tmp_path / "b2.toml").read_text()
        environment = Path(f"/proc/{cluster.process_id('b2')}/environ")
        if environment.exists():  # Linux
            assert b"CHAOS_CLOCK=/nowhere" in environment.read_bytes()
        assert denied()
        hashed = hashlib.sha256(b"t").hexdigest()
        cluster.own_settings["b2"] = {"identities.ann": {"token_sha256": hashed}}
        cluster.reload("b2")
        until = time.monotonic() + PATIENCE_S
        while denied():
            assert time.monotonic() < until
            time.sleep(0.05)


def test_a_hierarchy_of_brokers() -> None:
    """A master and two slaves: messages of a slave go up, and down where they match."""

    async def scene() -> None:
        with pytest.raises(PalioError, match="a hierarchy goes with routing 'forwarding'"):
            local_cluster(3, "hierarchy")
        async with local_cluster(3, "hierarchy", routing="forwarding") as cluster:
            places = await cluster.agreed()
            assert [place.master for place in places] == ["", "b1", "b1"]
            assert "^" in picture.draw(places)
            async with (
                palio.connect(cluster.url("b2")) as ann,
                palio.connect(cluster.url("b3")) as bob,
                palio.connect(cluster.url("b1")) as top,
                ann.subscribe("x > 0") as wanted,
            ):
                hops = await explained(bob, {"x": 1})
                assert hops == {"b3": ["b1"], "b1": ["b2"], "b2": []}
                assert await explained(bob, {"x": 0}) == {"b3": ["b1"], "b1": []}
                assert await explained(ann, {"x": 0}) == {"b2": ["b1"], "b1": []}
                assert await explained(top, {"x": 0}) == {"b1": []}
                await bob.publish({"x": 1}, durable=False)
                await bob.publish({"x": 0}, durable=False)
                await top.publish({"x": 2}, durable=False)
                got = {(await anext(wanted)).attributes["x"] for _ in range(2)}
                assert got == {1, 2}

    asyncio.run(asyncio.wait_for(scene(), PATIENCE_S))


async def explained(
    client: palio.net.client.Client, message: dict[str, object]
) -> dict[str, list[str]]:
    """To whom each broker on the way sends a message; asks until the subscription has arrived there."""
    found: dict[str, list[str]] = {}
    for _ in range(50):
        before, told = found, await client.explain(message)
        found = {hop.broker: [name for name, _ in hop.sends] for hop in told.hops}
        if found == before:
            return found
        await asyncio.sleep(0.1)
    return found
