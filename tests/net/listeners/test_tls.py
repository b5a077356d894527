"""TLS handshakes that are begun and not completed: they take the places of strangers, and few bytes."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path

import pytest

import palio
from palio.net import security
from palio.net.broker.server import Server, serving
from palio.net.storage.store import StoreFull
from palio.protocol.broker.link_guard import STRANGER_BYTES_MAX
from palio.protocol.wire.codes import CloseCode
from palio.protocol.wire.control import VERSION, Bye, Hello, Welcome
from tests.net.peers import Peer, configured, run, until
from tests.net.test_security import Office, tls_text

pytestmark = pytest.mark.usefixtures("loop")
STRANGERS = 8
LIMITS = f"[limits]\nstrangers = {STRANGERS}\n"
BEGUN = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
"""The beginning of a ClientHello."""


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


def text(office: Office, limits: str = LIMITS) -> str:
    return tls_text(office, *office.issue("milan", "localhost")) + limits


async def serves(server: Server, office: Office, name: str) -> None:
    """A valid client is served now."""
    url = f"palios://localhost:{server.endpoint.port}"
    async with (
        palio.connect(url, name=name, tls=office.authority) as client,
        client.subscribe(f"who = '{name}'") as notes,
    ):
        await client.publish({"who": name}, durable=False)
        assert (await anext(aiter(notes))).attributes["who"] == name


async def is_closed(peer: Peer) -> bool:
    try:
        async with asyncio.timeout(0.05):
            return await peer._reader.read(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_the_oldest_gives_way_and_a_valid_client_is_served(tmp_path: Path, office: Office) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path, text(office))) as server:
            host = server.host
            await serves(server, office, "first")
            half = []
            for i in range(3 * STRANGERS):
                half.append(await Peer.at(server.endpoint))
                if i % 2:
                    half[-1].writer.write(BEGUN)
            displaced = 2 * STRANGERS
            await until(lambda: host.counts.closed[CloseCode.DISPLACED] == displaced)
            assert host.snapshot().strangers == STRANGERS
            assert [await is_closed(peer) for peer in half] == [True] * displaced + [
                False
            ] * STRANGERS
            await serves(server, office, "second")
            assert host.counts.closed[CloseCode.DISPLACED] == displaced + 1, "for the valid client"
            for peer in half:
                peer.writer.transport.abort()
            await until(lambda: host.snapshot().strangers == 0)
            assert host.connection_count == 0

    run(scene())


def test_a_stop_does_not_wait_for_handshakes(tmp_path: Path, office: Office) -> None:
    async def scene() -> None:
        begin_s = asyncio.get_running_loop().time()
        async with serving(configured(tmp_path, text(office))) as server:
            peers = [await Peer.at(server.endpoint) for _ in range(3)]
            await until(lambda: server.host.snapshot().strangers == 3)
            begin_s = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - begin_s < 4
        assert all([await is_closed(peer) for peer in peers])

    run(scene())


def test_a_handshake_has_a_time_that_bytes_do_not_extend(tmp_path: Path, office: Office) -> None:
    times = '[times]\nhandshake = "500 ms"\n'

    async def scene() -> None:
        async with serving(configured(tmp_path, text(office, times))) as server:
            peer = await Peer.at(server.endpoint)
            for byte in BEGUN:
                if not peer.writer.transport.is_closing():
                    peer.writer.write(bytes([byte]))
                await asyncio.sleep(0.1)
            await until(lambda: server.host.counts.closed[CloseCode.HANDSHAKE_TIMEOUT] == 1)
            assert await is_closed(peer)

    run(scene())


def test_a_handshake_has_few_bytes(tmp_path: Path, office: Office) -> None:
    """OpenSSL alone would take 131,396 of a ClientHello."""

    async def scene() -> None:
        async with serving(configured(tmp_path, text(office))) as server:
            peer = await Peer.at(server.endpoint)
            hello = b"\x01" + (131_000).to_bytes(3, "big") + bytes(131_000)
            for at in range(0, STRANGER_BYTES_MAX + (16 << 10), 16_000):
                piece = hello[at : at + 16_000]
                peer.writer.write(struct.pack(">BHH", 22, 0x0301, len(piece)) + piece)
            await until(lambda: server.host.counts.closed[CloseCode.PROTOCOL] == 1)
            assert await is_closed(peer)

    run(scene())


def test_data_that_comes_with_the_end_of_the_handshake(tmp_path: Path, office: Office) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path, text(office))) as server:
            for i in range(20):
                peer = await Peer.at(server.endpoint, security.connecting(office.authority))
                peer.say(Hello(VERSION, "client", f"c{i}"))  # with Finished, in one packet
                assert isinstance(await peer.next(), Welcome)
                await peer.close()

    run(scene())


def test_a_client_that_is_refused_hears_why(tmp_path: Path, office: Office) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path, text(office))) as server:
            silent = await Peer.at(server.endpoint)
            server.host.store_unavailable(StoreFull("the disk is full"))
            begun = await Peer.at(server.endpoint)
            peer = await Peer.at(server.endpoint, security.connecting(office.authority))
            (bye,) = await peer.rest()
            assert isinstance(bye, Bye)
            assert bye.code is CloseCode.STORE_FULL
            await until(lambda: server.host.connection_count == 0)
            while not await is_closed(silent) or not await is_closed(begun):
                pass
            await peer.close()

    run(scene())
