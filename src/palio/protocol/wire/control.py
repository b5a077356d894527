"""Control messages: all that clients and brokers send except published messages (frames.py).

    client ──▶ broker                                   broker ──▶ client
    Hello                                               Welcome, or Bye with the reason
    SubscribeRequest, UnsubscribeRequest                Subscribed, Unsubscribed, SubscriptionEnded
    Acknowledge, Nack, Reject, Credit                        Occurred; (messages: DELIVER)
    AdvertiseRequest, UnadvertiseRequest, Quench        Done, Wanted
    (messages: PUBLISH)                                 Published, Rejected
    Explain, Show, Forget; queue_control.py             Explained, Shown, Done; any request: Refused

    broker ◀──▶ broker
    Hello, Welcome, Confirm       who they are, proved by a secret that both know
    Credit                        how many more messages may be sent over this connection
    Digest, LinkStates, Missing   link-state flooding (policies/link_state.py)
    RouterPacket                  a packet of the routers: subscription forwarding (routing/packets.py)
    CarryAck                      a stream's acknowledgement, on its way to the origin
    ExplainHop, HopExplained      an explanation, hop by hop
    Ping, Pong, Bye               also between clients and brokers

`id` is chosen by whoever asks, and is in the answer. Predicates, patterns and advertisements are text. Times
are microseconds since 1970, UTC. What grows with the network goes in parts (parts.py).
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from palio.protocol.wire.codes import CloseCode as CloseCode
from palio.protocol.wire.codes import EndCode, NeighbourRole, RefusalCode, RejectionCode
from palio.protocol.wire.link_states import Digest as Digest
from palio.protocol.wire.link_states import Durable as Durable
from palio.protocol.wire.link_states import LinkState as LinkState
from palio.protocol.wire.link_states import LinkStates as LinkStates
from palio.protocol.wire.link_states import Missing as Missing
from palio.protocol.wire.queue_control import ForgetDurable, QueueAnswer, QueueRequest
from palio.protocol.wire.routing_memory import RoutingMemory
from palio.protocol.wire.structs import ControlStruct as _Control
from palio.protocol.wire.structs import Number

VERSION = 4
NACKED_MAX = 1 << 10
"""Positions of one Nack."""
REJECTION_MAX = 1000
"""Characters of the reason in Reject."""
DELAY_US_MAX = 366 * 24 * 3600 * 1_000_000
POSITIONS_MAX = CONSTRAINTS_MAX = 1 << 16
"""Of one Acknowledge, or AdvertiseRequest: a frame with more is not decoded."""


# ---- either way


class Ping(_Control, frozen=True, tag="Ping"):
    number: Number


class Pong(_Control, frozen=True, tag="Pong"):
    number: Number


class Bye(_Control, frozen=True, tag="Bye"):
    """The connection ends after this; `reason` is for people."""

    reason: str
    code: CloseCode = CloseCode.PROTOCOL


class Credit(_Control, frozen=True, tag="Credit"):
    """`count` more messages may be sent: for a subscription (`id`), or to a neighbour (id 0)."""

    id: Number
    count: Number


# ---- handshake


class Hello(_Control, frozen=True, tag="Hello"):
    """The first message of whoever dials."""

    version: Number
    role: str
    """A `HelloRole`."""
    name: str
    """A client's name is its own choice."""
    token: str = ""
    """Identifies a client; brokers never send one."""
    nonce: bytes = b""
    """Of a broker: the other end proves that it knows the secret by signing this."""
    session: str = ""
    """Of a client: a nonce that it keeps over its connections. The numbers of its messages go on within
    the session; clients with one name and different sessions are different publishers. Empty: the
    numbers go on under the name alone, so one client at a time may use it."""


class Welcome(_Control, frozen=True, tag="Welcome"):
    """The answer to Hello."""

    version: Number
    broker: str
    identity: str = ""
    """The identity of the client; names of clients and durables are unique within it."""
    published: Number = 0
    """The last number of a durable message that is stored for this session."""
    keepalive_us: Number = 0
    """After this silence an end closes the connection; send Ping before."""
    nonce: bytes = b""
    proof: bytes = b""
    credit: Number = 0
    """Of a broker: how many messages it takes over this link before it grants more; 0: as many as
    the other end would."""
    neighbour_role: str = NeighbourRole.PEER
    """Of a broker: what the other end is to it, a `NeighbourRole`."""
    routing: str = ""
    """Of a broker: its routing policy; empty: it does not say."""


