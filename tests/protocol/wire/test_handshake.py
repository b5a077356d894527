"""Two brokers know each other by their secret, and nobody else passes for one of them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from palio.errors import PalioError
from palio.protocol.wire.control import VERSION, Confirm, Hello, Welcome
from palio.protocol.wire.handshake import (
    NAME_MAX,
    NONCE_BYTES,
    Answering,
    Dialling,
    Impostor,
    OtherVersion,
    Unwelcome,
    answer,
    check_client,
    check_name,
    check_secret,
    dial,
    is_client,
)

SECRET, OTHER_SECRET = b"s" * 32, b"t" * 32
D, L, E, M = (bytes([i]) * NONCE_BYTES for i in range(1, 5))

good_names = st.text(st.characters(categories=["L", "N", "P"], exclude_characters="/"), min_size=1)
nonces = st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES)


def greeted(
    nonce: bytes = D, back: bytes = L, secret: bytes = SECRET
) -> tuple[Dialling, Answering, Welcome]:
    """oslo has dialled rome, and rome has answered."""
    dialling, hello = dial("oslo", "rome", secret, nonce)
    answering, welcome = answer("rome", hello, {"oslo": SECRET, "bern": OTHER_SECRET}, back)
    return dialling, answering, welcome


@given(good_names, good_names, st.binary(min_size=1), nonces, nonces)
@settings(max_examples=200, deadline=None)
def test_two_who_know_the_secret_meet(
    me: str, other: str, secret: bytes, mine: bytes, theirs: bytes
) -> None:
    assume(me != other and mine != theirs)
    dialling, hello = dial(me, other, secret, mine)
    assert (hello.version, hello.role, hello.name, hello.token) == (VERSION, "broker", me, "")
    answering, welcome = answer(other, hello, {me: secret}, theirs, credit=5)
    assert welcome.credit == 5
    assert answering.other == me
    confirm = dialling.welcome(welcome, credit=6)
    assert confirm.credit == 6
    answering.confirm(confirm)


@given(good_names, good_names, st.binary(min_size=1), st.binary(min_size=1))
@settings(max_examples=100, deadline=None)
def test_different_secrets_never_meet(me: str, other: str, mine: bytes, theirs: bytes) -> None:
    assume(me != other and not _same_key(mine, theirs))
    dialling, hello = dial(me, other, mine, D)
    answering, welcome = answer(other, hello, {me: theirs}, L)
    with pytest.raises(Impostor, match="does not prove it"):
        dialling.welcome(welcome)
    blind = msgspec.structs.replace(welcome, proof=_listener_proof(me, other, mine, D, L))
    with pytest.raises(Impostor, match="does not prove it"):
        answering.confirm(dialling.welcome(blind))


def _same_key(a: bytes, b: bytes) -> bool:
    """HMAC fills keys up with zeros."""
    return a.rstrip(b"\0") == b.rstrip(b"\0")


def _listener_proof(me: str, other: str, secret: bytes, mine: bytes, theirs: bytes) -> bytes:
    _, hello = dial(me, other, secret, mine)
    return answer(other, hello, {me: secret}, theirs)[1].proof


# ---- impostors, one of each kind


def test_a_replayed_welcome() -> None:
    _, _, heard = greeted(nonce=D)
    dialling, _ = dial("oslo", "rome", SECRET, E)
    with pytest.raises(Impostor, match="'rome' does not prove it"):
        dialling.welcome(heard)


def test_a_replayed_confirm() -> None:
    dialling, _, welcome = greeted(back=L)
    heard = dialling.welcome(welcome)
    _, answering, _ = greeted(back=M)  # the same Hello again
    with pytest.raises(Impostor, match="'oslo' does not prove it"):
        answering.confirm(heard)


def test_a_reflected_proof() -> None:
    """The listener's own proof is no proof of the dialler."""
    _, answering, welcome = greeted()
    with pytest.raises(Impostor):
        answering.confirm(Confirm(welcome.proof))


def test_a_reflected_nonce() -> None:
    dialling, hello = dial("oslo", "rome", SECRET, D)
    with pytest.raises(Impostor, match="repeats"):
        dialling.welcome(Welcome(VERSION, "rome", nonce=D, proof=bytes(32)))
    with pytest.raises(Impostor, match="repeats"):
        answer("rome", hello, {"oslo": SECRET}, D)


def test_a_second_connection_gives_no_proof_for_the_first() -> None:
    """Somebody without the secret is dialled by oslo as rome, and dials oslo as rome at once, to let
    oslo make the proof that it lacks."""
    dialling, _ = dial("oslo", "rome", SECRET, D)
    _, made_by_oslo = answer("oslo", Hello(VERSION, "broker", "rome", nonce=D), {"rome": SECRET}, L)
    with pytest.raises(Impostor, match="was dialled"):
        dialling.welcome(made_by_oslo)
    renamed = msgspec.structs.replace(made_by_oslo, broker="rome")
    with pytest.raises(Impostor, match="does not prove it"):
        dialling.welcome(renamed)


def test_the_secret_of_another_pair() -> None:
    """bern is a neighbour of rome too, and says to be oslo."""
    dialling, hello = dial("oslo", "rome", OTHER_SECRET, D)
    answering, welcome = answer("rome", hello, {"oslo": SECRET, "bern": OTHER_SECRET}, L)
    with pytest.raises(Impostor):
        dialling.welcome(welcome)
    forged = _proof_as_dialler("oslo", "rome", OTHER_SECRET, D, L)
    with pytest.raises(Impostor, match="'oslo' does not prove it"):
        answering.confirm(forged)


