"""Lookups that take long, because of expressions: what they cost, and computing them in another thread.

    costs of the table's expressions × size of the messages ─▶ is this long?
    a version of the table, or a copy of few filters ─▶ any thread ─▶ names of rows, or interfaces

What changes in the table meanwhile is looked up in another round (`LookupAhead`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from palio.errors import InvalidValue
from palio.model.expression_costs import Cost, computed_names, cost_of, member_array
from palio.model.expressions.absence import needed
from palio.model.expressions.names import expression_of
from palio.model.message import Message
from palio.model.predicate import Filter
from palio.routing.interest_buckets import Bucket

if TYPE_CHECKING:
    import pyarrow as pa

    from palio.matching.table import ForwardingTable

LookedUp: TypeAlias = "dict[bytes, list[Any] | tuple[str, ...] | None]"
"""For the text of each message the interfaces, or the names of rows of the table; None: it cannot be read."""


COSTLY_PER_KIB = 400
"""Steps; for more, messages are looked up in a compiled table."""
ROUNDS_MAX = 8
"""Of a lookup; what has still changed then is looked up at once, so that it comes to an end."""
_OF_ELEMENTS = Cost(0, 500)
"""Of looking up the elements of an array, however many are asked for."""


class MessageRows(Protocol):
    """Messages to look up: each as text or parsed, or all as a column of JSON texts."""

    def __len__(self) -> int: ...

    def message(self, row: int) -> Message: ...

    def attributes(self, row: int) -> bytes: ...

    def column(self) -> pa.Array: ...


class ExpressionCosts:
    """What the expressions of all filters cost, each once, and what it costs to look up the elements of
    arrays; by an attribute without which nothing is computed, where there is one."""

    def __init__(self) -> None:
        self._names: Counter[str] = Counter()
        self._by_attribute: dict[str, Cost] = {}
        self.total = Cost()
        self.has_any = False
        self.are_costly = False
        """Is a compiled table worth it, whose kernels compute them?"""

    def of(self, messages: int, size: int, data: bytes) -> int:
        """The steps for messages of so many bytes, which are in `data`."""
        if self.total.of(messages, size) <= _SMALL:
            return self.total.of(messages, size)
        if len(data) > _SEARCHED_MAX or len(self._by_attribute) > _GROUPS_MAX or b"\\u" in data:
            return self.total.of(messages, size)
        present = (cost for name, cost in self._by_attribute.items() if name.encode() in data)
        return sum(cost.of(messages, size) for cost in present)

    def add(self, found: Filter) -> None:
        for name, attribute, cost in _costs(found):
            self._names[name] += 1
            if self._names[name] == 1:
                self._change(attribute, cost, 1)
                self.has_any = True

    def remove(self, found: Filter) -> None:
        for name, attribute, cost in _costs(found):
            self._names[name] -= 1
            if not self._names[name]:
                del self._names[name]
                self._change(attribute, cost, -1)
                self.has_any = bool(self._names)

    def _change(self, attribute: str, cost: Cost, sign: int) -> None:
        self.total = self.total.plus(cost, sign)
        self.are_costly = self.total.per_kib > COSTLY_PER_KIB
        own = self._by_attribute.get(attribute, Cost()).plus(cost, sign)
        if own == Cost():
            del self._by_attribute[attribute]
        else:
            self._by_attribute[attribute] = own


_SMALL = 100
"""Steps that are not looked at more closely."""
_SEARCHED_MAX = 1 << 16
_GROUPS_MAX = 64


def _costs(found: Filter) -> Iterator[tuple[str, str, Cost]]:
    for name in computed_names((found,)):
        yield (
            name,
            min((n for n in needed(expression_of(name)) if _is_plain(n)), default=""),
            cost_of(name),
        )
        array = member_array(name)
        if array is not None:
            yield array, array if _is_plain(array) else "", _OF_ELEMENTS


def _is_plain(name: str) -> bool:
    """Does JSON write it as it is? Of a name with dots, the parts may stand apart."""
    return name.isascii() and name.isidentifier()


def rows_of_each(table: ForwardingTable, messages: MessageRows) -> LookedUp:
    """The names of the rows that each message matches."""
    found: LookedUp = {}
    for row in range(len(messages)):
        text = messages.attributes(row)
        if text not in found:
            found[text] = _rows_of(table, text)
    return found


def _rows_of(table: ForwardingTable, text: bytes) -> tuple[str, ...] | None:
    from palio.matching.encode.plain_arrays import string_array

    try:
        _, rows = table.match_json(string_array([text.decode()]))
    except (InvalidValue, UnicodeDecodeError):
        return None
    return tuple(table.named(rows))


def interfaces_of_each(
    filters: Sequence[tuple[Any, Sequence[Filter]]],
    messages: MessageRows,
    failed: Callable[[str, str], None],
) -> LookedUp:
    """The interfaces of which a filter matches each message; `failed` is told of expressions that could
    not be computed."""
    found: LookedUp = {}
    for row in range(len(messages)):
        text = messages.attributes(row)
        if text in found:
            continue
        try:
            message = Message.from_json(text)
        except InvalidValue:
            found[text] = None
            continue
        found[text] = [
            who for who, own in filters if any(one.matches(message, failed) for one in own)
        ]
    return found


class LookupAhead:
    """A lookup of messages while the table changes: `rounds` gives what any thread may compute, and `note`
    takes each result. The interfaces that change during a round are looked up in the next."""

    def __init__(
        self,
        messages: MessageRows,
        begin: Callable[[], LookedUp],
        filters: Mapping[Any, Collection[Filter]],
        buckets: Mapping[str, Bucket],
        failed: Callable[[str, str], None],
    ) -> None:
        self.changed: dict[Any, None] = {}
        """Interfaces, since the last round began."""
        self._messages, self._begin = messages, begin
        self._filters, self._buckets, self._failed = filters, buckets, failed
        self._asked: Collection[Any] = ()
        self._found: dict[bytes, dict[Any, None]] = {}

    def rounds(self) -> Iterator[Callable[[], LookedUp]]:
        yield self._begin
        for _ in range(ROUNDS_MAX):
            if not self.changed:
                return
            yield self._next_round()
        if self.changed:
            self.note(self._next_round()())

    def _next_round(self) -> Callable[[], LookedUp]:
        self._asked, self.changed = self.changed, {}
        filters = [(one, tuple(self._filters.get(one, ()))) for one in self._asked]
        return lambda: interfaces_of_each(filters, self._messages, self._failed)

    def note(self, found: LookedUp) -> None:
        for text, own in found.items():
            if own is None:
                continue
            named = self._found.setdefault(text, {})
            for interface in self._asked:
                named.pop(interface, None)
            if isinstance(own, tuple):
                buckets = [self._buckets[name] for name in own if name in self._buckets]
                own = [bucket.interface for bucket in buckets]
            named.update(dict.fromkeys(own))

    def slots(self, slot_of: Callable[[Any], int | None]) -> dict[bytes, list[int]]:
        """The slots of each message that could be read, of interfaces that are still there."""
        return {
            text: [slot for slot in map(slot_of, own) if slot is not None]
            for text, own in self._found.items()
        }


def slots_of_each(
    ahead: Mapping[bytes, list[int]], messages: MessageRows, look_up: Callable[[Message], list[int]]
) -> list[list[int]]:
    """The slots of each message, as they were looked up ahead; of others now."""
    found = []
    for row in range(len(messages)):
        own = ahead.get(messages.attributes(row))
        found.append(look_up(messages.message(row)) if own is None else own)
    return found
