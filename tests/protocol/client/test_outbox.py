"""The outbox: what leaves it, and what counts as settled."""

from palio.protocol.client.outbox import Outbox


def filled(*numbers: int) -> Outbox:
    outbox = Outbox(messages_max=4, bytes_max=100)
    for number in numbers:
        outbox.add(number, b"frame %d" % number)
    return outbox


def test_stored_messages_leave_in_order() -> None:
    outbox = filled(7, 8, 9)
    assert outbox.store(8)
    assert not outbox.store(8), "nothing of it was here"
    assert list(outbox) == [b"frame 9"]
    assert (outbox.settled, outbox.unstored) == (8, 1)
    assert [outbox.is_unstored(number) for number in (7, 8, 9)] == [False, False, True]


def test_a_rejected_message_settles_once_those_before_it_are() -> None:
    outbox = filled(7, 8, 9)
    assert not outbox.reject(8), "7 is still open"
    assert not outbox.reject(8)
    assert outbox.store(7)
    assert outbox.settled == 8
    assert outbox.reject(9)
    assert (outbox.settled, outbox.unstored) == (9, 0)


def test_it_is_bounded_by_count_and_bytes() -> None:
    outbox = filled(1, 2, 3)
    assert outbox.has_room
    outbox.add(4, b"")
    assert not outbox.has_room
    outbox.store(4)
    outbox.add(5, bytes(100))
    assert not outbox.has_room
    outbox.reject(5)
    assert outbox.has_room
