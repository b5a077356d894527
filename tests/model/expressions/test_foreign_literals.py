"""No literal of a text is lost: texts that differ in one literal are different predicates, or refused."""

from __future__ import annotations

import random

import pytest

import palio
from palio.errors import ParseError
from palio.model.expressions.parsing import expression_of_text
from palio.model.literals import _split

TEXTS = """\
b = X'FF'
hex(b) = hex(x'0f')
b IN (X'FF', X'01')
b BETWEEN X'41' AND X'FF'
concat(b, X'00') = X'FF00'
startswith(b, X'FF') AND s = 'a'
x = N'abc'
x = B'01'
x = E'abc'
x = U&'abc'
x = _utf8'abc'
b = X'zz'
b = X"FF"
t > TIME '10:00:00'
CAST(t AS TIME) = TIME '10:00:00'
t > TIME_NTZ '10:00:00'
t > DATETIME '2024-03-01'
t > TIMESTAMP_NTZ '2024-03-01 10:00:00'
t > TIMESTAMP_LTZ '2024-03-01 10:00:00'
t > TIMESTAMP '2024-03-01 10:00:00'
t AT TIME ZONE 'Europe/Rome' > DATE '2024-03-01'
t + INTERVAL 3 DAYS > d
t + INTERVAL '3' DAY > d
t + INTERVAL '1-2' YEAR TO MONTH > d
t - d > INTERVAL '1 02:03:04' DAY TO SECOND
make_dt_interval(n) > INTERVAL 3 DAYS
date_trunc('DAY', t, 'HOUR') = d
trunc(t, 'MONTH') = d
extract(HOUR FROM t) = 5
date_part('HOUR', t) = 5
to_date(s, 'dd/MM/yyyy') = DATE '2024-03-01'
to_timestamp(s, 'yyyy') > t
CAST(t AS DATE FORMAT 'yyyy') = d
CAST(s AS STRING FORMAT 'yyyy') = 'a'
CAST(x AS DECIMAL(10, 2)) = 1.50
x::decimal(5,3) = 1.5
try_cast(x AS NUMERIC(7)) = 1
CAST(s AS UUID) = 'a'
n::bit = 3
CAST(m AS MAP<STRING, DECIMAL(7, 2)>)['k'] = 5
CAST(o AS STRUCT<a: INT>).a = 5
overlay(s PLACING 'xyz' FROM 2 FOR 3) = 'axyz'
overlay(s, 'xyz', 2, 3) = 'axyz'
trim(LEADING 'a' FROM s) = 'nn'
position('n' IN s) = 2
substring(s FROM 2 FOR 3) = 'nn'
s COLLATE UTF8_LCASE = 'ann'
s COLLATE UTF8_LCASE = 'ann' XOR x = 1
s = 'ann' COLLATE UTF8_LCASE
s SIMILAR TO 'a%'
s GLOB 'a*'
s ~* 'a'
s RLIKE 'a+' AND s LIKE 'a!_b' ESCAPE '!'
s LIKE ANY ('a%b', 'c%d')
array_join(transform(tags, (t, i) -> concat(t, 'z', i + 1)), ',') = 'az'
filter(nums, (x, i) -> i < 2)[0] = 1
aggregate(nums, 0, (a, e) -> a + e * 2, a -> a * 10) = 30
exists(tags, t -> t = 'x' OR levenshtein(t, 'yy') < 2)
struct(n AS a, 'x' AS b).a = 5
named_struct('a', n, 'b', 7).b = 5
map('k', n)['k'] = 5
map_filter(m, (k, v) -> v > 4)['k'] = 5
tags = array('a', 'b')
tags IN (array('a'), array('b', 'c'))
sequence(1, n, 2)[0] = 1
get_json_object(s, '$.a') = '5'
from_json(s, 'a INT').a = 5
body:a.b = 'x'
(x -> 1)
x -> 1
f(x -> 'a') = 2
own.function(x, 'a', 2) = 3
own.schema.function('a', x) = 3
nvl2(a, 'x', 'y') = 'z'
decode(n, 1, 'a', 2, 'b', 'c') = 'a'
CASE x WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE 'c' END = 'a'
if(x > 3, 'a', soundex('b')) = 'c'
elt(n, 'a', 'b') IN ('a', 'c')
floor(x, 2) = 1.25
round(x, 2) = 1.25
x = 1.5F AND y = 2BD AND z = 3L
x & 1 = 1 AND y | 2 = 3 AND z ^ 4 = 5
(a, b) IN ((1, 'x'), (2, 'y'))
(a, b) = (1, 'x')
x BETWEEN SYMMETRIC 1 AND 5
x = NULL OR y = 5
x IN (1, NULL, 3) OR NOT y IN (4, 5)
typeof(x) = 'string'
convert_timezone('UTC', 'Europe/Rome', t) = TIMESTAMP '2024-03-01 11:00:00'
timestampadd(HOUR, 3, t) > d
s RLIKE r'a\\w' OR s = r'b'
date_format(t, 'HH') = '23' XOR soundex(s) = 'A5'
""".splitlines()
INSTEAD = {
    "'": ["'q'", "'YEAR'", "'2023-02-03'", "'11:12:13'", "'9'", "'8-9'", "'7 08:09:06'", "'bool'", "'$.q'", "'!'"],
    "x": ["X'AB'"],
}  # fmt: skip


