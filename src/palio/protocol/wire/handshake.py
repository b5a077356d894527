"""The handshake: versions, names, and how two brokers prove that they know their secret.

    dialler                                          listener
    dial ─▶ Hello(name, nonce d)        ───────────▶ answer
    Dialling.welcome                    ◀─────────── Welcome(name, nonce l, proof "listener")
             └▶ Confirm(proof "dialler") ──────────▶ Answering.confirm

A proof is an HMAC-SHA256 under the secret of the two over: protocol and version, the prover's part
(dialler or listener), the prover's name, the verifier's name, both nonces; each with its length in
front. So a proof is good for one handshake, in one direction, between these two names only: it can
be neither replayed, nor sent back to whoever made it, nor used at another broker.

The host passes in fresh nonces for each handshake. A proof authenticates the other end when the
connection begins; TLS protects the connection afterwards. Anybody who dials gets a proof against
which to test guesses of the secret, so the secret must be too long to guess (`check_secret`).
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from palio.errors import InvalidValue, PalioError
from palio.protocol.wire.codes import CloseCode, HelloRole, NeighbourRole, parse_role
from palio.protocol.wire.control import VERSION, Confirm, Hello, Welcome

NAME_MAX = 200
TOKEN_BYTES_MAX = 8192
"""Of a token: Hello must fit into what is read before the handshake."""
NONCE_BYTES = 32
SESSION_MAX = 32
SECRET_BYTES_MIN = 16
_PROTOCOL = f"palio {VERSION}".encode()


class Unwelcome(PalioError):
    """The handshake failed; the text may be sent to the other end, with the code."""

    code = CloseCode.PROTOCOL


class OtherVersion(Unwelcome):
    """The other end speaks another version of the protocol."""

    code = CloseCode.VERSION


class Impostor(Unwelcome):
    """The other end did not prove that it is the expected broker."""

    code = CloseCode.DENIED


class RolesDiffer(Unwelcome):
    """Two brokers do not agree who is master and who is slave, or would form a cycle of masters."""

    code = CloseCode.ROLES


class RoutingDiffers(Unwelcome):
    """Two brokers have different routing policies."""

    code = CloseCode.ROUTING


class TooManyConnections(Unwelcome):
    """The broker has no place for another client."""

    code = CloseCode.TOO_MANY_CONNECTIONS


def check_name(what: str, name: str) -> str:
    """Check the name of a client, a broker or an identity, and return it.

    There is no / in it, so that "identity/name" has one meaning.
    """
    if not 1 <= len(name) <= NAME_MAX or not name.isprintable() or "/" in name:
        raise Unwelcome(
            f"{what} has the name {_short(name)}; a name has 1 to {NAME_MAX} printable characters "
            "and no /: choose another"
        )
    return name


def check_token(token: str) -> str:
    """Check that a token fits into Hello, and return it."""
    size = len(token.encode())
    if size > TOKEN_BYTES_MAX:
        raise InvalidValue(
            f"the token has {size:,} bytes; brokers read {TOKEN_BYTES_MAX:,}: use a shorter one"
        )
    return token


def own_name(qualified: str) -> str:
    """What an identity itself calls something; no name of an identity has a / in it.

    >>> own_name("ann/desk/7")
    'desk/7'
    """
    return qualified.partition("/")[2]


def check_secret(what: str, secret: bytes) -> bytes:
    """Check that a secret is long enough not to be guessed, and return it."""
    if len(secret) < SECRET_BYTES_MIN:
        raise PalioError(
            f"the secret of {what} has {len(secret)} bytes; it must have {SECRET_BYTES_MIN} or "
            "more, at random: `openssl rand -hex 32` makes one"
        )
    return secret


def is_client(hello: Hello) -> bool:
    """Is it a client that says Hello, or a broker? An unknown role may be one of another version."""
    try:
        return parse_role(hello.role) is HelloRole.CLIENT
    except InvalidValue as error:
        _check_version("the other end", hello.version)
        raise Unwelcome(str(error)) from None


def check_client(hello: Hello) -> None:
    """Check version and name of a client's Hello; access.py identifies it."""
    _check_version("the client", hello.version)
    check_name("the client", hello.name)
    if hello.session and (len(hello.session) > SESSION_MAX or not hello.session.isalnum()):
        raise Unwelcome(
            f"the session of the client {_short(hello.name)} is {_short(hello.session)}; it must have "
            f"at most {SESSION_MAX} letters and digits"
        )


@dataclass(frozen=True, slots=True)
class LinkTerms:
    """What the ends of a link between brokers must agree on."""

    role: NeighbourRole = NeighbourRole.PEER
    """What the other end is to this one."""
    routing: str = ""
    """The routing policy of this end; empty: it does not say."""

    def check(self, me: str, other: str, told: Welcome | Confirm) -> None:
        """Raise RolesDiffer or RoutingDiffers unless the other end has the same terms."""
        if told.neighbour_role != self.role.other_way:
            raise RolesDiffer(
                f"broker {me!r} has {other!r} as its {self.role}, and {other!r} has {me!r} as its "
                f"{_short(told.neighbour_role)}: set role in [neighbours] of both brokers, to peer, or "
                "to master at the one below and slave at the one above"
            )
        if self.routing and told.routing and told.routing != self.routing:
            raise RoutingDiffers(
                f"broker {me!r} has routing {self.routing!r}, and {other!r} has "
                f"{_short(told.routing)}: set the same routing in [broker] of all brokers of a network"
            )


