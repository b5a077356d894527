"""The clients of a broker: their connections, their requests and the answers.

    SubscribeRequest, UnsubscribeRequest, ForgetDurable, Credit  ─▶ subscriptions.py
    AdvertiseRequest, UnadvertiseRequest                      ─▶ interests.py
    Quench, Explain, Show, Forget; about queues               ─▶ operations.py

A client has an identity (access.py), a name that it chooses and a session. Together they name the
publisher of its messages (wire/publishers.py). The identity alone owns durable subscriptions and groups, so several clients of one
application can share them. A request that an identity may not make is refused, with the reason.
"""

from __future__ import annotations

from typing import TypeAlias

from palio.errors import InvalidFile, PalioError
from palio.model.advertisement import Advertisement, parse_advertisement
from palio.model.predicate import Filter
from palio.protocol.broker.access import Access, Identity
from palio.protocol.broker.durable import Consumer
from palio.protocol.broker.effects import BackgroundJob, Output
from palio.protocol.broker.interests import Interests
from palio.protocol.broker.links import Link, Links
from palio.protocol.broker.operations import OperationRequest, Operations
from palio.protocol.broker.scheduler import Slices, WorkList
from palio.protocol.broker.settings import ConnectionBounds, SubscriptionBounds
from palio.protocol.broker.subscription_checks import refusing
from palio.protocol.broker.subscriptions import ClientSubscriptions
from palio.protocol.broker.text_budget import predicate_bytes
from palio.protocol.durability.message_store import MessageStore
from palio.protocol.interfaces import Advertiser, PublishGrant
from palio.protocol.wire.codes import RefusalCode
from palio.protocol.wire.control import (
    AdvertiseRequest,
    CloseCode,
    ControlMessage,
    Credit,
    Done,
    Hello,
    Nack,
    Reject,
    SubscribeRequest,
    UnadvertiseRequest,
    UnsubscribeRequest,
)
from palio.protocol.wire.frames import BrokenFrame
from palio.protocol.wire.handshake import TooManyConnections, check_client
from palio.protocol.wire.publishers import publisher_key
from palio.protocol.wire.queue_control import ForgetDurable, QueueRequest
from palio.protocol.wire.refusals import RequestRefused, refused

_FEW_CONSTRAINTS = 4
"""Of an advertisement: they are parsed at once; more of them are a job."""

_About: TypeAlias = SubscribeRequest | UnsubscribeRequest | ForgetDurable
_Offers: TypeAlias = AdvertiseRequest | UnadvertiseRequest
Request: TypeAlias = _About | _Offers | QueueRequest | OperationRequest
Advertised: TypeAlias = dict[int, tuple[Advertisement, int]]
"""The advertisements of a client, by id, and their bytes."""


