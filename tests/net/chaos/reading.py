"""The applications behind native subscriptions: they acknowledge, sometimes late, give back and reject."""

from __future__ import annotations

import asyncio
from random import Random

from palio.net.client.subscription import Note, Subscription
from tests.net.chaos.dead_letters import Collector
from tests.net.judgement import Answer, Draws, Id, Sent, Taken, Workload

_RESTARTS_COUNT = 2
"""What may have been sent before a restart counts as sent."""


async def read(subscription: Subscription, taken: Taken, draws: Draws) -> None:
    draw = Random(taken.name)
    while notes := await subscription.many():
        for note in notes:
            id = Id.of(note.body)
            taken.came(id, note.again or not taken.is_durable, draws.terms(id))
            if taken.deliveries_max and note.deliveries > max(
                taken.deliveries_max, _RESTARTS_COUNT
            ):
                taken.too_often.add(id)
        await _hesitate(draw)
        for note in notes:
            _answer(note, taken, draws)


def _answer(note: Note, taken: Taken, draws: Draws) -> None:
    id = Id.of(note.body)
    match draws.answer(taken, id):
        case Answer.REJECT:
            taken.rejected.add(id)
            note.reject_soon("chaos")
        case Answer.NEVER:
            taken.returned[id] += 1
            note.nack_soon(draws.wait_s(taken, id))
        case Answer.NACK if not taken.returned[id]:
            taken.returned[id] += 1
            note.nack_soon(draws.wait_s(taken, id))
        case _:
            note.ack_soon()


async def collect(
    subscription: Subscription, collector: Collector, sent: dict[str, Sent], workload: Workload
) -> None:
    draw = Random(collector.taken.name)
    while notes := await subscription.many():
        for note in notes:
            id = Id.of(note.body)
            collector.came(note, workload.pool[sent[id.client].which[id.index]])
        await _hesitate(draw)
        for note in notes:
            note.ack_soon()


async def _hesitate(draw: Random) -> None:
    if draw.random() < 0.2:
        await asyncio.sleep(0.3 * draw.random())
