"""The forwarding table: a compiled map from predicates to interfaces.

Each interface has one predicate; several entries for one interface are a disjunction. A table is
immutable. Engines do the matching behind one small protocol and give identical answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeAlias

from palio.errors import InvalidPredicate
from palio.matching.naive import NaiveEngine
from palio.model.explanation import Explanation, explain
from palio.model.language import parse
from palio.model.message import Message, as_message
from palio.model.predicate import Predicate

Entries: TypeAlias = Mapping[str, Predicate | str] | Iterable[tuple[str, Predicate | str]]


class Engine(Protocol):
    """What a matching engine does."""

    def match(self, message: Message) -> list[int]:
        """The positions of the interfaces that get the message, ascending."""
        ...


ENGINES = {"naive": NaiveEngine}


class ForwardingTable:
    """Predicates compiled for forwarding.

    >>> table = ForwardingTable.compile({"ann": "price < 500", "bob": "dest = 'MXP'"})
    >>> table.forward({"price": 450})
    ['ann']
    """

    def __init__(self, predicates: dict[str, Predicate], engine: str = "naive") -> None:
        if engine not in ENGINES:
            raise InvalidPredicate(f"no engine {engine!r}; there are {', '.join(ENGINES)}")
        self._predicates = predicates
        self._interfaces = tuple(predicates)
        self._engine: Engine = ENGINES[engine](tuple(predicates.values()))

    @classmethod
    def compile(cls, entries: Entries, engine: str = "naive") -> ForwardingTable:
        """A table from a mapping or pairs of interface and predicate (or its SQL text)."""
        pairs = entries.items() if isinstance(entries, Mapping) else entries
        predicates: dict[str, Predicate] = {}
        for interface, predicate in pairs:
            parsed = parse(predicate) if isinstance(predicate, str) else predicate
            known = predicates.get(interface)
            predicates[interface] = parsed if known is None else known | parsed
        return cls(predicates, engine)

    @property
    def interfaces(self) -> tuple[str, ...]:
        """The interfaces in the order in which they were given."""
        return self._interfaces

    def forward(self, message: Message | Mapping[str, object]) -> list[str]:
        """The interfaces that get the message, in the order in which they were given."""
        return [self._interfaces[i] for i in self._engine.match(as_message(message))]

    def explain(self, message: Message | Mapping[str, object]) -> dict[str, Explanation]:
        """For each interface, why it gets the message or not."""
        known = as_message(message)
        return {name: explain(p, known) for name, p in self._predicates.items()}
