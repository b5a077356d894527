"""The credit of a subscription, over messages, consumption and reconnects."""

from palio.protocol.client.subscription_state import SubscriptionState
from palio.protocol.wire import control
from palio.protocol.wire.headers import DeliverHeader


def live(state: SubscriptionState, count: int) -> None:
    for number in range(count):
        assert state.is_new(DeliverHeader((1,), 0, "p", number, 0))


def test_credit_is_granted_when_half_of_it_is_consumed() -> None:
    state = SubscriptionState(control.SubscribeRequest(1, "x = 1", credit=10), 100)
    live(state, 10)
    state.consume(4)
    assert not state.is_due
    state.consume(1)
    assert state.take_due() == [control.Credit(1, 5)]
    assert not state.is_due


def test_messages_that_wait_reduce_the_credit_of_the_next_connection() -> None:
    request = control.SubscribeRequest(1, "x = 1", credit=4)
    state = SubscriptionState(request, 100)
    live(state, 3)
    assert state.request() == control.SubscribeRequest(1, "x = 1", credit=1)
    live(state, 1)
    assert state.request().credit == 1, "nobody can subscribe with a credit of 0"
    live(state, 1)
    state.consume(2)
    assert not state.is_due, "one of them is the excess"
    state.consume(3)
    assert state.take_due() == [control.Credit(1, 4)]


def test_a_durable_subscription_asks_for_its_whole_credit() -> None:
    request = control.SubscribeRequest(1, "x = 1", durable="d", credit=4)
    state = SubscriptionState(request, 100)
    live(state, 3)
    assert state.is_new(DeliverHeader((1,), 1, "p", 9, 0))
    assert state.unacknowledged == 1
    assert state.request() == request
    state.acknowledge(1)
    assert state.take_due() == [control.Acknowledge(1, (1,))]
