"""Access by covering, against brute force; and each way around a grant that there could be."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import palio
from palio.errors import PalioError
from palio.model.message import Message
from palio.protocol.broker.access import (
    EVERYTHING,
    Access,
    Forbidden,
    Identity,
    check_admin,
    check_publish,
    check_subscribe,
    check_watch,
    token_hash,
)
from palio.routing import patterns
from palio.routing.patterns.pattern import Awaited, Pattern
from tests.model import brute
from tests.strategies import messages, predicates

ANN = Identity(
    "ann",
    subscribe=palio.parse("dest = 'MXP' AND price < 500 OR topic LIKE 'eu/%'"),
    publish=palio.parse("carrier = 'UA' AND price >= 0"),
)
STRANGER = Identity("stranger")
ROOT = Identity("root", EVERYTHING, EVERYTHING, admin=True)


def may_subscribe(identity: Identity, text: str) -> bool:
    try:
        check_subscribe(identity, palio.parse(text))
    except Forbidden:
        return False
    return True


# ---- the law

_constraints = st.sampled_from(
    [*brute.string_constraints(), *brute.number_constraints(), *brute.other_constraints()]
)
_filters = st.lists(_constraints, min_size=1, max_size=2).map(lambda c: palio.Filter(tuple(c)))
_small = st.lists(_filters, min_size=1, max_size=3).map(lambda f: palio.Predicate(tuple(f)))


@given(_small, _small)
@settings(max_examples=400, deadline=None)
def test_granted_is_what_is_covered(grant: palio.Predicate, asked: palio.Predicate) -> None:
    """Exactly, where the decision is cheap; never more than that."""
    covered = brute.inside(brute.selects(asked), brute.selects(grant))
    refusal = ""
    try:
        check_subscribe(Identity("ann", grant), asked)
    except Forbidden as error:
        refusal = str(error)
    assert covered != bool(refusal) or "too long to decide" in refusal


@given(predicates, predicates, messages)
@settings(max_examples=200, deadline=None)
def test_nobody_gets_more_than_is_granted(
    grant: palio.Predicate, asked: palio.Predicate, message: Message
) -> None:
    try:
        check_subscribe(Identity("ann", grant), asked)
    except Forbidden:
        return
    assert grant.matches(message) or not asked.matches(message)


@given(predicates, messages)
@settings(max_examples=200, deadline=None)
def test_published_is_what_the_grant_matches(grant: palio.Predicate, message: Message) -> None:
    identity = Identity("ann", publish=grant)
    try:
        check_publish(identity, message)
    except Forbidden:
        assert not grant.matches(message)
        assert not identity.publishes_anything
    else:
        assert grant.matches(message)


# ---- ways around a grant


@pytest.mark.parametrize(
    "text",
    [
        "dest = 'MXP' AND price < 500",
        "dest = 'MXP' AND price < 100 AND gate IS NULL",
        "topic LIKE 'eu/it/%'",
        "topic LIKE 'eu/%' AND topic LIKE '%alarm'",
        "topic = 'eu/x' OR dest = 'MXP' AND price = 3",
        "price > 5 AND price < 4",  # nothing
        "FALSE",
    ],
)
def test_within_the_grant(text: str) -> None:
    check_subscribe(ANN, palio.parse(text))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("TRUE", "it selects {"),
        ("price < 500", "price < 500"),
        ("dest = 'MXP'", "dest = 'MXP'"),
        ("dest = 'MXP' AND price < 501", '"price": 500'),
        ("dest != 'MXP' AND price < 500", "dest != 'MXP'"),
        ("dest LIKE 'MXP%' AND price < 500", "LIKE 'MXP%'"),
        ("dest IN ('MXP', 'LIN') AND price < 5", '"dest": "LIN"'),
        ("topic LIKE 'eu%'", "topic LIKE 'eu%'"),
        ("topic LIKE '%eu/%'", "topic LIKE '%eu/%'"),
        ("topic IS NULL", "it selects {"),
        ("dest = 'MXP' AND price < 500 OR gate = 'A1'", "subscribe to gate = 'A1'"),
        ("topic LIKE 'eu/%' OR topic LIKE 'us/%'", "subscribe to topic LIKE 'us/%'"),
    ],
)
def test_outside_of_the_grant(text: str, says: str) -> None:
    with pytest.raises(Forbidden) as refused:
        check_subscribe(ANN, palio.parse(text))
    sentence = str(refused.value)
    assert "'ann' may not subscribe to" in sentence
    assert says in sentence
    assert "its grant is dest = 'MXP' AND price < 500 OR topic LIKE 'eu/%'" in sentence
    assert "operator" in sentence


@pytest.mark.parametrize(
    ("grant", "asked"),
    [
        ("s > 'aa'", "s >= 'aa' AND s LIKE '%ab' AND s > 'a'"),
        ("s > 'aa'", "s NOT LIKE '%ab%' AND s LIKE '%ba%' AND s >= 'aa'"),
        ("s > 'aa'", "s LIKE 'bb%' OR s NOT LIKE '%ab%' AND s LIKE '%ba%' AND s >= 'aa'"),
        ("s > 'a'", "s LIKE '%b%' AND s != '' AND s LIKE 'a%'"),
    ],
)
def test_strings_that_only_the_exact_decision_knows(grant: str, asked: str) -> None:
    assert not palio.covers(grant, asked)
    check_subscribe(Identity("bob", palio.parse(grant)), palio.parse(asked))


def test_a_large_grant_is_refused_with_an_example_too() -> None:
    grant = " OR ".join(f"a{i % 5} > {i} AND b{i % 7} < {100 - i}" for i in range(20))
    with pytest.raises(Forbidden, match="it selects"):
        check_subscribe(Identity("bob", palio.parse(grant)), palio.parse("x = 1 AND a1 > 0"))


def test_what_takes_too_long_is_refused_soon_and_says_so() -> None:
    """A stranger cannot keep the broker busy with automata."""
    grant = Identity("eve", palio.parse("s LIKE '%abc%' AND s LIKE '%cba%'"))
    hard = " AND ".join(f"s LIKE '%{'ab' * i}{'ba' * i}c%'" for i in range(1, 8))
    asked = palio.parse(" OR ".join(f"({hard} AND n = {i})" for i in range(100)))
    started = time.process_time()
    with pytest.raises(Forbidden, match="too long to decide"):
        check_subscribe(grant, asked)
    parts = " or ".join(f"[{hard} AND n = {i}]" for i in range(60))
    with pytest.raises(Forbidden, match="too long to decide"):
        check_watch(grant, patterns.parse(parts))
    assert time.process_time() - started < 3


def test_every_part_of_a_pattern() -> None:
    check_watch(ANN, patterns.parse("[topic = 'eu/a'] then [topic = 'eu/b'] within 5 minutes"))
    for text in (
        "[topic = 'eu/a'] then [topic = 'us/b']",
        "[topic = 'us/b'] or [topic = 'eu/a']",
        "[topic = 'eu/a'] and ([topic = 'eu/b'] or [topic = 'us/b'] within 5 minutes)",
        "[topic = 'eu/a'] then [topic = 'eu/b' OR topic = 'us/b']",
    ):
        with pytest.raises(Forbidden, match=r"part \d of the pattern, topic = 'us/b'"):
            check_watch(ANN, patterns.parse(text))
    with pytest.raises(Forbidden, match="others assemble"):
        check_watch(ROOT, Pattern(Awaited(1)))


def test_publish() -> None:
    check_publish(ANN, Message({"carrier": "UA", "price": 5}))
    for outside in ({}, {"carrier": "UA"}, {"carrier": "AA", "price": 5}, {"price": 5}):
        with pytest.raises(
            Forbidden, match=r"'ann' may not publish .* its grant is carrier = 'UA'"
        ):
            check_publish(ANN, Message(outside))
    assert ROOT.publishes_anything
    assert not ANN.publishes_anything
    assert not STRANGER.publishes_anything


def test_nothing_is_granted_by_default() -> None:
    for text in ("TRUE", "x = 1", "FALSE"):
        assert not may_subscribe(STRANGER, text)
    with pytest.raises(Forbidden, match="'stranger' may not publish anything"):
        check_publish(STRANGER, Message({}))
    with pytest.raises(Forbidden, match="'stranger' may not see the network"):
        check_admin(STRANGER, "see the network")
    with pytest.raises(Forbidden, match="part"):
        check_watch(ANN, patterns.parse("[x = 1]"))
    with pytest.raises(Forbidden, match="subscribe anything"):
        check_watch(STRANGER, patterns.parse("[x = 1]"))


def test_all_is_granted_to_root() -> None:
    assert may_subscribe(ROOT, "TRUE")
    check_publish(ROOT, Message({}))
    check_admin(ROOT, "see the network")
    check_watch(ROOT, patterns.parse("[TRUE] then [x = 1]"))


# ---- who is who

ACCESS = Access(
    {token_hash("t0ken"): ANN, token_hash("other"): ROOT}, {"ann.example": ANN}, STRANGER
)


def test_identities() -> None:
    assert ACCESS.identify(token="t0ken") is ANN
    assert ACCESS.identify(token="other") is ROOT
    assert ACCESS.identify(certificate="ann.example") is ANN
    assert ACCESS.identify() is STRANGER
    assert ACCESS.identify(certificate="eve.example") is STRANGER
    assert ACCESS.identify(token="t0ken", certificate="root.example") is ANN


@pytest.mark.parametrize("token", ["T0ken", "t0ken ", token_hash("t0ken"), "é", "x" * 100_000])
def test_a_wrong_token_is_not_anonymous_and_not_shown(token: str) -> None:
    with pytest.raises(Forbidden) as refused:
        ACCESS.identify(token=token, certificate="ann.example")
    assert token not in str(refused.value)


def test_without_anonymous_nobody_comes_in_without_a_name() -> None:
    closed = Access({token_hash("t0ken"): ANN})
    for certificate in ("", "eve.example"):
        with pytest.raises(Forbidden, match="token or a certificate"):
            closed.identify(certificate=certificate)
    with pytest.raises(Forbidden):
        Access().identify()


def test_nothing_secret_is_shown_or_kept() -> None:
    assert "t0ken" not in repr(ACCESS)
    assert token_hash("t0ken") not in repr(ACCESS)
    assert "t0ken" not in str(dict(ACCESS.tokens))


def test_mistakes_of_the_operator() -> None:
    for hash in ("t0ken", token_hash("t0ken").upper(), ""):
        with pytest.raises(PalioError, match="SHA-256"):
            Access({hash: ANN})
    with pytest.raises(PalioError, match="'ann' is there twice"):
        Access({token_hash("t0ken"): ANN}, {"ann.example": Identity("ann")})
    for name in ("", "a/b"):
        with pytest.raises(PalioError, match="name"):
            Identity(name)


def test_access_is_a_value() -> None:
    with pytest.raises(AttributeError):
        ACCESS.anonymous = ROOT  # type: ignore[misc]
    with pytest.raises(AttributeError):
        STRANGER.admin = True  # type: ignore[misc]
