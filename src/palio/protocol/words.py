"""Words: what clients and brokers say to each other, apart from messages (frames.py).

    client ──▶ broker                              broker ──▶ client
    Hello                                          Welcome, or Bye with the reason
    Subscribe, Unsubscribe, Acknowledge, Credit    Subscribed, Unsubscribed, Ended, Occurred
    (messages: PUBLISH)                            Published, Rejected; (messages: DELIVER)
    Advertise, Unadvertise, Quench                 Done, Wanted
    Explain, Show, Forget                          Explained, Shown, Done
    any request                                    Refused

    broker ◀──▶ broker
    Hello, Welcome, Confirm     who they are, proved by a secret that both know
    Credit                      how many more messages may be sent over this connection
    Digest, States, Missing     link-state flooding (landscape.py)
    Said                        a packet of the routers: subscription forwarding (routing/packets)
    Got                         a stream's acknowledgement, on its way to the origin
    Asked, Told                 an explanation, hop by hop

    either way                  Ping, Pong, Bye

`id` is chosen by whoever asks and comes back with the answer. Predicates, patterns and
advertisements travel as text. Times are microseconds since 1970, UTC. Numbers have 63 bits.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

VERSION = 1

Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""Every number that travels; one outside is refused where it comes in, so nobody asks again."""


