"""Readers of attributes within brokers: what subscribers get must be what the model says.

    bob ─PUBLISH─▶ b ─FORWARD─▶ a ─DELIVER─▶ ann, with a subscription for each probe

Two networks: in one the tables of interests are compiled, as in a broker of many subscriptions, in
the other Python evaluates them. A text that the model refuses is rejected by b, and by nobody else.
"""

from __future__ import annotations

from collections.abc import Sequence

from palio.model.predicate import Predicate
from palio.protocol.broker.admission import UNREADABLE_MAX
from palio.protocol.wire.control import Rejected
from palio.protocol.wire.frames import Limits
from tests.fuzz.attribute_readers import PROBES, read
from tests.fuzz.findings import Finding
from tests.protocol.exchange import network

FEW = 30
"""Probes that are evaluated."""


class BrokerReaders:
    def __init__(self) -> None:
        probes = list(PROBES.values())
        self._networks = [_Subscribed(probes), _Subscribed(probes[:: len(probes) // FEW])]

    def check(self, texts: Sequence[bytes]) -> None:
        """Raises a Finding where a subscriber gets something else."""
        for start in range(0, len(texts), UNREADABLE_MAX):  # who sends more of them is cut off
            for each in self._networks:
                each.check(texts[start : start + UNREADABLE_MAX])


class _Subscribed:
    def __init__(self, probes: list[Predicate]) -> None:
        self._exchange = network([("a", "b")])
        self._ann, self._bob = self._exchange.client("a", "ann"), self._exchange.client("b", "bob")
        subscribe = self._ann.session.subscriptions.subscribe
        self._probes = {subscribe(str(probe), credit=1 << 30): probe for probe in probes}
        self._exchange.run()

    def check(self, texts: Sequence[bytes]) -> None:
        texts = [text for text in texts if len(text) <= Limits().attributes]  # no client sends more
        publish, now_us = self._bob.session.publisher.publish, self._exchange.now_us
        numbers = [publish(text, b"", now_us, False) for text in texts]
        try:
            self._exchange.run()
        except Exception as error:
            raise Finding(f"a broker fails: {type(error).__name__}: {error}", texts) from error
        delivered: dict[int, set[int]] = {}
        for arrival in self._ann.arrivals:
            delivered.setdefault(arrival.header.number, set()).add(arrival.id)
        rejected = {one.number for one in self._bob.control_messages if isinstance(one, Rejected)}
        self._ann.arrivals.clear()
        self._ann.control_messages.clear()
        self._bob.control_messages.clear()
        for number, text in zip(numbers, texts, strict=True):
            message = read(text)
            if (message is None) != (number in rejected):
                raise Finding(f"the model reads {message!r}, the broker does not agree", [text])
            if message is None:
                wanted = set()
            else:
                wanted = {id for id, probe in self._probes.items() if probe.matches(message)}
            if delivered.get(number, set()) != wanted:
                differ = [str(self._probes[id]) for id in delivered.get(number, set()) ^ wanted]
                raise Finding(f"brokers deliver it otherwise: {differ[:5]}", [text])
        for name, broker in self._exchange.brokers.items():
            if broker.snapshot().live.misread:
                raise Finding(f"{name} found that its readers do not agree", texts)
