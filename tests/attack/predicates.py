"""Attacks with predicates and patterns: large, deep, and with many alternatives."""

from __future__ import annotations

from palio.protocol.wire.control import (
    Occurred,
    Refused,
    Subscribed,
    SubscribeRequest,
    Unsubscribed,
    UnsubscribeRequest,
)
from tests.attack.arena import LIMITED, Arena
from tests.attack.attacker import Attacker
from tests.attack.case import case


async def ask(arena: Arena, *texts: str, repeats: int = 1, token: str = "") -> str:
    """Subscribe to each; both answers are fine, and the connection goes on."""
    async with await Attacker.at(arena.endpoint(), token=token) as eve:
        id = 0
        for _ in range(arena.count(1, repeats)):
            for text in texts:
                id += 1
                eve.say(SubscribeRequest(id, text))
                await eve.drain()
        await eve.answered(id, Subscribed, Refused)
        assert await eve.alive()
        eve.publish(b'{"x": 1, "s": "abcabcabc"}')
        assert await eve.alive()
    return f"{eve.counts[Subscribed]} accepted, {eve.counts[Refused]} refused"


@case("three predicates of 7 MB")
async def predicates_of_megabytes(arena: Arena) -> str:
    text = "x = '" + "y" * (arena.count(1, 7) * 1_000_000) + "'"
    return await ask(arena, text, text.replace("y", "z"), text.replace("x =", "w ="))


@case("twelve ANDed ORs: 4,096 filters")
async def product_of_alternatives(arena: Arena) -> str:
    text = " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(12))
    wide = " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(10))
    return await ask(arena, text, wide, wide.replace("a1", "c1"), repeats=3)


@case("IN with 500,000 numbers, and with as many as are allowed")
async def long_lists(arena: Arena) -> str:
    large = arena.count(50_000, 500_000)
    return await ask(
        arena,
        f"x IN ({', '.join(map(str, range(large)))})",
        f"x IN ({', '.join(map(str, range(35_000)))})",
        f"x NOT IN ({', '.join(map(str, range(35_000)))})",
        f"x IN ({', '.join(map(repr, map(str, range(20_000))))})",
    )


@case("20,000 names in one predicate")
async def many_names(arena: Arena) -> str:
    count = arena.count(2000, 20_000)
    return await ask(
        arena,
        " AND ".join(f"n{i} = 1" for i in range(count)),
        " OR ".join(f"n{i} = 1" for i in range(count)),
        " AND ".join(f"NOT n{i} = 1" for i in range(count)),
    )


