"""Rules on flights as people write them in WHERE clauses, each with a plain rule that selects about as much.

    30%   expressions that many rules share       lower(carrier) = 'ua'        carrier = 'UA'
    20%   residuals, with literals of their own   tailnum LIKE 'N1%3_'         tailnum LIKE 'N1%'
    50%   plain constraints

All have one or two plain constraints beside these.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

EXPRESSIONS, RESIDUALS = 0.3, 0.2
"""Shares of the rules."""
_Condition: TypeAlias = tuple[str, str]  # as it is written, and plain


@dataclass(frozen=True, slots=True)
class WhereRules:
    """Rules by interface: as they are written, and with plain conditions instead."""

    mixed: dict[str, str]
    plain: dict[str, str]


def draw(flights: pa.Table, count: int, seed: int = 1) -> WhereRules:
    """So many rules on these flights."""
    chance = random.Random(seed)
    drawn = _Draw(flights, chance)
    mixed: dict[str, str] = {}
    plain: dict[str, str] = {}
    for number in range(count):
        base = " AND ".join(drawn.base())
        kind = chance.random()
        if kind < EXPRESSIONS:
            written, simple = chance.choice(drawn.expressions)()
        elif kind < EXPRESSIONS + RESIDUALS:
            written, simple = chance.choice(drawn.residuals)()
        else:
            simple = written = f"dep_delay > {chance.randrange(10, 120)}"
        mixed[f"rule-{number}"] = f"{base} AND {written}"
        plain[f"rule-{number}"] = f"{base} AND {simple}"
    return WhereRules(mixed, plain)


class _Draw:
    """Conditions whose literals are values of the flights."""

    def __init__(self, flights: pa.Table, chance: random.Random) -> None:
        self._values = {
            name: pc.unique(flights[name].drop_null()).to_pylist()
            for name in ("carrier", "origin", "dest", "tailnum", "airline", "dest_name", "maker")
        }
        self._chance = chance

    def _some(self, name: str) -> str:
        return str(self._chance.choice(self._values[name])).replace("'", "\\'")

    def base(self) -> list[str]:
        parts = [f"dest = '{self._some('dest')}'"]
        if self._chance.random() < 0.7:
            parts.append(f"carrier = '{self._some('carrier')}'")
        if self._chance.random() < 0.3:
            parts.append(f"origin = '{self._some('origin')}'")
        return parts

    @property
    def expressions(self) -> list[Callable[[], _Condition]]:
        return [
            self._lower, self._sum, self._speed, self._hour, self._month, self._later, self._default,
        ]  # fmt: skip

    @property
    def residuals(self) -> list[Callable[[], _Condition]]:
        return [self._pattern, self._inside, self._near, self._weighed]

    def _lower(self) -> _Condition:
        carrier = self._some("carrier")
        return f"lower(carrier) = '{carrier.lower()}'", f"carrier = '{carrier}'"

    def _sum(self) -> _Condition:
        limit = self._chance.randrange(20, 240)
        return f"dep_delay + arr_delay > {limit}", f"dep_delay > {limit // 2}"

    def _speed(self) -> _Condition:
        limit = self._chance.randrange(300, 480)
        return f"distance * 60 / air_time > {limit}", f"distance > {limit}"

    def _hour(self) -> _Condition:
        hour = self._chance.randrange(24)
        return f"hour(scheduled) = {hour}", f"seats = {10 * hour + 2}"

    def _month(self) -> _Condition:
        month = self._chance.randrange(1, 13)
        later = f"TIMESTAMP '2013-{month:02d}-01 00:00:00'"
        return f"month(scheduled) >= {month}", f"scheduled >= {later}"

    def _later(self) -> _Condition:
        return "arr_delay > dep_delay", "arr_delay > 15"

    def _default(self) -> _Condition:
        limit = self._chance.randrange(5, 60)
        return f"coalesce(arr_delay, 0) > {limit}", f"arr_delay > {limit}"

    def _pattern(self) -> _Condition:
        tail = self._some("tailnum")
        return f"tailnum LIKE '{tail[:2]}%{tail[-2]}_'", f"tailnum LIKE '{tail[:2]}%'"

    def _inside(self) -> _Condition:
        name = self._some("dest_name")
        return f"dest_name LIKE '{name[:2]}%{name[-3]}_{name[-1]}'", f"dest_name LIKE '{name[:2]}%'"

    def _near(self) -> _Condition:
        center, radius = self._chance.uniform(20, 90), self._chance.uniform(1, 10)
        return (
            f"abs(temp - {center:.1f}) < {radius:.1f}",
            f"temp > {center - radius:.1f} AND temp < {center + radius:.1f}",
        )

    def _weighed(self) -> _Condition:
        weight, limit = self._chance.uniform(0.5, 2), self._chance.randrange(20, 200)
        return f"dep_delay + {weight:.2f} * wind_speed > {limit}", f"dep_delay > {limit - 10}"
