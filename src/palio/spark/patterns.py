"""Patterns on DataFrames: the monitor of routing/patterns, one for each key, on batches and streams.

    stream   rows ──by key──▶ held ──watermark──▶ Monitor ──▶ a row for each match
                              └──── one snapshot in the state store ────┘
    batch    rows ──by key──▶ sorted ──▶ Monitor ──▶ a row for each match

On a stream, rows are held until the watermark has passed their time, and are matched in the order of
time then; so the matches do not depend on micro-batches, nor on the order of rows in them, and are
those of the batch. Rows of equal time are ordered by a digest of their content. Rows older than the
watermark are late: they are dropped, as by every operator of Spark, and Spark counts them. A timer
wakes a key when something is due, and a key with nothing open has no state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from palio.carried_errors import carried
from palio.errors import InvalidValue
from palio.matching.expressions import TableExpressions
from palio.model.expressions.names import names_read
from palio.model.message import Message
from palio.model.values import instant_from_micros
from palio.routing.packets import Publish
from palio.routing.patterns import Compound, Monitor, Pattern, parse
from palio.routing.patterns.automaton import stamp
from palio.routing.patterns.pattern import Part, leaves
from palio.spark.expressions import session_zone
from palio.spark.messages import is_attribute, messages_of, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_TIME = "_micros"  # when a row happened, on the way to workers
_ALL = "_all"  # the key when there is none


def match_patterns(
    df: DataFrame,
    pattern: Pattern | str,
    *,
    time: str = "time",
    key: Sequence[str] | None = None,
) -> DataFrame:
    """A row for each match of a pattern in a DataFrame, batch or streaming.

    Rows are messages: every column is an attribute, NULL is not there. `time` is the column with
    the instant of a message; a stream needs a watermark on it, and RocksDB as state store. `key`
    are columns on which the messages of a match agree, more than those that the pattern's `same`
    names. Without any, one task does all the work.

    A text is written in the time zone of the session, as `forward` reads it.

    The answer has the key columns, `start` and `end` (timestamps), and `messages`, the messages of
    the match in their order, as JSON objects.
    """
    found = parse(pattern, zone=session_zone(df.sparkSession))
    if isinstance(key, str):
        raise InvalidValue(f"key is a list of names, not the text {key!r}")
    same = tuple(dict.fromkeys((*found.same, *(key or ()))))
    found = Pattern(found.node, same)
    _check(df, time, same)
    parts = [leaf.predicate for leaf in leaves(found.node) if isinstance(leaf, Part)]
    asked = names_read({c.name for predicate in parts for f in predicate for c in f})
    rows, names, instants = _messages(df, time, same, asked)
    if df.isStreaming:
        return _stream(rows, _Conversion(found, names, instants))
    schema = _schema(df, same)
    matched = _matched_at_once(_Conversion(found, names, instants), schema.names)
    made = rows.groupBy(*_key_columns(same)).applyInArrow(matched, schema)
    return made if same else made.drop(_ALL)


def _check(df: DataFrame, time: str, same: tuple[str, ...]) -> None:
    listed = ", ".join(df.columns)
    for name in (time, *same):
        if name not in df.columns:
            raise InvalidValue(
                f"the DataFrame has no column {name!r}", remedy=f"there are {listed}"
            )
        if name in same and name in ("start", "end", "messages"):
            raise InvalidValue(
                f"the answer has a column {name!r} of its own", remedy="rename the key"
            )
        kind = df.schema[name].dataType
        if name in same and isinstance(kind, T.ArrayType | T.BinaryType):
            raise InvalidValue(
                f"column {name!r} has the type {kind.simpleString()}, which is no key",
                remedy="nothing equals an array",
            )
    type = df.schema[time].dataType
    if not isinstance(type, T.TimestampType):
        raise InvalidValue(
            f"column {time!r} has the type {type.simpleString()}",
            remedy="the time of a message is a timestamp",
        )
    if df.isStreaming and "RocksDB" not in (df.sparkSession.conf.get(_PROVIDER, "") or ""):
        raise InvalidValue(
            "patterns on a stream need the state store of RocksDB: before the query starts, "
            f"spark.conf.set({_PROVIDER!r}, {ROCKSDB!r})"
        )


def _messages(
    df: DataFrame, time: str, same: tuple[str, ...], asked: frozenset[str]
) -> tuple[DataFrame, list[str], list[str]]:
    """The rows as workers get them: key, time, and attributes c0, c1, ...; the attributes' names;
    and the columns that hold instants. These travel as microseconds, which no time zone changes.
    Columns that no attribute can hold are left out, but those that the pattern asks about."""
    everything = asked | frozenset(_names(df.schema.fields))
    known = messages_of(df, TableExpressions(plain=everything))
    names = list(known.names or ())
    instants: list[str] = []
    columns: list[Column] = []
    kinds = df.select(*known.columns).schema.fields
    for i, (column, kind) in enumerate(zip(known.columns, kinds, strict=True)):
        if isinstance(kind.dataType, T.TimestampType):
            column = F.unix_micros(column)
            instants.append(f"c{i}")
        columns.append(column.alias(f"c{i}"))
    at = F.col(quoted(time))
    keys = [F.col(quoted(n)).alias(f"k{i}") for i, n in enumerate(same)] or [F.lit(0).alias(_ALL)]
    there = at.isNotNull()
    for name in same:
        there = there & F.col(quoted(name)).isNotNull()
    # The time itself goes along: it carries the watermark.
    rows = df.where(there).select(
        *keys, at.alias("_time"), F.unix_micros(at).alias(_TIME), *columns
    )
    return rows, names, instants


def _names(fields: Sequence[T.StructField], above: str = "") -> Iterator[str]:
    for field in fields:
        if isinstance(field.dataType, T.StructType):
            yield from _names(field.dataType.fields, f"{above}{field.name}.")
        elif is_attribute(field.dataType):
            yield above + field.name


def _key_columns(same: tuple[str, ...]) -> list[str]:
    return [f"k{i}" for i in range(len(same))] or [_ALL]


def _schema(df: DataFrame, same: tuple[str, ...]) -> T.StructType:
    keys = [T.StructField(name, df.schema[name].dataType) for name in same]
    return T.StructType(
        [
            *(keys or [T.StructField(_ALL, T.IntegerType())]),
            T.StructField("start", T.TimestampType()),
            T.StructField("end", T.TimestampType()),
            T.StructField("messages", T.ArrayType(T.StringType())),
        ]
    )


class _Conversion:
    """Rows to messages and matches to rows; goes to the workers."""

    def __init__(self, pattern: Pattern, names: list[str], instants: list[str]) -> None:
        self.text, self.names, self.instants = str(pattern), names, frozenset(instants)

    def monitor(self, lateness: int | None) -> Monitor:
        """Without `same`, since a key is alone here: the grouping is Spark's."""
        return Monitor(Pattern(parse(self.text).node), lateness=lateness)

    def published(self, values: dict[str, Any], number: int) -> Publish:
        attributes = {
            name: instant_from_micros(value) if f"c{i}" in self.instants else value
            for i, name in enumerate(self.names)
            if (value := values[f"c{i}"]) is not None
        }
        message = Message(attributes)
        digest = hashlib.blake2b(message.to_json().encode(), digest_size=8).hexdigest()
        return Publish(message, digest, number, values[_TIME])


