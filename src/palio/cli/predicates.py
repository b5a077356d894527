"""Predicates on the command line: their normal form, and whether one covers another."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from palio.cli.application import NO, app
from palio.cli.assignments import types_of
from palio.cli.reading import Dialect, Zone, reader
from palio.errors import PalioError
from palio.model.expressions.names import is_computed
from palio.model.predicate import Predicate


class Notation(StrEnum):
    """How a predicate is written."""

    SQL = "sql"
    PAPER = "paper"
    JSON = "json"


PredicateText = Annotated[
    str, typer.Argument(help="A SQL boolean expression, such as \"dest = 'MXP' AND price < 500\".")
]


@app.command()
def parse(
    predicate: PredicateText,
    read: Annotated[Notation, typer.Option("--from", help="How it is written.")] = Notation.SQL,
    limit: Annotated[int, typer.Option(help="The most filters the normal form may have.")] = 4096,
    reduced: Annotated[bool, typer.Option("--reduce", help="Reduce it as well.")] = False,
    dialect: Dialect = "sql",
    zone: Zone = None,
) -> None:
    """Show the normal form of a predicate in the three notations."""
    from palio.model import json_form, notation
    from palio.model.reduction import reduce

    if read is not Notation.SQL and (dialect != "sql" or zone is not None):
        raise PalioError("--dialect and --zone are for --from sql")
    if read is Notation.SQL:
        parsed = reader(dialect, zone, limit=limit)(predicate)
    elif read is Notation.PAPER:
        parsed = notation.parse_predicate(predicate)
    else:
        parsed = json_form.from_json(predicate)
    if reduced:
        parsed = reduce(parsed)
    filters, constraints = len(parsed.filters), parsed.size
    print(
        f"-- SQL ({filters} filter{'s' * (filters != 1)}, {constraints} constraint{'s' * (constraints != 1)})"
    )
    print(str(parsed))
    print("\n-- the papers' notation")
    print(notation.print_predicate(parsed))
    print("\n-- JSON")
    print(json_form.to_json(parsed))


def _computes(*predicates: Predicate) -> bool:
    return any(is_computed(c.name) for p in predicates for own in p for c in own)


@app.command()
def covers(
    a: Annotated[str, typer.Argument(help="The predicate that may cover.")],
    b: Annotated[str, typer.Argument(help="The predicate that may be covered.")],
    types: Annotated[
        list[str] | None,
        typer.Option(help="The type of an attribute: x=int makes x > 3 AND x < 5 mean x = 4."),
    ] = None,
    dialect: Dialect = "sql",
    zone: Zone = None,
) -> None:
    """Tell whether A selects every message that B selects; if not, show one that it misses.

    Exit code 0: yes; 1: no.
    """
    from palio.errors import LimitExceeded
    from palio.model import covering

    read = reader(dialect, zone)
    wide, narrow = read(a), read(b)
    schema = types_of(types)
    try:
        answer = covering.covers(wide, narrow, exact=True, schema=schema)
        decided = "decided exactly"
    except LimitExceeded:
        answer = covering.covers(wide, narrow, schema=schema)
        decided = "decided by the sound test; the exact one is too large"
    if answer:
        print(f"yes: every message that matches\n  {narrow}\nmatches\n  {wide}\n({decided})")
        return
    missed = covering.witness(wide, narrow, schema=schema)
    if missed is None and _computes(wide, narrow):
        decided = (
            "not proven: an expression is known by its name and by what it says of its attributes"
        )
    print(f"no ({decided})")
    if missed is None:
        print("no example could be constructed")
    else:
        print(f"for example {missed.shown()}\n  matches        {narrow}\n  but not        {wide}")
    raise typer.Exit(NO)
