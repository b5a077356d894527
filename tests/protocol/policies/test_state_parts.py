"""Complete link states in parts: joined they are what was sent, and nothing else ever takes effect."""

from __future__ import annotations

import random
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.protocol.policies import state_parts as module
from palio.protocol.policies.state_parts import StateAssembly, is_large, state_bytes, state_parts
from palio.protocol.wire import parts
from palio.protocol.wire.control import Durable, LinkState, LinkStates
from palio.protocol.wire.frames import BrokenFrame, control_frame
from tests.protocol.policies.link_state_network import LinkStateNetwork

texts = st.text("xé= 1", max_size=40)
states = st.builds(
    lambda links, wanted, durable, faded: LinkState(
        *("bob", "e", 7, 0, () if faded else tuple(links.items())),
        wanted=() if faded else tuple(wanted),
        durable={name: Durable(text, 1, 2) for name, text in durable.items()},
        is_faded=faded,
    ),
    st.dictionaries(texts, st.just(1.5), max_size=12),
    st.lists(texts, max_size=20),
    st.dictionaries(texts, texts, max_size=12),
    st.booleans(),
)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", 600)


@settings(max_examples=100, deadline=None)
@given(states)
def test_parts_joined_are_the_state(state: LinkState) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "PART_BYTES", 600)
        some = list(state_parts(state))
        assert len(some) == 1 or is_large(state)
        assembly = StateAssembly()
        for part in some:
            assert len(control_frame(LinkStates((part,)))) < 900
            assert assembly.continues(part)
            complete = assembly.add(part, dict.fromkeys(part.wanted, ()))
            assert (complete is None) is part.more
        assert complete is not None
        assert complete[0] == state
        assert set(complete[1]) == set(state.wanted)


@given(states)
def test_the_size_is_never_underestimated(state: LinkState) -> None:
    assert len(control_frame(LinkStates((state,)))) <= state_bytes(state)


def large(number: int, count: int = 60) -> LinkState:
    return LinkState("bob", "e", number, 0, (), wanted=tuple(f"x = {i}" for i in range(count)))


def test_a_part_that_does_not_continue_the_state_is_refused() -> None:
    assembly = StateAssembly()
    first, second, third, *_ = state_parts(large(5))
    assert not assembly.continues(second)
    assembly.add(first, {})
    assert not assembly.continues(third)
    assert not assembly.continues(msgspec.structs.replace(second, number=6))
    assert not assembly.continues(msgspec.structs.replace(second, epoch="f"))
    assert assembly.continues(second)


def test_a_newer_state_replaces_one_that_is_not_finished() -> None:
    assembly = StateAssembly()
    for part in list(state_parts(large(5)))[:2]:
        assembly.add(part, {})
    for part in state_parts(large(6)):
        assert assembly.continues(part)
        complete = assembly.add(part, {})
    assert complete is not None
    assert complete[0] == large(6)


def test_small_states_of_others_may_come_between() -> None:
    assembly = StateAssembly()
    first, *rest = state_parts(large(5))
    assembly.add(first, {})
    other = LinkState("cy", "e", 1, 0, ())
    assert assembly.continues(other)
    assert assembly.add(other, {}) == (other, {})
    for part in rest:
        assert assembly.continues(part)
        complete = assembly.add(part, {})
    assert complete is not None
    assert complete[0] == large(5)


def test_a_state_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STATE_BYTES_MAX", 900)
    assembly = StateAssembly()
    first, second, *_ = state_parts(large(5))
    assembly.add(first, {})
    with pytest.raises(BrokenFrame, match="'bob' has more than 900 bytes"):
        assembly.add(second, {})


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_networks_agree_although_every_state_goes_in_parts(seed: int) -> None:
    """Links come and go in the middle of a state, brokers crash, and newer states overtake."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "PART_BYTES", 150)
        rng = random.Random(seed)
        names = ["ann", "bob", "cy", "di"]
        net = LinkStateNetwork(names, rng)
        for a, b in pairwise(names):
            net.join(a, b)
        for i in range(25):
            name = rng.choice(names)
            match rng.randrange(5):
                case 0:
                    net.want(name, [f"x = {j}" for j in range(rng.randrange(12))], [f"x = {i}"])
                case 1:
                    net.set_durable(name, f"d{i % 4}", Durable(f"y > {i}", i, i + 1))
                case 2:
                    a, b = sorted(rng.sample(names, 2))
                    if (a, b) in net.links:
                        net.cut(a, b)
                    else:
                        net.join(a, b)
                case 3:
                    net.crash(name)
                    net.start(name)
                    for other in names:
                        if other != name and rng.random() < 0.5:
                            net.join(name, other)
                case _:
                    net.flood_news(name)
            for _ in range(rng.randrange(8)):
                net.step()
        net.quiet(for_us=200_000)
        net.check()
