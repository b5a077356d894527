"""Reading predicates and messages from CSV, JSON lines and Parquet files.

It is here since it needs Arrow, which the model does without, and since programs may call it too.

The format follows from the ending of the name. Predicates are rows with the columns `interface`
and `predicate`. Messages are rows whose columns are attributes; an empty CSV field is a missing
attribute, and CSV columns get the type that all their values have (instants without a zone are in
UTC). Every error names the file and the line or row.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from palio.errors import InvalidFile, PalioError
from palio.model.expressions.names import names_read
from palio.model.language import parse
from palio.model.message import Message
from palio.model.predicate import Predicate
from palio.model.rows import messages as arrow_messages

_ENDINGS = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def read_predicates(
    path: Path, read: Callable[[Any], Predicate] = parse
) -> Iterator[tuple[str, Predicate]]:
    """Pairs of interface and predicate, in the order of the file; `read` knows their dialect."""
    for place, row in _predicate_rows(path):
        if None in row:  # more fields than names
            raise InvalidFile(
                f"{path}, {place}: the line has more fields than the first one",
                remedy='a predicate that has a comma stands in double quotes: "x IN (1, 2)"',
            )
        missing = [name for name in ("interface", "predicate") if not row.get(name)]
        if missing:
            raise InvalidFile(
                f"{path}, {place}: no {' and no '.join(missing)}; "
                "each row has the columns interface and predicate"
            )
        interface, text = str(row["interface"]), row["predicate"]
        if read is parse and not isinstance(text, str):
            raise InvalidFile(f"{path}, {place}: the predicate of {interface!r} is not a string")
        try:
            yield interface, read(text)
        except PalioError as error:
            raise InvalidFile(f"{path}, {place}, interface {interface!r}: {error}") from None


def _predicate_rows(path: Path) -> Iterator[tuple[str, Mapping[str | None, object]]]:
    kind = _format(path)
    if kind == "csv":
        yield from _csv_rows(path)
    elif kind == "jsonl":
        for line, text in _lines(path):
            try:
                row = json.loads(text)
            except ValueError as error:
                raise InvalidFile(f"{path}, line {line}: not JSON: {error}") from None
            if not isinstance(row, dict):
                raise InvalidFile(f"{path}, line {line}: not a JSON object")
            yield f"line {line}", row
    else:
        for i, row in enumerate(_parquet(path).to_pylist(), 1):
            yield f"row {i}", row


def names_asked(predicates: Iterable[Predicate]) -> frozenset[str]:
    """The attributes that predicates ask about."""
    return names_read({c.name for predicate in predicates for f in predicate for c in f})


def read_messages(
    path: Path,
    types: Mapping[str, str] | None = None,
    asked: Collection[str] | None = None,
) -> Iterator[Message]:
    """The messages of a file; `types` decides the types of CSV columns instead of a guess.

    Columns, and values of columns, that no attribute can hold are errors if they are asked for, and
    left out of the messages if `asked` has other names.
    """
    kind = _format(path)
    if types and kind != "csv":
        raise InvalidFile(f"{path}: types are chosen for CSV columns only; {kind} has its own")
    if kind == "jsonl":
        yield from _json_messages(path)
        return
    table = _csv_table(path, types or {}) if kind == "csv" else _parquet(path)
    try:
        yield from arrow_messages(table, asked)
    except PalioError as error:
        raise InvalidFile(f"{path}: {error}") from None


def _json_messages(path: Path) -> Iterator[Message]:
    for line, text in _lines(path):
        try:
            yield Message.from_json(text)
        except PalioError as error:
            raise InvalidFile(f"{path}, line {line}: {error}") from None


def count_rows(path: Path) -> int | None:
    """How many messages a file holds, where that is quick to tell."""
    if _format(path) != "parquet":
        return None
    import pyarrow.parquet

    try:
        return int(pyarrow.parquet.read_metadata(path).num_rows)
    except (OSError, ValueError):
        return None


def _format(path: Path) -> str:
    kind = _ENDINGS.get(path.suffix.lower())
    if kind is None:
        raise InvalidFile(f"{path}: the name ends in none of {', '.join(_ENDINGS)}")
    if not path.exists():
        raise InvalidFile(f"{path}: there is no such file")
    if path.is_dir() and kind != "parquet":
        raise InvalidFile(f"{path}: this is a folder, not a file")
    return kind


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line
    except UnicodeDecodeError as error:
        raise InvalidFile(f"{path}: not UTF-8 text: {error}") from None
    except OSError as error:
        raise InvalidFile(f"{path}: {error.strerror or error}") from None


def _csv_rows(path: Path) -> Iterator[tuple[str, Mapping[str | None, object]]]:
    csv.field_size_limit(1 << 30)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            if reader.fieldnames is None:
                raise InvalidFile(f"{path}: the file is empty; it begins with a line of names")
            for row in reader:
                yield f"line {reader.line_num}", row
    except UnicodeDecodeError as error:
        raise InvalidFile(f"{path}: not UTF-8 text: {error}") from None
    except csv.Error as error:
        raise InvalidFile(f"{path}: not CSV: {error}") from None
    except OSError as error:
        raise InvalidFile(f"{path}: {error.strerror or error}") from None


def _csv_table(path: Path, types: Mapping[str, str]) -> Any:
    import pyarrow as pa
    import pyarrow.csv

    known = {
        "bool": pa.bool_(),
        "int": pa.int64(),
        "float": pa.float64(),
        "string": pa.string(),
        "time": pa.timestamp("us", tz="UTC"),
    }
    for name, type in types.items():
        if type not in known:
            raise InvalidFile(f"column {name!r}: no type {type!r}; there are {', '.join(known)}")
    convert = pa.csv.ConvertOptions(
        column_types={name: known[type] for name, type in types.items()},
        strings_can_be_null=True,
        null_values=[""],
        quoted_strings_can_be_null=False,
    )
    parse_options = pa.csv.ParseOptions(newlines_in_values=True)
    try:
        table = pa.csv.read_csv(path, convert_options=convert, parse_options=parse_options)
    except (OSError, ValueError) as error:
        raise InvalidFile(f"{path}: {error}") from None
    unknown = sorted(set(types) - set(table.column_names))
    if unknown:
        raise InvalidFile(f"{path}: no column {', '.join(map(repr, unknown))} to give a type to")
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz is None:
            table = table.set_column(
                i, field.name, table.column(i).cast(pa.timestamp(field.type.unit, tz="UTC"))
            )
        elif pa.types.is_time(field.type):  # a time of day is no instant
            table = table.set_column(i, field.name, table.column(i).cast(pa.string()))
    return table


def _parquet(path: Path) -> Any:
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise InvalidFile(f"{path}: not a Parquet file: {error}") from None
