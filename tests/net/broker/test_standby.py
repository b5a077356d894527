"""A broker that survives its process and its database: standby, takeover, fencing."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

import palio
from palio.lab.bench.loopback.postgres import PostgresPair, postgres_pair, why_no_postgres
from palio.net.broker.server import serving
from palio.net.broker.standby import StandbyEnded
from palio.net.cluster.ports import free_ports
from palio.net.endpoint import Endpoint
from palio.protocol.wire.control import VERSION, Bye, Hello, Published, Welcome
from tests.net.peers import SECRET, Peer, asked, configured, get, run, until
from tests.net.replicated import (
    PATIENCE_S,
    ReplicatedProcess,
    published_and_received,
    replicated,
    wait_until,
)
from tests.net.stand_in import Cores

pytestmark = pytest.mark.xdist_group("postgres")

TAKEOVER_S_MAX = 20.0
"""With a busy machine in mind; the figure that counts is printed."""


def storage(pair: PostgresPair, lease_s: float = 0.5) -> str:
    return f'[storage]\nurl = "{pair.url()}"\nlease_s = {lease_s}\n'


def test_a_standby_waits_and_takes_over_after_a_clean_stop(
    tmp_path: Path, postgres: PostgresPair
) -> None:
    first, second = Cores(), Cores()
    (port,) = free_ports(0, 1)
    pages = f'[metrics]\nlisten = "127.0.0.1:{port}"\n'

    async def scene() -> None:
        config = configured(tmp_path, storage(postgres, 5.0), "clean")
        (tmp_path / "standby").mkdir()
        other = configured(tmp_path / "standby", storage(postgres, 5.0) + pages, "clean")
        async with serving(config, first) as server:
            entering = serving(other, second)
            standby = asyncio.create_task(entering.__aenter__())
            await asyncio.sleep(0.5)
            assert (await asked(Endpoint("127.0.0.1", port), get("/healthz")))[0] == 200
            status, _, body = await asked(Endpoint("127.0.0.1", port), get("/readyz"))
            assert (status, json.loads(body)["status"]) == (503, "standby")
            assert "runs this broker" in json.loads(body)["reason"]
            peer = await Peer.at(server.endpoint)
            peer.publish(1, durable=True)
            assert await peer.next() == Published(1)
            assert not standby.done()
            stopped_at = time.monotonic()
        async with asyncio.timeout(4.0):  # less than the lease
            taken = await standby
        print(f"\ntakeover after a clean stop: {time.monotonic() - stopped_at:.2f} s")
        assert [key for key, _ in second.last._store.scan("message/")]
        await entering.__aexit__(None, None, None)
        assert taken.host.finished.done()

    run(scene())


def test_a_standby_can_be_stopped(tmp_path: Path, postgres: PostgresPair) -> None:
    async def scene() -> None:
        config = configured(tmp_path, storage(postgres), "patient")
        end = asyncio.Event()
        async with serving(config, Cores()):
            waiting = asyncio.create_task(serving(config, Cores(), end=end).__aenter__())
            await asyncio.sleep(0.2)
            end.set()
            with pytest.raises(StandbyEnded, match="the standby of patient was stopped"):
                await waiting

    run(scene())


def test_brokers_share_a_database(tmp_path: Path, postgres: PostgresPair) -> None:
    async def scene() -> None:
        cores = [Cores(), Cores()]
        configs = [configured(tmp_path, storage(postgres), name) for name in ("one", "two")]
        async with serving(configs[0], cores[0]) as one, serving(configs[1], cores[1]) as two:
            for number, server in enumerate((one, two), 1):
                peer = await Peer.at(server.endpoint)
                peer.publish(number, durable=True)
                assert await peer.next() == Published(number)
            kept = [list(each.last._store.scan("message/")) for each in cores]
            assert len(kept[0]) == len(kept[1]) == 1
            assert kept[0] != kept[1]

    run(scene())


def test_clients_and_neighbours_follow_the_broker(tmp_path: Path, postgres: PostgresPair) -> None:
    """A message from another broker waits for the one that moves, and reaches it where it is."""
    ports = free_ports(0, 2)
    milan_url = "palio://" + ",".join(f"127.0.0.1:{port}" for port in ports)
    addresses = ", ".join(f'"127.0.0.1:{port}"' for port in ports)
    times = '[times]\nredial = "10 ms"\nredial_max = "100 ms"\n'

    async def scene() -> None:
        rome = configured(
            tmp_path, f"[neighbours.milan]\naddress = [{addresses}]\n{SECRET}{times}", "rome"
        )
        milan = configured(tmp_path, f"[neighbours.rome]\n{SECRET}{storage(postgres, 5.0)}")
        first, second = (replace(milan, listen=Endpoint("127.0.0.1", port)) for port in ports)
        async with serving(rome) as other, palio.connect(f"palio://{other.endpoint}") as ann:
            running = serving(first)
            await running.__aenter__()
            waiting = serving(second)
            standby = asyncio.create_task(waiting.__aenter__())
            async with (
                palio.connect(milan_url) as bob,
                bob.subscribe("x > 0", durable="all") as notes,
            ):
                await until(lambda: other.host.is_linked("milan"))
                await ann.publish({"x": 1})
                assert (await anext(notes)).attributes["x"] == 1
                await running.__aexit__(None, None, None)
                await ann.publish({"x": 2})
                await standby
                await ann.publish({"x": 3})
                assert [(await anext(notes)).attributes["x"] for _ in range(2)] == [2, 3]
            await waiting.__aexit__(None, None, None)

    run(scene())


def test_a_database_that_is_away_is_an_outage(tmp_path: Path, postgres: PostgresPair) -> None:
    """Its sessions are ended, and it lets nobody in for a while: commits wait, and then succeed."""

    postgres.sql("CREATE ROLE away LOGIN")
    postgres.sql("CREATE DATABASE away OWNER away")
    url = postgres.url("away").replace("postgres@", "away@")

    def end_sessions() -> None:
        postgres.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'away'"
        )

    async def scene() -> None:
        config = configured(tmp_path, f'[storage]\nurl = "{url}"\nlease_s = 0.5\n', "away")
        async with serving(config, Cores()) as server:
            peer = await Peer.at(server.endpoint)
            end_sessions()
            peer.publish(1, durable=True)
            assert await peer.next() == Published(1), "the commit was repeated"
            postgres.sql("ALTER ROLE away NOLOGIN")
            end_sessions()
            peer.publish(2, durable=True)
            (bye,) = await peer.rest()
            assert isinstance(bye, Bye)
            assert "cannot be used: " in bye.reason
            assert "not permitted to log in" in bye.reason
            await asyncio.sleep(1.0)  # longer than the lease
            postgres.sql("ALTER ROLE away LOGIN")
            await until(lambda: server.host.outages.current is None)
            again = await Peer.at(server.endpoint)
            again.publish(3, durable=True)
            assert await again.next() == Published(3)
            assert server.host.counts.commit_failures > 0

    run(scene())


@pytest.mark.slow
def test_standbys_take_over_from_a_killed_process_and_from_a_frozen_one(
    tmp_path: Path, postgres: PostgresPair
) -> None:
    """The frozen one wakes up after the takeover: it acknowledges nothing, and ends."""
    with replicated(tmp_path, "killed", postgres, 1.0, count=3) as (url, processes):
        first, *standbys = processes
        took_s = asyncio.run(
            published_and_received(url, 3000, lambda: first.signal(signal.SIGKILL))
        )
        print(f"\ntakeover after kill -9 with a lease of 1 s: {took_s:.2f} s")
        assert took_s < TAKEOVER_S_MAX
        second, third = sorted(standbys, key=lambda one: not one.is_listening)
        asyncio.run(frozen_and_woken(second, third))
        wait_until(lambda: second.process.poll() is not None, lambda: second.text)
        assert second.process.returncode == 3
        assert "palio: another process runs the broker killed now" in second.text


async def frozen_and_woken(holder: ReplicatedProcess, standby: ReplicatedProcess) -> None:
    peer = await Peer.at(Endpoint("127.0.0.1", holder.port))
    peer.say(Hello(VERSION, "client", "eve"))
    peer.publish(1, durable=True)
    assert isinstance(await peer.next(), Welcome)
    assert await peer.next() == Published(1)
    holder.signal(signal.SIGSTOP)
    began = time.monotonic()
    peer.publish(2, durable=True)
    await asyncio.to_thread(standby.wait_for, "broker listens")
    print(f"takeover from a frozen process with a lease of 1 s: {time.monotonic() - began:.2f} s")
    holder.signal(signal.SIGCONT)
    async with asyncio.timeout(PATIENCE_S):
        said = await peer.rest()
    assert not any(isinstance(item, Published) for item in said), said


@pytest.mark.chaos
def test_kills_one_after_the_other(tmp_path: Path, postgres: PostgresPair) -> None:
    """With the usual lease; whoever was killed is started again as a standby."""
    with replicated(tmp_path, "often", postgres, 3.0) as (url, processes):
        for turn in range(6):
            holder = processes[turn % 2]

            def kill(holder: ReplicatedProcess = holder) -> None:
                holder.signal(signal.SIGKILL)

            took_s = asyncio.run(published_and_received(url, 10_000, kill, f"all-{turn}"))
            print(f"\ntakeover after kill -9 with a lease of 3 s: {took_s:.2f} s")
            assert took_s < TAKEOVER_S_MAX
            holder.process.wait()
            holder.restart()
            wait_until(lambda holder=holder: holder.is_standby, lambda holder=holder: holder.text)  # type: ignore[misc]


@pytest.mark.slow
def test_the_database_fails_over(tmp_path: Path) -> None:
    """Its primary is killed, and its standby promoted; the broker's connections follow."""
    if reason := why_no_postgres():
        pytest.skip(reason)
    with postgres_pair(fsync=False) as pair:

        def fail_over() -> None:
            pair.kill("a")
            pair.promote("b")

        async def scene() -> float:
            async with serving(configured(tmp_path, storage(pair, 3.0), "moved")) as server:
                url = f"palio://{server.endpoint}"
                return await published_and_received(url, 2000, fail_over)

        took_s = run(scene())
        print(f"\nthe first acknowledgement after the primary was killed: {took_s:.2f} s")
        assert took_s < TAKEOVER_S_MAX
        old_primary_is_passed_over(pair)


def old_primary_is_passed_over(pair: PostgresPair) -> None:
    """It runs again and takes writes; its timeline tells that it is an old one."""
    from palio.net.storage.database import Database

    database = Database(pair.url(), "moved", "a test")
    query, new = "SELECT inet_server_port()", (pair.ports["b"],)
    assert database.connect().execute(query).fetchone() == new
    pair.start_node("a")
    assert pair.sql(query, "a") == [(pair.ports["a"],)]
    database._hosts.reverse()  # the old one is dialled first
    assert database.connect().execute(query).fetchone() == new
    database.close()
