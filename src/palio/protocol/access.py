"""Access by covering: a grant is a predicate.

    subscribe to p    when the grant covers p, filter by filter; of a pattern, part by part
    publish m         when the grant matches m
    advertise         always: an advertisement gives no right to publish
    quench            to learn of what others want as far as the grant to publish reaches

`Access` says who somebody is: by token, by the name in a TLS certificate, or as anonymous. Of a token
only the SHA-256 is kept. Everything is a frozen value, so new rights are a new `Access` in its place.

Covering is sound, so nobody gets more than is granted. Where the quick test on strings says no, the
exact one is asked, as far as it is cheap: its cost can grow with the product of the lengths of the
operands, and those come from strangers. What cannot be decided is refused, in these words.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Mapping
from math import prod

import msgspec

from palio.errors import LimitExceeded, PalioError
from palio.model.covering import box, covers, is_contradiction, witness
from palio.model.message import Message
from palio.model.predicate import Filter, Op, Predicate
from palio.model.values import Type
from palio.protocol.handshake import check_name
from palio.routing.patterns.pattern import Part, Pattern, leaves

EXACT_STEPS_MAX = 2_000_000  # of automata, for all filters of a request: some 0.2 s at most
EVERYTHING = Predicate((Filter(()),))
_FLOATING = frozenset({Op.SUFFIX, Op.NOT_SUFFIX, Op.CONTAINS, Op.NOT_CONTAINS})
_HASH = re.compile(r"[0-9a-f]{64}")


class Forbidden(PalioError):
    """What somebody may not do, and why."""


class Identity(msgspec.Struct, frozen=True):
    """Somebody, and what is granted to it; None: nothing."""

    name: str
    subscribe: Predicate | None = None
    publish: Predicate | None = None
    admin: bool = False
    """It may also look into the broker: topology, explanations, subscriptions of others."""

    def __post_init__(self) -> None:
        check_name("an identity", self.name)

    @property
    def publishes_anything(self) -> bool:
        """No message needs to be checked."""
        return self.publish is not None and any(not f.constraints for f in self.publish)


class Access(msgspec.Struct, frozen=True):
    """Who is who.

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
    """Who comes without either; None: nobody may."""

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
        """All that are named anywhere."""
        yield from self.tokens.values()
        yield from self.certificates.values()
        if self.anonymous is not None:
            yield self.anonymous

    def identify(self, token: str = "", certificate: str = "") -> Identity:
        """Who this is; a token that is given counts alone. Raises Forbidden for a stranger."""
        if token:
            found = None
            given = token_hash(token)
            for hash, identity in self.tokens.items():  # all of them: the time tells nothing
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
    """What is kept of a token. It is not salted: tokens are random, people do not choose them."""
    return hashlib.sha256(token.encode()).hexdigest()


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
    """Raise Forbidden for those who may not publish: what others want is not their affair."""
    if identity.publish is None:
        raise Forbidden(_nothing(identity, "publish"))


def of_concern(identity: Identity, wanted: Iterable[Filter]) -> list[Filter]:
    """Those of the filters that select something that the identity may publish."""
    if identity.publishes_anything:
        return list(wanted)
    grant = identity.publish or ()
    return [
        f
        for f in wanted
        if any(not is_contradiction(box(Filter(f.constraints + g.constraints))) for g in grant)
    ]


def check_admin(identity: Identity, deed: str) -> None:
    """Raise Forbidden unless this is an operator. `deed`: what it wants, such as "see the network"."""
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
        reason = f"it selects {_short(example.to_json())}" if example is not None else ""
        if example is None:  # the quick test may be wrong
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
    """The exact decision; empty: the grant covers it."""
    try:
        if covers(grant, asked, exact=True):
            return ""
    except LimitExceeded:
        return _UNDECIDED
    example = witness(grant, asked)
    return (
        "not all of it is granted" if example is None else f"it selects {_short(example.to_json())}"
    )


def _exact_steps(grant: Predicate, asked: Filter) -> int:
    """An upper bound of the steps of automata in the exact decision on one piece of a filter.

    For each attribute it takes the product of the automata of all string constraints, which reads
    every character that occurs in every state. Those that compare from the first character on are
    together as good as one that is as large as their sum; each of the others, which look anywhere
    in the text, multiplies.
    """
    steps = 1
    constraints = [c for f in (asked, *grant) for c in f if c.type is Type.STRING]
    for name in {c.name for c in constraints}:
        anchored, floating, count, letters = 2, 1, 0, set[str]()
        for c in (c for c in constraints if c.name == name):
            text = "".join(map(str, c.value)) if isinstance(c.value, tuple) else str(c.value)
            letters.update(text)
            count += 1
            if c.op in _FLOATING:
                floating *= 1 + len(text)
            else:
                anchored += 3 * len(text)
        steps += anchored * floating * (1 + 2 * len(letters)) * count
    return steps


def _nothing(identity: Identity, verb: str) -> str:
    return f"{identity.name!r} may not {verb} anything: ask the operator for a grant to {verb}"


def _short(text: str, width: int = 200) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
