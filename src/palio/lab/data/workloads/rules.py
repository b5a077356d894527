"""Rules of an event router: conjunctions of two to four equalities on fields that every event has.

Values follow Zipf's law, so a few of them lie in very many rules, and one message matches some 70 rules
of 100,000. Half of the twelve fields hold strings, half integers.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from palio.errors import InvalidValue
from palio.lab.data.workloads.recipe import deal, interface_count, interface_names
from palio.lab.data.workloads.workload import CONSTRAINTS, ENCODED, Interfaces, Workload

FIELDS = 12
VALUES = 240
SIZES = (2, 3, 4)


def rules(
    filters: int,
    interfaces: Interfaces = None,
    messages: int = 1_000,
    *,
    seed: int = 1,
    part: int = 0,
) -> Workload:
    """Draw rules, and wide messages that have all fields."""
    if messages < 0:
        raise InvalidValue(f"a workload has 0 messages or more, not {messages}")
    rng = np.random.default_rng([seed, FIELDS, part])
    share = 1.0 / np.arange(1, VALUES + 1)
    share /= share.sum()
    count = interface_count(filters, interfaces)
    size = rng.choice(SIZES, filters)
    filter = np.repeat(np.arange(filters), size)
    field = np.argsort(rng.random((filters, FIELDS)), axis=1)[:, : max(SIZES)]
    field = np.sort(np.where(np.arange(max(SIZES)) < size[:, None], field, FIELDS), axis=1)
    name = field[field < FIELDS]
    value = rng.choice(VALUES, len(name), p=share)
    columns = rng.choice(VALUES, (messages, FIELDS), p=share)
    return Workload(
        "rules",
        _rows(interface_names(count), deal(filter, filters, count), filter, name, value),
        pa.table({f"f{i}": _column(i, columns[:, i]) for i in range(FIELDS)}),
        f"2 to 4 equalities on {FIELDS} fields, values by Zipf's law; seed {seed}",
    )


def _column(field: int, values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    if field % 2:
        return pa.array(values, pa.int64())
    return pa.array([f"v{i:03}" for i in range(VALUES)]).take(pa.array(values))


def _rows(
    interfaces: pa.Array, owner: object, filter: object, name: object, value: object
) -> pa.Table:
    name, value = np.asarray(name), np.asarray(value)
    is_int = name % 2
    texts = [f"v{i:03}" for i in range(VALUES)] + [str(i) for i in range(VALUES)]

    def encoded(codes: object, items: object) -> pa.DictionaryArray:
        indices = pa.array(np.asarray(codes), pa.int32())
        return pa.DictionaryArray.from_arrays(indices, pa.array(items, pa.string())).cast(ENCODED)

    return pa.table(
        [
            encoded(owner, interfaces),
            pa.array(np.asarray(filter), pa.int64()),
            encoded(name, [f"f{i}" for i in range(FIELDS)]),
            encoded(np.zeros(len(name)), ["="]),
            encoded(is_int, ["string", "int"]),
            encoded(value + VALUES * is_int, texts),
        ],
        schema=CONSTRAINTS,
    )
