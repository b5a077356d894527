"""The wire form of packets between routers: the content of the control message `RouterPacket`.

    packet         ["Subscribe", filter, origin]
                   ["Restate", [filter, ...], [advertisement, ...], [watch, ...], origin]
    filter         [constraint, ...]      an advertisement likewise
    constraint     [name, operator, value or values, type]
    message        {name: value, ...}
    pattern        its text               the language bounds its size and depth
    value          as msgpack has it: bool, int, double, text; a time is a timestamp

A struct is the list of its fields. Everything is msgpack, and only patterns are parsed from text,
because a router that joins sends thousands of filters at once. Reading what was written gives the
same packet (for a pattern: what the language makes of its text). Everything else raises
`BrokenFrame`, including values that the model refuses.

Messages travel in FORWARD frames: a `Publish` is part of other packets here, never one of its own.
An `Awaited` part is never sent: what is delegated is a whole pattern (routing/patterns/planning.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import msgspec

from palio.errors import InvalidPattern, InvalidValue, PalioError
from palio.model.advertisement import Advertisement
from palio.model.message import Message
from palio.model.predicate import Constraint, Filter
from palio.model.values import INT_MAX, Value, as_value
from palio.protocol.wire.frames import BrokenFrame
from palio.routing import patterns
from palio.routing.packets import (
    Advertise,
    Packet,
    Publish,
    Restate,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from palio.routing.patterns.packets import Assembled, Compound, Sieved, Task, Unwatch, Watch
from palio.routing.patterns.pattern import Part, Pattern, leaves

T = TypeVar("T")
Plain: TypeAlias = Any  # lists, dicts and values, as msgpack has them
Read: TypeAlias = Callable[[Plain], Any]

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder()


def to_bytes(packet: Packet) -> bytes:
    """A packet, ready for the control message `RouterPacket`."""
    return _encoder.encode([_TAGS[type(packet)], *_plain(packet)])


def from_bytes(data: bytes) -> Packet:
    """Decode a packet. Raises BrokenFrame."""
    try:
        kind, *fields = _list(_decoder.decode(data)) or [""]
        found = _KINDS.get(_text(kind))
        if found is None:
            raise InvalidValue(f"there is no kind {_short(kind)}")
        packet: Packet = _struct(found)(fields)
        return packet
    except (PalioError, ValueError, RecursionError) as error:  # ValueError: all that msgspec raises
        raise BrokenFrame(f"a packet that no router says: {_cut(str(error), 300)}") from None


# ---- writing


def _plain(item: Any) -> Plain:
    write = _WRITE.get(type(item))
    if write is not None:
        return write(item)
    if isinstance(item, msgspec.Struct):
        return [_plain(getattr(item, name)) for name in item.__struct_fields__]
    return [_plain(one) for one in item] if isinstance(item, tuple) else item


def _constraints(item: Filter | Advertisement) -> Plain:
    return [(c.name, c.op, c.value, c.type) for c in item.constraints]


def _publication(item: Publish) -> Plain:
    """A part of a compound: its source was for routing, and is not sent."""
    return [dict(item.message), item.publisher, item.number, item.time]


def _pattern_text(pattern: Pattern) -> str:
    if not all(isinstance(leaf, Part) for leaf in leaves(pattern.node)):
        raise InvalidPattern(f"{pattern} waits for what others assemble, so it cannot be sent")
    return str(pattern)


_WRITE: dict[type, Callable[[Any], Plain]] = {
    Filter: _constraints,
    Advertisement: _constraints,
    Message: dict,
    Publish: _publication,
    Pattern: _pattern_text,
}


# ---- reading


def _list(plain: Plain) -> list[Plain]:
    if not isinstance(plain, list):
        raise InvalidValue(f"{_short(plain)} stands where a list must be")
    return plain


def _many(read: Callable[[Plain], T]) -> Callable[[Plain], tuple[T, ...]]:
    return lambda plain: tuple(map(read, _list(plain)))


def _struct(kind: type[T]) -> Callable[[Plain], T]:
    def read(plain: Plain) -> T:
        reads = _FIELDS[kind]
        if len(_list(plain)) != len(reads):
            raise InvalidValue(f"{kind.__name__} has {len(reads)} fields, not {len(plain)}")
        return kind(*[read(field) for read, field in zip(reads, plain, strict=True)])

    return read


def _text(plain: Plain) -> str:
    if not isinstance(plain, str):
        raise InvalidValue(f"{_short(plain)} stands where a text must be")
    return plain


def _number(plain: Plain) -> int:
    if type(plain) is not int or not 0 <= plain <= INT_MAX:
        raise InvalidValue(f"{_short(plain)} stands where a number from 0 must be")
    return plain


def _constraint(plain: Plain) -> Constraint:
    if len(_list(plain)) != 4:
        raise InvalidValue(f"a constraint has 4 fields, not {len(plain)}")
    name, op, value, type = plain
    if isinstance(value, dict):  # its keys would do as the list of `in`
        raise InvalidValue(f"attribute {_short(name)}: {_short(value)} is not a value")
    return Constraint(name, op, value, type)


def _filter(plain: Plain) -> Filter:
    return Filter(tuple(map(_constraint, _list(plain))))


def _advertisement(plain: Plain) -> Advertisement:
    return Advertisement(tuple(map(_constraint, _list(plain))))


def _value(plain: Plain) -> Value:
    return as_value("key", plain)


def _message(plain: Plain) -> Message:
    if not isinstance(plain, dict):
        raise InvalidValue(f"{_short(plain)} stands where a message must be")
    return Message(plain)


def _compound(plain: Plain) -> Compound:
    found = _struct(Compound)(plain)
    if not found.messages:
        raise InvalidValue("a compound has at least one message")
    return found


def _pattern(plain: Plain) -> Pattern:
    return patterns.parse(_text(plain))


def _origin(plain: Plain) -> str | None:
    return None if plain is None else _text(plain)


def _lateness(plain: Plain) -> int | None:
    return None if plain is None else _number(plain)


_FIELDS: dict[type, tuple[Read, ...]] = {
    Publish: (_message, _text, _number, _number),
    Compound: (_many(_struct(Publish)), _many(_value)),
    Subscribe: (_filter, _origin),
    Unsubscribe: (_filter, _many(_filter), _origin),
    Advertise: (_advertisement, _origin),
    Unadvertise: (_advertisement, _many(_advertisement), _origin),
    Restate: (_many(_filter), _many(_advertisement), _many(_struct(Watch)), _origin),
    Watch: (_number, _pattern, Task, _lateness),
    Unwatch: (_number,),
    Assembled: (_number, _compound),
    Sieved: (_number, _struct(Publish)),
}
_KINDS: dict[str, type[Packet]] = {
    "Subscribe": Subscribe,
    "Unsubscribe": Unsubscribe,
    "Advertise": Advertise,
    "Unadvertise": Unadvertise,
    "Restate": Restate,
    "Watch": Watch,
    "Unwatch": Unwatch,
    "Assembled": Assembled,
    "Sieved": Sieved,
}
"""By their tags, which are part of the protocol; the names of the classes are not. Messages are not
packets here: they have frames of their own."""
_TAGS: dict[type, str] = {kind: tag for tag, kind in _KINDS.items()}


def _short(plain: Plain) -> str:
    return _cut(repr(plain), 60)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