@case("parentheses, NOTs, minus signs and operators, nested 100,000 deep", in_test=True)
async def deep_nesting(arena: Arena) -> str:
    deep = arena.count(2000, 100_000)
    return await ask(
        arena,
        "(" * deep + "x = 1" + ")" * deep,
        "(" * deep,
        "NOT " * (deep // 2) + "x = 1",
        "x = " + "-" * deep + "1",
        "x = " + "(" * deep + "1" + ")" * deep,
        "a = 1 AND (b = 1 OR (" * (deep // 20) + "c = 1" + "))" * (deep // 20),
        "x = 1" + " AND x = 1" * (deep // 10),
        "'" * deep,
        "\\" * deep,
        "/*" * deep,
        "--" * deep,
    )


@case("very long strings and names")
async def long_strings(arena: Arena) -> str:
    long = 250_000
    return await ask(
        arena,
        f"s = '{'x' * long}'",
        f"s LIKE '%{'x' * long}%'",
        f"{'n' * long} = 1",
        f'"{"n" * long}" = 1',
        f"s = '{'é' * (long // 2)}'",
        f"x = {'9' * long}",
        f"x = 0.{'9' * long}",
        f"x = 1e{'9' * 1000}",
        f"t = TIMESTAMP '{'9' * 1000}'",
        "s = '" + "''" * (long // 2) + "'",
    )


@case("200 predicates of 250 kB, each taken back before the next one")
async def large_predicates_come_and_go(arena: Arena) -> str:
    before, count = arena.memory(), arena.count(10, 200)
    async with await Attacker.at(arena.endpoint()) as eve:
        for i in range(1, count + 1):
            eve.say(SubscribeRequest(1, f"s LIKE '%{i}{'x' * 250_000}%' AND x > {i}"))
            eve.say(UnsubscribeRequest(1))
            await eve.answered(2 * i, Subscribed, Unsubscribed, Refused)
        assert eve.counts[Subscribed] == count, eve.counts
    more = arena.memory() - before
    assert more < 45 << 20, f"{more >> 20} MiB more than before"
    return f"{more >> 20} MiB more than before"


@case("LIKE with hundreds of wildcards, many of them")
async def like_storm(arena: Arena) -> str:
    texts = [f"s LIKE '{'%a_b' * k}%'" for k in (10, 100, 1000, 10_000)]
    texts += [" AND ".join(f"s LIKE '%{'ab' * k}%{k}%'" for k in range(1, 60))]
    texts += [" OR ".join(f"s LIKE '%{'ab' * k}%{k}%'" for k in range(1, 60))]
    texts += ["s LIKE '" + "%" * 100_000 + "'", "s LIKE '" + "_" * 100_000 + "'"]
    found = await ask(arena, *texts, repeats=3)
    async with await Attacker.at(arena.endpoint()) as eve:
        for i, text in enumerate(texts):
            eve.say(SubscribeRequest(i, text))
        await eve.answered(len(texts), Subscribed, Refused)
        for _ in range(arena.count(5, 200)):
            eve.publish(b'{"s": "' + b"ab" * 30_000 + b'"}')
            await eve.drain()
        assert await eve.alive()
    return found


@case("all of these by an identity whose grant must cover them")
async def predicates_against_a_grant(arena: Arena) -> str:
    return await ask(
        arena,
        " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(10)),
        " AND ".join(f"s LIKE '%{'ab' * k}%{k}%'" for k in range(1, 60)) + " AND a = 1",
        f"a = 1 AND s LIKE 'x{'%a_b' * 50}%'",
        f"b IN ({', '.join(map(str, range(35_000)))})",
        f"a = 1 AND s IN ({', '.join(map(repr, map(str, range(20_000))))})",
        f"a = 1 AND s = '{'x' * 250_000}'",
        "b = 1 OR " * 1000 + "b = 2",
        token=LIMITED,
        repeats=3,
    )


@case("patterns with many parts, nested deep, with large predicates")
async def patterns(arena: Arena) -> str:
    many = arena.count(20, 2000)
    texts = [
        " then ".join(f"[x = {i}]" for i in range(many)),
        " or ".join(f"[x = {i}]" for i in range(many)),
        " and ".join(f"[x = {i}]" for i in range(many)),
        " then ".join(f"([x = {i}] or [y = {i}])" for i in range(12)),
        " then ".join(f"([x = {i}] and [y = {i}])" for i in range(12)),
        "(" * many + "[x = 1]" + ")" * many,
        "[x = 1] then " * many,
        f"[x IN ({', '.join(map(str, range(35_000)))})] then [x = 2]",
        "[" + " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(10)) + "] then [x = 1]",
        "[s = '" + "y" * (arena.count(1, 7) * 1_000_000) + "'] then [x = 1]",
        "[" * many,
    ]
    async with await Attacker.at(arena.endpoint()) as eve:
        for i, text in enumerate(texts):
            eve.say(SubscribeRequest(i, pattern=text))
            await eve.drain()
        await eve.answered(len(texts), Subscribed, Refused)
        assert await eve.alive()
        for i in range(100):
            eve.publish(b'{"x": %d}' % (i % 5), time_us=1_800_000_000_000_000 + i)
        assert await eve.alive()
    return f"{eve.counts[Subscribed]} accepted, {eve.counts[Refused]} refused"


@case("500 messages at once, each for 200 watches of one client")
async def messages_for_many_watches(arena: Arena) -> str:
    watches, messages = arena.count(50, 200), arena.count(100, 500)
    async with await Attacker.at(arena.endpoint()) as eve:
        eve.say(*[
            SubscribeRequest(i, pattern=f"[x > {i % 7}] then [z < {i}] within {i + 1} hours same k")
            for i in range(watches)
        ])  # fmt: skip
        await eve.answered(watches, Subscribed)
        for i in range(messages):
            eve.publish(b'{"x": 10, "k": %d}' % i)
        eve.publish(b'{"z": -1, "k": 0}', time_us=2)
        await eve.drain()
        async with await Attacker.at(
            arena.endpoint(), "bob"
        ) as bob:  # nobody waits for the patterns
            bob.say(SubscribeRequest(1, "x = 1"))
            await bob.answered(1, Subscribed)
        assert await eve.alive()
        await eve.got(Occurred, watches)  # all was done, in order
    return f"{messages} messages for {watches} watches"


@case("patterns whose parts have thousands of filters that must be compared")
async def patterns_to_compare(arena: Arena) -> str:
    def part(tag: int, size: int) -> str:
        return (
            f"[q = {tag} AND " + " AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(size)) + "]"
        )

    def pattern(size: int) -> str:
        steps = [f"({part(i, size)} then {part(i + 1, size)})" for i in range(0, 8, 2)]
        return " and ".join(steps)

    sizes = [size for size in (3, 7, 11) for _ in range(arena.count(1, 5))]
    async with await Attacker.at(arena.endpoint()) as eve:
        eve.say(*[SubscribeRequest(i, pattern=pattern(size)) for i, size in enumerate(sizes)])
        async with await Attacker.at(
            arena.endpoint(), "bob"
        ) as bob:  # the thread for jobs is soon free
            bob.say(SubscribeRequest(1, pattern="[x = 1] then [x = 2]"))
            await bob.answered(1, Subscribed)
        await eve.answered(len(sizes), Subscribed, Refused)
        assert await eve.alive()
    return f"{eve.counts[Subscribed]} accepted, {eve.counts[Refused]} refused"


@case("1,000 watchers of patterns, then disconnect")
async def many_watchers(arena: Arena) -> str:
    count = arena.count(30, 1000)
    async with await Attacker.at(arena.endpoint()) as eve:
        eve.say(*[
            SubscribeRequest(i, pattern=f"[w = {i}] then [w = {i + 1}] then [v > {i}]")
            for i in range(count)
        ])  # fmt: skip
        await eve.answered(count, Subscribed, Refused)
        assert await eve.alive()
    async with await Attacker.at(arena.endpoint()) as eve:
        assert await eve.alive()
    return f"{eve.counts[Subscribed]} watched"
