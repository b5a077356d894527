"""TLS on real sockets: who is let in, who is trusted, and under which name."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from palio.net import security
from palio.net.broker.server import serving
from palio.net.config import InvalidConfig
from palio.protocol.wire.control import Ping, Pong
from tests.net.peers import SECRET, Peer, configured, run, until
from tests.net.stand_in import Cores, StandIn


class Office:
    """An authority, and files with what it signs."""

    def __init__(self, folder: Path, name: str = "office") -> None:
        self._authority = trustme.CA()
        self._folder = folder
        self.authority = folder / f"{name}.pem"
        self._authority.cert_pem.write_to_path(str(self.authority))

    def issue(self, file: str, *names: str, common_name: str | None = None) -> tuple[Path, Path]:
        made = self._authority.issue_cert(*names, common_name=common_name)
        certificate, key = self._folder / f"{file}.pem", self._folder / f"{file}.key"
        for blob in made.cert_chain_pems:
            blob.write_to_path(str(certificate), append=True)
        made.private_key_pem.write_to_path(str(key))
        return certificate, key


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


def tls_text(office: Office, certificate: Path, key: Path, required: bool = False) -> str:
    return (
        f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n'
        f'authority = "{office.authority}"\n'
        f"require_client_certificate = {str(required).lower()}\n"
    )


def secured(core: StandIn) -> list[object]:
    """The names in the certificates of those whose TLS handshake is complete."""
    return [call[3] for call in core.calls if call[0] == "secure" and call[2] == 0]


def closed(core: StandIn) -> int:
    return len([call for call in core.calls if call[0] == "close"])


async def answers(peer: Peer) -> bool:
    """A refused client of TLS 1.3 notices when it reads."""
    try:
        peer.say(Ping(1))
        return await peer.next() == Pong(1)
    except OSError:
        return False
    finally:
        await peer.close()


def test_clients_are_known_by_their_certificate(tmp_path: Path, office: Office) -> None:
    cores = Cores()
    text = tls_text(office, *office.issue("milan", "localhost"))
    contexts: dict[str, Callable[[], ssl.SSLContext]] = {
        "": lambda: security.connecting(office.authority),
        "desk-7": lambda: security.connecting(
            office.authority, *office.issue("desk", "desk.example", common_name="desk-7")
        ),
        "only.example": lambda: security.connecting(
            office.authority, *office.issue("only", "only.example")
        ),
    }

    async def scene() -> None:
        async with serving(configured(tmp_path, text), cores) as server:
            for name, context in contexts.items():
                assert await answers(await Peer.at(server.endpoint, context()))
                assert secured(cores.last)[-1] == name

    run(scene())


def test_a_certificate_can_be_required(tmp_path: Path, office: Office) -> None:
    cores = Cores()
    text = tls_text(office, *office.issue("milan", "localhost"), required=True)
    stranger = Office(tmp_path, "stranger").issue("spy", "spy", common_name="desk-7")
    own = office.issue("desk", "desk", common_name="desk-7")

    async def scene() -> None:
        async with serving(configured(tmp_path, text), cores) as server:

            async def tries(context: ssl.SSLContext) -> bool:
                try:
                    return await answers(await Peer.at(server.endpoint, context))
                except OSError:
                    return False

            assert not await tries(security.connecting(office.authority))
            assert not await tries(security.connecting(office.authority, *stranger))
            await until(lambda: closed(cores.last) == 2)
            assert secured(cores.last) == [], "the core never hears from them"
            assert await tries(security.connecting(office.authority, *own))
            assert secured(cores.last) == ["desk-7"]

    run(scene())


def test_a_client_checks_the_broker(tmp_path: Path, office: Office) -> None:
    text = tls_text(office, *office.issue("milan", "localhost"))
    other = Office(tmp_path, "other")

    async def scene() -> None:
        async with serving(configured(tmp_path, text), Cores()) as server:
            for authority, name in [
                (other.authority, "localhost"),
                (None, "localhost"),
                (office.authority, "rome.example"),
            ]:
                with pytest.raises(ssl.SSLCertVerificationError):
                    await Peer.at(server.endpoint, security.connecting(authority), name)
            plain = await Peer.at(server.endpoint)
            assert not await answers(plain), "and no one speaks without TLS"

    run(scene())


@pytest.mark.parametrize(
    ("names", "tls_name", "signed_by", "is_linked"),
    [
        (("rome.example",), "rome.example", "office", True),
        (("127.0.0.1",), None, "office", True),
        (("other.example",), "rome.example", "office", False),
        (("rome.example",), "rome.example", "stranger", False),
    ],
)
def test_neighbours_check_each_other(
    tmp_path: Path,
    office: Office,
    names: tuple[str, ...],
    tls_name: str | None,
    signed_by: str,
    is_linked: bool,
) -> None:
    signer = office if signed_by == "office" else Office(tmp_path, "stranger")
    times = '[times]\nredial = "1 ms"\nredial_max = "10 ms"\n'
    rome_text = f"[neighbours.milan]\n{SECRET}" + tls_text(office, *signer.issue("rome", *names))
    own = tls_text(office, *office.issue("milan", "milan.example", common_name="milan"))
    rome_cores, milan_cores = Cores(), Cores()

    async def scene() -> None:
        async with serving(configured(tmp_path, rome_text, "rome"), rome_cores) as rome:
            name = "" if tls_name is None else f'tls_name = "{tls_name}"\n'
            text = f'[neighbours.rome]\naddress = "{rome.endpoint}"\n{SECRET}{name}{own}{times}'
            async with serving(configured(tmp_path, text), milan_cores) as milan:
                if is_linked:
                    await until(lambda: rome_cores.last.is_linked("milan"))
                    assert secured(rome_cores.last)[0] == "milan"
                else:
                    await until(lambda: milan.host.counts.dial_failures > 1)
                    assert not milan_cores.last.is_linked("rome")

    run(scene())


def test_files_that_are_no_certificates(tmp_path: Path, office: Office) -> None:
    certificate, key = office.issue("milan", "localhost")
    _, other_key = office.issue("rome", "localhost")
    text = tmp_path / "text.pem"
    text.write_text("hello")
    with pytest.raises(InvalidConfig, match=r"milan.pem with the key .*rome.key cannot be used"):
        security.connecting(office.authority, certificate, other_key)
    with pytest.raises(InvalidConfig, match="both are PEM files"):
        security.connecting(office.authority, text, key)
    with pytest.raises(InvalidConfig, match="a PEM file of certificates"):
        security.connecting(text)
    with pytest.raises(InvalidConfig, match="No such file"):
        security.connecting(tmp_path / "no.pem")


def test_a_bad_certificate_leaves_no_directory_behind(tmp_path: Path, office: Office) -> None:
    certificate, _ = office.issue("milan", "localhost")
    config = configured(tmp_path, tls_text(office, certificate, office.authority))

    async def scene() -> None:
        with pytest.raises(InvalidConfig, match="cannot be used"):
            async with serving(config, Cores()):
                raise AssertionError("it runs")

    run(scene())
    assert not config.data.exists()
