"""Handshakes: who is at the other end of a new connection.

    client     Hello ─▶ Welcome
    neighbour  Hello ─▶ Welcome with a proof ─▶ Confirm with a proof; either end may have dialled

Until the handshake is complete a link has small limits and carries nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

from palio.protocol.broker.clients import Clients
from palio.protocol.broker.data_path import DataPath
from palio.protocol.broker.effects import Output
from palio.protocol.broker.links import Link
from palio.protocol.broker.neighbour_messages import NeighbourMessages
from palio.protocol.broker.settings import Settings
from palio.protocol.durability.message_store import MessageStore
from palio.protocol.wire.control import VERSION, Confirm, ControlMessage, Hello, Welcome
from palio.protocol.wire.frames import BrokenFrame, FrameKind, scan_forward, scan_publish
from palio.protocol.wire.handshake import (
    NONCE_BYTES,
    Answering,
    Dialling,
    LinkTerms,
    answer,
    dial,
    is_client,
)


class Handshakes:
    """`random(n)` returns n unpredictable bytes."""

    def __init__(
        self,
        settings: Settings,
        clients: Clients,
        neighbours: NeighbourMessages,
        data_path: DataPath,
        messages: MessageStore,
        output: Output,
        random: Callable[[int], bytes],
    ) -> None:
        self._settings = settings
        self._clients, self._neighbours = clients, neighbours
        self._data_path, self._messages = data_path, messages
        self._output, self._random = output, random

    def dial(self, link: Link, neighbour: str) -> None:
        """This broker has dialled a neighbour."""
        link.dialled = neighbour
        known, nonce = self._settings.neighbours[neighbour], self._random(NONCE_BYTES)
        terms = LinkTerms(known.role, self._settings.routing)
        link.handshake, hello = dial(self._settings.name, neighbour, known.secret, nonce, terms)
        self._output.say(link.number, hello)

    def hear(self, link: Link, message: ControlMessage, now_us: int) -> None:
        """Process a control message of a link whose other end is not known yet."""
        settings, credit = self._settings, self._settings.link_credit
        if isinstance(message, Hello) and link.handshake is None and is_client(message):
            self._data_path.flush()  # what came over an older connection of this client
            if self._clients.welcome(link, message):
                self._data_path.held.forget(link.publisher)  # it sends that again
            link.reader.limits = settings.limits
            link.reader.batches = {FrameKind.PUBLISH: scan_publish}
            self._welcome(link)
        elif isinstance(message, Hello) and link.handshake is None:
            secrets = {name: n.secret for name, n in settings.neighbours.items()}
            nonce = self._random(NONCE_BYTES)
            terms = LinkTerms(settings.role_of(message.name), settings.routing)
            link.handshake, welcome = answer(settings.name, message, secrets, nonce, credit, terms)
            self._output.say(link.number, welcome)
        elif isinstance(message, Welcome) and isinstance(link.handshake, Dialling):
            self._output.say(link.number, link.handshake.welcome(message, credit))
            self._join(link, link.handshake.other, message.credit, now_us)
        elif isinstance(message, Confirm) and isinstance(link.handshake, Answering):
            link.handshake.confirm(message)
            self._join(link, link.handshake.other, message.credit, now_us)
        else:
            kind = type(message).__name__
            raise BrokenFrame(f"{kind} is no part of a handshake; say Hello first")

    def _join(self, link: Link, name: str, credit: int, now_us: int) -> None:
        link.reader.limits = self._settings.limits
        link.reader.batches = {FrameKind.FORWARD: scan_forward}
        link.credit = credit or self._settings.link_credit
        self._neighbours.join(link, name, now_us)

    def _welcome(self, link: Link) -> None:
        """Answer Hello of a client whose identity is known."""
        assert link.identity is not None
        published = self._messages.last_number(link.publisher)
        name = self._settings.name
        silence_us = 0 if link.origin.is_in_process else 3 * self._settings.keepalive_us
        self._output.say(
            link.number,
            Welcome(VERSION, name, link.identity.name, published, silence_us),
        )