class Confirm(_Control, frozen=True, tag="Confirm"):
    """A broker's own proof: the last message of the handshake between brokers."""

    proof: bytes
    credit: Number = 0
    neighbour_role: str = NeighbourRole.PEER
    routing: str = ""
    """All three as in Welcome."""


# ---- requests of clients


class SubscribeRequest(_Control, frozen=True, tag="SubscribeRequest"):
    id: Number
    predicate: str = ""
    pattern: str = ""
    """Either this or `predicate` is given."""
    durable: str = ""
    """Its name, unique within the identity and group; empty: a live one."""
    since: Number | None = None
    """Durable only: replay what was stored since this time and is still kept; None: now."""
    group: str = ""
    """Each message goes to one member of the group. With `durable`, each group of that name has a queue."""
    credit: Number = 1000
    """The most messages that may be in flight: unacknowledged, or without new credit."""
    full: str = ""
    """What a full queue does: a `Full`; empty: the broker decides."""
    deliveries_max: Number = 0
    """Durable only: what was delivered so often is a dead letter; 0: the broker decides."""
    home: str = ""
    """Durable only: the broker where it lives; empty: this one."""
    last: bool = False
    """Live only: first the last values that it selects."""


class UnsubscribeRequest(_Control, frozen=True, tag="UnsubscribeRequest"):
    id: Number
    forget: bool = False
    """End a durable subscription for good, with its queue."""


class Acknowledge(_Control, frozen=True, tag="Acknowledge"):
    """The client has processed these positions of a durable subscription."""

    id: Number
    positions: Annotated[tuple[Number, ...], msgspec.Meta(max_length=POSITIONS_MAX)]


class Nack(_Control, frozen=True, tag="Nack"):
    """The client gives these positions of a durable subscription back: to be sent again."""

    id: Number
    positions: Annotated[tuple[Number, ...], msgspec.Meta(max_length=NACKED_MAX)]
    delay_us: Annotated[int, msgspec.Meta(ge=0, le=DELAY_US_MAX)] = 0
    """Not before so much time has passed; at most DELAY_US_MAX."""


class Reject(_Control, frozen=True, tag="Reject"):
    """The client will never process these positions of a durable subscription: they are dead letters."""

    id: Number
    positions: Annotated[tuple[Number, ...], msgspec.Meta(max_length=NACKED_MAX)]
    reason: Annotated[str, msgspec.Meta(max_length=REJECTION_MAX)] = ""
    """For people, who read it in the dead letter."""


class AdvertiseRequest(_Control, frozen=True, tag="AdvertiseRequest"):
    """The client publishes only messages that this allows. One constraint per entry."""

    id: Number
    constraints: Annotated[tuple[str, ...], msgspec.Meta(max_length=CONSTRAINTS_MAX)]


class UnadvertiseRequest(_Control, frozen=True, tag="UnadvertiseRequest"):
    id: Number


class Quench(_Control, frozen=True, tag="Quench"):
    """Turn quenching on or off: `Wanted` tells what subscribers want."""

    id: Number
    on: bool


class Explain(_Control, frozen=True, tag="Explain"):
    """Ask where a message would go if published here; `subscription`: why (not) there."""

    id: Number
    attributes: str
    subscription: str = ""


class Show(_Control, frozen=True, tag="Show"):
    """Ask for the network as this broker sees it; `memory`: with what each holds to route."""

    id: Number
    memory: bool = False


class Forget(_Control, frozen=True, tag="Forget"):
    """Remove the durable subscriptions of a broker that will not return."""

    id: Number
    broker: str


# ---- answers of brokers


class Subscribed(_Control, frozen=True, tag="Subscribed"):
    id: Number
    position: Number = 0
    """Of the last message of a durable subscription that was acknowledged."""
    last: Number = 0
    """Of the last message that waits in its queue now."""
    version: Number = 0
    """Of the durable subscription; a different one means that it was recreated."""
    took_over: bool = False
    """Another client has consumed the durable subscription until now, and was told that it is over."""


class Unsubscribed(_Control, frozen=True, tag="Unsubscribed"):
    id: Number


class SubscriptionEnded(_Control, frozen=True, tag="SubscriptionEnded"):
    """The broker ended a subscription; `reason` is for people."""

    id: Number
    reason: str
    code: EndCode