def test_names_swapped() -> None:
    """One secret for all: what bern proves to rome does not prove that it is oslo, nor to turin."""
    _, hello = dial("oslo", "rome", SECRET, D)
    answering, _ = answer("rome", hello, {"oslo": SECRET, "bern": SECRET}, L)
    for me, other in (("bern", "rome"), ("oslo", "turin"), ("rome", "oslo")):
        with pytest.raises(Impostor):
            answering.confirm(_proof_as_dialler(me, other, SECRET, D, L))
    answering.confirm(_proof_as_dialler("oslo", "rome", SECRET, D, L))


def _proof_as_dialler(me: str, other: str, secret: bytes, mine: bytes, theirs: bytes) -> Confirm:
    dialling, hello = dial(me, other, secret, mine)
    _, welcome = answer(other, hello, {me: secret}, theirs)
    return dialling.welcome(welcome)


def test_names_that_run_into_each_other() -> None:
    """Lengths are signed: "ab" to "c" is not "a" to "bc"."""
    _, hello = dial("ab", "c", SECRET, D)
    answering, _ = answer("c", hello, {"ab": SECRET}, L)
    with pytest.raises(Impostor):
        answering.confirm(_proof_as_dialler("a", "bc", SECRET, D, L))


def test_the_wrong_broker_answers() -> None:
    dialling, _ = dial("oslo", "rome", SECRET, D)
    _, hello = dial("oslo", "bern", SECRET, D)
    _, welcome = answer("bern", hello, {"oslo": SECRET}, L)
    with pytest.raises(Impostor, match="'bern', and 'rome' was dialled"):
        dialling.welcome(welcome)


def test_strangers_and_namesakes() -> None:
    with pytest.raises(Impostor, match="'paris' is no neighbour of 'rome'"):
        answer("rome", Hello(VERSION, "broker", "paris", nonce=D), {"oslo": SECRET}, L)
    with pytest.raises(Impostor, match="own name"):
        answer("rome", Hello(VERSION, "broker", "rome", nonce=D), {"rome": SECRET}, L)
    with pytest.raises(Impostor, match="own name"):
        dial("rome", "rome", SECRET, D)


@pytest.mark.parametrize("proof", [b"", b"x", bytes(32), bytes(64)])
def test_no_proof_at_all(proof: bytes) -> None:
    dialling, answering, welcome = greeted()
    with pytest.raises(Impostor):
        dialling.welcome(msgspec.structs.replace(welcome, proof=proof))
    with pytest.raises(Impostor):
        answering.confirm(Confirm(proof))


@pytest.mark.parametrize("nonce", [b"", b"x", bytes(31), bytes(33)])
def test_nonces_have_one_length(nonce: bytes) -> None:
    dialling, _, welcome = greeted()
    with pytest.raises(Impostor, match="nonce"):
        answer("rome", Hello(VERSION, "broker", "oslo", nonce=nonce), {"oslo": SECRET}, L)
    with pytest.raises(Impostor, match="nonce"):
        dialling.welcome(msgspec.structs.replace(welcome, nonce=nonce))
    with pytest.raises(Impostor, match="nonce"):
        dial("oslo", "rome", SECRET, nonce)


def test_versions_are_named() -> None:
    dialling, _, welcome = greeted()
    for version in (0, VERSION + 1):
        says = f"version {version} .* version {VERSION}"
        with pytest.raises(Unwelcome, match=says):
            answer("rome", Hello(version, "broker", "oslo", nonce=D), {"oslo": SECRET}, L)
        with pytest.raises(Unwelcome, match=says):
            dialling.welcome(msgspec.structs.replace(welcome, version=version))
        with pytest.raises(Unwelcome, match=says):
            check_client(Hello(version, "client", "ann"))


def test_a_role_that_does_not_exist() -> None:
    assert is_client(Hello(VERSION, "client", "ann"))
    assert not is_client(Hello(VERSION, "broker", "oslo"))
    with pytest.raises(Unwelcome, match="client, broker, not 'king'"):
        is_client(Hello(VERSION, "king", "ann"))
    with pytest.raises(OtherVersion):
        is_client(Hello(VERSION + 1, "king", "ann"))


@pytest.mark.parametrize("name", ["a", "desk-7", "Zoë's laptop", "名前", "x" * NAME_MAX])
def test_names(name: str) -> None:
    assert check_name("it", name) == name
    check_client(Hello(VERSION, "client", name))


@pytest.mark.parametrize("name", ["", "a/b", "/", "a\nb", "\0", "\u202e", "x" * (NAME_MAX + 1)])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(Unwelcome, match="printable"):
        check_name("it", name)
    with pytest.raises(Unwelcome, match="the client has the name"):
        check_client(Hello(VERSION, "client", name))


def test_short_secrets() -> None:
    assert check_secret("rome", bytes(16)) == bytes(16)
    with pytest.raises(PalioError, match="secret of rome has 15 bytes"):
        check_secret("rome", bytes(15))


def test_secrets_are_not_shown() -> None:
    secret = b"do not look at me"
    dialling, hello = dial("oslo", "rome", secret, D)
    answering, welcome = answer("rome", hello, {"oslo": secret}, L)
    assert "look" not in repr((dialling, hello, answering, welcome))
    expected = dialling.welcome(welcome).proof
    assert repr(expected) not in repr(answering)
