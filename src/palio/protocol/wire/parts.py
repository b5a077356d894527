"""Parts: what can grow is sent in several control messages, so that no receiver refuses one.

    items ──packed──▶ groups of at most PART_BYTES ──▶ one control message each; all but the last say `more`
    parts ──joined──▶ the whole

Every receiver takes control messages of CONTROL_BYTES_MIN, whatever its `Limits.control` is. A part has
PART_BYTES, or one item that is larger: `TEXT_BYTES_MAX` bounds the texts that clients choose. Parts of one
thing follow each other on one connection. A receiver discards an unfinished thing with the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from palio.errors import InvalidValue
from palio.protocol.wire.control import (
    ControlMessage,
    Digest,
    Explained,
    Hop,
    Missing,
    Occurred,
    PatternItem,
    Place,
    RouterPacket,
    Shown,
)
from palio.protocol.wire.frames import control_frame

T = TypeVar("T")

CONTROL_BYTES_MIN = 1 << 20
"""The least that `Limits.control` may be: no control message is larger."""
PART_BYTES = 256 << 10
"""Of a part with several items, about."""
TEXT_BYTES_MAX = 512 << 10
"""Of one predicate or pattern, as it travels."""
REASON_MAX = 2000
"""Characters of a sentence for people."""
ITEM_BYTES = 48
"""Of an item, at most, besides its texts."""


def text_bytes(text: str) -> int:
    """The size of a text on the wire."""
    return len(text) if text.isascii() else len(text.encode())


def cut(text: str, width: int = 0) -> str:
    """A text for people that is not too long; default: REASON_MAX characters."""
    width = width or REASON_MAX
    return text if len(text) <= width else text[: width - 3] + "..."


def packed(items: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Items in their order, as many together as one part takes; at least one group."""
    group: list[T] = []
    group_bytes = 0
    for item in items:
        item_bytes = ITEM_BYTES + size(item)
        if group and group_bytes + item_bytes > PART_BYTES:
            yield group
            group, group_bytes = [], 0
        group.append(item)
        group_bytes += item_bytes
    yield group


def with_more(groups: Iterator[T]) -> Iterator[tuple[T, bool]]:
    """Groups, each with whether another one follows."""
    last = next(groups)
    for group in groups:
        yield last, True
        last = group
    yield last, False


# ---- between brokers


def digest_parts(known: Iterable[tuple[str, str, int]]) -> list[Digest]:
    groups = packed(known, lambda one: text_bytes(one[0]) + text_bytes(one[1]))
    return [Digest(tuple(group), more) for group, more in with_more(groups)]


def missing_parts(brokers: Iterable[str]) -> list[Missing]:
    return [Missing(tuple(group)) for group in packed(brokers, text_bytes) if group]


def packet_parts(packet: bytes) -> list[RouterPacket]:
    ends = range(PART_BYTES, len(packet) + PART_BYTES, PART_BYTES)
    return [RouterPacket(packet[end - PART_BYTES : end], end < len(packet)) for end in ends]


# ---- requests of clients


def check_request(what: str, request: ControlMessage) -> None:
    """Raise InvalidValue for a request that no broker takes: it would end the connection."""
    size = len(control_frame(request))
    if size > CONTROL_BYTES_MIN:
        raise InvalidValue(
            f"{what} has {size:,} bytes; brokers take requests of {CONTROL_BYTES_MIN:,}: "
            "use several smaller ones"
        )


# ---- answers to clients


def occurred_parts(id: int, items: Iterable[PatternItem]) -> list[Occurred]:
    groups = packed(items, lambda one: text_bytes(one.attributes) + text_bytes(one.publisher))
    return [Occurred(id, tuple(group), more) for group, more in with_more(groups)]


def shown_parts(id: int, places: Iterable[Place]) -> list[Shown]:
    """The links of a place may go in several places of the same broker."""
    pieces = (
        msgspec.structs.replace(place, links=tuple(links))
        for place in places
        for links in packed(place.links, _link_bytes)
    )
    groups = packed(pieces, _place_bytes)
    return [Shown(id, tuple(group), more) for group, more in with_more(groups)]


def explained_parts(id: int, hops: Iterable[Hop], silent: Iterable[str]) -> list[Explained]:
    parts = [Explained(id, tuple(group), (), True) for group in packed(hops, hop_bytes)]
    groups = packed(silent, text_bytes)
    parts += [Explained(id, (), tuple(group), True) for group in groups if group]
    parts[-1] = msgspec.structs.replace(parts[-1], more=False)
    return parts


def hop_bytes(hop: Hop) -> int:
    texts = [text for pair in (*hop.delivers, *hop.sends) for text in pair]
    return sum(map(text_bytes, (hop.broker, hop.came_from, *texts))) + 5 * len(texts)


def _place_bytes(place: Place) -> int:
    own = 12 * ITEM_BYTES + text_bytes(place.broker)
    if place.memory is not None:
        own += text_bytes(place.memory.scheme)
    return own + sum(map(_link_bytes, place.links))


def _link_bytes(link: tuple[str, float]) -> int:
    return ITEM_BYTES + text_bytes(link[0])


Answer = Occurred | Shown | Explained


class AnswerParts:
    """What a client has of answers whose last part has not come."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: dict[tuple[type, int], list[Answer]] = {}

    def whole(self, part: Answer) -> Answer | None:
        """The whole answer that a part completes; None: more follows."""
        key = type(part), part.id
        parts = self._parts.setdefault(key, [])
        parts.append(part)
        return None if part.more else _joined(self._parts.pop(key))

    def clear(self) -> None:
        """The connection is gone."""
        self._parts.clear()


def _joined(parts: list[Answer]) -> Answer:
    id = parts[0].id
    if isinstance(parts[0], Occurred):
        return Occurred(
            id, tuple(x for one in parts if isinstance(one, Occurred) for x in one.items)
        )
    if isinstance(parts[0], Explained):
        told = [one for one in parts if isinstance(one, Explained)]
        silent = tuple(name for one in told for name in one.silent)
        return Explained(id, tuple(hop for one in told for hop in one.hops), silent)
    places: dict[str, Place] = {}
    for place in (x for one in parts if isinstance(one, Shown) for x in one.places):
        known = places.get(place.broker)
        links = place.links if known is None else known.links + place.links
        places[place.broker] = msgspec.structs.replace(place, links=links)
    return Shown(id, tuple(places.values()))