class Published(_Control, frozen=True, tag="Published"):
    """All durable messages up to this number are stored, or were rejected."""

    number: Number


class Rejected(_Control, frozen=True, tag="Rejected"):
    """The broker will never accept this message."""

    number: Number
    reason: str
    code: RejectionCode = RejectionCode.INVALID


class Refused(_Control, frozen=True, tag="Refused"):
    """The broker refuses a request; `reason` is for people."""

    id: Number
    reason: str
    code: RefusalCode = RefusalCode.INVALID
    text: str = ""
    """The predicate or pattern that is wrong; empty if it is very long."""
    position: Number = 0
    """Of the character in `text` that is wrong."""
    broker: str = ""
    """Ask this one."""
    address: str = ""
    """At which clients reach that broker; empty: nobody has said."""


class Done(_Control, frozen=True, tag="Done"):
    id: Number


class Wanted(_Control, frozen=True, tag="Wanted"):
    """The union of all interests that the publisher may serve; None: unknown, send everything."""

    predicate: str | None


class PatternItem(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One message of an occurrence of a pattern."""

    attributes: str
    publisher: str
    number: Number
    time: Number


class Occurred(_Control, frozen=True, tag="Occurred"):
    """A watched pattern has occurred."""

    id: Number
    items: tuple[PatternItem, ...]
    more: bool = False


class Hop(msgspec.Struct, frozen=True, array_like=True):
    """What one broker does with a message, and why."""

    broker: str
    came_from: str
    delivers: tuple[tuple[str, str], ...]
    """Subscriptions, each with the reason why it matches (or, if asked for, does not)."""
    sends: tuple[tuple[str, str], ...]
    """Next brokers, each with the reason."""


class Explained(_Control, frozen=True, tag="Explained"):
    id: Number
    hops: tuple[Hop, ...]
    silent: tuple[str, ...] = ()
    """Brokers that did not reply in time."""
    more: bool = False


class Place(msgspec.Struct, frozen=True, array_like=True):
    """A broker in the topology."""

    broker: str
    links: tuple[tuple[str, float], ...]
    subscriptions: Number
    durable: Number
    reachable: bool
    memory: RoutingMemory | None = None
    master: str = ""
    address: str = ""  # at which clients reach it; empty: it does not say


class Shown(_Control, frozen=True, tag="Shown"):
    id: Number
    places: tuple[Place, ...]
    more: bool = False


# ---- between brokers


class RouterPacket(_Control, frozen=True, tag="RouterPacket"):
    """A packet of the routing layer, encoded (packets.py), or a part of its bytes."""

    packet: bytes
    more: bool = False


class CarryAck(_Control, frozen=True, tag="CarryAck"):
    """`broker` has stored all up to `number`; `window`: it takes so many more (0: as `origin` would)."""

    origin: str
    epoch: str
    broker: str
    number: Number
    window: Number = 0
    window_bytes: Number = 0


class ExplainHop(_Control, frozen=True, tag="ExplainHop"):
    """Explain this message, as it would travel; `route` as in a ForwardHeader."""

    id: Number
    asker: str
    came_from: str
    attributes: str
    subscription: str
    route: msgspec.Raw = msgspec.Raw(b"\xc0")


class HopExplained(_Control, frozen=True, tag="HopExplained"):
    """A broker's answer to ExplainHop; goes to the asker."""

    id: Number
    asker: str
    hop: Hop


_EitherWay: TypeAlias = Ping | Pong | Bye | Credit | Hello | Welcome | Confirm
_Subscribing: TypeAlias = SubscribeRequest | UnsubscribeRequest | Acknowledge | Nack | Reject
_Publishing: TypeAlias = AdvertiseRequest | UnadvertiseRequest | Quench
_Asking: TypeAlias = Explain | Show | Forget | Explained | Shown
_ToSubscriber: TypeAlias = Subscribed | Unsubscribed | SubscriptionEnded | Occurred
_ToClient: TypeAlias = _ToSubscriber | Published | Rejected | Refused | Done | Wanted
_LinkState: TypeAlias = Digest | LinkStates | Missing
_BetweenBrokers: TypeAlias = _LinkState | RouterPacket | CarryAck | ExplainHop | HopExplained
_Queues: TypeAlias = QueueRequest | ForgetDurable | QueueAnswer
ControlMessage: TypeAlias = (
    _EitherWay | _Subscribing | _Publishing | _Asking | _Queues | _ToClient | _BetweenBrokers
)
