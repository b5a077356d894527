"""The format "palio": what Spark makes readers and writers from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from palio.carried_errors import carried
from palio.errors import InvalidValue
from palio.spark_network.columns import PLAIN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


class PalioSource(DataSource):
    """Messages of a network of brokers. See docs/guides/spark-network.md."""

    @classmethod
    def name(cls) -> str:
        return "palio"

    def schema(self) -> StructType:
        return PLAIN

    @carried()
    def reader(self, schema: StructType) -> DataSourceReader:
        from palio.spark_network.options import BATCH_READ, read_options
        from palio.spark_network.replay import Replay

        return Replay(read_options(self.options, BATCH_READ, "a batch that is read"), schema)

    @carried()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from palio.spark_network.options import STREAM_READ, read_options
        from palio.spark_network.stream import StreamReader

        return StreamReader(
            read_options(self.options, STREAM_READ, "a stream that is read"), schema
        )

    @carried()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from palio.spark_network.options import WRITE, read_options
        from palio.spark_network.sink import BatchWriter

        if overwrite:
            raise InvalidValue('messages cannot be taken back: write with mode("append")')
        return BatchWriter(read_options(self.options, WRITE, "a batch that is written"), schema)

    @carried()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from palio.spark_network.options import WRITE, read_options
        from palio.spark_network.sink import StreamWriter

        if overwrite:
            raise InvalidValue('messages cannot be taken back: write with outputMode("append")')
        return StreamWriter(read_options(self.options, WRITE, "a stream that is written"), schema)


class PushingSource(PalioSource):
    """The same in a session where filters are pushed down."""

    @carried()
    def reader(self, schema: StructType) -> DataSourceReader:
        from palio.spark_network.options import BATCH_READ, read_options
        from palio.spark_network.replay import PushingReplay

        return PushingReplay(read_options(self.options, BATCH_READ, "a batch that is read"), schema)


def register(spark: SparkSession) -> None:
    """Make `format("palio")` known to a session, and let filters of batches become part of the
    subscription.

    It is known without this where the session's Python sees Palio; then Spark applies the filters.
    """
    spark.conf.set(PUSHDOWN, "true")
    spark.dataSource.register(PushingSource)
