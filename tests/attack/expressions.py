"""Attacks with expressions: costly ones, many different ones, for large messages, and nested deep."""

from __future__ import annotations

from itertools import pairwise

from palio.protocol.wire.control import Refused, Subscribed, SubscribeRequest
from palio.protocol.wire.frames import MessageFrame
from tests.attack.arena import LIMITED, Arena
from tests.attack.attacker import Attacker
from tests.attack.case import case
from tests.attack.predicates import ask

NUMBERS = b'{"a": [' + b"1," * 30_000 + b'1], "x": 1}'
TEXT = b'{"s": "' + b"ab" * 31_000 + b'", "x": 1}'
COSTLY = (
    "exists(a, t -> t = 2)", "exists(a, t -> t LIKE '%a_b%')", "exists(a, t -> exists(a, u -> u = t + 1))",
    "size(transform(a, t -> concat(s, s))) = 1", "s LIKE '%" + "a_" * 400 + "c%'", "s RLIKE '[ab]*a[ab]{90}c'",
    "s RLIKE '(([ab]{0,30}a){0,30}c)'", "lower(repeat(s, 1000000)) = 'x'", "replace(s, 'a', s) = 'x'",
    "get_json_object(s, '$.a.b[3]') = 'x'", "array_contains(a, x + 1)", "arrays_overlap(a, a)",
    "trim(concat(s, s, s, s, s, s)) = 'x'", "like(s, concat('%', s, '%'))", "sha2(lpad(s, 1000000, 'x'), 256) = 'x'",
)  # fmt: skip


async def subscribed_and_published(
    arena: Arena, texts: list[str], messages: list[bytes], repeats: int
) -> str:
    """Subscribe to all that are taken, then publish; the connection goes on, and bob gets the rest."""
    async with (
        await Attacker.at(arena.endpoint()) as eve,
        await Attacker.at(arena.endpoint(), "bob") as bob,
    ):
        bob.say(SubscribeRequest(1, "last = 1"))
        await bob.answered(1, Subscribed)
        for i, text in enumerate(texts):
            eve.say(SubscribeRequest(i, text))
            if i % 200 == 0:
                await eve.drain()
        await eve.answered(len(texts), Subscribed, Refused)
        for _ in range(repeats):
            for message in messages:
                eve.publish(message)
                await eve.drain()
        bob.publish(b'{"last": 1}')  # on another connection: it waits for nobody
        await bob.got(MessageFrame, 1)
        assert await eve.alive()
        return f"{eve.counts[Subscribed]} accepted, {eve.counts[Refused]} refused"


@case("costly expressions, and messages of 64 KB for them", in_test=True)
async def costly_expressions(arena: Arena) -> str:
    return await subscribed_and_published(arena, [*COSTLY], [NUMBERS, TEXT], arena.count(1, 10))


@case("5,000 different expressions of one client, and messages that all are computed for")
async def many_expressions(arena: Arena) -> str:
    count = arena.count(300, 5000)
    texts = [
        (f"abs(x - {i}.5) < y", f"s LIKE '%{i}_b%'", f"lower(concat(s, '{i}')) = 'x'", f"x + y{i} > {i}",
         f"array_contains(a, {i})")[i % 5]
        for i in range(count)
    ]  # fmt: skip
    small = [b'{"x": %d, "y": 3, "s": "abcabc", "a": [1, 2, 3]}' % i for i in range(20)]
    return await subscribed_and_published(arena, texts, [*small, TEXT, NUMBERS], arena.count(1, 10))


@case("500 shapes of expressions, each of its own, that come and go")
async def shapes_of_expressions(arena: Arena) -> str:
    names = [f"n{i}" for i in range(arena.count(50, 500))]
    texts = [f"{a} + {b} * {a} > {b} - 1" for a, b in pairwise(names)]
    return await ask(arena, *texts, repeats=3)


@case("arrays of 30,000 elements, in arrays, and of texts, for subscriptions to elements")
async def huge_arrays(arena: Arena) -> str:
    texts = [f"array_contains(a, {i})" for i in range(arena.count(100, 2000))]
    nested = b'{"a": ' + b"[" * 60 + b"1" + b"]" * 60 + b', "x": 1}'
    lists = b'{"a": [' + b"[1]," * 15_000 + b"1]}"
    words = b'{"a": [' + b'"x",' * 15_000 + b"1]}"
    objects = b'{"a": [' + b'{"k":1},' * 7_000 + b"1]}"
    messages = [NUMBERS, nested, lists, words, objects]
    return await subscribed_and_published(arena, texts, messages, arena.count(2, 20))


