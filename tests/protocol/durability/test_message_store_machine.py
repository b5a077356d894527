"""Message stores joined by a bad network, with crashes at any point: nothing lost, doubled or astray."""

from __future__ import annotations

import pytest

from palio.protocol.durability import journal, keys
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.queues import Full
from tests.seeds import seeds

from .store_world import SECOND_US, World

TINY = Bounds(
    window=8,
    backlog=40,
    queue=12,
    retry_us_min=SECOND_US // 10,
    retry_us_max=SECOND_US,
    lazy_us=SECOND_US // 10,
    sweep_us=SECOND_US // 2,
    cache_bytes=500,
)
BOUNDS = {
    "roomy": Bounds(lazy_us=SECOND_US // 5),
    "tiny": TINY,
    "forgetful": Bounds(
        retention_us=2 * SECOND_US, lazy_us=SECOND_US // 5, sweep_us=SECOND_US // 2
    ),
}


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "LARGE_BATCH", 3)


def play(world: World, steps: int) -> None:
    """Random things happen."""
    draw = world.random
    crash = draw.choice([0.005, 0.02, 0.05, 0.1])
    for _ in range(steps):
        world.now_us += draw.choice([0, 1, 1000, 20_000, SECOND_US // 4])
        broker = draw.choice(list(world.brokers.values()))
        other = draw.choice([b for b in world.brokers.values() if b is not broker])
        if draw.random() < 0.03:
            broker.is_isolated = not broker.is_isolated
            world.topology()
        if broker.messages is None:
            if draw.random() < 0.3:
                world.start(broker)
            continue
        if draw.random() < crash:
            world.crash(broker)
            continue
        act = draw.random()
        if act < 0.02:
            world.connect(draw.choice(world.publishers))
        elif act < 0.12:
            world.publish(draw.choice(world.publishers), draw.choice([1, 2, 10, 30]))
        elif act < 0.15:
            past_us = draw.choice([0, 0, SECOND_US, 60 * SECOND_US])
            full = draw.choice([Full.BLOCK, Full.BLOCK, Full.DROP, Full.END])
            world.create(broker, draw.choice("uvw"), world.now_us - past_us, full)
        elif act < 0.16:
            broker.messages.remove(draw.choice("uvw"), world.now_us)
        elif act < 0.22 and other.messages is not None:
            world.gossip(broker, other)
        elif act < 0.26 and world.live():
            world.attach(draw.choice(world.live()), draw.choice([1, 5, 100]))
        elif act < 0.28 and world.consumers:
            world.detach(draw.choice(list(world.consumers)))
        elif act < 0.40 and world.consumers:
            world.acknowledge(draw.choice(list(world.consumers)), draw.choice([1, 5, 100]))
        elif act < 0.60:
            for _ in range(draw.choice([1, 20])):
                world.transmit()
        elif act < 0.80:
            world.commit(broker)
        elif act < 0.90:
            world.tick(broker)
        else:
            world.route(broker)


@pytest.mark.parametrize("bounds", BOUNDS)
@seeds(5, 60)
def test_every_client_sees_what_it_wants_once(seed: int, bounds: str) -> None:
    world = World(seed, BOUNDS[bounds])
    play(world, 500)
    assert world.finish() == []


@pytest.mark.slow
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("ten", range(40))
def test_every_client_sees_what_it_wants_once_many(ten: int, bounds: str) -> None:
    for seed in range(1000 + 10 * ten, 1010 + 10 * ten):
        world = World(seed, BOUNDS[bounds], brokers=2 + seed % 4)
        play(world, 800)
        assert world.finish() == [], f"seed {seed}"


@seeds(5, 30)
def test_at_the_end_nothing_is_kept(seed: int) -> None:
    """When all is acknowledged and retention over, only last numbers are left, and one record."""
    world = World(seed, BOUNDS["forgetful"])
    play(world, 400)
    assert world.finish() == []
    for _ in range(20):
        world.now_us += SECOND_US
        world._round()
    for broker in world.up():
        assert broker.messages is not None
        assert broker.messages.statistics().messages == 0
        assert broker.messages.statistics().bytes == 0
        live = [s for s in world.live() if s.home == broker.name]
        stored = list(broker.store.safe)
        assert len([key for key in stored if key.startswith(keys.QUEUES)]) <= len(live)
        assert len([key for key in stored if key.startswith(keys.RECORDS)]) <= 1
        assert not [k for k in stored if k.startswith((keys.SEGMENTS, keys.SEGMENT_METADATA))]
