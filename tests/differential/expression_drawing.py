"""Random expressions over attributes, as SQL, and random rows of those attributes.

Left out, because Palio and Spark differ there (docs/reference/functions.md says how): implicit casts,
32-bit overflows, and mathematics whose last digit Java and C round each in their own way.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.differential.constant_drawing import TEXTS, TIMES, UNITS, Drawing

COLUMNS = {
    "b": "BOOLEAN", "i": "BIGINT", "j": "BIGINT", "x": "DOUBLE", "y": "DOUBLE", "s": "STRING",
    "t": "STRING", "js": "STRING", "at_": "TIMESTAMP", "due": "TIMESTAMP",
    "tags": "ARRAY<STRING>", "nums": "ARRAY<BIGINT>",
}  # fmt: skip
_WORDS = [
    *TEXTS,
    "abc",
    "a%b_c",
    "ABC-abc",
    "one two",
    "a1b22",
    "2024-02-29",
    "2024-02-29 10:00:00",
    "NaN",
]
_JSON = [
    '{"a": 1, "b": {"c": [1, 2.5, "x"]}}', '{"a": null}', "[1, 2, 3]", "5", '"text"', "", "{bad",
    '{"a": "é\\n", "b": []}', '{"a": 1.0, "b": {"c": true}}',
]  # fmt: skip
_PATTERNS = ["a%", "%b%", "_b%", "%_c", "a\\\\%b\\\\_c", "%a%c%", "%", "", "A%", "%a_c", "__"]
_REGEXES = [
    "^a",
    "[0-9]+",
    "b.*c",
    "(?i)ABC",
    "(a|b)+c",
    "^$",
    "\\\\s",
    "\\\\w+-\\\\w+",
    "x{2,3}",
    "[^a-z]",
]
_PATHS = ["$.a", "$.b.c", "$.b.c[1]", "$[0]", "$", "$.b", "$[\\'a\\']"]
_ZONES = ["Europe/Rome", "America/New_York", "Asia/Kolkata", "+02:00", "-03:30"]
_LONG_UNITS = [
    "MICROSECOND",
    "MILLISECOND",
    "SECOND",
    "MINUTE",
    "HOUR",
    "DAY",
    "WEEK",
    "MONTH",
    "QUARTER",
    "YEAR",
]
_INTERVALS = [
    "INTERVAL 1 DAY", "INTERVAL '36' HOURS", "INTERVAL 3 MONTHS", "INTERVAL '1-6' YEAR TO MONTH",
    "INTERVAL '1 02:03:04.5' DAY TO SECOND", "INTERVAL 90 SECONDS", "INTERVAL -2 WEEKS",
]  # fmt: skip
_DELIMITERS = ["','", "'b'", "s"]
_LIMITS = ["INTERVAL 1 DAY", "INTERVAL '36' HOURS", "2 * INTERVAL 1000 DAYS", "-INTERVAL 5 SECONDS"]
_FIELDS = [
    "YEAR",
    "MONTH",
    "DOW",
    "DOW_ISO",
    "DOY",
    "WEEK",
    "YEAROFWEEK",
    "HOUR",
    "MINUTE",
    "QUARTER",
]
_REALS = (
    "exp", "ln", "log10", "log2", "log1p", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "cbrt", "degrees", "radians", "sqrt",
)  # fmt: skip


def draw_rows(seed: int, count: int) -> list[dict[str, Any]]:
    """Attributes that are not there are None."""
    draw = random.Random(seed)
    pick = draw.choice
    ints = [0, 1, 2, -1, 7, 10, -250, 10**6, 2**40, 2**62, -(2**63), 2**63 - 1]
    floats = [0.0, -0.0, 1.0, 1.5, -2.25, 0.1, 1e10, 1e-7, 3.0, 250.0, float("inf"), float("nan")]

    def time() -> datetime:
        start = datetime(1950, 1, 1, tzinfo=UTC)
        found = start + timedelta(
            seconds=draw.randrange(3 * 10**9), microseconds=pick([0, 500_000, 123_456])
        )
        return (
            found
            if draw.random() < 0.7
            else datetime.fromisoformat(pick(TIMES)).replace(tzinfo=UTC)
        )

    def array(values: list[Any]) -> tuple[Any, ...]:
        return tuple(pick([*values, None]) for _ in range(draw.randrange(5)))

    kinds: dict[str, Callable[[], Any]] = {
        "BOOLEAN": lambda: pick([True, False]),
        "BIGINT": lambda: pick(ints) if draw.random() < 0.5 else draw.randrange(-20, 20),
        "DOUBLE": lambda: pick(floats) if draw.random() < 0.6 else draw.randrange(-800, 800) / 8,
        "STRING": lambda: pick(_WORDS),
        "TIMESTAMP": time,
        "ARRAY<STRING>": lambda: array(["a", "b", "abc", "Ab c"]),
        "ARRAY<BIGINT>": lambda: array([0, 1, 2, 7, -1]),
    }
    rows = []
    for _ in range(count):
        row = {name: kinds[kind]() for name, kind in COLUMNS.items()}
        row["js"] = pick(_JSON)
        rows.append({name: None if draw.random() < 0.12 else value for name, value in row.items()})
    return rows


class ExpressionDrawing(Drawing):
    """Draws expressions of attributes."""

    def any(self, depth: int) -> str:
        kinds = [
            self.integer, self.double, self.decimal, self.text, self.boolean, self.boolean, self.time,
            self.array, self.real,
        ]  # fmt: skip
        return self._random.choice(kinds)(depth)

    def _attribute(self, names: str, literal: Callable[[int], str]) -> str:
        return self._random.choice(names.split()) if self._random.random() < 0.75 else literal(0)

    def _parts(self, depth: int) -> tuple[Callable[[], str], ...]:
        kinds = (self.integer, self.double, self.text, self.boolean, self.time, self.array)
        return tuple(self._deeper(kind, depth) for kind in kinds)

    def real(self, depth: int) -> str:
        """Compared to 13 digits, so nothing is computed of it."""
        i, d = self._deeper(self.integer, depth), self._deeper(self.double, depth)
        name, pick = self._random.choice(_REALS), self._random.choice
        return self._one(
            lambda: f"{name}({pick([i, d])()})",
            lambda: (
                f"{pick(['power', 'atan2', 'hypot', 'log'])}({pick([i, d])()}, {pick([i, d])()})"
            ),
        )

    def integer(self, depth: int) -> str:
        if depth == 0:
            return self._attribute("i j", super().integer)
        if self._random.random() < 0.4:
            return super().integer(depth)
        i, d, s, _b, t, a = self._parts(depth)
        pick, number = self._random.choice, self._random.randint
        n = f"CAST({pick([s, i])()} AS BIGINT)"  # of 64 bits, not 32
        return self._one(
            lambda: f"pmod({i()}, {i()})",
            lambda: f"bround({i()}, {number(-2, 1)})",
            lambda: f"({i()} {pick('&|^')} {i()})",
            lambda: f"(~ {i()})",
            lambda: (
                f"{pick(['shiftleft', 'shiftright', 'shiftrightunsigned'])}({n}, {number(0, 70)})"
            ),
            lambda: f"bit_count({i()})",
            lambda: (
                f"{pick(['ascii', 'octet_length', 'bit_length', 'crc32', 'json_array_length'])}({s()})"
            ),
            lambda: f"instr({s()}, {s()})",
            lambda: f"find_in_set({s()}, 'a,b,abc,,')",
            lambda: f"factorial({number(-1, 21)})",
            lambda: f"size({a()})",
            lambda: f"array_position({a()}, {s()})",
            lambda: f"nums[{number(0, 3)}]",
            lambda: f"element_at(nums, {pick([-2, -1, 1, 2])})",
            lambda: f"try_element_at(nums, {pick([-2, -1, 1, 2])})",
            lambda: f"get(nums, {number(-1, 3)})",
            lambda: f"{pick(['array_min', 'array_max'])}(nums)",
            lambda: f"size(filter({a()}, e -> {self._predicate('e')}))",
            lambda: f"timestampdiff({pick(_LONG_UNITS)}, {t()}, {t()})",
            lambda: f"extract({pick(_FIELDS)} FROM {t()})",
            lambda: f"date_part('{pick(_FIELDS)}', {t()})",
            lambda: (  # computed on in 64 bits
                f"CAST(CAST({pick([s, d, i])()} AS {pick(['INT', 'SMALLINT', 'TINYINT'])}) AS BIGINT)"
            ),
            lambda: (
                f"{pick(['unix_timestamp', 'unix_seconds', 'unix_millis', 'unix_micros'])}({t()})"
            ),
            lambda: f"unix_date(to_date({t()}))",
            lambda: f"CASE {i()} WHEN {i()} THEN {i()} WHEN 1L THEN {i()} ELSE {i()} END",
            lambda: f"if(isnan({d()}), {i()}, {i()})",
        )

    def double(self, depth: int) -> str:
        if depth == 0:
            return self._attribute("x y", super().double)
        i, d, s, _b, t, _a = self._parts(depth)
        pick, number = self._random.choice, self._random.randint
        return self._one(
            lambda: f"({d()} {pick('+-*/%')} {d()})",
            lambda: f"({i()} / {i()})",
            lambda: f"({i()} {pick('+-*')} {d()})",
            lambda: f"{pick(['abs', 'sign', 'rint'])}({d()})",
            lambda: f"{pick(['round', 'bround'])}({d()}, {number(-2, 4)})",
            lambda: f"{pick(['least', 'greatest'])}({d()}, {d()})",
            lambda: f"CAST({pick([s, i])()} AS DOUBLE)",
            lambda: f"CAST(CAST({pick([s, i, d])()} AS FLOAT) AS DOUBLE)",
            lambda: f"CAST(date_part('SECOND', {t()}) AS DOUBLE)",
            lambda: pick(["e()", "pi()"]),
            lambda: f"nanvl({d()}, {d()})",
            lambda: f"pmod({d()}, {d()})",
            lambda: f"months_between({t()}, {t()})",
            lambda: self._chosen(d, depth),
        )

    def text(self, depth: int) -> str:
        if depth == 0:
            return self._attribute("s t js", super().text)
        if self._random.random() < 0.4:
            return super().text(depth)
        i, _d, s, _b, t, a = self._parts(depth)
        pick, number = self._random.choice, self._random.randint
        return self._one(
            lambda: f"concat_ws({s()}, {s()}, {a()}, {s()})",
            lambda: f"{pick(['lpad', 'rpad'])}({s()}, {number(-1, 9)}, {s()})",
            lambda: f"repeat({s()}, {number(-1, 3)})",
            lambda: f"space({number(-1, 4)})",
            lambda: f"{pick(['reverse', 'initcap', 'md5', 'sha1'])}({s()})",
            lambda: f"sha2({s()}, {pick([0, 224, 256, 384, 512, 5])})",
            lambda: f"translate({s()}, 'abcA', '12')",
            lambda: f"substring_index({s()}, {pick(_DELIMITERS)}, {number(-2, 2)})",
            lambda: f"{pick(['hex', 'bin'])}({i()})",
            lambda: f"hex({s()})",
            lambda: f"chr({number(-1, 300)})",
            lambda: f"regexp_extract({s()}, '([a-c]+)([0-9]*)', {number(0, 2)})",
            lambda: (
                f"regexp_replace({s()}, '{pick(['[0-9]+', 'b', '[^a-z]'])}', '{pick(['#', '', 'x$0x'])}')"
            ),
            lambda: f"regexp_substr({s()}, '[a-z]+')",
            lambda: f"get_json_object({pick([s(), 'js', 'js'])}, '{pick(_PATHS)}')",
            lambda: f"get(split({s()}, '{pick([',', 'b', ' ', '[,b]'])}'), {number(0, 2)})",
            lambda: f"tags[{number(0, 3)}]",
            lambda: f"element_at(tags, {pick([-2, -1, 1, 2])})",
            lambda: f"array_join({a()}, {s()})",
            lambda: f"{pick(['array_min', 'array_max'])}({a()})",
            lambda: f"{pick(['dayname', 'monthname'])}({t()})",
            lambda: f"CASE {s()} WHEN {s()} THEN {s()} WHEN 'abc' THEN {s()} END",
        )

    def boolean(self, depth: int) -> str:
        if depth == 0:
            return self._attribute("b", super().boolean)
        if self._random.random() < 0.4:
            return super().boolean(depth)
        i, d, s, b, t, a = self._parts(depth)
        pick = self._random.choice
        x = self._deeper(pick([self.integer, self.double, self.text, self.time]), depth)
        return self._one(
            lambda: f"({s()} {pick(['', 'NOT '])}LIKE '{pick(_PATTERNS)}')",
            lambda: f"({s()} LIKE {s()} ESCAPE '#')",
            lambda: f"({s()} ILIKE '{pick(_PATTERNS)}')",
            lambda: (
                f"({s()} {pick(['', 'NOT '])}LIKE {pick(['ANY', 'ALL'])} ('{pick(_PATTERNS)}', '{pick(_PATTERNS)}'))"
            ),
            lambda: f"({s()} {pick(['', 'NOT '])}RLIKE '{pick(_REGEXES)}')",
            lambda: f"({x()} {pick(['', 'NOT '])}IN ({x()}, {x()}, {x()}))",
            lambda: f"({i()} IN (1, -2, 7, {i()}))",
            lambda: f"({x()} {pick(['', 'NOT '])}BETWEEN {x()} AND {x()})",
            lambda: f"({b()} IS {pick(['', 'NOT '])}{pick(['TRUE', 'FALSE', 'NULL'])})",
            lambda: f"({x()} IS {pick(['', 'NOT '])}DISTINCT FROM {x()})",
            lambda: f"array_contains({a()}, {s()})",
            lambda: f"array_contains(nums, {i()})",
            lambda: f"arrays_overlap({a()}, {a()})",
            lambda: f"{pick(['', 'NOT '])}arrays_overlap(tags, array('a', {self.text(0)}))",
            lambda: f"{pick(['', 'NOT '])}exists(nums, n -> n IN ({i()}, 1))",
            lambda: f"({a()} {pick(['=', '!=', '<', '<=', '<=>'])} {a()})",
            lambda: f"{pick(['exists', 'forall'])}({a()}, e -> {self._predicate('e')})",
            lambda: f"{pick(['exists', 'forall'])}(nums, n -> n {pick(['=', '<', '>='])} {i()})",
            lambda: f"exists({a()}, e -> exists({a()}, f -> f = e))",
            lambda: f"({t()} - {t()} {pick(['<', '>='])} {pick(_LIMITS)})",
            lambda: f"isnan({d()})",
            lambda: f"CAST({pick([s, i, d])()} AS BOOLEAN)",
        )

    def _predicate(self, name: str) -> str:
        pick = self._random.choice
        return self._one(
            lambda: f"{name} = {self.text(0)}",
            lambda: f"{name} IN ('a', {self.text(0)})",
            lambda: f"{name} LIKE '{pick(_PATTERNS)}'",
            lambda: f"{name} IS NULL",
            lambda: f"length({name}) > 1 AND {self.boolean(0)}",
            lambda: f"{name} < {self.text(0)} OR {name} = 'a'",
        )

    def time(self, depth: int) -> str:
        if depth == 0:
            return self._attribute("at_ due", super().time)
        _i, _d, s, _b, t, _a = self._parts(depth)
        pick, number = self._random.choice, self._random.randint
        return self._one(
            lambda: f"date_trunc('{pick(UNITS)}', {t()})",
            lambda: f"CAST({pick(['to_date', 'last_day'])}({t()}) AS TIMESTAMP)",
            lambda: f"CAST(CAST({pick([t, s])()} AS DATE) AS TIMESTAMP)",
            lambda: f"CAST(date_from_unix_date({number(-30_000, 30_000)}) AS TIMESTAMP)",
            lambda: (
                f"CAST(trunc({t()}, '{pick(['year', 'MM', 'week', 'quarter', 'hour'])}') AS TIMESTAMP)"
            ),
            lambda: f"CAST(next_day({t()}, '{pick(['Mon', 'TU', 'sunday'])}') AS TIMESTAMP)",
            lambda: (
                f"CAST({pick(['date_add', 'date_sub', 'add_months'])}({t()}, {number(-40, 40)}) AS TIMESTAMP)"
            ),
            lambda: (
                f"CAST(make_date({number(1999, 2030)}, {number(1, 13)}, {number(1, 31)}) AS TIMESTAMP)"
            ),
            lambda: f"timestampadd({pick(_LONG_UNITS)}, {number(-40, 40)}, {t()})",
            lambda: f"({t()} {pick('+-')} {pick(_INTERVALS)})",
            lambda: f"{pick(['from_utc_timestamp', 'to_utc_timestamp'])}({t()}, '{pick(_ZONES)}')",
            lambda: (
                f"timestamp_{pick(['seconds', 'millis', 'micros'])}({pick([0, 1, -1, 1709211906])}L)"
            ),
            lambda: f"timestamp_seconds({pick(['1.5D', '-0.25', '1709211906.5'])})",
            lambda: f"{pick(['least', 'greatest'])}({t()}, {t()})",
            lambda: self._chosen(t, depth),
        )

    def array(self, depth: int) -> str:
        if depth == 0:
            return self._attribute("tags", lambda _: "array('a', 'b', CAST(NULL AS STRING))")
        _i, _d, s, _b, _t, a = self._parts(depth)
        pick = self._random.choice
        return self._one(
            lambda: f"array({s()}, {s()})",
            lambda: f"{pick(['array_distinct', 'array_compact', 'reverse'])}({a()})",
            lambda: f"{pick(['array_union', 'array_except', 'array_intersect'])}({a()}, {a()})",
            lambda: f"split({s()}, '{pick([',', 'b', ' ', '[,b]', ''])}')",
            lambda: f"filter({a()}, e -> {self._predicate('e')})",
            lambda: f"transform({a()}, e -> concat(e, {self.text(0)}))",
            lambda: self._chosen(a, depth),
        )
