"""Access by covering: a grant is a predicate.

    subscribe to p    when the grant covers p, filter by filter; of a pattern, part by part
    publish m         when the grant matches m
    advertise         always: an advertisement gives no right to publish
    quench            when there is a grant to publish; it limits which subscriptions are told

`Access` identifies a client by its token, by the name in its TLS certificate, or as anonymous. Only
the SHA-256 of a token is stored. All values are frozen: to change rights, replace the `Access`.

Covering is sound, so nobody gets more than is granted. If the quick test fails, run the exact test
within a step budget; undecided requests are refused. The budget is needed because clients choose the
operands, and the cost can grow with the product of their lengths.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Mapping
from math import prod

import msgspec

from palio.errors import LimitExceeded, PalioError
from palio.model.boxes import box, is_contradiction
from palio.model.covering import covers, witness
from palio.model.message import Message
from palio.model.predicate import Constraint, Filter, Op, Predicate
from palio.model.values import Type
from palio.protocol.wire.codes import RefusalCode
from palio.protocol.wire.handshake import check_name
from palio.protocol.wire.refusals import RequestRefused
from palio.routing.patterns.pattern import Part, Pattern, leaves

EXACT_STEPS_MAX = 2_000_000  # of automata, for all filters of a request: some 0.2 s at most
EVERYTHING = Predicate((Filter(()),))
_FLOATING = frozenset({Op.SUFFIX, Op.NOT_SUFFIX, Op.CONTAINS, Op.NOT_CONTAINS})
_HASH = re.compile(r"[0-9a-f]{64}")


class Forbidden(RequestRefused):
    """An identity may not do something; the text says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(RefusalCode.DENIED, reason)


class Identity(msgspec.Struct, frozen=True):
    """An identity and its grants; None: no grant."""

    name: str
    subscribe: Predicate | None = None
    publish: Predicate | None = None
    admin: bool = False
    """May see topology, explanations, queues and subscriptions of others, act on queues, and forget
    brokers."""

    def __post_init__(self) -> None:
        check_name("an identity", self.name)

    @property
    def subscribes_anything(self) -> bool:
        """Whether the grant to subscribe covers every predicate."""
        return self.subscribe is not None and any(not f.constraints for f in self.subscribe)

    @property
    def publishes_anything(self) -> bool:
        """Whether the grant to publish matches every message."""
        return self.publish is not None and any(not f.constraints for f in self.publish)


class Access(msgspec.Struct, frozen=True):
    """The identities that a broker knows.

    >>> ann = Identity("ann", publish=EVERYTHING)
    >>> access = Access({token_hash("long and random"): ann})
    >>> access.identify(token="long and random").name
    'ann'
    >>> access
    Access(1 tokens, 0 certificates, nobody anonymous)
    """

    tokens: Mapping[str, Identity] = {}
    """By the token's SHA-256 (`token_hash`)."""
    certificates: Mapping[str, Identity] = {}
    """By the common name of a certificate that the host has verified."""
    anonymous: Identity | None = None
    """The identity of clients with neither; None: they are refused."""

    def __post_init__(self) -> None:
        known: dict[str, Identity] = {}
        for identity in self.identities():
            if known.setdefault(identity.name, identity) != identity:
                raise PalioError(
                    f"the identity {identity.name!r} is there twice with different grants: "
                    "give one of them another name"
                )
        for hash, identity in self.tokens.items():
            if not _HASH.fullmatch(hash):
                raise PalioError(
                    f"the token of {identity.name!r} is given by its SHA-256, 64 small hex digits: "
                    "`printf %s TOKEN | sha256sum` prints it"
                )

    def identities(self) -> Iterator[Identity]:
        """All identities; one with several tokens appears several times."""
        yield from self.tokens.values()
        yield from self.certificates.values()
        if self.anonymous is not None:
            yield self.anonymous

    def named(self, name: str) -> Identity:
        """The identity of this name; raises Forbidden if the configuration has it no more."""
        for identity in self.identities():
            if identity.name == name:
                return identity
        raise Forbidden(f"there is no identity {name!r} any more: add it to the configuration")

    def identify(self, token: str = "", certificate: str = "") -> Identity:
        """The identity of a client; with a token, the certificate is ignored. Raises Forbidden."""
        if token:
            found = None
            given = token_hash(token)
            for hash, identity in self.tokens.items():  # all: equal time for any token
                if hmac.compare_digest(hash, given):
                    found = identity
            if found is None:
                raise Forbidden(
                    "this broker does not know the token: check it, or ask the operator for one"
                )
            return found
        found = self.certificates.get(certificate) if certificate else None
        found = found or self.anonymous
        if found is None:
            raise Forbidden(
                "this broker lets nobody in without a token or a certificate that it knows: "
                "connect with one, or ask the operator for it"
            )
        return found

    def __repr__(self) -> str:
        anonymous = self.anonymous.name if self.anonymous else "nobody"
        return (
            f"Access({len(self.tokens)} tokens, {len(self.certificates)} certificates, "
            f"{anonymous} anonymous)"
        )