# ---- batch


def _matched_at_once(
    conversion: _Conversion, names: list[str]
) -> Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]:
    """What matches all rows of a key."""

    def matched(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        rows = table.drop_columns(["_time"]).to_pylist()
        with carried():
            messages = [conversion.published(values, number) for number, values in enumerate(rows)]
            monitor = conversion.monitor(lateness=0)
            found = [c for m in sorted(messages, key=stamp) for c in monitor.feed(m)]
        instant = pa.timestamp("us", tz="UTC")
        columns = [pa.array([k.as_py()] * len(found), k.type) for k in key]
        columns.append(pa.array([c.start for c in found], pa.int64()).cast(instant))
        columns.append(pa.array([c.end for c in found], pa.int64()).cast(instant))
        columns.append(pa.array(list(map(_texts, found)), pa.list_(pa.string())))
        return pa.Table.from_arrays(columns, names)

    return matched


def _texts(compound: Compound) -> list[str]:
    return [m.message.to_json() for m in compound.messages]


# ---- stream


def _stream(rows: DataFrame, conversion: _Conversion) -> DataFrame:
    same = parse(conversion.text).same
    keys = [rows.schema[name] for name in _key_columns(same)]
    schema = T.StructType(
        [
            *keys,
            T.StructField("start", T.LongType()),
            T.StructField("end", T.LongType()),
            T.StructField("messages", T.ArrayType(T.StringType())),
        ]
    )
    made = rows.groupBy(*_key_columns(same)).transformWithState(
        _Processor(conversion, [field.name for field in keys]),
        outputStructType=schema,
        outputMode="Append",
        timeMode="EventTime",
    )
    named = [F.col(f"k{i}").alias(name) for i, name in enumerate(same)]
    instants = [F.timestamp_micros(F.col(name)).alias(name) for name in ("start", "end")]
    return made.select(*named, *instants, "messages")


class _Processor(StatefulProcessor):
    """Called by Spark on the workers, key by key. State: the monitor's snapshot, and its timer."""

    def __init__(self, conversion: _Conversion, keys: list[str]) -> None:
        self.conversion, self.keys = conversion, keys

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.state = handle.getValueState("monitor", "snapshot binary, timer bigint")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Row]:
        with carried():
            monitor, timer = self._load()
            found = monitor.expire(_watermark(timerValues))
            for row in rows:
                number = monitor.counters.fed
                found += monitor.feed(self.conversion.published(row.asDict(), number))
            self._store(monitor, timer)
        yield from self._rows(key, found)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: N803
    ) -> Iterator[Row]:
        monitor, timer = self._load()
        found = monitor.expire(_watermark(timerValues))
        fired = expiredTimerInfo.getExpiryTimeInMs()
        self._store(monitor, None if timer == fired else timer)
        yield from self._rows(key, found)

    def close(self) -> None:
        pass

    def _load(self) -> tuple[Monitor, int | None]:
        monitor = self.conversion.monitor(lateness=None)  # the watermark decides
        if not self.state.exists():
            return monitor, None
        snapshot, timer = self.state.get()
        monitor.restore(bytes(snapshot))
        return monitor, timer

    def _store(self, monitor: Monitor, timer: int | None) -> None:
        """Write what is open, and see that the key is woken when something is due."""
        due = monitor.due
        wake = None if due is None else -(-due // 1000)  # milliseconds, rounded up
        if timer is not None and timer != wake:
            self.handle.deleteTimer(timer)
        if wake is not None and timer != wake:
            self.handle.registerTimer(wake)
        if due is None and not len(monitor):
            self.state.clear()
        else:
            self.state.update((monitor.snapshot(), wake))

    def _rows(self, key: tuple[Any, ...], found: list[Compound]) -> Iterator[Row]:
        from pyspark.sql import Row

        for compound in found:
            named = dict(zip(self.keys, key, strict=True))
            yield Row(**named, start=compound.start, end=compound.end, messages=_texts(compound))


def _watermark(timers: Any) -> int:
    return int(timers.getCurrentWatermarkInMs()) * 1000
