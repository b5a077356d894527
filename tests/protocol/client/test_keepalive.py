"""The keepalive: deadlines, pings, and silence."""

from palio.protocol.client.events import CloseCause
from palio.protocol.client.keepalive import Keepalive


def test_without_a_connection_nothing_is_due() -> None:
    keepalive = Keepalive(handshake_us_max=100)
    assert keepalive.deadline_us is None
    assert keepalive.check(1 << 60) is None
    assert not keepalive.takes_ping(1 << 60)


def test_welcome_must_come_in_time() -> None:
    keepalive = Keepalive(handshake_us_max=100)
    keepalive.begin(1000)
    assert keepalive.deadline_us == 1100
    assert keepalive.check(1099) is None
    closing = keepalive.check(1100)
    assert closing is not None
    assert closing.cause is CloseCause.NO_WELCOME
    keepalive.stop()
    assert keepalive.deadline_us is None


def test_pings_come_three_times_as_often_as_silence_is_allowed() -> None:
    keepalive = Keepalive(handshake_us_max=100)
    keepalive.begin(0)
    keepalive.welcome(300, 0)
    pings = [now_us for now_us in range(0, 300, 10) if keepalive.takes_ping(now_us)]
    assert pings == [100, 200]
    assert keepalive.check(299) is None
    closing = keepalive.check(300)
    assert closing is not None
    assert closing.cause is CloseCause.SILENCE


def test_a_broker_may_ask_for_no_keepalive() -> None:
    keepalive = Keepalive(handshake_us_max=100)
    keepalive.begin(0)
    keepalive.welcome(0, 0)
    assert keepalive.deadline_us is None
    assert keepalive.check(1 << 60) is None
    assert not keepalive.takes_ping(1 << 60)


def test_a_client_that_slept_gives_the_broker_time() -> None:
    keepalive = Keepalive(handshake_us_max=100)
    keepalive.begin(0)
    keepalive.welcome(300, 0)
    assert keepalive.check(10_000) is None
    assert keepalive.takes_ping(10_000)
    assert keepalive.deadline_us == 10_100
