"""Test functions that are coroutines, each in a loop of its own, with an end in sight."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any


def in_loop(function: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> None:
        async def limited() -> None:
            async with asyncio.timeout(30):
                await function(*args, **kwargs)

        asyncio.run(limited())

    return run


async def until(condition: Callable[[], bool], pause: float = 0.005) -> None:
    """Wait for something that nobody tells; without a pause, it is seen however short it is."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(pause)