def _others(token: str) -> list[str]:
    """Literals that may stand where this one stands."""
    if token[0] in "xX":
        return INSTEAD["x"]
    if token[0] in "'\"rR":
        return INSTEAD["'"]
    return ["6"]


def _read(text: str) -> str | None:
    try:
        return str(palio.parse(text, foreign=True))
    except ParseError:
        return None


def _pairs(text: str) -> list[tuple[str, str]]:
    """The text, and texts that differ from it in one literal."""
    parts = _split(text)
    return [
        (text, "".join([*parts[:place], other, *parts[place + 1 :]]))
        for place in range(1, len(parts), 2)
        if parts[place][0] not in "`-/"
        for other in _others(parts[place])
        if other != parts[place]
    ]


@pytest.mark.parametrize("text", TEXTS)
def test_one_other_literal_is_another_predicate(text: str) -> None:
    """What is not read is refused: `b = X'FF'` was `b = X'0'`, `x = N'abc'` was `x = '0'`."""
    own = _read(text)
    for _, other in _pairs(text):
        if _read(other) is not None:
            assert own != _read(other), other
    if own is not None:
        assert _read(own) == own


def test_most_of_them_are_read() -> None:
    read = [text for text in TEXTS if _read(text) is not None]
    assert len(read) > 0.7 * len(TEXTS)
    pairs = [other for text in read for _, other in _pairs(text) if _read(other) is not None]
    assert len(pairs) > 300


def test_conditions_together() -> None:
    """Slots are numbered over the whole text."""
    rng = random.Random(7)
    read = [text for text in TEXTS if _read(text) is not None and " OR " not in text]
    for _ in range(40):
        chosen = rng.sample(read, 3)
        place = rng.randrange(3)
        _, other = rng.choice(_pairs(chosen[place]))
        changed = [*chosen[:place], other, *chosen[place + 1 :]]
        own, found = (_read(" AND ".join(f"({one})" for one in t)) for t in (chosen, changed))
        assert own is not None
        assert own != found, changed


@pytest.mark.parametrize(
    ("text", "at"),
    [("x = N'abc'", 4), ("b = X'zz'", 5), ("date_trunc('DAY', t, 'HOUR') = d", 21)],
)
def test_the_refusal_points_at_what_is_not_read(text: str, at: int) -> None:
    with pytest.raises(ParseError) as caught:
        palio.parse(text, foreign=True)
    assert caught.value.position == at
    with pytest.raises(ParseError):
        expression_of_text(text[4:] if at < 9 else text)


def test_bytes_are_canonical() -> None:
    assert str(palio.parse("b = x'ff'", foreign=True)) == "b = (X'FF')"
    assert palio.parse("b = x'ff'", foreign=True) == palio.parse("X'FF' = b", foreign=True)
    assert palio.parse("CAST(s AS VARCHAR(3)) = 'a'") == palio.parse("s::string = 'a'")
    with pytest.raises(ParseError, match=r"hex\(b\) = 'FF'"):
        palio.parse("b = X'FF'")
