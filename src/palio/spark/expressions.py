"""The shared expressions of a table as columns of a DataFrame, which Spark computes.

    name of an expression ──▶ typed SQL, our meaning     (expression_sql)
                          ──▶ Spark's words, guarded     (native_sql: what only Spark computes)
                          ──▶ nothing: the worker computes it, from the columns that it reads

All are analysed together on the driver. What Spark refuses is left to the worker, or is an error that
names the expression where only Spark computes it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812

from palio.errors import InvalidPredicate
from palio.model.expressions.foreign import foreign_function, is_foreign
from palio.model.expressions.names import attributes_of, expression_of
from palio.model.expressions.refusals import instead
from palio.model.time_zones import zone_name
from palio.spark.expression_sql import SqlWriter
from palio.spark.expression_types import OTHER, ColumnSource, NotOnSpark, OnlySpark, kind_of
from palio.spark.failures import sentence
from palio.spark.native_sql import native_sql, sent_sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_ZONE = "spark.sql.session.timeZone"


def session_zone(spark: SparkSession) -> str | None:
    """The time zone of a session; None is UTC."""
    return zone_name(str(spark.conf.get(_ZONE, "UTC") or "UTC"))


@dataclass(frozen=True, slots=True)
class _Draft:
    """The SQL of an expression, before Spark has said what type it has."""

    name: str
    sql: str
    is_native: bool


def computed_columns(
    df: DataFrame, names: Iterable[str], sources: Mapping[str, ColumnSource]
) -> dict[str, tuple[Column, Any]]:
    """A column, and its type, for each of these expressions that Spark computes; the worker computes the
    others."""
    zone = session_zone(df.sparkSession)
    writer = SqlWriter(sources, zone)
    drafts = [_draft(name, writer, sources, zone) for name in names]
    found = [draft for draft in drafts if draft is not None]
    return {
        draft.name: (F.expr(sent_sql(draft.sql, type, is_guarded=draft.is_native)), type)
        for draft, type in _analysed(df, found)
    }


def refuse_foreign(names: Iterable[str], layout: str) -> None:
    """Raise where only Spark computes one of these expressions, and the messages are in one column."""
    for name in names:
        if foreign := foreign_function(expression_of(name)):
            raise InvalidPredicate(
                f"{foreign} is computed by Spark only, of wide columns, and the messages are in one ({layout}=)",
                remedy="take the attributes out into columns",
            )


def _draft(
    name: str, writer: SqlWriter, sources: Mapping[str, ColumnSource], zone: str | None
) -> _Draft | None:
    expression = expression_of(name)
    if not is_foreign(expression):
        try:
            return _Draft(name, writer.write(expression).sql, is_native=False)
        except OnlySpark:
            pass
        except NotOnSpark:
            read = (sources[one].type for one in attributes_of(expression) if one in sources)
            if not any(kind_of(type) == OTHER for type in read):
                return None
    return _Draft(name, native_sql(expression, sources, zone), is_native=True)


def _analysed(df: DataFrame, drafts: list[_Draft]) -> list[tuple[_Draft, Any]]:
    """The drafts that Spark takes, with their types."""
    if not drafts:
        return []
    try:
        types = _types(df, drafts)
    except PySparkException as error:
        if len(drafts) > 1:
            half = len(drafts) // 2
            return _analysed(df, drafts[:half]) + _analysed(df, drafts[half:])
        [draft] = drafts
        foreign = foreign_function(expression_of(draft.name))
        if foreign is None:
            if draft.is_native:
                warnings.warn(
                    f"Spark does not compute {draft.name[1:]}, so rules with it select nothing: {sentence(error)}",
                    stacklevel=2,
                )
            return []
        raise InvalidPredicate(
            f"Spark does not compute {draft.name[1:]}: {sentence(error)}",
            remedy=_near(foreign) or "does the same stand in a WHERE clause over this DataFrame?",
        ) from None
    return list(zip(drafts, types, strict=True))


def _near(foreign: str) -> str:
    """What there is instead of a function that Spark has not: strpos, list_contains."""
    return instead(foreign.removeprefix("the function "))


def _types(df: DataFrame, drafts: list[_Draft]) -> list[Any]:
    columns = [F.expr(draft.sql).alias(f"e{i}") for i, draft in enumerate(drafts)]
    fields = df.select(F.lit(0), *columns).schema.fields[1:]
    return [field.dataType for field in fields]
