"""Making a partitioned table: as a Spark job from predicates, so that no process holds it all, or
on the driver from a table that is there.

    rows (interface, predicate)  ──parse──┐
    rows of constraints ──group by filter─┴▶ filters + options ──count──▶ how often each key is asked
                                                  │
                                rarest option ◀───┘ ──count──▶ directory: where keys lie
                                     │
                                     └─ shards ──group by shard──▶ a file each

The driver sees counts, attribute names and a hash for each key. Interfaces keep the order in which
they were given. The directory has to be one that every machine sees.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from palio.carried_errors import carried
from palio.errors import InvalidPredicate, InvalidValue, PalioError
from palio.matching.encode.columns import ConstraintColumns
from palio.matching.encode.constraint_rows import REQUIRED, from_constraint_rows
from palio.matching.encode.merging import joined
from palio.matching.file.loading import loaded
from palio.model.language import parse
from palio.spark.arrow_functions import arrow_function
from palio.spark.compiling import are_constraints, rejected, require_columns
from palio.spark.expressions import session_zone
from palio.spark.messages import quoted
from palio.spark.parsing import value_text
from palio.spark.partitioned_expressions import ResidualShapes, without_keys
from palio.spark.partitioned_table import (
    REST,
    PartitionedTable,
    begin,
    finish,
    save_shard,
    shard_interfaces,
    with_names,
)
from palio.spark.shard_keys import COUNTED, Directory, counted, filter_options, rarest
from palio.spark.tables import Location, Table, driver_location, local_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHARD_BYTES = 32 << 20  # of a shard, when their number is not given
SHARDS_MAX = 10_000
_CONSTRAINT_BYTES = 40  # that a constraint takes in a file, about
_ROWS_MAX = 20_000  # filters of a batch
_TEXT_MAX = 1 << 20  # characters of the predicates that a batch is made of
_REST_MAX = 2  # shards that the rest may be as large as, to be one table that every worker has
_POSITIVE = (1 << 62) - 1

_CONSTRAINTS = pa.list_(pa.struct([(n, pa.string()) for n in ("name", "op", "type", "value")]))
_FILTERS = pa.schema(
    [
        ("place", pa.int64()),  # of the row
        ("number", pa.int64()),  # of the filter within it; NULL: an interface without filters
        ("interface", pa.string()),
        ("constraints", _CONSTRAINTS),
        ("options", pa.list_(pa.list_(pa.int64()))),
        ("predicate", pa.string()),  # of a reject
        ("error", pa.string()),
    ]
)
_FILTERS_SQL = (
    "place bigint, number bigint, interface string, "
    "constraints array<struct<name: string, op: string, type: string, value: string>>, "
    "options array<array<bigint>>, predicate string, error string"
)


def partition(
    predicates: DataFrame | Table,
    path: str | Path,
    *,
    shards: int | None = None,
    interface: str = "interface",
    predicate: str = "predicate",
) -> PartitionedTable:
    """Write a table in shards into a new directory, for `forward(..., strategy="partitioned")`.

    `predicates`: a DataFrame as `compile` takes it, which executors read, so that the table may be
    larger than any process; the directory has to be one that all machines see. Or a table, which
    is split on the driver. `shards`: how many files the filters with equalities are dealt to; by
    default so many that one has about 32 MB. A worker holds one of them, the rest (filters without
    an equality, if they are not more than two shards; more are dealt to shards of their own, which
    every message visits), and the directory of keys, a few bytes each.

    A row that is no predicate raises InvalidPredicate; `compile_with_rejects` gives a table of them.
    """
    if shards is not None and not 1 <= shards <= SHARDS_MAX:
        raise InvalidValue(f"a table has 1 to {SHARDS_MAX:,} shards, not {shards}")
    folder = begin(path)
    if _is_frame(predicates):
        return _from_frame(predicates, folder, shards, interface, predicate)
    return split(driver_location(predicates), folder, shards)  # type: ignore[arg-type]


def _is_frame(predicates: DataFrame | Table) -> TypeGuard[DataFrame]:
    """Classic DataFrames and those of Connect have different classes."""
    return hasattr(predicates, "sparkSession")


def _layout(filters: int, constraints: int, rest: int, shards: int | None) -> tuple[int, int]:
    """How many shards there are for keys, and how many for the rest when it is more than one."""
    if shards is None:
        shards = min(SHARDS_MAX, max(1, -(-constraints * _CONSTRAINT_BYTES // SHARD_BYTES)))
    share = -(-filters // shards) or 1
    return shards, 0 if rest <= _REST_MAX * share else -(-rest // share)


# ---- on the driver


def split(location: Location, folder: Path, shards: int | None) -> PartitionedTable:
    """Partition a table that is there, in this process."""
    engine, interfaces = loaded(local_file(location))
    columns = engine.columns(interfaces)
    residuals = ResidualShapes.of(columns.names)
    names = residuals.known_names(columns.names)
    options = filter_options(columns)
    keys = rarest(options, counted(options.flatten().flatten().to_numpy()))
    keys = without_keys(keys, residuals.filters(columns))
    distinct, counts = np.unique(keys.flatten().to_numpy(), return_counts=True)
    layout = _layout(columns.filters, len(columns.op), keys.null_count, shards)
    directory = Directory.of(distinct, counts, columns.filters, *layout)
    lists = directory.of_filters(keys, np.arange(columns.filters))
    filter = np.repeat(np.arange(len(lists)), lists.value_lengths().to_numpy())
    shard = lists.flatten().to_numpy()
    order = np.argsort(shard, kind="stable")
    ends = np.searchsorted(shard[order], np.arange(REST, directory.all_shards + 1))
    for number in range(REST, directory.all_shards):
        own = filter[order[ends[number + 1] : ends[number + 2]]]
        if len(own):
            kept = with_names(_of_filters(columns, own), names if number == REST else ())
            save_shard(folder, number, kept, has_keys=0 <= number < directory.shards)
    return finish(folder, directory, names, columns.filters, len(interfaces))


def _of_filters(columns: ConstraintColumns, filters: Any) -> ConstraintColumns:
    """The columns of these filters, ascending, with interfaces as a shard calls them."""
    each = np.arange(columns.filters, dtype=np.int32)
    kept = joined([(dataclasses.replace(columns, owner=each), each)], filters, ())
    places, names = columns.owner[filters], pa.array(columns.interfaces)
    owner, labels = shard_interfaces(places, names.take(pa.array(places)))
    return dataclasses.replace(kept, owner=owner, interfaces=labels)


# ---- as a Spark job


def _from_frame(
    df: DataFrame, folder: Path, shards: int | None, interface: str, predicate: str
) -> PartitionedTable:
    keyed = _keyed(df, interface, predicate).persist()
    try:
        rejects = keyed.where("error IS NOT NULL").select("interface", "predicate", "error")
        if (refused := rejects.toArrow()).num_rows:
            raise rejected(refused)
        return _built(keyed, folder, shards)
    finally:
        keyed.unpersist()


def _built(keyed: DataFrame, folder: Path, shards: int | None) -> PartitionedTable:
    filters = keyed.where("number IS NOT NULL")
    names = filters.select(F.explode("constraints.name").alias("name")).distinct().toArrow()
    residuals = ResidualShapes.of(names["name"].to_pylist())
    all_names = residuals.known_names(names["name"].to_pylist())
    bucket = F.col("key").bitwiseAND(F.lit(COUNTED - 1)).alias("key")
    asked = _count(filters.select(F.explode(F.flatten("options")).alias("key")).select(bucket))
    counts = folder / "counts.npy"
    np.save(counts, counted(*asked))
    choose = _rarest(str(counts), residuals)
    chosen = filters.withColumn("keys", choose(F.col("options"), F.col("constraints.name")))
    sizes = chosen.agg(
        F.count("*"), F.coalesce(F.sum(F.size("constraints")), F.lit(0)), F.count("keys")
    ).collect()[0]
    layout = _layout(sizes[0], sizes[1], sizes[0] - sizes[2], shards)
    found = _count(chosen.select(F.explode("keys").alias("key")))
    directory = Directory.of(*found, sizes[0], *layout)
    draft = folder / "draft.npy"
    directory.save(draft)
    first = keyed.groupBy("interface").agg(F.min("place").alias("first"))
    ranked = F.row_number().over(Window.orderBy("first"))
    places = first.select("interface", (ranked - 1).alias("owner"))
    shard = _shards(str(draft))(F.col("keys"), F.xxhash64("place", "number"))
    (
        chosen.withColumn("shard", F.explode(shard))
        .join(places, "interface")
        .select("shard", "owner", "interface", "constraints")
        .groupBy("shard")
        .applyInArrow(
            _writer(str(folder), all_names, directory.shards), "shard int, filters bigint"
        )
        .collect()
    )
    counts.unlink()
    draft.unlink()
    return finish(folder, directory, all_names, sizes[0], first.count())


def _count(keys: DataFrame) -> tuple[Any, Any]:
    """Distinct keys, and how often each occurs."""
    found = keys.groupBy("key").count().toArrow()
    return found["key"].to_numpy(), found["count"].to_numpy()


def _keyed(df: DataFrame, interface: str, predicate: str) -> DataFrame:
    """A row for each filter with its options, for each reject, and for interfaces without any."""
    if are_constraints(df, predicate):
        one = F.struct(*(F.col(n).cast("string").alias(n) for n in ("name", "op", "type", "value")))
        filters = (
            df.select(
                F.monotonically_increasing_id().alias("place"),
                F.col(quoted(interface)).cast("string").alias("interface"),
                F.col("filter"),
                one.alias("one"),
            )
            .groupBy("interface", "filter")
            .agg(F.min("place").alias("place"), F.collect_list("one").alias("constraints"))
        )
        missing = F.when(F.col("interface").isNull(), "the interface is NULL")
        missing = missing.when(F.col("filter").isNull(), "the filter is NULL")
        rows = filters.select(
            "place",
            F.when(missing.isNull(), F.lit(0).cast("bigint")).alias("number"),
            "interface",
            "constraints",
            F.lit(None).cast("array<array<bigint>>").alias("options"),
            F.lit(None).cast("string").alias("predicate"),
            missing.alias("error"),
        )
        return rows.mapInArrow(_read_batches, _FILTERS_SQL)
    require_columns(df, interface, predicate)
    texts = df.select(
        F.monotonically_increasing_id().alias("place"),
        F.col(quoted(interface)).cast("string").alias("interface"),
        F.col(quoted(predicate)).alias("predicate"),
    )
    parse_batches = partial(_parse_batches, zone=session_zone(df.sparkSession))
    return texts.mapInArrow(parse_batches, _FILTERS_SQL)


# ---- executors


def _parse_batches(batches: Iterable[pa.RecordBatch], zone: str | None) -> Iterator[pa.RecordBatch]:
    rows: list[tuple[Any, ...]] = []
    size = 0
    for batch in batches:
        for place, interface, text in zip(*(c.to_pylist() for c in batch.columns), strict=True):
            rows += _parsed(place, interface, text, zone)
            size += len(text or "")
            if len(rows) >= _ROWS_MAX or size >= _TEXT_MAX:
                yield _from_rows(rows)
                rows, size = [], 0
    yield _from_rows(rows)


def _parsed(
    place: int, interface: str | None, text: str | None, zone: str | None
) -> Iterator[tuple[Any, ...]]:
    if interface is None or text is None:
        missing = "interface" if interface is None else "predicate"
        yield place, None, interface, None, None, text, f"the {missing} is NULL"
        return
    try:
        filters = parse(text, zone=zone, foreign=True).filters
    except PalioError as refused:
        yield place, None, interface, None, None, text, str(refused)
        return
    if not filters:
        yield place, None, interface, None, None, None, None
    for number, conjunction in enumerate(filters):
        constraints = [
            {
                "name": c.name,
                "op": c.op.value,
                "type": c.type.value if c.type is not None else None,
                "value": value_text(c),
            }
            for c in conjunction.constraints
        ]
        yield place, number, interface, constraints, None, None, None


def _from_rows(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(_FILTERS)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, _FILTERS, strict=True)]
    return _with_options(pa.RecordBatch.from_arrays(arrays, schema=_FILTERS))


def _with_options(rows: pa.RecordBatch) -> pa.RecordBatch:
    options = filter_options(_columns(rows.column("constraints")))
    return rows.set_column(4, "options", options)


def _read_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Constraints that came as rows: what is wrong with them is found here."""
    for batch in batches:
        rows = batch.cast(_FILTERS)
        try:
            yield _with_options(rows)
        except InvalidPredicate:
            yield _from_rows([_checked(row) for row in rows.to_pylist()])


