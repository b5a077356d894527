"""The bulk path: constraints as rows of an Arrow table become columns, with no object a filter.

The table has the columns interface, filter, name, op, type and value (as text; `in` takes a JSON
list). Rows with the same interface and filter are one conjunction; filters of one interface are a
disjunction. Each distinct text is read once. The result is what the same predicates give as
objects.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from palio.errors import InvalidPredicate
from palio.matching.encode import codes
from palio.matching.encode.columns import ConstraintColumns, Ints, Sets, number_key, pack_sets
from palio.model.operators import ORDER_OPS, STRING_OPS, Op
from palio.model.predicate import Constraint
from palio.model.values import INT_MAX, INT_MIN, Type, instant_micros, parse_instant

TABLE = "the table of constraints"  # of which an error names the row
REQUIRED = ("interface", "filter", "name", "op", "type", "value")


def from_constraint_rows(table: pa.Table) -> ConstraintColumns:
    """ConstraintColumns from an Arrow table of constraints."""
    missing = [name for name in REQUIRED if name not in table.column_names]
    if missing:
        raise InvalidPredicate(
            f"the table of constraints has no column {', '.join(missing)}; "
            f"it needs {', '.join(REQUIRED)}"
        )
    interfaces, interface = _encoded(table, "interface")
    names, name = _encoded(table, "name")
    owner, filters, order = _filters(interface, _combined(table, "filter"))
    if len(names) > codes.NAMES_MAX:
        raise InvalidPredicate(f"{len(names):,} attribute names; a table takes {codes.NAMES_MAX:,}")
    op, domain = _operators(table)
    key, domain, op, sets, strings = _Values(table, op, domain).read()
    return ConstraintColumns(
        filter=filters[order].astype(np.int32),
        name=name[order].astype(np.int32),
        op=op[order].astype(np.uint8),
        domain=domain[order].astype(np.uint8),
        key=key[order],
        owner=owner.astype(np.int32),
        sets=sets,
        names=names,
        strings=strings,
        interfaces=interfaces,
    )


def _combined(table: pa.Table, name: str) -> Any:
    column = table.column(name)
    if column.num_chunks != 1:
        column = column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column
        return column.combine_chunks()
    return column.chunk(0)


def _dictionary(table: pa.Table, name: str) -> Any:
    column = _combined(table, name)
    if pa.types.is_integer(column.type):
        column = column.cast(pa.string())
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def _encoded(table: pa.Table, name: str) -> tuple[list[str], Ints]:
    """The distinct texts of a column in the order of their first rows, and each row's position."""
    column = _dictionary(table, name)
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise InvalidPredicate(f"it has no {name}", row=row, table=TABLE)
    found = column.indices.to_numpy().astype(np.int64)
    used, first, which = np.unique(found, return_index=True, return_inverse=True)
    by_row = np.argsort(first, kind="stable")
    position = np.empty(len(used), np.int64)
    position[by_row] = np.arange(len(used))
    texts = column.dictionary.take(pa.array(used[by_row])).to_pylist()
    return texts, position[which]


def _filters(interface: Ints, filter: Any) -> tuple[Ints, Ints, Ints]:
    """Each filter's interface, each row's filter, and an order that groups rows by filter.

    Filters are numbered by interface, then by their first rows, as predicates would be.
    """
    if filter.null_count:
        raise InvalidPredicate("a row of the table of constraints has no filter")
    raw = filter.dictionary_encode().indices.to_numpy().astype(np.int64)
    pair = interface * (int(raw.max()) + 1 if len(raw) else 1) + raw
    _, first, which = np.unique(pair, return_index=True, return_inverse=True)
    by_owner = np.lexsort((first, interface[first]))
    number = np.empty(len(first), np.int64)
    number[by_owner] = np.arange(len(first))
    filters = number[which]
    return interface[first][by_owner], filters, np.argsort(filters, kind="stable")


def _operators(table: pa.Table) -> tuple[Ints, Ints]:
    """The codes of operators and types, checked against each other."""
    ops = _coded(table, "op", {op.value: op for op in Op})
    types = _coded(table, "type", {type.value: type for type in Type})
    op_codes = np.array([codes.OP[op] for op in Op])
    kinds = list(Type)
    domain_codes = np.array([*(codes.DOMAIN[type] for type in kinds), codes.EVERY])
    for i, op in enumerate(Op):
        allowed = [True] * len(kinds) + [op in (Op.ANY, Op.ABSENT)]
        for k, type in enumerate(kinds):
            allowed[k] = not (
                (op in STRING_OPS and type is not Type.STRING)
                or (op in ORDER_OPS and type is Type.BOOL)
                or op is Op.ABSENT
            )
        wrong = np.flatnonzero((ops == i) & ~np.array(allowed)[types])
        if len(wrong):
            row = int(wrong[0])
            found = types[row]
            what = kinds[found].value if found < len(kinds) else "no type"
            raise InvalidPredicate(f"{op} with {what}", row=row, table=TABLE)
    return op_codes[ops], domain_codes[types]


def _coded(table: pa.Table, name: str, known: dict[str, Any]) -> Ints:
    """The position of each row's word among the known ones; nulls come last."""
    column = _dictionary(table, name)
    words = column.dictionary.to_pylist()
    order = list(known)
    lookup = np.array([order.index(word) if word in known else -1 for word in words] or [0])
    indices = pc.fill_null(column.indices, -1).to_numpy().astype(np.int64)
    found = np.where(indices < 0, len(order), lookup[np.maximum(indices, 0)])
    wrong = np.flatnonzero(found < 0)
    if len(wrong):
        row = int(wrong[0])
        raise InvalidPredicate(
            f"no {name} {words[indices[row]]!r}",
            row=row,
            table=TABLE,
            remedy=f"there are {', '.join(order)}",
        )
    if name == "op" and len(order) in found:
        raise InvalidPredicate("a row of the table of constraints has no op")
    return found


