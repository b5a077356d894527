"""An inbox and the tasks that wait at it."""

from __future__ import annotations

import asyncio

import pytest

from palio.net.client.inbox import Inbox, InboxClosed
from tests.net.running import in_loop


@in_loop
async def test_items_outlive_the_end() -> None:
    inbox: Inbox[int] = Inbox()
    inbox.put(1)
    inbox.end(InboxClosed())
    inbox.end(ValueError())
    await inbox.wait_for_item()
    assert inbox.items.popleft() == 1
    with pytest.raises(InboxClosed):
        await inbox.wait_for_item()


@in_loop
async def test_a_cancelled_task_passes_its_turn_on() -> None:
    inbox: Inbox[int] = Inbox()
    first, second = (asyncio.create_task(inbox.wait_for_item()) for _ in range(2))
    await asyncio.sleep(0)
    inbox.put(1)
    first.cancel()
    await asyncio.wait_for(second, 5)
    with pytest.raises(asyncio.CancelledError):
        await first


@in_loop
async def test_confirmation() -> None:
    inbox: Inbox[int] = Inbox()
    waiting = asyncio.create_task(inbox.wait_for_confirmation())
    await asyncio.sleep(0)
    inbox.confirm()
    await asyncio.wait_for(waiting, 5)
    inbox.end(InboxClosed())
    with pytest.raises(InboxClosed):
        await inbox.wait_for_confirmation()
