"""Predicates and messages from files, as DataFrames: CSV, JSON lines or Parquet, file or folder.

The format follows from the ending of the name, in a folder from those of its files. JSON lines stay
text, a column `message` that the kernel parses; columns of CSV get the types that Spark infers, and
instants without a zone are in UTC. A stream of CSV or Parquet takes its columns from the files that
are there when it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from palio.errors import InvalidFile, PalioError
from palio.spark.failures import sentence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ENDINGS = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
FORMATS = ("csv", "jsonl", "parquet")
_TYPES: dict[str, T.DataType] = {
    "bool": T.BooleanType(),
    "int": T.LongType(),
    "float": T.DoubleType(),
    "string": T.StringType(),
    "time": T.TimestampType(),
}
_CSV = {"header": "true", "escape": '"', "multiLine": "true", "mode": "FAILFAST"}


@dataclass(frozen=True, slots=True)
class Source:
    """Messages, and the options with which `forward` reads them."""

    df: DataFrame
    options: dict[str, Any] = field(default_factory=dict)


def read_predicates(spark: SparkSession, path: str) -> DataFrame:
    """Rows of interface and predicate."""
    kind = _format(path, None)
    try:
        if kind == "csv":
            return spark.read.options(**_CSV).csv(path)
        if kind == "jsonl":
            return spark.read.option("mode", "FAILFAST").json(path)
        return spark.read.parquet(path)
    except Exception as error:
        raise InvalidFile(f"the predicates cannot be read: {sentence(error)}", path=path) from None


def read_messages(
    spark: SparkSession,
    path: str,
    *,
    format: str | None = None,
    types: Mapping[str, str] | None = None,
    stream: bool = False,
    files_per_batch: int | None = None,
) -> Source:
    """The messages of a file or a folder; with `stream`, of a folder that is watched."""
    if stream and "://" not in path and not Path(path).is_dir():
        raise InvalidFile("a stream watches a folder, and this is not one", path=path)
    kind = _format(path, format)
    if types and kind != "csv":
        raise InvalidFile(
            "types are chosen for CSV columns only", remedy=f"{kind} has its own", path=path
        )
    reader: Any = spark.readStream if stream else spark.read
    if stream and files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    try:
        if kind == "jsonl":
            texts = reader.text(path).withColumnRenamed("value", "message")
            return Source(texts.where(F.trim("message") != ""), {"json": "message"})
        schema = _schema(spark, path, kind, types or {})
        if kind == "csv":
            return Source(reader.schema(schema).options(**_CSV).csv(path))
        return Source((reader.schema(schema) if stream else reader).parquet(path))
    except PalioError:
        raise
    except Exception as error:
        raise InvalidFile(f"the messages cannot be read: {sentence(error)}", path=path) from None


def _schema(spark: SparkSession, path: str, kind: str, types: Mapping[str, str]) -> T.StructType:
    for name, type in types.items():
        if type not in _TYPES:
            raise InvalidFile(
                f"column {name!r}: no type {type!r}", remedy=f"there are {', '.join(_TYPES)}"
            )
    if "://" not in path and Path(path).is_dir() and not _files(path):
        raise InvalidFile(
            f"the folder is empty, and {kind} files say which columns there are",
            remedy="put one there before the start",
            path=path,
        )
    if kind == "parquet":
        return spark.read.parquet(path).schema
    found = spark.read.options(**_CSV).option("inferSchema", "true").csv(path).schema
    unknown = sorted(set(types) - set(found.names))
    if unknown:
        raise InvalidFile(f"no column {', '.join(map(repr, unknown))} to give a type to", path=path)
    return T.StructType(
        [T.StructField(f.name, _TYPES[types[f.name]] if f.name in types else f.dataType)
         for f in found.fields]
    )  # fmt: skip


def _format(path: str, chosen: str | None) -> str:
    if chosen is not None and chosen not in FORMATS:
        raise InvalidFile(f"no format {chosen!r}", remedy=f"there are {', '.join(FORMATS)}")
    if "://" not in path and not Path(path).exists():
        raise InvalidFile("there is no such file or folder", path=path)
    if chosen is not None:
        return chosen
    kinds = {ENDINGS.get(Path(path).suffix.lower())} - {None}
    if not kinds and "://" not in path:
        names = _files(path) if Path(path).is_dir() else []
        kinds = {ENDINGS.get(name.suffix.lower()) for name in names} - {None}
    if len(kinds) != 1:
        found = " and ".join(sorted(map(str, kinds)))
        raise InvalidFile(
            f"the folder holds {found} files" if kinds else "the name does not tell the format",
            path=path,
            remedy=f"choose one with --format {'|'.join(FORMATS)}, or let names end in one of "
            f"{', '.join(ENDINGS)}",
        )
    return str(kinds.pop())


def _files(path: str) -> list[Path]:
    """The files that Spark reads: it skips names that begin with a dot or an underscore."""
    return [p for p in Path(path).iterdir() if p.is_file() and p.name[0] not in "._"]