class _Values:
    """Reads the value column, each distinct text once for each domain."""

    def __init__(self, table: pa.Table, op: Ints, domain: Ints) -> None:
        column = _dictionary(table, "value")
        self._texts = column.dictionary
        self._index = pc.fill_null(column.indices, -1).to_numpy().astype(np.int64)
        self._op, self._domain = op.copy(), domain.copy()
        self._key = np.zeros(len(op), np.int64)
        self._plain = (op != codes.ANY) & (op != codes.ABSENT) & (op != codes.IN)

    def read(self) -> tuple[Ints, Ints, Ints, Sets, list[bytes]]:
        needed = (self._op != codes.ANY) & (self._op != codes.ABSENT)
        lacking = np.flatnonzero(needed & (self._index < 0))
        if len(lacking):
            raise InvalidPredicate("it has no value", row=int(lacking[0]), table=TABLE)
        groups = self._read_sets()
        strings = self._read_strings(groups)
        self._each(codes.BOOL, _read_bool)
        self._each(codes.TIME, lambda text: instant_micros(parse_instant(text)))
        self._read_numbers(codes.INT)
        self._read_numbers(codes.FLOAT)
        rank = {text: i for i, text in enumerate(strings)}
        sets = pack_sets(groups, rank)
        return self._key, self._domain, self._op, sets, [text.encode() for text in strings]

    def _rows(self, domain: int) -> tuple[Ints, Ints, Ints, list[str]]:
        rows = np.flatnonzero(self._plain & (self._domain == domain))
        used, which = np.unique(self._index[rows], return_inverse=True)
        return rows, used, which, self._texts.take(pa.array(used)).to_pylist()

    def _each(self, domain: int, convert: Callable[[str], int]) -> None:
        rows, _, which, texts = self._rows(domain)
        if len(rows):
            keys = [self._convert(convert, text, rows, which, i) for i, text in enumerate(texts)]
            self._key[rows] = np.array(keys, np.int64)[which]

    def _convert(self, convert: Any, text: str, rows: Ints, which: Ints, i: int) -> Any:
        try:
            return convert(text)
        except ValueError as error:
            row = int(rows[np.flatnonzero(which == i)[0]])
            raise InvalidPredicate(str(error), row=int(row), table=TABLE) from None

    def _read_numbers(self, domain: int) -> None:
        """Integral floats move to INT, as everywhere."""
        rows, _, which, texts = self._rows(domain)
        if not len(rows):
            return
        reader = _read_int if domain == codes.INT else _read_float
        found = [self._convert(reader, text, rows, which, i) for i, text in enumerate(texts)]
        where = np.array([pair[0] for pair in found], np.int64)
        keys = np.array([pair[1] for pair in found], np.int64)
        self._key[rows], self._domain[rows] = keys[which], where[which]
        self._plain[rows] = False  # done: FLOAT must not see them again

    def _read_strings(self, groups: list[tuple[int, list[Any]]]) -> list[str]:
        rows, _, which, texts = self._rows(codes.STRING)
        members = {m for _, group in groups for m in group if isinstance(m, str)}
        ordered = sorted(members.union(texts))
        rank = {text: i for i, text in enumerate(ordered)}
        if len(rows):
            self._key[rows] = np.array([rank[text] for text in texts], np.int64)[which]
        return ordered

    def _read_sets(self) -> list[tuple[int, list[Any]]]:
        """The sets as groups of values; a set of one value becomes =."""
        groups: list[tuple[int, list[Any]]] = []
        for row in np.flatnonzero(self._op == codes.IN):
            text = self._texts[int(self._index[row])].as_py()
            domain = int(self._domain[row])
            try:
                made = Constraint("x", "in", _members(text, domain))
            except ValueError as error:
                raise InvalidPredicate(str(error), row=int(row), table=TABLE) from None
            values = made.value if isinstance(made.value, tuple) else (made.value,)
            self._key[row] = len(groups)
            self._domain[row] = codes.INT if domain == codes.FLOAT else domain
            groups.append((domain, list(values)))
        return groups


def _members(text: str, domain: int) -> list[Any]:
    try:
        members = json.loads(text)
    except ValueError:
        members = None
    if not isinstance(members, list):
        raise InvalidPredicate(f"in takes a JSON list, got {text[:40]!r}")
    if domain == codes.TIME:
        return [parse_instant(str(member)) for member in members]
    if domain == codes.FLOAT:
        return [float(m) if isinstance(m, str) else m for m in members]
    return members


def _read_bool(text: str) -> int:
    if text not in ("true", "false"):
        raise InvalidPredicate(f"a bool is true or false, got {text[:40]!r}")
    return int(text == "true")


def _read_int(text: str) -> tuple[int, int]:
    value = int(text) if len(text) < 25 else INT_MAX + 1
    if not INT_MIN <= value <= INT_MAX:
        raise InvalidPredicate(f"the integer {text[:40]} does not fit in 64 bits")
    return codes.INT, value


def _read_float(text: str) -> tuple[int, int]:
    value = float(text)
    if value != value:
        raise InvalidPredicate("NaN is no value of a constraint")
    return number_key(value)
