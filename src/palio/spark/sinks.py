"""Files as the output of a stream: each micro-batch appears whole, once.

    out/
      batch=000000/part-*.parquet                  whole: it was renamed to this name
      batch=000001/interface=ann/part-*.parquet    with partition_by="interface"
      _palio/                                      Spark skips names with an underscore
        staging/batch=000002/                      being written, or left by a crash
        batches/  checkpoint/                      records of batches; Spark's checkpoint

A batch that is in the output already is not written a second time, and one that was left in staging
is removed: so a batch that Spark repeats after a crash is in the output once. The checkpoint lies
inside, since its batch numbers mean nothing to another output.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from palio.errors import InvalidFile, InvalidValue
from palio.spark.batches import sync_directory
from palio.spark.messages import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FORMATS = ("parquet", "json", "orc")
Groups = Mapping[str, str] | Callable[[str], str]


@dataclass(frozen=True)
class FileSink:
    """A directory of files, one subdirectory for each micro-batch.

    `partition_by="interface"` writes the files of each interface into a directory of their own; a
    mapping or a function from interface to group does the same for groups (column `group`). What a
    mapping lacks is in the group NULL. Both make a row of each message and interface.
    """

    path: Path
    format: str = "parquet"
    partition_by: str | Groups | None = None

    def __init__(
        self, path: str | Path, *, format: str = "parquet", partition_by: str | Groups | None = None
    ) -> None:
        if "://" in str(path) and not str(path).startswith("file://"):
            raise InvalidValue(
                f"{path}: the file sink renames directories, so it needs a path that is mounted",
                remedy="elsewhere write with a callback, into a format that commits (such as Delta)",
            )
        if format not in FORMATS:
            raise InvalidValue(f"no format {format!r}", remedy=f"there are {', '.join(FORMATS)}")
        if isinstance(partition_by, str) and partition_by != "interface":
            raise InvalidValue(
                "partition_by is 'interface', or a mapping or function from interface to group, "
                f"not {partition_by!r}"
            )
        put = object.__setattr__
        put(self, "path", Path(str(path).removeprefix("file://")).absolute())
        put(self, "format", format)
        put(self, "partition_by", partition_by)

    @property
    def own(self) -> Path:
        """The subdirectory of our own files, which are no output."""
        return self.path / "_palio"

    def check(self, columns: list[str]) -> None:
        """Raise when a column has a name that the output needs."""
        grouped = self.partition_by is not None and self.partition_by != "interface"
        for name in ("batch", *(["group"] if grouped else [])):
            if name in columns:
                raise InvalidValue(
                    f"the DataFrame has a column {name!r}, which the files have of their own",
                    remedy="rename it",
                )

    def prepare(self) -> None:
        """Make the directory, or raise. Batches of an earlier run need their checkpoint: without
        it, their numbers would be taken for those of new batches."""
        try:
            (self.own / "staging").mkdir(parents=True, exist_ok=True)
            if not os.access(self.path, os.W_OK):
                raise InvalidFile("the output cannot be written: permission denied", path=self.path)
            batches = any(self.path.glob("batch=*"))
        except OSError as error:
            raise InvalidFile(
                f"the output cannot be written: {error.strerror}", path=self.path
            ) from None
        if batches and not (self.own / "checkpoint").exists():
            raise InvalidFile(
                "there are batches of an earlier run and no checkpoint to continue from",
                remedy="choose another directory, or remove this one",
                path=self.path,
            )

    def has(self, batch: int) -> bool:
        return self.file(batch).exists()

    def is_filled(self, batch: int) -> bool:
        """Does the batch have files? It has none when none of its messages matched."""
        return any(path.name[0] not in "._" for path in self.file(batch).iterdir())

    def stage(self, df: DataFrame, batch: int) -> None:
        """Write a batch where readers do not see it."""
        shutil.rmtree(self._staged(batch), ignore_errors=True)
        if self.partition_by is None:
            writer = df.write
        elif self.partition_by == "interface":
            writer = df.write.partitionBy("interface")
        else:
            writer = df.withColumn("group", _group(self.partition_by)).write.partitionBy("group")
        writer.mode("overwrite").format(self.format).save(str(self._staged(batch)))

    def commit(self, batch: int) -> None:
        """Show the batch to readers, in one step."""
        try:
            self._staged(batch).mkdir(parents=True, exist_ok=True)  # Spark made none for no rows
            os.rename(self._staged(batch), self.file(batch))
            sync_directory(self.path)
        except OSError as error:
            raise InvalidFile(
                f"the batch cannot be written: {error.strerror}", path=self.file(batch)
            ) from None

    def _staged(self, batch: int) -> Path:
        return self.own / "staging" / f"batch={batch:06d}"

    def file(self, batch: int) -> Path:
        """Where a batch is, or will be."""
        return self.path / f"batch={batch:06d}"


def _group(groups: Any) -> Any:
    """The column of groups; asked in Python, since a table may have a million interfaces."""
    find = groups if callable(groups) else groups.get
    return F.udf(find, "string")(F.col(quoted("interface")))