PEERS = LinkTerms()


@dataclass(frozen=True, slots=True)
class Dialling:
    """A broker that has said Hello and waits for the answer."""

    me: str
    other: str
    nonce: bytes
    secret: bytes = field(repr=False)
    terms: LinkTerms = PEERS

    def welcome(self, welcome: Welcome, credit: int = 0) -> Confirm:
        """Check the proof and the terms of the other end, and return ours. Raises Impostor, RolesDiffer
        or RoutingDiffers. `credit`: how many messages this end takes over the link."""
        _check_version(f"the broker at {self.other!r}", welcome.version)
        if welcome.broker != self.other:
            raise Impostor(
                f"the broker that answers is {_short(welcome.broker)}, and {self.other!r} was "
                "dialled: check the address of this neighbour"
            )
        _check_nonce(welcome.broker, welcome.nonce)
        if hmac.compare_digest(welcome.nonce, self.nonce):
            raise Impostor(f"{self.other!r} sends our own nonce back: it only repeats what it gets")
        nonces = (self.nonce, welcome.nonce)
        proof = _proof(self.secret, b"listener", self.other, self.me, nonces)
        _check_proof(self.other, proof, welcome.proof)
        self.terms.check(self.me, self.other, welcome)
        mine = _proof(self.secret, b"dialler", self.me, self.other, nonces)
        return Confirm(mine, credit, self.terms.role, self.terms.routing)


@dataclass(frozen=True, slots=True)
class Answering:
    """A broker that has answered Hello and waits for the other's proof."""

    me: str
    other: str
    proof: bytes = field(repr=False)
    terms: LinkTerms = PEERS

    def confirm(self, confirm: Confirm) -> None:
        """Raise Impostor unless `other` has proved its name, RolesDiffer or RoutingDiffers if it has
        other terms."""
        _check_proof(self.other, self.proof, confirm.proof)
        self.terms.check(self.me, self.other, confirm)


def dial(
    me: str,
    other: str,
    secret: bytes,
    nonce: bytes,
    terms: LinkTerms = PEERS,
) -> tuple[Dialling, Hello]:
    """Begin as the broker that dials. `nonce`: 32 bytes that were never used before."""
    check_name("this broker", me)
    check_name("the neighbour", other)
    if me == other:
        raise Impostor(f"{me!r} is this broker's own name: it does not dial itself")
    _check_nonce(me, nonce)
    hello = Hello(VERSION, HelloRole.BROKER, me, nonce=nonce)
    return Dialling(me, other, nonce, secret, terms), hello


def answer(
    me: str,
    hello: Hello,
    secrets: Mapping[str, bytes],
    nonce: bytes,
    credit: int = 0,
    terms: LinkTerms = PEERS,
) -> tuple[Answering, Welcome]:
    """Begin as the broker that was dialled. `secrets`: of each neighbour, by its name; `credit`: how
    many messages are taken over the link."""
    _check_version("the broker that dials", hello.version)
    other = hello.name
    if other == me:
        raise Impostor(f"somebody dials who has this broker's own name, {me!r}: rename one of them")
    if (secret := secrets.get(other)) is None:
        raise Impostor(
            f"{_short(other)} is no neighbour of {me!r}: add it, with a secret, to both brokers' "
            "configuration"
        )
    _check_nonce(other, hello.nonce)
    if hmac.compare_digest(hello.nonce, nonce):
        raise Impostor(f"{other!r} says our own nonce: it only repeats what it gets")
    nonces = (hello.nonce, nonce)
    mine = _proof(secret, b"listener", me, other, nonces)
    theirs = _proof(secret, b"dialler", other, me, nonces)
    welcome = Welcome(
        VERSION, me, nonce=nonce, proof=mine, credit=credit,
        neighbour_role=terms.role, routing=terms.routing,
    )  # fmt: skip
    return Answering(me, other, theirs, terms), welcome


def _proof(
    secret: bytes, part: bytes, prover: str, verifier: str, nonces: tuple[bytes, bytes]
) -> bytes:
    fields = (_PROTOCOL, part, prover.encode(), verifier.encode(), *nonces)
    signed = b"".join(len(one).to_bytes(4, "little") + one for one in fields)
    return hmac.digest(secret, signed, "sha256")


def _check_proof(name: str, expected: bytes, proof: bytes) -> None:
    if not hmac.compare_digest(expected, proof):
        raise Impostor(
            f"whoever says to be {name!r} does not prove it: the secret of this pair must be the "
            "same in both brokers' configuration"
        )


def _check_nonce(name: str, nonce: bytes) -> None:
    if len(nonce) != NONCE_BYTES:
        raise Impostor(
            f"the nonce of {_short(name)} has {len(nonce)} bytes; it must have {NONCE_BYTES}"
        )


def _check_version(who: str, version: int) -> None:
    if version != VERSION:
        raise OtherVersion(
            f"{who} speaks version {version} of the protocol, and here is version {VERSION}: "
            "bring both to the same release of Palio"
        )


def _short(text: str, width: int = 60) -> str:
    shown = repr(text)
    return shown if len(shown) <= width else shown[: width - 3] + "..."


def other_version(version: int) -> str:
    """The error of a client whose broker speaks another version."""
    older, newer = ("broker", "client") if version < VERSION else ("client", "broker")
    return (
        f"the broker speaks version {version} of the protocol and this client {VERSION}; "
        f"the {older} is older than the {newer}: install the newer release there"
    )
