"""Waits of publishers, and batches of numbers."""

from __future__ import annotations

import asyncio

import pytest

from palio.errors import RefusedByBroker, Unreachable
from palio.net.client.acknowledgements import Acknowledgements, PublishBatch
from tests.net.running import in_loop


def test_a_batch_knows_its_numbers() -> None:
    batch = PublishBatch()
    assert batch.last == 0
    batch.add(5, 7)
    batch.add(8, 8)
    batch.add(20, 21)
    assert (batch.sent, batch.last) == (6, 21)
    assert [number for number in range(25) if number in batch] == [5, 6, 7, 8, 20, 21]


@in_loop
async def test_waits_end_by_storing_rejecting_and_time() -> None:
    acknowledgements = Acknowledgements(max_wait=60)
    waits = [asyncio.create_task(acknowledgements.wait(number)) for number in range(1, 5)]
    await asyncio.sleep(0)
    acknowledgements.reject(3, "no grant")
    acknowledgements.store(2)
    acknowledgements.expire(asyncio.get_running_loop().time() + 61, "the broker is away")
    results = await asyncio.gather(*waits, return_exceptions=True)
    assert results[:2] == [None, None]
    assert isinstance(results[2], RefusedByBroker)
    assert isinstance(results[3], Unreachable)
    assert "the broker is away" in str(results[3])


@in_loop
async def test_rejections_that_nobody_waits_for_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    acknowledgements = Acknowledgements(max_wait=60)
    batch = acknowledgements.begin()
    batch.add(1, 2)
    acknowledgements.reject(2, "no grant")
    acknowledgements.finish(batch)
    acknowledgements.reject(1, "no grant")
    assert (batch.rejected, batch.reason, acknowledgements.rejected) == (1, "no grant", 1)
    assert caplog.text.count("rejects message 1: no grant") == 1
