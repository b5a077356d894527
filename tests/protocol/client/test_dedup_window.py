"""The dedup window: nothing twice, and acknowledgements that the broker lost."""

from palio.protocol.client.dedup_window import PositionWindow


def test_a_redelivered_message_is_dropped_in_any_order() -> None:
    window = PositionWindow(size=10)
    assert [window.is_new(position, position) for position in (3, 1, 3, 2, 1)] == [
        True,
        True,
        False,
        True,
        False,
    ]
    assert window.unacknowledged == 3
    assert not window.is_due


def test_an_acknowledgement_that_the_broker_lost_is_repeated() -> None:
    window = PositionWindow(size=10)
    window.is_new(1, 70)
    window.acknowledge(1)
    window.acknowledge(1)
    assert window.take_due() == (1,)
    assert not window.is_new(1, 70)
    assert window.take_due() == (1,)
    assert window.unacknowledged == 0


def test_a_position_with_another_number_is_a_new_message() -> None:
    window = PositionWindow(size=10)
    window.is_new(1, 70)
    assert window.is_new(1, 99)
    window.acknowledge(1)
    assert window.is_new(1, 70)


def test_it_remembers_the_latest_acknowledgements_only() -> None:
    window = PositionWindow(size=2)
    for position in (1, 2, 3):
        window.is_new(position, position)
        window.acknowledge(position)
    assert [window.is_new(position, position) for position in (2, 3, 1)] == [False, False, True]
