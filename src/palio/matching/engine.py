"""What every matching engine does: from messages to interfaces, with identical answers.

`pivot` is the default engine, `counting` the papers', `naive` the oracle; an updated table
(`versions`) is an engine too. `match` gives, for each message, the positions of its interfaces,
ascending and without repeats, as offsets and one flat array. `among`, where it is given, limits an
answer to interfaces at these positions, which ascend without repeats. `on_failure` is told of each
expression that cannot be computed. Callers never ask for an
engine's class: what they need of it is here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from palio.matching.encode.columns import ConstraintColumns, Ints
from palio.matching.expressions import OnFailure, TableExpressions
from palio.matching.statistics import Reduction, Stats
from palio.model.arrays import Content
from palio.model.predicate import Predicate


class Engine(Protocol):
    """What a matching engine does."""

    def match_one(
        self,
        message: Mapping[str, Any],
        among: Ints | None = None,
        on_failure: OnFailure | None = None,
    ) -> Ints:
        """The interfaces of one message: a Message, or a dict, which is checked here."""
        ...

    def match_text(
        self, text: Any, among: Ints | None = None, on_failure: OnFailure | None = None
    ) -> Ints:
        """The interfaces of one message in JSON, as bytes."""
        ...

    def match(self, messages: Sequence[Mapping[str, Content]]) -> tuple[Ints, Ints]:
        """The interfaces of many: offsets (one more than messages) and interfaces."""
        ...

    def match_rows(
        self,
        rows: Any,
        layout: str,
        column: str,
        among: Ints | None = None,
        on_failure: OnFailure | None = None,
    ) -> tuple[Ints, Ints]:
        """The same for the rows of an Arrow table; see ForwardingTable.forward_batch."""
        ...

    def predicates(self, interfaces: Iterable[int]) -> Iterator[Predicate]:
        """What the interfaces at these positions select."""
        ...

    def columns(self, interfaces: Any) -> ConstraintColumns:
        """The constraints of all positions, up to the order of filters; `interfaces` names them."""
        ...

    def expressions(self) -> TableExpressions:
        """What it computes of messages."""
        ...

    def stats(self, sample: Any, reduction: Reduction | None) -> Stats:
        """Sizes and expected costs; raises InvalidPredicate where an engine has none.

        Costs are counted on `sample` (messages or Arrow rows) where it is given.
        """
        ...
