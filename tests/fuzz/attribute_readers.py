"""All readers of attributes on the same texts: they must agree.

    Message.from_json (bytes, str)     decides
    net/client/attributes.py           what a client makes of a message that is delivered
    json kernels                       may leave a row to Python, must never read it otherwise
    forward_batch, match_json          JSON as string, large_string, string_view, binary, dictionary
    wide columns, maps, attributes     Arrow columns of the values that Python has read
    InterestTable, brokers             PUBLISH and FORWARD frames, and what subscribers get

Answers are compared for predicates that probe every operator and type at the values where numbers,
strings and instants change (`PROBES`). Thousands of texts are compared at a time; what is slow is
done with a sample of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from palio.errors import InvalidValue
from palio.matching.encode.json_messages import _JsonReader, encode_json
from palio.matching.encode.messages import encode_messages
from palio.matching.encode.names import NameIndex
from palio.matching.table import ForwardingTable
from palio.model.message import Message
from palio.model.operators import ORDER_OPS, STRING_OPS, Op
from palio.model.predicate import Constraint, Filter, Predicate
from palio.model.values import INT_MAX, INT_MIN, Type, format_instant, kind_of
from palio.net.client.attributes import from_bytes
from palio.protocol.wire.batch import Entry, MessageBatch
from palio.routing import interest_table
from palio.routing.interest_table import InterestTable
from tests.fuzz.findings import Finding
from tests.matching.encode.batches import plain_text

VALUES: dict[Type, list[Any]] = {
    Type.BOOL: [True, False],
    Type.INT: [0, -1, 5, 2**53, 2**53 + 1, -(2**53) - 1, INT_MIN, INT_MAX],
    Type.FLOAT: [0.0, 0.1, 0.5, 5e-324, 2.0**53, 1e22, 1e300, 2.0**63, -(2.0**63), float("inf")],
    Type.STRING: ["", "a", "ab", "é", "😀", "\0", "\uffff", "2013-01-31", "\\", '"'],
    Type.TIME: [
        datetime(2013, 1, 31, 10, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2012, 2, 29, tzinfo=UTC),
    ],
}
OTHER_NAMES = [
    "b",
    "c",
    "x",
    "a.b",
    "a.b.c",
    "é",
    "😀",
    "$time",
    "a.$time",
    "a.",
    "n\n",
    "z\0",
    "A",
]
KINDS = [
    pa.binary(),
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.large_binary(),
    pa.binary_view(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int32(), pa.binary()),
]
SAMPLE = 40
"""One text of so many is also read by the slower readers."""
BROKERS_SAMPLE = 200


def probes() -> list[Constraint]:
    """Every operator with every value on one name, a few on others."""
    found = []
    for values in VALUES.values():
        found += [Constraint("a", op, value) for op in (Op.EQ, Op.NE) for value in values]
        found.append(Constraint("a", Op.IN, values[1:]))
    for kind in (Type.INT, Type.FLOAT, Type.STRING, Type.TIME):
        found += [Constraint("a", op, value) for op in sorted(ORDER_OPS) for value in VALUES[kind]]
    for op in sorted(STRING_OPS):
        found += [Constraint("a", op, value) for value in VALUES[Type.STRING]]
    for name in ("a", *OTHER_NAMES):
        found += [Constraint(name, Op.ANY, None, kind) for kind in (None, *Type)]
        found.append(Constraint(name, Op.ABSENT))
        found += [Constraint(name, Op.GE, 5), Constraint(name, Op.LT, 0.5)]
    return found


PROBES = {
    f"{i} {constraint}": Predicate((Filter((constraint,)),))
    for i, constraint in enumerate(probes())
}


@cache
def tables() -> dict[str, ForwardingTable]:
    """The same predicates in every engine, and in a table that was updated."""
    items = list(PROBES.items())
    updated = ForwardingTable.compile(dict(items[::2])).updated(add=dict(items[1::2]))
    return {
        "pivot": ForwardingTable.compile(PROBES),
        "counting": ForwardingTable.compile(PROBES, "counting"),
        "updated": updated,
    }


@cache
def name_index() -> NameIndex:
    return NameIndex.of({name: i for i, name in enumerate(("a", *OTHER_NAMES))})


def read(text: bytes | str) -> Message | None:
    """What the reader that decides makes of a text; None: it refuses it."""
    try:
        return Message.from_json(text)
    except InvalidValue:
        return None


class AttributeReaders:
    """Compares all readers. `random` chooses the samples; without it everything is compared."""

    def __init__(self, random: Random | None = None) -> None:
        self._random = random
        self.read = self.refused = self.odd = 0

    def check(self, texts: Sequence[bytes]) -> None:
        """Raises a Finding where two readers do not agree."""
        messages = [read(text) for text in texts]
        self._check_python(texts, messages)
        good = [row for row, message in enumerate(messages) if message is not None]
        self._check_kernels(texts, messages, good)
        good_texts = [texts[row] for row in good]
        good_messages: list[Any] = [messages[row] for row in good]
        if good:
            self._check_tables(good_texts, good_messages)
        rows = self._sample(range(len(good)), SAMPLE)
        sample = [good_messages[row] for row in rows]
        self._check_columns(sample)
        self._check_naive(sample, [good_texts[row] for row in rows])
        self._check_interests([good_texts[row] for row in rows], sample)
        bad = [texts[row] for row, message in enumerate(messages) if message is None]
        for row in self._sample(range(len(bad)), 4 * SAMPLE):
            self._check_refused(bad[row])
        self.read += len(good)
        self.refused += len(bad)

    def _sample(self, rows: Sequence[int], one_of: int) -> Sequence[int]:
        if self._random is None:
            return rows
        first = self._random.randrange(one_of)
        return rows[first::one_of]

    # ---- Python

    def _check_python(self, texts: Sequence[bytes], messages: list[Message | None]) -> None:
        for row, (text, message) in enumerate(zip(texts, messages, strict=True)):
            try:
                found = from_bytes(text)
            except InvalidValue:
                found = None
            if not _is_same(found, message):
                raise Finding(f"a client reads {found!r}, the model {message!r}", [text])
            if self._random is not None and row % 4:
                continue
            try:
                decoded = text.decode()
            except UnicodeDecodeError:
                if message is not None:
                    raise Finding("it is not UTF-8, and was read", [text]) from None
                continue
            for reader in (read, _read_by_client):
                if not _is_same(found := reader(decoded), message):
                    raise Finding(f"str gives {found!r}, bytes {message!r}", [text])
            if message is not None and not _is_same(read(message.to_json()), message):
                raise Finding(f"{message!r} is not read as it was written", [text])

    # ---- kernels

    def _check_kernels(
        self, texts: Sequence[bytes], messages: list[Message | None], good: list[int]
    ) -> None:
        """Kernels read what Python reads, or leave it to Python."""
        index = name_index()
        column = pa.array(texts, pa.binary())
        reader = _JsonReader(index, len(texts), column.nbytes)
        reader.read(column)
        odd = reader.odd
        for row, message in enumerate(messages):
            if message is None and not odd[row]:
                raise Finding("kernels read what Python refuses", [texts[row]])
        self.odd += int(odd.sum())
        plain = [row for row in good if not odd[row]]
        oracle = encode_messages(index.names, [messages[row] for row in plain])  # type: ignore[misc]
        found = reader.batch()
        counts = np.diff(found.row_at)[plain]
        bad = _first_difference(found, oracle, counts)
        if bad is not None:
            raise Finding(f"kernels read it otherwise ({bad})", [texts[row] for row in plain])

    def _check_tables(self, texts: list[bytes], messages: list[Message]) -> None:
        """All engines, for a column of each kind."""
        known = tables()
        wanted = known["pivot"]._engine.match(messages)  # type: ignore[attr-defined]
        chosen = list(known) if self._random is None else [self._random.choice(list(known))]
        kinds = KINDS if self._random is None else [self._random.choice(KINDS)]
        for name in chosen:
            for kind in kinds:
                found = known[name].match_json(as_column(texts, kind))
                if name == "updated":
                    found = _renumbered(found, known[name])
                _compare_answers(f"{name}, {kind}", texts, wanted, found)

    def _check_refused(self, text: bytes) -> None:
        """A text that Python refuses is refused in a batch, and the row is named."""
        for kind in KINDS if self._random is None else KINDS[:2]:
            try:
                column = as_column([b"{}", text], kind)
            except UnicodeDecodeError:
                continue  # Arrow does not cast what is not UTF-8
            try:
                encode_json(name_index(), column)
            except InvalidValue as error:
                if error.row != 1:
                    raise Finding(f"row {error.row} is said to be bad", [text]) from None
            else:
                raise Finding(f"a column of {kind} with it is read, Python refuses it", [text])

    def _check_naive(self, messages: list[Message], texts: list[bytes]) -> None:
        """Messages one by one, by predicates and by kernels."""
        table = tables()["pivot"]
        for text, message in zip(texts, messages, strict=True):
            wanted = [name for name, predicate in PROBES.items() if predicate.matches(message)]
            for given in (message, dict(message)):
                if table.forward(given) != wanted:
                    raise Finding(
                        f"of one message: {_difference(table.forward(given), wanted)}", [text]
                    )

    # ---- Arrow columns

    def _check_columns(self, messages: list[Message]) -> None:
        """The same values as attributes, maps and wide columns."""
        if not messages:
            return
        table = tables()["pivot"]
        engine: Any = table._engine
        cases = [message.to_json().encode() for message in messages]
        scalars = [
            Message({name: value for name, value in message.items() if kind_of(value)})
            for message in messages
        ]
        wanted = engine.match(scalars)
        rows = pa.record_batch([_attribute_lists(scalars)], ["m"])
        _compare_answers("attributes", cases, wanted, engine.match_rows(rows, "attributes", "m"))
        for kind, arrow in _ARROW_TYPES.items():
            own = [
                {name: value for name, value in message.items() if kind_of(value) is kind}
                for message in messages
            ]
            wanted = engine.match([Message(one) for one in own])
            maps = pa.array([list(one.items()) for one in own], pa.map_(pa.string(), arrow))
            found = engine.match_rows(pa.record_batch([maps], ["m"]), "map", "m")
            _compare_answers(f"a map of {kind}", cases, wanted, found)
            found = engine.match_rows(_wide(own, arrow), "wide", "")
            _compare_answers(f"columns of {kind}", cases, wanted, found)

    # ---- tables of brokers

    def _check_interests(self, texts: list[bytes], messages: list[Message]) -> None:
        if not texts:
            return
        table = _interest_table()
        batch = MessageBatch.of([Entry("p", 1, 0, text, b"") for text in texts])
        looked_up, evaluated = table.lookup(batch), table.evaluate(batch)
        for row, message in enumerate(messages):
            wanted = sorted(table.slot(name) for name in _matching(message))  # type: ignore[type-var]
            for found in (looked_up, evaluated):
                if sorted(found.slots(row)) != wanted:
                    raise Finding("the interest table gives another answer", [texts[row]])


@cache
def _interest_table() -> InterestTable:
    """Of more than EVALUATED_MAX filters, so that it is compiled."""
    table = InterestTable()
    for name, predicate in PROBES.items():
        table.change(name, dict.fromkeys(predicate, True))
    assert len(table) > interest_table.EVALUATED_MAX
    return table


def _matching(message: Message) -> list[str]:
    return [name for name, predicate in PROBES.items() if predicate.matches(message)]


def _read_by_client(text: str) -> Message | None:
    try:
        return from_bytes(text)
    except InvalidValue:
        return None


def _is_same(a: Message | None, b: Message | None) -> bool:
    if a is None or b is None:
        return a is b
    return repr(a) == repr(b)  # also the order, and -0.0


def as_column(texts: Sequence[bytes], kind: Any) -> Any:
    """A column of these texts, also of such as are not UTF-8 where Arrow can hold them."""
    if kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        return pa.array(texts, kind)
    if pa.types.is_dictionary(kind):
        return as_column(texts, kind.value_type).dictionary_encode()
    plain = pa.array(texts, pa.large_binary() if kind == pa.large_string() else pa.binary())
    buffers = plain.buffers()
    if kind in (pa.string(), pa.large_string()):
        return pa.Array.from_buffers(kind, len(texts), buffers)
    return pa.array([text.decode() for text in texts], kind)


def _first_difference(found: Any, oracle: Any, counts: Any) -> str | None:
    """The first array in which two batches of messages differ."""
    if not np.array_equal(counts, np.diff(oracle.row_at)):
        return "row_at"
    for key in ("name", "type", "floor", "place", "float_floor", "float_place"):
        if not np.array_equal(getattr(found, key), getattr(oracle, key)):
            return key
    if _texts(found) != _texts(oracle):
        return "text"
    return None


def _texts(batch: Any) -> list[bytes | None]:
    blob, begin = bytes(batch.text_blob), batch.text_begin.tolist()
    return [
        None if at < 0 else plain_text(type, blob[begin[at] : begin[at + 1]])
        for type, at in zip(batch.type.tolist(), batch.text.tolist(), strict=True)
    ]


def _renumbered(found: tuple[Any, Any], table: ForwardingTable) -> tuple[Any, Any]:
    """By the order of PROBES; each row in that order."""
    position = {name: i for i, name in enumerate(PROBES)}
    order = np.array([position[name] for name in table.interfaces])
    ends, places = found[0], order[found[1]]
    rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    return ends, places[np.lexsort((places, rows))]


def _compare_answers(where: str, cases: Sequence[bytes], wanted: Any, found: Any) -> None:
    if np.array_equal(wanted[0], found[0]) and np.array_equal(wanted[1], found[1]):
        return
    names = list(PROBES)
    for row, case in enumerate(cases):
        a, b = (
            [names[i] for i in answer[1][answer[0][row] : answer[0][row + 1]].tolist()]
            for answer in (wanted, found)
        )
        if a != b:
            raise Finding(f"{where}: {_difference(b, a)}", [case])
    raise Finding(f"{where}: another number of answers", cases)


def _difference(found: list[str], wanted: list[str]) -> str:
    more, fewer = sorted({*found} - {*wanted})[:5], sorted({*wanted} - {*found})[:5]
    return f"it matches {more or 'nothing'} too, and does not match {fewer or 'nothing'}"


_ARROW_TYPES = {
    Type.BOOL: pa.bool_(),
    Type.INT: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.STRING: pa.string(),
    Type.TIME: pa.timestamp("us", "UTC"),
}
_ATTRIBUTE = pa.struct([("name", pa.string()), ("type", pa.string()), ("value", pa.string())])


def _attribute_lists(messages: list[Message]) -> Any:
    rows = [
        [{"name": a.name, "type": str(a.type), "value": _written(a.value)} for a in m.attributes]
        for m in messages
    ]
    return pa.array(rows, pa.list_(_ATTRIBUTE))


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return format_instant(value)
    return value if isinstance(value, str) else repr(value)


def _wide(messages: list[dict[str, Any]], kind: Any) -> Any:
    """A column for each name; `x.y` is the field y of a struct x."""
    names = list(dict.fromkeys(name for message in messages for name in message))
    columns = {name: pa.array([m.get(name) for m in messages], kind) for name in names}
    arrays, fields = [pa.nulls(len(messages))], [pa.field("nothing", pa.null())]
    for name, column in columns.items():
        outer, dot, inner = name.partition(".")
        if dot and outer:
            column = pa.StructArray.from_arrays([column], [inner])
        arrays.append(column)
        fields.append(pa.field(outer if dot and outer else name, column.type))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