class _Word(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    pass


# ---- either way


class Ping(_Word, frozen=True):
    number: Number


class Pong(_Word, frozen=True):
    number: Number


class Bye(_Word, frozen=True):
    """The connection ends after this; `reason` is for people."""

    reason: str


class Credit(_Word, frozen=True):
    """This many more messages may come: for a subscription (`id`), or over a link of brokers (0)."""

    id: Number
    count: Number


# ---- who they are


class Hello(_Word, frozen=True):
    """The first word of whoever dials."""

    version: Number
    role: str
    """client or broker"""
    name: str
    """A client's name is its own choice: the numbers of its messages go on under it."""
    token: str = ""
    """What a client may do is known by it; brokers never send one."""
    nonce: bytes = b""
    """Of a broker: the other end proves that it knows the secret by signing this."""


class Welcome(_Word, frozen=True):
    """The answer to Hello."""

    version: Number
    broker: str
    identity: str = ""
    """Whom the broker takes the client for; names are kept apart by it."""
    published: Number = 0
    """The last number of a durable message that is stored for this client."""
    keepalive_us: Number = 0
    """Who has heard nothing for this long closes; say Ping in time."""
    nonce: bytes = b""
    proof: bytes = b""


class Confirm(_Word, frozen=True):
    """A broker's own proof: the last word of the handshake between brokers."""

    proof: bytes


# ---- requests of clients


class Subscribe(_Word, frozen=True):
    id: Number
    predicate: str = ""
    pattern: str = ""
    """One of the two is given."""
    durable: str = ""
    """The name of a subscription that outlives the connection; within the client's identity."""
    since: Number | None = None
    """Durable only: also what was published from this time on and is still kept; None: from now."""
    group: str = ""
    """Each message goes to one member of the group; with `durable` all share that subscription."""
    credit: Number = 1000
    """The most messages that may be under way: unacknowledged, or not paid for by Credit."""
    full: str = ""
    """What happens when more than the bound wait: block, drop or end; empty: the broker's way."""


class Unsubscribe(_Word, frozen=True):
    id: Number
    forget: bool = False
    """End a durable subscription for good, not only for now."""


class Acknowledge(_Word, frozen=True):
    """These positions of a durable subscription are dealt with."""

    id: Number
    positions: tuple[Number, ...]


class Advertise(_Word, frozen=True):
    """I publish nothing that this does not allow; constraints as in a predicate, one per entry."""

    id: Number
    constraints: tuple[str, ...]


class Unadvertise(_Word, frozen=True):
    id: Number


class Quench(_Word, frozen=True):
    """Tell me from now on (or no more) what anyone wants."""

    id: Number
    on: bool


class Explain(_Word, frozen=True):
    """Where would this message go, published here, and why; `subscription`: why (not) there."""

    id: Number
    attributes: str
    subscription: str = ""


class Show(_Word, frozen=True):
    """The network as this broker sees it."""

    id: Number


class Forget(_Word, frozen=True):
    """A broker that is away is gone for good: no message waits for its subscriptions any more."""

    id: Number
    broker: str


# ---- answers of brokers


class Subscribed(_Word, frozen=True):
    id: Number
    position: Number = 0
    """Of the last message of a durable subscription that was acknowledged."""
    last: Number = 0
    """Of the last message that waits in its queue now."""
    version: Number = 0
    """Of the durable subscription: another one means that it was made anew, and counts anew."""


class Unsubscribed(_Word, frozen=True):
    id: Number


class Ended(_Word, frozen=True):
    """The broker ends a subscription: bound, grants, or it was taken over by another client."""

    id: Number
    reason: str


class Published(_Word, frozen=True):
    """All durable messages up to this number are stored, or were rejected."""

    number: Number


class Rejected(_Word, frozen=True):
    """A message that was not taken, and never will be."""

    number: Number
    reason: str


class Refused(_Word, frozen=True):
    """No to a request."""

    id: Number
    reason: str


class Done(_Word, frozen=True):
    id: Number


class Wanted(_Word, frozen=True):
    """Somebody wants this, and nobody anything else; None: it is not known, so send everything."""

    predicate: str | None


class Item(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message of a compound."""

    attributes: str
    publisher: str
    number: Number
    time: Number


class Occurred(_Word, frozen=True):
    """What a pattern waited for has happened."""

    id: Number
    items: tuple[Item, ...]


class Hop(msgspec.Struct, frozen=True, array_like=True):
    """What one broker does with a message, and why."""

    broker: str
    came_from: str
    delivers: tuple[tuple[str, str], ...]
    """Subscription and the reason that it matches, or does not when it was asked for."""
    sends: tuple[tuple[str, str], ...]
    """Next broker and the reason."""


class Explained(_Word, frozen=True):
    id: Number
    hops: tuple[Hop, ...]
    silent: tuple[str, ...] = ()
    """Brokers that should have told and did not in time."""


class Place(msgspec.Struct, frozen=True, array_like=True):
    """A broker on the map."""

    broker: str
    links: tuple[tuple[str, float], ...]
    subscriptions: Number
    durable: Number
    reachable: bool


class Shown(_Word, frozen=True):
    id: Number
    places: tuple[Place, ...]


# ---- between brokers


class Durable(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A durable subscription, as all brokers know it."""

    predicate: str
    since: Number
    version: Number
    """A name that is used again has a larger one."""


class State(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a broker says about itself, whole or (`base` > 0) as changes since number `base`."""

    broker: str
    epoch: str
    number: Number
    base: Number
    links: tuple[tuple[str, float], ...]
    """Always whole."""
    wanted: tuple[str, ...] = ()
    """Filters of live subscriptions, reduced; only where a routing scheme needs them."""
    unwanted: tuple[str, ...] = ()
    durable: dict[str, Durable] = {}
    undurable: tuple[str, ...] = ()
    is_faded: bool = False
    """Only the durable facts are known still: nobody has heard of the broker for long. Whole."""


class Digest(_Word, frozen=True):
    """What is known: broker, epoch and number. The other end sends what is newer there."""

    known: tuple[tuple[str, str, Number], ...]


class States(_Word, frozen=True):
    states: tuple[State, ...]


class Missing(_Word, frozen=True):
    """A change came for which the base is not here: send these whole."""

    brokers: tuple[str, ...]


class Said(_Word, frozen=True):
    """A packet of the routing layer, encoded (packets.py)."""

    packet: bytes


class Got(_Word, frozen=True):
    """`broker` has stored all of the stream from `origin` up to `number`; goes to the origin."""

    origin: str
    epoch: str
    broker: str
    number: Number


class Asked(_Word, frozen=True):
    """Explain this message, as it would travel; `trail` as in a Forward."""

    id: Number
    asker: str
    came_from: str
    attributes: str
    subscription: str
    trail: msgspec.Raw = msgspec.Raw(b"\xc0")


class Told(_Word, frozen=True):
    """A broker's answer to Asked; goes to the asker."""

    id: Number
    asker: str
    hop: Hop


Word: TypeAlias = (
    Ping
    | Pong
    | Bye
    | Credit
    | Hello
    | Welcome
    | Confirm
    | Subscribe
    | Unsubscribe
    | Acknowledge
    | Advertise
    | Unadvertise
    | Quench
    | Explain
    | Show
    | Forget
    | Subscribed
    | Unsubscribed
    | Ended
    | Published
    | Rejected
    | Refused
    | Done
    | Wanted
    | Occurred
    | Explained
    | Shown
    | Digest
    | States
    | Missing
    | Said
    | Got
    | Asked
    | Told
)
