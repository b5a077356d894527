"""Connections share the turns of the loop: each comes to its turn, in order, and none takes all the time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from palio.net.listeners import shared_turns
from palio.net.listeners.shared_turns import SharedTurns
from tests.net.running import in_loop, until


@in_loop
async def test_what_waits_is_done_in_order_over_several_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_turns, "TURN_S", 0.0)  # one call takes a whole turn
    turns, done, seen = SharedTurns(), list[int](), list[int]()

    def noted(number: int) -> Callable[[], None]:
        return lambda: done.append(number)

    for number in range(5):
        turns.soon(noted(number))
    while len(done) < 5:
        await asyncio.sleep(0)
        seen.append(len(done))
    assert done == list(range(5))
    assert seen == sorted(set(seen)), "at most one in each turn"


@in_loop
async def test_nobody_overtakes_those_who_wait() -> None:
    turns, done = SharedTurns(), list[str]()
    assert not turns.is_over(), "nobody waits: data is processed as it comes"
    await asyncio.sleep(0)
    turns.soon(lambda: done.append("first"))
    assert turns.is_over()
    await until(lambda: bool(done))
    assert not turns.is_over()


@in_loop
async def test_a_call_that_goes_on_takes_its_turn_behind_the_others() -> None:
    turns, done = SharedTurns(), list[str]()

    def again() -> None:
        done.append("again")
        if done.count("again") < 3:
            turns.soon(again)

    turns.soon(again)
    turns.soon(lambda: done.append("other"))
    await until(lambda: len(done) == 4)
    assert done == ["again", "other", "again", "again"]


@in_loop
async def test_one_that_fails_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    turns, done = SharedTurns(), list[str]()

    def fails() -> None:
        raise ValueError("of one connection")

    turns.soon(fails)
    turns.soon(lambda: done.append("other"))
    await until(lambda: bool(done))
    assert "this is a bug" in caplog.text
