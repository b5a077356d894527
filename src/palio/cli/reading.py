"""How predicates on the command line are read: their dialect, and the zone of their times."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from palio.dialects import DIALECTS, require
from palio.errors import PalioError
from palio.model.predicate import Predicate

Dialect = Annotated[
    str,
    typer.Option(
        help="Of the predicates: sql, cesql, cloudevents, eventbridge, jms, jsonlogic, mongo or mqtt."
    ),
]
Zone = Annotated[
    str | None,
    typer.Option(help="Where TIMESTAMP literals without an offset are: Europe/Rome."),
]


def reader(dialect: str, zone: str | None, **options: Any) -> Callable[[Any], Predicate]:
    """How a predicate is read; `options` are those of the function that reads the dialect."""
    require(dialect)
    if zone is not None:
        if dialect != "sql":
            raise PalioError("--zone is for predicates in SQL")
        options["zone"] = zone
    read = DIALECTS[dialect]
    return partial(read, **options) if options else read