def _checked(row: dict[str, Any]) -> tuple[Any, ...]:
    """The row, or a reject in its place."""
    try:
        _columns(pa.array([row["constraints"]], _CONSTRAINTS))
    except InvalidPredicate as refused:
        error = str(refused.at(table="its filter") if refused.table else refused)
        row = {**row, "number": None, "constraints": None, "error": error}
    return tuple(row.values())


def _columns(constraints: pa.ListArray) -> ConstraintColumns:
    """The columns of filters, in their order; their owners are still to be given."""
    size = constraints.value_lengths().fill_null(0).to_numpy()
    flat = constraints.flatten()
    fields = dict(zip(("name", "op", "type", "value"), flat.flatten(), strict=True))
    fields["interface"] = pa.repeat("", len(flat))
    fields["filter"] = pa.array(np.repeat(np.arange(len(size)), size))
    columns = from_constraint_rows(pa.table({name: fields[name] for name in REQUIRED}))
    some = np.flatnonzero(size).astype(np.int32)  # the others select everything
    owner = np.zeros(len(size), np.int32)
    return dataclasses.replace(columns, filter=some[columns.filter], owner=owner)


def _rarest(counts: str, residuals: ResidualShapes) -> Any:
    def palio_rarest(options: pa.Array, names: pa.Array) -> pa.Array:
        keys = rarest(options, np.load(counts, mmap_mode="r"))
        return without_keys(keys, residuals.lists(names))

    return arrow_function(palio_rarest, "array<bigint>")


def _shards(draft: str) -> Any:
    def palio_shards(keys: pa.Array, number: pa.Array) -> pa.Array:
        return Directory.load(Path(draft)).of_filters(keys, number.to_numpy() & _POSITIVE)

    return arrow_function(palio_shards, "array<int>")


def _writer(folder: str, names: list[str], shards: int) -> Callable[[pa.Table], pa.Table]:
    def write(rows: pa.Table) -> pa.Table:
        rows = rows.combine_chunks()
        shard = rows["shard"][0].as_py()
        owner, labels = shard_interfaces(rows["owner"].to_numpy(), rows["interface"])
        columns = dataclasses.replace(
            _columns(rows["constraints"].chunk(0)), owner=owner, interfaces=labels
        )
        with carried():
            columns = with_names(columns, names if shard == REST else ())
            save_shard(Path(folder), shard, columns, has_keys=0 <= shard < shards)
        return pa.table({"shard": pa.array([shard], pa.int32()), "filters": [rows.num_rows]})

    return write
