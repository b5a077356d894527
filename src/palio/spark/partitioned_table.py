"""A table in shards: a directory of files, of which a worker opens one at a time.

    flights-parts/
      shard-00000.palio ...   tables of the filters under some keys, and of the rest where it is large
      rest.palio              a table of the filters that have no key; it knows all names
      directory.npy           which shards a message has to visit (`shard_keys`)
      partitioned.json        what there is; written last, so a directory that has it is whole

The interfaces of these tables are called by their place in the whole table, in ten digits, and
their name: `0000000017ann`. So what several shards say of a message is put in order, and the
doubles removed, by comparing texts. Files are never changed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from palio.errors import InvalidFile
from palio.matching.encode.columns import ConstraintColumns, Ints
from palio.matching.encode.constraint_rows import from_constraint_rows
from palio.matching.table import ForwardingTable
from palio.spark.shard_keys import Directory
from palio.spark.tables import Location, file_location, placed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT = 1
PLACE_DIGITS = 10
REST = -1  # the shard that every worker has
_MANIFEST, _DIRECTORY = "partitioned.json", "directory.npy"


@dataclass(frozen=True, slots=True)
class TableParts:
    """Where the files of a partitioned table are; small enough for a closure."""

    rest: Location
    directory: Location
    shards: tuple[Location, ...]


class PartitionedTable:
    """A table in shards, for `palio.spark.forward`; `palio.spark.partition` makes one."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        try:
            found = json.loads((self.path / _MANIFEST).read_text())
            known = found["format"]
            self.shards: int = found["shards"]
            self.filters: int = found["filters"]
            self.interfaces: int = found["interfaces"]
        except OSError as error:
            raise InvalidFile(
                f"there is no partitioned table here ({error.strerror})",
                remedy="palio.spark.partition makes one",
                path=self.path,
            ) from None
        except (ValueError, LookupError, TypeError):
            raise InvalidFile(
                f"{_MANIFEST} is damaged", remedy="partition again", path=self.path
            ) from None
        if known != FORMAT:
            raise InvalidFile(
                f"the partitioned table has format {known}, this version of Palio reads {FORMAT}",
                remedy="partition it again, or update Palio",
                path=self.path,
            )

    def __repr__(self) -> str:
        return (
            f"PartitionedTable({str(self.path)!r}): {self.filters:,} filters, {self.shards} shards"
        )

    @property
    def files(self) -> list[Path]:
        """The files of the shards."""
        return [shard_file(self.path, shard) for shard in range(self.shards)]

    def located(self, spark: SparkSession, shared: bool | None) -> TableParts:
        """Make the files readable by the workers of a session."""
        files = [shard_file(self.path, REST), self.path / _DIRECTORY, *self.files]
        found = placed(spark, [file_location(path) for path in files], shared)
        return TableParts(found[0], found[1], tuple(found[2:]))


def is_partitioned(table: Any) -> bool:
    """A PartitionedTable, or the path of one."""
    if isinstance(table, PartitionedTable):
        return True
    return isinstance(table, str | Path) and (Path(table) / _MANIFEST).is_file()


def shard_file(folder: Path, shard: int) -> Path:
    return folder / ("rest.palio" if shard == REST else f"shard-{shard:05d}.palio")


# ---- writing


def begin(path: str | Path) -> Path:
    """The folder for a new partitioned table."""
    folder = Path(path).absolute()
    if (folder / _MANIFEST).exists():
        raise InvalidFile(
            "there is a partitioned table already, which jobs may be using",
            remedy="choose another directory",
            path=folder,
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidFile(
            f"a table cannot be written here: {error.strerror}", path=folder
        ) from None
    return folder


def save_shard(
    folder: Path, shard: int, columns: ConstraintColumns, *, has_keys: bool = False
) -> None:
    """Write the table of a shard; its interfaces have names from `shard_interfaces`. One that keys lead
    to has no residuals: all of its expressions are attributes."""
    expressions = "attributes" if has_keys else "auto"
    ForwardingTable.compile(columns, expressions=expressions).save(shard_file(folder, shard))


def finish(
    folder: Path,
    directory: Directory,
    names: Sequence[str],
    filters: int,
    interfaces: int,
) -> PartitionedTable:
    """Write what belongs to no shard, and the shards in which no filter lies."""
    for shard in range(REST, directory.all_shards):
        if not shard_file(folder, shard).exists():
            save_shard(folder, shard, with_names(no_columns(), names if shard == REST else ()))
    directory.save(folder / _DIRECTORY)
    manifest = {
        "format": FORMAT,
        "shards": directory.all_shards,
        "filters": filters,
        "interfaces": interfaces,
    }
    (folder / _MANIFEST).write_text(json.dumps(manifest) + "\n")
    return PartitionedTable(folder)


def no_columns() -> ConstraintColumns:
    empty = {name: pa.array([], pa.string()) for name in ("interface", "name", "op", "type")}
    return from_constraint_rows(
        pa.table({**empty, "filter": pa.array([], pa.int64()), "value": pa.array([], pa.string())})
    )


def with_names(columns: ConstraintColumns, names: Sequence[str]) -> ConstraintColumns:
    """Columns that know these names too, as a table must to check all values of a message."""
    known = set(columns.names)
    return dataclasses.replace(
        columns, names=[*columns.names, *(name for name in names if name not in known)]
    )


def shard_interfaces(places: Ints, names: Any) -> tuple[Ints, list[str]]:
    """Owners among the interfaces of a shard, and what those are called, of each filter's place
    and name."""
    used, first, owner = np.unique(places, return_index=True, return_inverse=True)
    texts = names.take(pa.array(first)).to_pylist()
    labels = [f"{p:0{PLACE_DIGITS}d}{t}" for p, t in zip(used.tolist(), texts, strict=True)]
    return owner.astype(np.int32), labels
