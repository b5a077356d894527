"""Packets as lines of a trace, and how many bytes they are counted as."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from palio.model.advertisement import Advertisement
from palio.model.predicate import Filter
from palio.routing.packets import (
    Advertise,
    Packet,
    Publish,
    Restate,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from palio.routing.patterns.packets import Assembled, Sieved, Unwatch, Watch


@lru_cache(maxsize=100_000)
def _text(item: Filter | Advertisement) -> str:
    return str(Filter(item.constraints))


def described(packet: Packet) -> str:
    """A packet in a line of the trace."""
    match packet:
        case Publish(message, publisher, number):
            return f"{publisher}#{number} {message.to_json()}"
        case Watch(number, pattern, task):
            return f"watch {number} {task} {pattern}"
        case Unwatch(number):
            return f"unwatch {number}"
        case Assembled(number, compound):
            return f"assembled {number} {_names(compound.messages)}"
        case Sieved(number, publication):
            return f"sieved {number} {_names((publication,))}"
        case Subscribe(item) | Advertise(item):
            return f"{type(packet).__name__.lower()} {_text(item)}"
        case Unsubscribe(item, instead) | Unadvertise(item, instead):
            text = f"{type(packet).__name__.lower()} {_text(item)}"
            return text + "".join(f", instead {_text(other)}" for other in instead)
        case Restate(subscriptions, advertisements, watches):
            wanted = "; ".join(map(_text, subscriptions))
            offered = "; ".join(map(_text, advertisements))
            watched = "; ".join(map(described, watches))
            text = f"restate wants [{wanted}]" + (f" offers [{offered}]" if offered else "")
            return text + (f" watches [{watched}]" if watched else "")
    raise AssertionError(packet)


def size(packet: Packet) -> int:
    """The bytes of a packet, counted as its text."""
    match packet:
        case Publish(message, publisher, _):
            return len(publisher) + 8 + sum(len(n) + len(str(v)) + 3 for n, v in message.items())
        case Subscribe(item) | Advertise(item):
            return len(_text(item))
        case Unsubscribe(item, instead) | Unadvertise(item, instead):
            return len(_text(item)) + sum(len(_text(other)) for other in instead)
        case Watch(_, pattern):
            return 16 + len(str(pattern))
        case Unwatch():
            return 8
        case Assembled(_, compound):
            return 8 + sum(map(size, compound.messages))
        case Sieved(_, publication):
            return 8 + size(publication)
        case Restate(subscriptions, advertisements, watches):
            items = sum(len(_text(item)) for item in (*subscriptions, *advertisements))
            return items + sum(map(size, watches))
    raise AssertionError(packet)


def _names(messages: Iterable[Publish]) -> str:
    return " ".join(f"{m.publisher}#{m.number}" for m in messages)