def token_hash(token: str) -> str:
    """The stored form of a token. Not salted: tokens are random, people do not choose them."""
    return hashlib.sha256(token.encode()).hexdigest()


def check_may_subscribe(identity: Identity) -> None:
    """Raise Forbidden if the identity may subscribe to nothing."""
    if identity.subscribe is None:
        raise Forbidden(_nothing(identity, "subscribe"))


def check_subscribe(identity: Identity, predicate: Predicate) -> None:
    """Raise Forbidden unless the grant covers every filter."""
    _check_covered(identity, [("", predicate)])


def check_watch(identity: Identity, pattern: Pattern) -> None:
    """Raise Forbidden unless the grant covers every part of the pattern."""
    parts = []
    for number, leaf in enumerate(leaves(pattern.node), 1):
        if not isinstance(leaf, Part):
            raise Forbidden(
                f"{identity.name!r} may not watch a pattern with a part that others assemble"
            )
        parts.append((f"part {number} of the pattern, ", leaf.predicate))
    _check_covered(identity, parts)


def check_publish(identity: Identity, message: Message) -> None:
    """Raise Forbidden unless the grant matches the message."""
    grant = identity.publish
    if grant is None:
        raise Forbidden(_nothing(identity, "publish"))
    if not grant.matches(message):
        raise Forbidden(
            f"{identity.name!r} may not publish {_short(message.to_json())}: its grant is "
            f"{_short(str(grant))}; ask the operator for more"
        )


def check_quench(identity: Identity) -> None:
    """Raise Forbidden unless the identity may publish."""
    if identity.publish is None:
        raise Forbidden(_nothing(identity, "publish"))


def of_concern(identity: Identity, wanted: Iterable[Filter]) -> list[Filter]:
    """The filters that select a message which the identity may publish."""
    if identity.publishes_anything:
        return list(wanted)
    grant = identity.publish or ()
    return [
        f
        for f in wanted
        if any(not is_contradiction(box(Filter(f.constraints + g.constraints))) for g in grant)
    ]


def check_admin(identity: Identity, deed: str) -> None:
    """Raise Forbidden unless the identity is an operator. `deed`: such as "see the network"."""
    if not identity.admin:
        raise Forbidden(
            f"{identity.name!r} may not {deed}: that is for operators; ask for the grant `admin`"
        )


def _check_covered(identity: Identity, requested: list[tuple[str, Predicate]]) -> None:
    grant = identity.subscribe
    if grant is None:
        raise Forbidden(_nothing(identity, "subscribe"))
    unsure = [(place, p) for place, p in requested if not covers(grant, p)]
    left = EXACT_STEPS_MAX
    for place, asked in ((place, f) for place, p in unsure for f in p):
        if covers(grant, asked):
            continue
        steps = _exact_steps(grant, asked)
        example = witness(grant, asked, exact=False) if steps <= left else None
        reason = f"it selects {_short(example.shown())}" if example is not None else ""
        if example is None:  # the quick test proves nothing
            left -= steps * prod(1 + len(f) for f in grant)  # pieces into which the grant cuts it
            reason = _why_uncovered(grant, asked) if left >= 0 else _UNDECIDED
        if reason:
            raise Forbidden(
                f"{identity.name!r} may not subscribe to {place}{_short(str(asked))}: {reason}, "
                f"and its grant is {_short(str(grant))}. Subscribe to a part of that, or ask the "
                "operator for more"
            )


_UNDECIDED = "whether the grant covers it takes too long to decide"


def _why_uncovered(grant: Predicate, asked: Filter) -> str:
    """Why the grant does not cover the filter, by the exact test; empty: it covers it."""
    try:
        if covers(grant, asked, exact=True):
            return ""
    except LimitExceeded:
        return _UNDECIDED
    example = witness(grant, asked)
    return (
        "not all of it is granted" if example is None else f"it selects {_short(example.shown())}"
    )


def _exact_steps(grant: Predicate, asked: Filter) -> int:
    """An upper bound on the automaton steps of the exact test for one piece of a filter.

    For each attribute the test builds the product of the automata of all its string constraints, and
    reads every occurring character in every state. Anchored constraints add to the state count;
    floating ones multiply it.
    """
    steps = 1
    by_name: dict[str, list[Constraint]] = {}
    for c in (c for f in (asked, *grant) for c in f if c.type is Type.STRING):
        by_name.setdefault(c.name, []).append(c)
    for constraints in by_name.values():
        anchored, floating, count, characters = 2, 1, 0, set[str]()
        for c in constraints:
            text = "".join(map(str, c.value)) if isinstance(c.value, tuple) else str(c.value)
            characters.update(text)
            count += 1
            if c.op in _FLOATING:
                floating *= 1 + len(text)
            else:
                anchored += 3 * len(text)
        steps += anchored * floating * (1 + 2 * len(characters)) * count
    return steps


def _nothing(identity: Identity, verb: str) -> str:
    return f"{identity.name!r} may not {verb} anything: ask the operator for a grant to {verb}"


def _short(text: str, width: int = 200) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
