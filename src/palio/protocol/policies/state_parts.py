"""Link states in parts: a complete state that is too large for one control message.

    LinkState ──state_parts──▶ part 0, part 1, ... ──StateAssembly, one for each link──▶ LinkState

Every part repeats broker, epoch and number, and has a share of the links, filters or durable
subscriptions. A state takes effect when its last part is there. A neighbour sends the parts of one state
after the other, so an assembly holds one unfinished state, and it goes with the connection. A part that
does not continue it is discarded: whoever sees that requests the complete state.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import msgspec

from palio.model.predicate import Filter
from palio.protocol.policies.broker_record import Parsed
from palio.protocol.wire import parts
from palio.protocol.wire.control import Durable, LinkState
from palio.protocol.wire.frames import BrokenFrame
from palio.protocol.wire.parts import ITEM_BYTES, packed, text_bytes

STATE_BYTES_MAX = 1 << 30
"""Of one state, as `state_bytes` counts. What a broker takes from its clients is less
(`SubscriptionBounds.broker_bytes_max`)."""


def state_bytes(state: LinkState) -> int:
    """The size of a state on the wire: not more than this."""
    texts = (*state.wanted, *state.unwanted, *state.undurable, state.master, state.address)
    size = sum(map(text_bytes, texts)) + sum(map(_link_bytes, state.links))
    size += sum(map(_durable_bytes, state.durable.items()))
    return size + ITEM_BYTES * (16 + len(texts) + len(state.links) + len(state.durable))


def is_large(state: LinkState) -> bool:
    """Whether a state is too large for one part."""
    return state_bytes(state) > parts.PART_BYTES


def state_parts(state: LinkState) -> Iterator[LinkState]:
    """A complete state, as it is or in parts."""
    if not is_large(state):
        yield state
        return
    head = msgspec.structs.replace(state, links=(), wanted=(), durable={})
    shares: Iterator[dict[str, Any]] = chain(
        ({"links": tuple(group)} for group in packed(state.links, _link_bytes)),
        ({"wanted": tuple(group)} for group in packed(state.wanted, text_bytes)),
        ({"durable": dict(group)} for group in packed(state.durable.items(), _durable_bytes)),
    )
    for part, (share, more) in enumerate(parts.with_more(shares)):
        yield msgspec.structs.replace(head, part=part, more=more, **share)


class StateAssembly:
    """The parts of the state that a neighbour has begun to send."""

    def __init__(self) -> None:
        self._parts: list[LinkState] = []
        self._parsed: dict[str, tuple[Filter, ...]] = {}
        self._bytes = 0

    def continues(self, part: LinkState) -> bool:
        """Whether a part is the next one; the first one always is."""
        if not part.part:
            return True
        if not self._parts or part.part != len(self._parts):
            return False
        first = self._parts[0]
        return (part.broker, part.epoch, part.number, part.is_faded) == (
            first.broker, first.epoch, first.number, first.is_faded,
        )  # fmt: skip

    def add(self, part: LinkState, parsed: Parsed) -> tuple[LinkState, Parsed] | None:
        """Add a part that continues the state, with the filters of its texts. Returns the complete state
        and its filters, if this was the last part. Raises BrokenFrame if it is too large."""
        if not part.part:
            if not part.more:
                return part, parsed
            self.clear()
        self._parts.append(part)
        self._parsed.update(parsed)
        self._bytes += state_bytes(part)
        if self._bytes > STATE_BYTES_MAX:
            raise BrokenFrame(
                f"the link state of the broker {part.broker!r} has more than {STATE_BYTES_MAX:,} bytes"
            )
        if part.more:
            return None
        whole, known = _joined(self._parts), self._parsed
        self.clear()
        return whole, known

    def clear(self) -> None:
        self._parts, self._parsed, self._bytes = [], {}, 0


def _joined(some: list[LinkState]) -> LinkState:
    durable: dict[str, Durable] = {}
    for one in some:
        durable.update(one.durable)
    return msgspec.structs.replace(
        some[0],
        links=tuple(chain.from_iterable(one.links for one in some)),
        wanted=tuple(chain.from_iterable(one.wanted for one in some)),
        durable=durable,
        more=False,
    )


def _link_bytes(link: tuple[str, float]) -> int:
    return text_bytes(link[0])


def _durable_bytes(entry: tuple[str, Durable]) -> int:
    name, durable = entry
    return text_bytes(name) + text_bytes(durable.predicate)
