"""Forwarding DataFrames: each row is a message, and gets the interfaces it goes to.

    df ──messages_of──▶ MessageColumns ──strategy──▶ df + what each row matches ──▶ output

The table is fixed when `forward` is called: of a table directory, the version that is current then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import functions as F  # noqa: N812

from palio.errors import InvalidValue
from palio.model.predicate import Predicate
from palio.spark.broadcast import RETURNS, function
from palio.spark.broadcast import with_matches as broadcast_matches
from palio.spark.compiling import table_of
from palio.spark.expressions import refuse_foreign, session_zone
from palio.spark.messages import MessageColumns, messages_of, quoted
from palio.spark.partitioned import with_matches as partitioned_matches
from palio.spark.partitioned_table import PartitionedTable
from palio.spark.sizing import placed_for
from palio.spark.tables import Location, Table, asked, asked_of_parts, located

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# (df, messages, location or parts, output, into, invalid) -> df with a column `into`
Strategy: TypeAlias = "Callable[[DataFrame, MessageColumns, Any, str, str, str], DataFrame]"
STRATEGIES: dict[str, Strategy] = {
    "broadcast": broadcast_matches,
    "partitioned": partitioned_matches,
}
OUTPUTS = {"array": "interfaces", "ids": "interfaces", "pairs": "interface", "flag": "matched"}
INVALID = ("error", "null")


def forward(
    df: DataFrame,
    table: Table | PartitionedTable | Mapping[str, str | Predicate],
    *,
    strategy: str = "auto",
    output: str = "array",
    into: str | None = None,
    columns: Sequence[str] | None = None,
    json: str | None = None,
    map: str | None = None,
    variant: str | None = None,
    attributes: str | None = None,
    invalid: str = "error",
    failures: str | None = None,
    strict: bool = False,
    shared: bool | None = None,
    worker_memory: int | str | None = None,
) -> DataFrame:
    """The DataFrame with what each row matches: by default a column `interfaces`, array<string>.

    `table`: a ForwardingTable, the path or URL of its file, a table directory, or a partitioned
    table (`partition`) or its path. Or a mapping of interfaces to predicates, whose texts are written
    in the time zone of the session.

    `strategy`: "broadcast", each machine has the whole table; "partitioned", workers have a shard
    of it at a time and messages travel, for tables larger than memory; "auto", broadcast unless
    the table is partitioned already, or its file is larger than `worker_memory` (bytes, or "2g";
    by default half of what an executor has, see `sizing`) and the DataFrame is no stream. The
    answers are the same; the partitioned strategy loses the order of the rows and takes no streaming
    DataFrame.

    `output`: "array", interface names; "ids", their positions in the table (array<int>); "pairs",
    a row for each message and interface (column `interface`); "flag", a boolean `matched`. `into`
    names the column otherwise.

    A message is all columns of a row (or `columns`), or is in one column: `json` (string),
    `map`, `variant`, or `attributes` (array<struct<name, type, value>>). NULL has no attributes. A
    row that is no message, such as broken JSON, is an error, or NULL with `invalid="null"`.

    `failures` names a column that counts, for each row, the expressions that could not be computed:
    a division by zero, a bad cast, an overflow. The workers then compute all expressions but those
    that only Spark has, whose failures are not counted. With `strict=True` a row for which a rule's expression
    cannot be computed ends the job, with an error that names the rule and shows the row; with
    `invalid="null"` it is NULL. Both with the broadcast strategy only: in a partitioned table a message meets
    some of the shards, so what fails depends on the partition.

    `shared=True`: every worker sees the path, do not ship the file; see `tables.located`.
    """
    _require("strategy", strategy, ("auto", *STRATEGIES))
    _require("output", output, OUTPUTS)
    _require("invalid", invalid, INVALID)
    into = into or OUTPUTS[output]
    _require_new(df, into=into, failures=failures)
    if isinstance(table, Mapping):
        table = table_of(table, session_zone(df.sparkSession))
    chosen, place = placed_for(df, table, strategy, shared, worker_memory)
    tells_failures = failures is not None or strict
    if tells_failures and chosen != "broadcast":
        raise InvalidValue(
            "the partitioned strategy does not count failures of expressions",
            remedy='leave failures= and strict= out, or choose strategy="broadcast"',
        )
    messages = messages_of(
        df,
        asked(place) if isinstance(place, Location) else asked_of_parts(place.rest),
        columns=columns,
        json=json,
        map=map,
        variant=variant,
        attributes=attributes,
        by_worker=tells_failures,
    )
    with_matches = STRATEGIES[chosen]
    if tells_failures:
        with_matches = partial(broadcast_matches, failures=failures, strict=strict)
    if output != "pairs":
        return with_matches(df, messages, place, output, into, invalid)
    # Spark explodes faster than Python would, and only the messages travel.
    lists = with_matches(df, messages, place, "array", into, invalid)
    return lists.withColumn(into, F.explode(F.col(quoted(into))))


def forwarder(table: Table, **options: Any) -> Callable[[DataFrame], DataFrame]:
    """`forward` for pipelines: `df.transform(palio.spark.forwarder(table, output="pairs"))`."""
    return partial(_forwarded, table=table, options=options)


def _forwarded(df: DataFrame, table: Table, options: dict[str, Any]) -> DataFrame:
    return forward(df, table, **options)


def register(
    spark: SparkSession,
    name: str,
    table: Table,
    *,
    output: str = "array",
    invalid: str = "error",
    shared: bool | None = None,
) -> None:
    """A SQL function that matches messages against a table: its argument is a JSON string, a map,
    an array of attributes, or `struct(*)` for wide columns.

        SELECT *, palio_match(struct(*)) AS interfaces FROM flights
        SELECT id, explode(palio_match(message)) FROM events
    """
    _require("output", output, RETURNS)
    _require("invalid", invalid, INVALID)
    location = located(spark, table, shared=shared)
    refuse_foreign(asked(location).shared, "the argument of the function")
    spark.udf.register(name, function(location, output, invalid))


def _require_new(df: DataFrame, **columns: str | None) -> None:
    """Names of columns that are added."""
    taken = {column.lower() for column in df.columns}
    for option, name in columns.items():
        if name is None:
            continue
        if name.lower() in taken:
            raise InvalidValue(
                f"the DataFrame has a column {name!r} already",
                remedy=f"choose another name with {option}=",
            )
        taken.add(name.lower())


def _require(what: str, word: str, known: Any) -> None:
    if word not in known:
        raise InvalidValue(f"no {what} {word!r}", remedy=f"there are {', '.join(known)}")
