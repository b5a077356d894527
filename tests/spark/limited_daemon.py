"""The daemon of Python workers, with a limit on what each worker may have beyond what it begins
with: the kernel refuses more (RLIMIT_DATA counts private mappings, and tables are such)."""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path

if __name__ == "__main__":
    import pandas  # noqa: F401  workers load it, and it is no part of a table
    import pyspark.sql.pandas.serializers
    import pyspark.worker  # noqa: F401
    from pyspark.daemon import manager

    from palio.spark.daemon import warm

    warm()
    found = re.search(r"VmData:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    limit = int(found[1]) * 1024 + int(os.environ["PALIO_TEST_ALLOWED"])
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    manager()
