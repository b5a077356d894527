"""The data path: whatever was said and taken back, it answers as each filter by itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio import Filter, Message
from palio.routing import Joined, Received, Role, Router, Subscribe, Unsubscribe, data_path
from palio.routing.data_path import DataPath
from tests.routing.network import check_destinations
from tests.routing.test_router_machine import FILTERS, MESSAGES

PEERS = st.sampled_from(["ann", "bob", "cy", "router 2"])


@pytest.fixture(params=[(256, 256, 50_000), (0, 2, 0), (4, 2, 10)], ids=str)
def limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are, always compiled, and back and forth between both ways."""
    evaluated, bucket, evaluations = request.param
    monkeypatch.setattr(data_path, "EVALUATED_MAX", evaluated)
    monkeypatch.setattr(data_path, "BUCKET_MAX", bucket)
    monkeypatch.setattr(data_path, "EVALUATIONS_MAX", evaluations)
    monkeypatch.setattr(data_path, "BATCH_MIN", 2)


@pytest.mark.usefixtures("limits")
def test_it_answers_as_the_filters() -> None:
    @settings(max_examples=10, deadline=None)
    @given(st.lists(st.tuples(PEERS, FILTERS, MESSAGES | st.none()), max_size=12), st.data())
    def check(steps: list[tuple[str, Filter, Message | None]], data: st.DataObject) -> None:
        path, known = DataPath(), dict[str, dict[Filter, None]]()
        for peer, filter, message in steps:
            own = known.setdefault(peer, {})
            gone = data.draw(st.sampled_from(sorted(own, key=str))) if own and message else None
            news = {filter: True} if filter not in own else {}
            own.update(dict.fromkeys(news))
            if gone is not None and gone not in news:
                news[gone] = False
                del own[gone]
            path.change(peer, news)
            assert len(path) == sum(map(len, known.values()))
            if message is not None:
                wanted = {p for p, fs in known.items() if any(f.matches(message) for f in fs)}
                assert path.peers(message) == wanted
                assert path.peers_of([message.to_json().encode()] * 3) == [wanted] * 3

    check()


@pytest.mark.usefixtures("limits")
def test_the_router_uses_it() -> None:
    @settings(max_examples=10, deadline=None)
    @given(st.lists(st.tuples(PEERS, FILTERS, st.booleans()), max_size=20), st.lists(MESSAGES))
    def check(steps: list[tuple[str, Filter, bool]], messages: list[Message]) -> None:
        router = Router("1")
        for peer in ("ann", "bob", "cy"):
            router.step(Joined(peer))
        router.step(Joined("router 2", Role.NEIGHBOUR))
        for peer, filter, is_said in steps:
            packet: Callable[[Filter], Subscribe | Unsubscribe] = (
                Subscribe if is_said else Unsubscribe
            )
            router.step(Received(peer, packet(filter)))
        for message in messages:
            check_destinations(router, message)

    check()
