"""Expressions as Spark SQL with our meaning: integers have 64 bits, and what cannot be computed is NULL.

    x / y                 try_divide(CAST(`x` AS BIGINT), `y`)
    tags[0]               get(`tags`, 0)
    lower(name)           lower(`name`)

The types of columns are known, and so is that of every part. Where Spark would cast a string to a number or
compare an integer with a double inexactly, the expression is left to the worker, which computes it as
everywhere else (`NotOnSpark`). Functions of what a clock shows are native where the zone that the
expression says is that of the session.
"""

from __future__ import annotations

from collections.abc import Mapping

from palio.model.expressions.evaluation import evaluator
from palio.model.expressions.filling import has_attributes
from palio.model.expressions.tree import (
    AttributeOf,
    Call,
    Constant,
    Expression,
    Lambda,
    Variable,
)
from palio.model.expressions.zones import (
    BEGINS,
    FROM_UTC,
    SHOWN,
    TO_UTC,
    is_same_in_utc,
    unwrapped,
)
from palio.model.sql_text import value_sql
from palio.model.time_zones import zone_name
from palio.spark.expression_choices import FORMS
from palio.spark.expression_functions import (
    FUNCTIONS,
    cast,
    constant,
    element_of,
)
from palio.spark.expression_types import (
    ARRAY,
    BOOL,
    DATE,
    DOUBLE,
    INSTANTS,
    INT,
    NOTHING,
    NULL,
    OTHER,
    PLAIN,
    STRING,
    TIME,
    ColumnSource,
    NotOnSpark,
    OnlySpark,
    Typed,
    listed,
    of_source,
    require,
)

SQL_MAX = 50_000
"""Characters of an expression for Spark."""
_COUNT_MAX = 10_000_000
"""Units that are added to a time; more may lie beyond what Spark can hold."""