@case("expressions nested deep, and long ones", in_test=True)
async def nested_expressions(arena: Arena) -> str:
    deep = arena.count(500, 30_000)
    return await ask(
        arena,
        "lower(" * deep + "s" + ")" * deep + " = 'x'",
        "lower(" * 90 + "s" + ")" * 90 + " = 'x'",
        "x" + " + x" * deep + " > 1",
        "x > " + "1 + " * deep + "1",
        "CASE " + "WHEN x = 1 THEN 1 " * deep + "END = 1",
        "coalesce(" + "x, " * deep + "0) = 1",
        "concat(" + "s, " * 900 + "'') = 'x'",
        "ARRAY[" * 40 + "x" + "]" * 40 + " = 1",
        "DATE[" * 40 + "x" + "]" * 40 + " = 1",
        "date(" * 40 + "x" + ")" * 40 + " = 1",
        "exists(a, t -> " * 40 + "t = 1" + ")" * 40,
        "CAST(" * 90 + "x" + " AS INT)" * 90 + " = 1",
        "s RLIKE '" + "(" * 500 + "a" + ")*" * 500 + "'",
        "s RLIKE '((a{0,900}){0,900}){0,900}'",
        "s LIKE ANY (" + "'%a_b%', " * 900 + "'x')",
        "x IN (" + "y + 1, " * 900 + "2)",
    )


@case("regular expressions that backtrack elsewhere")
async def regular_expressions(arena: Arena) -> str:
    texts = [
        f"s RLIKE '{regex}'"
        for regex in (
            "(a+)+$", "(a|a)*b", "(a|ab|b)*c", "(.*a){20}", "(.*)*(.*)*(.*)*c", "([ab]+)*c", "a{1,500}b{1,500}c",
            "^(([ab])+.)+([ab]([ab])+)+$", "(x+x+)+y", "(?i)(ab|ba)*c$", "(a?){100}a{100}",
        )
    ]  # fmt: skip
    return await subscribed_and_published(arena, texts, [TEXT], arena.count(2, 30))


@case("expressions in grants' way: of an identity whose grant must cover them")
async def expressions_against_a_grant(arena: Arena) -> str:
    texts = [f"a = 1 AND s LIKE 'x%' AND lower(s{i}) = 'x' AND u{i} < v" for i in range(50)]
    texts += [f"a = 1 AND lower(s) LIKE 'x{'%a' * i}%'" for i in range(50)]
    return await ask(arena, *texts, token=LIMITED, repeats=2)


@case("patterns and replays with expressions, and messages of 64 KB for them")
async def expressions_one_by_one(arena: Arena) -> str:
    count = arena.count(20, 200)
    async with await Attacker.at(arena.endpoint()) as eve:
        for i in range(arena.count(20, 200)):
            eve.publish(TEXT if i % 2 else NUMBERS, durable=True)
        await eve.drain()
        for i in range(count):
            eve.say(SubscribeRequest(
                i, pattern=f"[s LIKE '%a_{i}%'] then [lower(concat(s, '{i}')) = 'x'] same k"
            ))  # fmt: skip
            eve.say(SubscribeRequest(
                1000 + i, f"s LIKE '%a_{i}%' OR trim(s) = '{i}'", durable=f"d{i}", since=0
            ))  # fmt: skip
            await eve.drain()
        await eve.answered(2 * count, Subscribed, Refused)
        for _ in range(arena.count(5, 50)):
            eve.publish(TEXT)
            await eve.drain()
        assert await eve.alive()
    return f"{eve.counts[Subscribed]} accepted, {eve.counts[Refused]} refused"


@case(
    "expressions whose cost hides: arrays compared with themselves, paths and numbers that break readers"
)
async def hidden_costs(arena: Arena) -> str:
    long = f"coalesce({','.join('a' * 5000)})"
    texts = [
        "x = 0" + " XOR x = 1" * 40, "x = 0" + " XOR FALSE" * 60, f"{long} NOT IN ({','.join('b' * 3000)})",
        "x + " + "1" * 5000 + ".0 > 1", "+".join("x" * 150) + " > 1", "x" + "::INT" * 250 + " = 1",
        "lower(`=upper(s)`) = 'a'", "a = a", "a <= a AND a >= a AND a <=> a", "a IN (a, x)",
        "exists(a, t -> a = a AND t = 0)", "exists(a, t -> lower(a) = 'x')", "arrays_overlap(n, m)",
        f"get_json_object(s, '$.{'.'.join('a' * 490)}') = 'x'", "timestamp_seconds(x) IS NULL AND x > 1",
        "CAST(s AS DOUBLE) = 1", r"s RLIKE '\\pL{60}'", r"s RLIKE '\\pL{5}'", "size(leaves(a, n[0])) = 1",
        *(f"a + {i} > 0" for i in range(arena.count(50, 1000))),
        *(f"a = b{i}" for i in range(arena.count(50, 1000))),
    ]  # fmt: skip
    rows = ",".join(f"[{'1,' * 60}{i}]" for i in range(200))
    messages = [
        NUMBERS, b'{"x": 1e305}', b'{"s": "' + b"1" * 60_000 + b'x"}',
        b'{"s": "' + rb"{\"a\":" * 490 + b"1" + b"}" * 490 + b'"}',
        f'{{"n": [{rows}], "m": [{rows.replace("[1,", "[2,")}]}}'.encode(),
        b'{"a": [1], "n": [{"k": 1}], "x": 1}', b'{"=upper(s)": "a", "=a = a": true, "x": 1}',
    ]  # fmt: skip
    return await subscribed_and_published(arena, texts, messages, arena.count(1, 5))
