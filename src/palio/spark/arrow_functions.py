"""Column functions of Spark out of functions on Arrow arrays."""

from __future__ import annotations

from typing import Any

from palio.errors import MissingSoftware


def arrow_function(function: Any, returns: str) -> Any:
    """A column function out of one from Arrow arrays to an Arrow array; `returns` is a SQL type."""
    try:
        from pyspark.sql.pandas.functions import arrow_udf
    except ImportError:
        import pyspark

        raise MissingSoftware(
            f"palio.spark needs PySpark 4.1 or newer, this is {pyspark.__version__}",
            remedy="pip install --upgrade 'palio[spark]'",
        ) from None
    return arrow_udf(function, returns)  # type: ignore[call-overload]
