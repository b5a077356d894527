"""What happens in one run: the network, who is where, and what they do when.

    Plan ── brokers and links, clients and their homes, bounds, operations in the order of time

An operation is one line of a trace. Those on a subscription name it by its desk: the word under which
a client keeps it, and of a durable one also its name at the broker.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

import msgspec

from palio.protocol.durability.bounds import Bounds


class Verb(StrEnum):
    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    LEAVE = "leave"
    """A durable subscription waits for the client to come back."""
    FORGET = "forget"
    """The subscription ends for good."""
    CONNECT = "connect"
    DISCONNECT = "disconnect"
    CRASH = "crash"
    RESTART = "restart"
    CUT = "cut"
    SILENCE = "silence"
    PART = "part"
    JOIN = "join"
    FREEZE = "freeze"
    THAW = "thaw"


class Want(msgspec.Struct, frozen=True):
    """A subscription."""

    desk: str
    predicate: str
    durable: bool = False
    past_us: int | None = None
    """Durable: it begins so long ago; None: now."""
    group: str = ""
    credit: int = 1000
    full: str = ""


class Sending(msgspec.Struct, frozen=True):
    """A message to publish."""

    attributes: str
    body: bytes
    durable: bool


Argument: TypeAlias = Want | Sending | str | None


class Operation(msgspec.Struct, frozen=True):
    time_us: int
    verb: Verb
    who: str
    """A client or a broker, or where a link begins."""
    argument: Argument = None
    """A desk, the other end of a link, or how a broker crashes: now, silently, in a commit."""

    def __str__(self) -> str:
        argument = self.argument
        if isinstance(argument, Sending):
            argument = f"{argument.attributes}{' durable' if argument.durable else ''}"
        elif isinstance(argument, Want):
            said = msgspec.structs.asdict(argument)
            argument = " ".join(f"{name}={value}" for name, value in said.items() if value)
        return f"{self.who} {self.verb}" + (f" {argument}" if argument is not None else "")


class Edge(msgspec.Struct, frozen=True):
    """A link of two brokers. The first dials, and perhaps the second does too."""

    first: str
    second: str
    weight: float
    both_dial: bool


class ClientPlan(msgspec.Struct, frozen=True):
    name: str
    home: str
    pace_us: int
    """The longest that it takes to deal with a message."""


class Plan(msgspec.Struct, frozen=True):
    seed: int
    routing: str
    brokers: tuple[str, ...]
    edges: tuple[Edge, ...]
    clients: tuple[ClientPlan, ...]
    advertisements: bool = False
    link_credit: int = 20_000
    waiting_max: int = 10_000
    full: str = "block"
    bounds: Bounds = Bounds()
    operations: tuple[Operation, ...] = ()