class Clients:
    def __init__(
        self,
        access: Access,
        connections: ConnectionBounds,
        links: Links,
        interests: Interests,
        subscriptions: ClientSubscriptions,
        messages: MessageStore,
        operations: Operations,
        output: Output,
        work: WorkList,
        bounds: SubscriptionBounds,
    ) -> None:
        self._access = access
        self._connections = connections
        self._links = links
        self._interests = interests
        self._subscriptions = subscriptions
        self._messages = messages
        self._operations = operations
        self._output = output
        self._work = work
        self._bounds = bounds
        self._clients: dict[int, Link] = {}
        self._budget = subscriptions.budget
        self._advertised: dict[int, Advertised] = {}
        self._connected: dict[str, int] = {}  # how many clients have an identity
        self._restricted: dict[str, int] = {}  # the same of identities with a grant

    def __len__(self) -> int:
        return len(self._clients)

    # ---- coming and going

    def welcome(self, link: Link, hello: Hello) -> bool:
        """Add a client that said Hello; True: it replaces an older connection. Raises Forbidden if it
        cannot be identified."""
        check_client(hello)
        identity = link.identity or self._access.identify(hello.token, link.origin.certificate)
        publisher = publisher_key(identity.name, hello.name, hello.session)
        known = self._links.publishers.get(publisher)
        if known is None:
            self._check_room(identity.name)
        else:
            self.leave(known)
            reason = f"client {hello.name!r} has a newer connection"
            self._links.close(known, CloseCode.REPLACED, reason)
        link.client, link.publisher = hello.name, publisher
        self._identify(link, identity)
        self._links.name_publisher(link)
        self._clients[link.number] = link
        self._connected[identity.name] = self._connected.get(identity.name, 0) + 1
        self._subscriptions.join(link.number)
        return known is not None

    def vouch(self, link: Link, name: str) -> None:
        """The client that will say Hello has this identity; raises Forbidden if there is none."""
        link.identity = self._access.named(name)

    def _check_room(self, identity: str) -> None:
        """Raise TooManyConnections if there is no place for another client of this identity."""
        if len(self._clients) >= self._connections.clients_max:
            raise TooManyConnections(
                f"this broker has {len(self._clients)} connections; that is its limit"
            )
        count = self._connected.get(identity, 0)
        if count >= self._connections.identity_max:
            raise TooManyConnections(
                f"identity {identity!r} has {count} connections here; that is its limit"
            )

    def leave(self, link: Link) -> bool:
        """Remove a client. False: it was removed before, or another link has taken its name."""
        if self._clients.pop(link.number, None) is None:
            return False
        slices = self._subscriptions.leave(link.number)
        if slices is not None:
            self._work.add(slices)
        advertised = self._advertised.pop(link.number, None)
        if advertised:
            own = [one for one, _ in advertised.values()]
            self._budget.remove(link.number, sum([size for _, size in advertised.values()]))
            self._work.add(self._interests.withdraw(Advertiser(link.number), own))
        self._forget_identity(link)
        self._disconnect(link)
        self._operations.leave(link)
        return self._links.forget_publisher(link)

    def _disconnect(self, link: Link) -> None:
        assert link.identity is not None
        name = link.identity.name
        self._connected[name] -= 1
        if not self._connected[name]:
            del self._connected[name]

    def _identify(self, link: Link, identity: Identity) -> None:
        """Set the identity. The interest table holds its grant to publish while it is connected."""
        link.identity = identity
        link.is_restricted = not identity.publishes_anything
        if link.is_restricted:
            count = self._restricted[identity.name] = self._restricted.get(identity.name, 0) + 1
            if count == 1:
                self._interests.examine(PublishGrant(identity.name), identity.publish)

    def _forget_identity(self, link: Link) -> None:
        assert link.identity is not None
        if link.is_restricted:
            name = link.identity.name
            self._restricted[name] -= 1
            if not self._restricted[name]:
                del self._restricted[name]
                self._interests.examine(PublishGrant(name), None)

    def reload(self, access: Access, now_us: int) -> None:
        """Replace identities and grants; end what they no longer allow. From now on no subscription gets
        a message before its client's new grants are found to cover it."""
        self._access = access
        self._operations.follow(access, now_us)
        known = {identity.name: identity for identity in access.identities()}
        compared: dict[tuple[int, str], bool] = {}
        changed: dict[int, Identity] = {}
        for link in list(self._clients.values()):
            assert link.identity is not None
            identity = known.get(link.identity.name)
            if identity is None:
                reason = f"identity {link.identity.name!r} was removed from the configuration"
                self._links.close(link, CloseCode.DENIED, reason)
                continue
            key = id(link.identity), identity.name
            if key not in compared:
                compared[key] = link.identity == identity
            if not compared[key]:
                changed[link.number] = identity
        for number in changed:
            self._forget_identity(self._clients[number])
        for number, identity in changed.items():
            self._identify(self._clients[number], identity)
        if changed:
            self._work.add(self._subscriptions.set_grants(changed))

    def congest(self, link: Link, is_congested: bool) -> None:
        """The host has too many unsent bytes for a client, or no longer. Meanwhile its subscriptions get
        no messages."""
        link.is_congested = is_congested
        if is_congested:
            self._subscriptions.withheld.withhold([link.number])
        else:
            self._subscriptions.withheld.release([link.number])

    # ---- requests

    def hear(self, link: Link, message: ControlMessage, now_us: int) -> Slices | None:
        """Process a control message of a client; a request that fails is refused. Returns the rest of
        a request that takes long."""
        if isinstance(message, Credit):
            self._subscriptions.grant_credit(link.number, message.id, message.count)
            return None
        if isinstance(message, Nack):
            consumer = Consumer(link.number, message.id)
            self._messages.nack(consumer, message.positions, message.delay_us, now_us)
            return None
        if isinstance(message, Reject):
            consumer = Consumer(link.number, message.id)
            self._messages.republishing.reject(consumer, message.positions, message.reason)
            return None
        if isinstance(message, Request):
            return self._in_slices(link, message, now_us)
        raise BrokenFrame(f"clients must not send {type(message).__name__}")

    def _in_slices(self, link: Link, request: Request, now_us: int) -> Slices:
        """The slices of a request, which is refused if they raise; most have one."""
        assert link.identity is not None
        try:
            if isinstance(request, SubscribeRequest):
                yield from self._subscribe(link, request, now_us)
            elif isinstance(request, UnsubscribeRequest):
                self._subscriptions.unsubscribe(link.number, request, now_us)
            elif isinstance(request, AdvertiseRequest | UnadvertiseRequest):
                yield from self._advertise(link, request)
            elif isinstance(request, ForgetDurable):
                self._subscriptions.forget(link.number, link.identity, request, now_us)
            elif isinstance(request, QueueRequest):
                yield from self._operations.answer_queues(link, request, now_us)
            else:
                yield from self._operations.answer(link, request, now_us)
        except InvalidFile:
            raise
        except PalioError as error:
            self._output.say(link.number, refused(request.id, error))

    def _subscribe(self, link: Link, request: SubscribeRequest, now_us: int) -> Slices:
        assert link.identity is not None
        identity = link.identity
        yield from self._subscriptions.subscribe(link.number, identity, request, now_us)
        if link.identity is not identity:  # grants were reloaded meanwhile
            yield from self._subscriptions.set_grants({link.number: link.identity})

    def _advertise(self, link: Link, request: AdvertiseRequest | UnadvertiseRequest) -> Slices:
        own = self._advertised.setdefault(link.number, {})
        advertiser = Advertiser(link.number)
        if isinstance(request, AdvertiseRequest):
            self._check_size(own, request)
            job = BackgroundJob(lambda: refusing(parse_advertisement)(request.constraints))
            if len(request.constraints) <= _FEW_CONSTRAINTS:
                job.run()
            else:
                yield job
            new = job.result()
            size = predicate_bytes([Filter((one,)) for one in new])
            replaced = own[request.id][1] if request.id in own else 0
            self._budget.check(link.number, size - replaced)
            self._unadvertise(link.number, own, request.id)
            own[request.id] = new, size
            self._budget.add(link.number, size)
            self._interests.advertise(advertiser, new)
        else:
            self._unadvertise(link.number, own, request.id)
        self._output.say(link.number, Done(request.id))
        yield self._interests.advertising_units()

    def _unadvertise(self, link: int, own: Advertised, id: int) -> None:
        if id in own:
            _, size = own.pop(id)
            self._budget.remove(link, size)
            self._interests.unadvertise(Advertiser(link), [one for one, _ in own.values()])

    def _check_size(self, own: Advertised, request: AdvertiseRequest) -> None:
        """Raise for an advertisement, or a number of them, that takes too long to process."""
        bounds, count = self._bounds, len(request.constraints)
        if request.id not in own and len(own) >= bounds.advertisements_max:
            reason = f"a client may have {bounds.advertisements_max} advertisements here"
            raise RequestRefused(RefusalCode.LIMIT, reason)
        if count > bounds.filters_max:
            reason = f"the advertisement has {count:,} constraints; this broker takes {bounds.filters_max:,}"
            raise RequestRefused(RefusalCode.LIMIT, reason)
        bounds.check_text("".join(request.constraints), "the advertisement")
