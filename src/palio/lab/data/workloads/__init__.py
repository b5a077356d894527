"""The papers' workloads and some of ours, seeded and columnar: predicates and messages as Arrow.

    sigcomm03   2003, Table 1 and section 5.1
    tr2001      2001, section 4.1
    tr2006      2006, section 4.2; disjunction_2006 is the same as one predicate
    flights     alerts on a year of real flights
    fields      ten typed columns; an equality in every filter
    texts       10 of 1,000 names, strings only; an equality in every filter
    rules       two to four equalities on twelve fields, values by Zipf's law

The same arguments give the same workload. WORKLOADS holds those that have messages to forward, by
the names of the command line; all of them take (filters, interfaces, messages, seed=...). PARTS
holds those that can be drawn in parts, on several machines.
"""

from functools import partial

from palio.errors import InvalidValue
from palio.lab.data.workloads.alerts import flights
from palio.lab.data.workloads.paper_2001 import tr2001
from palio.lab.data.workloads.paper_2003 import sigcomm03
from palio.lab.data.workloads.paper_2006 import disjunction_2006, tr2006
from palio.lab.data.workloads.recipe import PLAIN, DrawOptions
from palio.lab.data.workloads.rules import rules
from palio.lab.data.workloads.tables import fields, texts
from palio.lab.data.workloads.workload import (
    Generator,
    Interfaces,
    PartGenerator,
    Workload,
    constraint_rows,
    json_messages,
    message_dicts,
    predicates,
)

WORKLOADS: dict[str, Generator] = {
    "sigcomm03": sigcomm03,
    "tr2001": tr2001,
    "flights": flights,
    "fields": fields,
    "texts": texts,
    "rules": rules,
}

PARTS: dict[str, PartGenerator] = {
    "sigcomm03": sigcomm03,
    "tr2001": tr2001,
    "fields": fields,
    "texts": texts,
    "rules": rules,
}


WITH_OPTIONS = {"sigcomm03": sigcomm03, "tr2001": tr2001}


def generator(name: str, options: DrawOptions = PLAIN) -> Generator:
    """The workload of this name on the command line; only those of the papers have options."""
    if name not in WORKLOADS:
        raise InvalidValue(f"no workload {name!r}; there are {', '.join(WORKLOADS)}")
    if options == PLAIN:
        return WORKLOADS[name]
    if name not in WITH_OPTIONS:
        raise InvalidValue(
            f"the workload {name!r} takes no options; {' and '.join(WITH_OPTIONS)} do"
        )
    return partial(WITH_OPTIONS[name], options=options)


def part_generator(name: str) -> PartGenerator:
    """The same, of those that are drawn in parts."""
    if name not in PARTS:
        raise InvalidValue(
            f"no workload {name!r} that is drawn in parts; there are {', '.join(PARTS)}"
        )
    return PARTS[name]


__all__ = [
    "PARTS",
    "PLAIN",
    "WITH_OPTIONS",
    "WORKLOADS",
    "DrawOptions",
    "Generator",
    "Interfaces",
    "PartGenerator",
    "Workload",
    "constraint_rows",
    "disjunction_2006",
    "fields",
    "flights",
    "generator",
    "json_messages",
    "message_dicts",
    "part_generator",
    "predicates",
    "rules",
    "sigcomm03",
    "texts",
    "tr2001",
    "tr2006",
]
