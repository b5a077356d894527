"""Grants end to end: real brokers and clients, TLS, tokens and certificates. The ways around at the
core are in tests/protocol/broker/test_access_grants.py."""

from __future__ import annotations

import hashlib
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import palio
from palio.errors import NetworkError, PalioError, RefusedByBroker, Unreachable
from palio.net.broker.server import Server, serving
from palio.net.client import Client
from palio.protocol.wire.control import VERSION, Bye, Confirm, Hello, Welcome
from palio.protocol.wire.handshake import NONCE_BYTES, dial
from tests.net.peers import Peer, configured, run
from tests.net.test_security import Office, tls_text

SECRET = "the secret of milan and rome, 32 bytes"
PEOPLE = """
[identities.ann]
token_sha256 = "{ann}"
subscribe = "price < 500"

[identities.bob]
certificate = "bob"
publish = "price < 1000"

[identities.root]
token_sha256 = "{root}"
subscribe = "TRUE"
publish = "TRUE"
admin = true

[neighbours.rome]
secret = "{secret}"
"""


@asynccontextmanager
async def milan(folder: Path, office: Office) -> AsyncIterator[Server]:
    text = PEOPLE.format(secret=SECRET, **{n: _hash(f"{n}'s token") for n in ("ann", "root")})
    certificate, key = office.issue("milan", "localhost", "127.0.0.1")
    config = configured(folder, text + tls_text(office, certificate, key))
    async with serving(config) as server:
        yield server


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def connect(server: Server, office: Office, **options: object) -> Client:
    url = f"palios://localhost:{server.endpoint.port}"
    return palio.connect(url, tls=office.authority, max_wait=5, **options)  # type: ignore[arg-type]


async def refusal(client: Client) -> str:
    with pytest.raises(NetworkError) as caught:
        await client.open()
    return str(caught.value)


def test_strangers_stay_outside(tmp_path: Path) -> None:
    async def scene() -> None:
        office, other = Office(tmp_path), Office(tmp_path, "elsewhere")
        async with milan(tmp_path, office) as server:
            assert "without a token or a certificate" in await refusal(connect(server, office))
            wrong = connect(server, office, token="not a token")
            assert "does not know the token" in await refusal(wrong)
            mallory = office.issue("mallory", common_name="mallory")
            unknown = connect(server, office, certificate=tuple(map(str, mallory)))
            assert "without a token or a certificate" in await refusal(unknown)
            forged = other.issue("bob2", common_name="bob")  # the right name, the wrong office
            with pytest.raises(NetworkError):
                await connect(server, office, certificate=tuple(map(str, forged))).open()
            plain = palio.connect(f"palio://127.0.0.1:{server.endpoint.port}", token="root's token")
            with pytest.raises(Unreachable):
                await plain.open()
            with pytest.raises(Unreachable, match="not trusted"):
                await connect(server, other, token="ann's token").open()

    run(scene())


async def wants(client: Client, predicate: str, **options: object) -> None:
    async with client.subscribe(predicate, **options):  # type: ignore[arg-type]
        pass


def test_each_may_do_what_is_granted_and_no_more(tmp_path: Path) -> None:
    async def scene() -> None:
        office = Office(tmp_path)
        bobs = tuple(map(str, office.issue("bob", common_name="bob")))
        async with (
            milan(tmp_path, office) as server,
            connect(server, office, token="ann's token", name="ann") as ann,
            connect(server, office, certificate=bobs, name="ann") as bob,
            connect(server, office, token="root's token") as root,
        ):
            assert (ann.identity, bob.identity, root.identity) == ("ann", "bob", "root")
            for predicate, options in (
                ("price < 501", {}),
                ("price < 5 OR dest = 'MXP'", {}),
                ("TRUE", {"durable": "d", "since": 0}),
                ("price < 501", {"group": "g"}),
            ):
                with pytest.raises(RefusedByBroker, match="may not subscribe"):
                    await wants(ann, predicate, **options)
                with pytest.raises(RefusedByBroker, match="may not subscribe anything"):
                    await wants(bob, predicate, **options)
            with pytest.raises(RefusedByBroker, match="part 2 of the pattern"):
                async with ann.watch("[price < 5] THEN [price < 501] WITHIN 1 minute"):
                    pass
            for client in (ann, bob):
                for request in (client.topology(), client.explain({"price": 1})):
                    with pytest.raises(RefusedByBroker, match="for operators"):
                        await request
            with pytest.raises(RefusedByBroker, match="may not publish"):
                await ann.quench()
            async with (
                ann.subscribe("price < 500", durable="desk") as hers,
                root.subscribe("TRUE") as all_of_it,
            ):
                for sender, price in ((ann, 1), (bob, 1000), (ann, 3)):
                    with pytest.raises(RefusedByBroker, match="may not publish"):
                        await sender.publish({"price": price})
                    await sender.publish({"price": price}, durable=False)  # goes nowhere
                for price in (400, 600):
                    await bob.publish({"price": price})
                got = [await anext(all_of_it), await anext(all_of_it)]
                assert [(n.publisher, n.attributes["price"]) for n in got] == [
                    ("bob/ann", 400), ("bob/ann", 600),
                ]  # fmt: skip
                assert (await anext(hers)).attributes["price"] == 400

    run(scene())


def test_a_client_whose_last_message_was_rejected_leaves_at_once(tmp_path: Path) -> None:
    async def scene() -> None:
        office = Office(tmp_path)
        async with milan(tmp_path, office) as server:
            began = time.monotonic()
            async with connect(server, office, token="ann's token") as ann:
                with pytest.raises(PalioError, match="may not publish"):
                    await ann.publish({"price": 1})
                with pytest.raises(PalioError, match="rejects 3 of 3"):
                    await ann.publish_many([{"price": 1}] * 3)
                assert ann.unacknowledged == 0
            assert time.monotonic() - began < 4

    run(scene())


def test_brokers_that_are_not_who_they_say(tmp_path: Path) -> None:
    async def scene() -> None:
        office = Office(tmp_path)
        async with milan(tmp_path, office) as server:
            tls = ssl.create_default_context(cafile=str(office.authority))
            nonce = bytes(range(NONCE_BYTES))
            for name, says in (("paris", "no neighbour"), ("milan", "own name")):
                peer = await Peer.at(server.endpoint, tls)
                peer.say(Hello(VERSION, "broker", name, token="root's token", nonce=nonce))
                (bye,) = await peer.rest()
                assert isinstance(bye, Bye)
                assert says in bye.reason
                await peer.close()
            peer = await Peer.at(server.endpoint, tls)
            dialling, hello = dial("rome", "milan", b"another secret that is long enough", nonce)
            peer.say(hello)
            welcome = await peer.next()
            assert isinstance(welcome, Welcome)
            with pytest.raises(PalioError, match="does not prove it"):
                dialling.welcome(welcome)
            peer.say(Confirm(welcome.proof))  # its own proof, sent back
            (bye,) = await peer.rest()
            assert isinstance(bye, Bye)
            assert "does not prove it" in bye.reason
            await peer.close()
            assert not server.host.is_linked("rome")

    run(scene())
