"""The forwarding table: a compiled map from predicates to interfaces.

Each interface has one predicate; several entries for one interface are a disjunction. A table is
immutable, and several threads may forward through it at once. Engines do the matching behind one
small protocol and give identical answers: `pivot` is the default, `counting` the papers' algorithm,
`naive` evaluates every predicate.

    mapping, pairs, Arrow rows ──▶ columns ──▶ engine        messages ──▶ engine ──▶ interfaces
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from palio.errors import InvalidPredicate, InvalidValue
from palio.matching import answers, showing
from palio.matching.encode.columns import ConstraintColumns, Ints
from palio.matching.engines import ENGINES
from palio.matching.entries import Entries, columns_of, parsed_pairs
from palio.matching.expressions import OnFailure, TableExpressions
from palio.matching.frames import with_column
from palio.matching.missing_columns import warn_of_missing
from palio.matching.threads import checked, matched
from palio.matching.versions.interface_names import InterfaceNames, string_array
from palio.matching.versions.roster import Roster
from palio.model.message import Message, as_message
from palio.model.predicate import Explanation, Predicate

if TYPE_CHECKING:
    from palio.matching.computed.compiling import CompiledEngine
    from palio.matching.engine import Engine
    from palio.matching.statistics import Reduction, Stats
    from palio.matching.versions.updates import UpdatedEngine


_MANY_UNINDEXED = 100
"""Filters that cost a message tens of microseconds: `expressions.US_PER_CALL`."""


def _warn_of_unindexed(found: TableExpressions) -> None:
    if found.unindexed >= _MANY_UNINDEXED:
        warnings.warn(
            f"{found.unindexed:,} filters have nothing to be found by: their conditions are judged for every "
            f"message that has the attributes, which takes about {found.unindexed_us:,.0f} us a message; a "
            "constraint on an attribute beside them helps",
            stacklevel=3,
        )


def _asks(predicate: Predicate, name: str) -> bool:
    return any(c.name == name for f in predicate for c in f)


class ForwardingTable:
    """Predicates compiled for forwarding.

    >>> table = ForwardingTable.compile({"ann": "price < 500", "bob": "dest = 'MXP'"})
    >>> table.forward({"price": 450})
    ['ann']
    """

    def __init__(self, engine: Engine, roster: Roster) -> None:
        self._engine = engine
        self._roster = roster
        self._reduction: Reduction | None = None
        self._version: UpdatedEngine | None = None  # the engine, where the table was updated
        self._knows_columns = False  # those of wide rows: whoever asks for others was told

    @classmethod
    def of_version(cls, version: UpdatedEngine) -> ForwardingTable:
        """A table from a version of one."""
        made = cls(version, version.roster)
        made._version = version
        return made

    @classmethod
    def compile(
        cls,
        entries: Entries,
        engine: str = "pivot",
        *,
        sample: Any = None,
        reduce: bool = False,
        zone: str | None = None,
        **options: Any,
    ) -> ForwardingTable:
        """A table from a mapping or pairs of interface and predicate (or its SQL text), or from an
        Arrow table of constraints (interface, filter, name, op, type, value), or from columns. A
        frame of pandas or polars, or another table that Arrow can read, is taken for such a table,
        or for pairs if its columns are `interface` and `predicate`.

        Engines: `pivot`, the default; `counting`, the papers' (options `variant`, "2003" or
        "2001", `rounds` of pre-processing, `strings`, and `prefetch`); `naive`, the oracle.

        `sample`, messages or Arrow rows like those to come, makes a quicker table of pivot.
        `reduce` drops what other filters of an interface cover: all of it for predicates, the
        plain cases for constraint rows (`encode/column_reduction.py`). Neither changes an answer.
        `zone` is the time zone of the texts, UTC by default, as in `palio.parse`.
        """
        if engine not in ENGINES:
            raise InvalidPredicate(f"no engine {engine!r}; there are {', '.join(ENGINES)}")
        if sample is not None:
            if engine != "pivot":
                raise InvalidPredicate(f"the engine {engine!r} takes no sample; `pivot` does")
            options["sample"] = sample
        if engine == "pivot":  # columns may come from palio.spark, where Spark computes more
            options["foreign"] = isinstance(entries, ConstraintColumns)
        columns, reduction = columns_of(entries, reduce, zone)
        names = InterfaceNames(string_array(columns.interfaces), list(columns.interfaces))
        if engine != "naive":  # which stays without kernels
            names.file()
        made = cls(ENGINES[engine](columns, **options), Roster.of(names))
        _warn_of_unindexed(made.expressions)
        made._reduction = reduction
        return made

    def __len__(self) -> int:
        """How many interfaces there are."""
        return len(self._roster.positions)

    def __bool__(self) -> bool:
        """A table is there, also without interfaces."""
        return True

    def __repr__(self) -> str:
        return showing.line(len(self), self._first(showing.IN_LINE))

    def _repr_html_(self) -> str:
        """What a notebook shows: the first interfaces and their predicates."""
        names = self._first(showing.IN_HTML)
        return showing.html(len(self), [(name, self.predicate(name)) for name in names])

    def _first(self, count: int) -> list[str]:
        return self._roster.names(self._roster.positions[:count])

    @property
    def interfaces(self) -> tuple[str, ...]:
        """The interfaces in the order in which they were given."""
        return self._roster.interfaces

    def forward(
        self,
        message: Message | Mapping[str, object],
        *,
        among: Iterable[str] | None = None,
        strict: bool = False,
    ) -> list[str]:
        """The interfaces that get the message, in the order in which they were given.

        `among` limits the answer, and the work, to these interfaces: to all but the one that the
        message came from, say. One that the table does not have is an error. An expression that
        cannot be computed, such as a division by zero, has no value; with `strict` it is an error.

        >>> table = ForwardingTable.compile({"ann": "x > 1", "bob": "x > 2", "cy": "x > 3"})
        >>> table.forward({"x": 5}, among=["cy", "ann"])
        ['ann', 'cy']
        """
        known = message if type(message) is dict else as_message(message)  # a dict is quicker
        if among is None and not strict:
            return self._roster.names(self._engine.match_one(known))
        limit, failed = self._limited(among, strict)
        return self._roster.names(self._engine.match_one(known, limit, failed))

    def forward_batch(
        self,
        rows: Any,
        *,
        json: str | None = None,
        map: str | None = None,
        attributes: str | None = None,
        ids: bool = False,
        pairs: bool = False,
        among: Iterable[str] | None = None,
        computed: bool = False,
        strict: bool = False,
        on_failure: OnFailure | None = None,
        threads: int = 1,
    ) -> pa.ListArray | pa.Table:
        """The interfaces of each row, a list a row: names, or positions in `interfaces`.

        `pairs` gives an Arrow table instead, a line for each match: `row` (int32) and `interface`,
        a dictionary of names, or int32 with `ids`.

        `rows` are an Arrow table or batch, a frame of pandas or polars, a relation of DuckDB, or
        whatever else has Arrow's C interface; or a list of messages.

        Every column is an attribute, and NULL means that it is not there; the first wide rows of a
        compiled table warn of attributes that no column has. Or the messages are in
        one column: JSON objects (`json="message"`), a map, or a list of structs with name, type
        and value (`attributes`). `among` limits all answers to these interfaces, as in `forward`.

        A column whose name begins with `=` is left out, unless the rows bring what expressions
        would compute (`computed`): then `=lower(name)` is the column of that expression. With
        `strict` an expression that cannot be computed is an error, as in `forward`; or `on_failure`
        is told of it: its name, the rows, and why. `threads` share the rows.
        """
        chosen = {"json": json, "map": map, "attributes": attributes}
        given = [(layout, column) for layout, column in chosen.items() if column is not None]
        if len(given) > 1:
            raise InvalidValue("the messages are in one column: json, map or attributes, not two")
        if computed and given:
            raise InvalidValue("only wide rows bring the values of expressions")
        layout, column = given[0] if given else ("computed" if computed else "wide", "")
        limit, failed = self._limited(among, strict, on_failure)
        if isinstance(rows, list | tuple) and layout == "wide":
            offsets, found = self._match_messages([as_message(m) for m in rows], limit, failed)
        else:
            table = with_column(rows, column)

            def match(part: Any, told: OnFailure | None) -> tuple[Ints, Ints]:
                return self._engine.match_rows(part, layout, column, limit, told)

            offsets, found = matched(match, table, checked(threads), failed)
            if layout == "wide" and not self._knows_columns and self._version is None:
                self._knows_columns = True
                warn_of_missing(self.expressions, table.schema)
        if ids:
            found = self._numbered(found)
        answer = answers.pairs if pairs else answers.lists
        return answer(offsets, found, None if ids else self._roster.array)

    def _match_messages(
        self, messages: list[Message], limit: Ints | None, failed: OnFailure | None
    ) -> tuple[Ints, Ints]:
        if limit is None and failed is None:
            return self._engine.match(messages)
        found = [self._engine.match_one(message, limit, failed) for message in messages]
        offsets = np.cumsum([0, *map(len, found)]).astype(np.int64)
        return offsets, np.concatenate([np.empty(0, np.int32), *found])

    def forward_json(
        self,
        message: bytes | bytearray | memoryview | str,
        *,
        among: Iterable[str] | None = None,
        strict: bool = False,
    ) -> list[str]:
        """The interfaces that get a message in JSON, read as `forward_batch(json=...)` reads a row.

        Kernels read the text where it lies: there is no dict and no `Message` in between, but for
        rarities. Raises InvalidValue, which names the attribute, where `Message.from_json` does.
        `among` and `strict` are those of `forward`.

        >>> table = ForwardingTable.compile({"ann": "price < 500", "bob": "flight.dest = 'MXP'"})
        >>> table.forward_json(b'{"price": 450, "flight": {"dest": "MXP"}}')
        ['ann', 'bob']
        """
        if isinstance(message, str):
            message = message.encode("utf-8", "surrogatepass")  # the reader says what is wrong
        elif not isinstance(message, bytes | bytearray | memoryview):
            raise InvalidValue(
                f"a message in JSON is bytes or text, not {type(message).__name__}",
                remedy="`forward` takes a mapping",
            )
        limit, failed = self._limited(among, strict)
        return self._roster.names(self._engine.match_text(message, limit, failed))

    def match_json(self, messages: pa.Array) -> tuple[Ints, Ints]:
        """The positions in `interfaces` of each JSON object, as plain arrays: those of message i
        are found[offsets[i] : offsets[i + 1]]. For programs that count microseconds."""
        rows = pa.record_batch([messages], ["message"])
        offsets, found = self._engine.match_rows(rows, "json", "message")
        return offsets, self._numbered(found)

    def named(self, numbers: Ints) -> list[str]:
        """The interfaces at these positions in `interfaces`, ascending, without making all of them."""
        return self._roster.names(self._roster.positions[numbers])

    def _numbered(self, found: Ints) -> Ints:
        """Positions among the interfaces that are there."""
        roster = self._roster
        return found if roster.live.all() else np.asarray(roster.order[found])

    def _limited(
        self, among: Iterable[str] | None, strict: bool, on_failure: OnFailure | None = None
    ) -> tuple[Ints | None, OnFailure | None]:
        """The positions that an answer is limited to, and what an expression that fails does."""
        asked = None if among is None else among if isinstance(among, str) else tuple(among)
        limit = None if asked is None else self._roster.among(asked)
        return limit, partial(self._refuse, asked) if strict else on_failure

    def _refuse(
        self, asked: Iterable[str] | None, name: str, rows: Sequence[int], reason: str
    ) -> None:
        """Raise, of an expression that cannot be computed, if one of these rules asks for it."""
        rules = self.interfaces if asked is None else asked
        found = self._engine.predicates([self._roster.require(rule) for rule in rules])
        asking = next((rule for rule, p in zip(rules, found, strict=False) if _asks(p, name)), None)
        if asking is None:  # only rules that were removed, or are not asked
            return
        raise InvalidValue(
            f"{name[1:]} cannot be computed: {reason}",
            row=int(rows[0]),
            remedy=f"the rule of {asking!r} asks for it; without strict it has no value",
        )

    @property
    def expressions(self) -> TableExpressions:
        """What the table computes of messages, and how often it could not."""
        return self._engine.expressions()

    def stats(self, sample: Any = None) -> Stats:
        """Sizes, pivots, and what a message is expected to cost; `print` it to read it.

        Costs are counted on `sample` (messages or Arrow rows), or on the sample that the table was
        compiled with, or guessed from the predicates. An updated table is compacted for it.
        """
        return self._engine.stats(sample, self._reduction)

    def save(self, path: str | Path) -> None:
        """Write the table to one file, which `load` maps into memory.

        The file is that of the compacted table, of the engine pivot.
        """
        from palio.matching.file import storage

        engine, roster = self._compacted()
        choice = engine.use.choice
        storage.save(Path(path), engine.table, roster.base.array, engine.hidden, choice)

    @classmethod
    def load(cls, path: str | Path) -> ForwardingTable:
        """A table from its file; a damaged, cut or newer file is refused."""
        from palio.matching.file.loading import loaded

        engine, names = loaded(Path(path))
        return cls(engine, Roster.of(InterfaceNames(names)))

    def predicate(self, interface: str) -> Predicate:
        """The predicate of an interface, as it was compiled."""
        return next(iter(self._engine.predicates([self._roster.require(interface)])))

    def explain(
        self, message: Message | Mapping[str, object], interfaces: Iterable[str] | None = None
    ) -> dict[str, Explanation]:
        """For each interface, or for those named, why it gets the message or not."""
        known = as_message(message)
        names = self.interfaces if interfaces is None else tuple(interfaces)
        found = self._engine.predicates([self._roster.require(name) for name in names])
        return {name: p.explain(known) for name, p in zip(names, found, strict=True)}

    def updated(
        self,
        add: Mapping[str, Predicate | str] | None = None,
        remove: Iterable[str] = (),
        *,
        zone: str | None = None,
    ) -> ForwardingTable:
        """A new version: interfaces removed, then predicates added; this one stays as it is.

        Adding to an interface that is there makes a disjunction. New interfaces come last, and so
        does one that was removed and is added once more. The versions share what was compiled, and
        `compacted` makes one table of all; `palio.matching.versions.live` does so in the background.

        >>> table = ForwardingTable.compile({"ann": "x > 1", "bob": "x > 2"})
        >>> table.updated(add={"cy": "x = 3"}, remove=["ann"]).forward({"x": 3})
        ['bob', 'cy']
        """
        parsed = dict(parsed_pairs(add or {}, zone))
        made = self.versioned().changed(parsed, dict.fromkeys(remove))
        if not made.recent:  # they have just become a level
            made = made.tidied()
        return ForwardingTable.of_version(made)

    def versioned(self) -> UpdatedEngine:
        """The engine of this table as one that can be updated; see `versions/updates.py`."""
        from palio.matching.versions.updates import UpdatedEngine

        return self._version or UpdatedEngine(self._engine, self._roster)

    def compacted(self) -> ForwardingTable:
        """The same interfaces and predicates in one new table of the engine pivot, in the same
        order; a table of that engine that was never updated is already that."""
        engine, roster = self._compacted()
        return self if engine is self._engine else ForwardingTable(engine, roster)

    def _compacted(self) -> tuple[CompiledEngine, Roster]:
        """The only place that asks for the class of an engine: a file holds one of pivot."""
        from palio.matching.computed.compiling import is_compiled

        if is_compiled(self._engine):
            return self._engine, self._roster
        return self.versioned().compacted()
