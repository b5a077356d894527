"""What a subscription with last values gives to its application."""

from __future__ import annotations

from palio.protocol.client.last_value_filter import LastValueFilter
from palio.protocol.wire.headers import DeliverHeader
from palio.protocol.wire.last_values import retaining, stamped
from palio.protocol.wire.message_headers import packed


def value(key: int, time_us: int) -> tuple[DeliverHeader, bytes]:
    headers = stamped(retaining("x"), time_us, key.to_bytes(16, "big"))
    return DeliverHeader((1,), 0, "ann", time_us, 0), packed(headers, 1000)


def test_nothing_twice_and_nothing_older() -> None:
    found = LastValueFilter()
    assert [found.is_new(*value(1, time)) for time in (5, 5, 4, 6)] == [True, False, False, True]
    assert found.is_new(*value(2, 1))


def test_other_messages_are_not_its_business() -> None:
    found = LastValueFilter()
    header = DeliverHeader((1,), 0, "ann", 1, 0)
    for payload in (b"\0\0", b"\0\0retain", packed({"retain": '["x"]'}, 100), b"\xff\xffretain"):
        assert [found.is_new(header, payload) for _ in range(2)] == [True, True]


def test_it_remembers_so_many_keys() -> None:
    found = LastValueFilter(keys_max=2)
    assert all(found.is_new(*value(key, 5)) for key in (1, 2, 3))
    assert not found.is_new(*value(3, 4))
    assert found.is_new(*value(1, 4)), "forgotten"