class SqlWriter:
    """Writes expressions over these columns, in a session of this zone (None: UTC)."""

    def __init__(self, columns: Mapping[str, ColumnSource], zone: str | None) -> None:
        self._columns, self._zone = columns, zone
        self._variables: list[Typed] = []

    def write(self, expression: Expression) -> Typed:
        if isinstance(expression, Constant):
            return constant(expression.value)
        if isinstance(expression, AttributeOf):
            source = self._columns.get(expression.name)
            found = NOTHING if source is None else of_source(source)
            if found.kind == OTHER:
                raise NotOnSpark(f"{expression.name} has a type of Spark's own")
            return found
        if isinstance(expression, Variable):
            return self._variables[expression.level]
        assert isinstance(expression, Call)
        if not has_attributes(expression) and not self._variables:
            return constant(evaluator(expression)({}, lambda _reason: None))
        found = self._call(expression)
        if len(found.sql) > SQL_MAX:
            raise NotOnSpark("it is too long")
        return found

    def _call(self, call: Call) -> Typed:
        function = call.function
        if function in SHOWN:
            return self._shown(call)
        if function == FROM_UTC:
            return self._moved(call)
        if function == TO_UTC or function in BEGINS:
            return self._begins(call)
        if function.startswith("cast as "):
            return self._cast(call)
        if call.arguments and isinstance(call.arguments[-1], Lambda):
            return self._over_elements(call)
        if function == "concat" and any(map(self._is_array, call.arguments)):
            raise OnlySpark("arrays are joined")
        parts = [self.write(argument) for argument in call.arguments]
        if function in FORMS:
            return FORMS[function](parts)
        write = FUNCTIONS.get(function)
        if write is None:
            raise NotOnSpark(f"{function} is computed by the worker")
        return NOTHING if any(part.kind == NULL for part in parts) else write(parts)

    def _is_array(self, expression: Expression) -> bool:
        if isinstance(expression, AttributeOf):
            return self.write(expression).kind == ARRAY
        return isinstance(expression, Call) and expression.function == "array"

    # ---- time zones

    def _shown(self, call: Call) -> Typed:
        """A function of what a clock shows."""
        places = SHOWN[call.function]
        parts = [
            self._on_clock(argument) if place in places else self.write(argument)
            for place, argument in enumerate(call.arguments)
        ]
        if any(part.kind == NULL for part in parts):
            return NOTHING
        if call.function == "cast as STRING":
            require(parts, PLAIN)
            return Typed(f"CAST({parts[0].sql} AS STRING)", STRING)
        require((parts[place] for place in places), INSTANTS)
        if call.function == "timestampdiff":
            sql = f"timestampdiff({parts[0].constant}, {listed(parts[1:])})"
            return Typed(f"CAST({sql} AS BIGINT)", INT)
        if call.function == "months_between":
            return Typed(f"months_between({listed(parts)})", DOUBLE)
        if call.function == "unix_date":
            return Typed(f"CAST(unix_date(to_date({parts[0].sql})) AS BIGINT)", INT)
        if call.function in ("dayname", "monthname"):
            return Typed(f"{call.function}({parts[0].sql})", STRING)
        if call.function == "date_part":
            raise NotOnSpark("its type depends on the field")
        return Typed(f"CAST({call.function}({listed(parts)}) AS BIGINT)", INT)

    def _on_clock(self, expression: Expression) -> Typed:
        """Of which the session's clock shows what the expression's does."""
        inner, zone = unwrapped(expression, FROM_UTC)
        found = self.write(inner)
        if found.kind != TIME:
            return found
        wanted = zone_name(zone)
        if wanted == self._zone:
            return found
        if self._zone is not None or wanted is None:
            raise NotOnSpark("the clock of another zone")
        return found.with_sql(f"from_utc_timestamp({found.sql}, {value_sql(wanted)})")

    def _begins(self, call: Call) -> Typed:
        """to_date(at), date_trunc('DAY', at): the first instant of what a clock shows."""
        inner, given = unwrapped(call, TO_UTC)
        zone = zone_name(given)
        if not isinstance(inner, Call) or inner.function not in BEGINS:
            return self._moved(call)
        arguments = list(inner.arguments)
        for place in BEGINS[inner.function] if zone is not None else ():
            arguments[place], shown = unwrapped(arguments[place], FROM_UTC)
            if zone_name(shown) != zone:
                raise NotOnSpark("two zones")
        is_same = zone is None and is_same_in_utc(inner, self._zone)
        if zone != self._zone and not is_same:
            raise NotOnSpark("the clock of another zone")
        parts = [self.write(argument) for argument in arguments]
        if any(part.kind == NULL for part in parts):
            return NOTHING
        if inner.function == "cast as DATE" and parts[0].kind == STRING:
            return Typed(f"try_cast({parts[0].sql} AS DATE)", DATE)
        require((parts[place] for place in BEGINS[inner.function]), INSTANTS)
        return self._begun(inner.function, parts)

    def _begun(self, function: str, parts: list[Typed]) -> Typed:
        first = parts[0]
        if function in ("to_date", "cast as DATE"):
            return Typed(f"to_date({first.sql})", DATE)
        if function == "last_day":
            return Typed(f"last_day({first.sql})", DATE)
        if function in ("date_add", "date_sub", "add_months"):
            return Typed(f"{function}({first.sql}, {self._count(parts[1])})", DATE)
        if function == "date_trunc" and isinstance(first.constant, str):
            return Typed(f"date_trunc({listed(parts)})", TIME)
        if function == "timestampadd":
            sql = f"timestampadd({first.constant}, {self._count(parts[1])}, {parts[2].sql})"
            return Typed(sql, TIME)
        raise NotOnSpark(f"{function} is computed by the worker")

    @staticmethod
    def _count(part: Typed) -> str:
        if not isinstance(part.constant, int) or abs(part.constant) > _COUNT_MAX:
            raise NotOnSpark("a number that may be too large")
        return str(part.constant)

    def _moved(self, call: Call) -> Typed:
        """An instant between zones; what is none stays as it is."""
        found, zone = self.write(call.arguments[0]), self.write(call.arguments[1])
        if found.kind == DATE or (found.kind == STRING and call.function == TO_UTC):
            raise NotOnSpark("the day or the text of a zone")
        if found.kind != TIME:
            return found
        if not isinstance(zone.constant, str):
            raise NotOnSpark("a zone is a literal")
        return found.with_sql(f"{call.function}({found.sql}, {zone.sql})")

    def _cast(self, call: Call) -> Typed:
        wanted = call.function.removeprefix("cast as ")
        inner, zone = unwrapped(call.arguments[0], TO_UTC)
        found = self.write(inner)
        if found.kind == NULL:
            return NOTHING
        is_shown = wanted == "TIMESTAMP" and found.kind in (STRING, DATE)
        if is_shown and zone_name(zone) != self._zone:
            raise NotOnSpark("a text in another zone")
        return cast(found, wanted)

    # ---- lambdas

    def _over_elements(self, call: Call) -> Typed:
        array, body = self.write(call.arguments[0]), call.arguments[1]
        assert isinstance(body, Lambda)
        if array.kind == NULL:
            return NOTHING
        element = element_of(array)
        name = f"each{body.level}"
        self._variables.append(of_source(ColumnSource(name, element)))
        try:
            found = self.write(body.body)
        finally:
            self._variables.pop()
        sql = f"{call.function}({array.sql}, {name} -> {found.sql})"
        if call.function == "transform":
            raise NotOnSpark("the type of its elements is not known")
        if found.kind not in (BOOL, NULL):
            raise NotOnSpark("its lambda is no condition")
        return array.with_sql(sql) if call.function == "filter" else Typed(sql, BOOL)
