"""Reading the section [limits] of broker.toml: bounds of frames, connections, subscriptions and memory."""

from __future__ import annotations

from typing import NamedTuple

from palio.net.config.sections import Section
from palio.net.config.values import HostLimits
from palio.protocol.broker.access import Access
from palio.protocol.broker.settings import (
    WAITING_OVERHEAD,
    ConnectionBounds,
    Settings,
    SubscriptionBounds,
    WaitingBounds,
)
from palio.protocol.durability.bounds import DelayBounds, LastValueBounds
from palio.protocol.policies.broker_record import FILTERS_MAX
from palio.protocol.wire.frames import Limits
from palio.protocol.wire.message_headers import SIZE_MAX
from palio.protocol.wire.parts import CONTROL_BYTES_MIN, TEXT_BYTES_MAX

_USUAL = Settings("broker", Access())
_FRAMES_MIN = 4
"""So many of the largest frames may be unfinished by default."""


class ConfiguredLimits(NamedTuple):
    """What [limits] says, for whom it concerns."""

    frames: Limits
    host: HostLimits
    connections: ConnectionBounds
    subscriptions: SubscriptionBounds
    waiting_max: int
    waiting: WaitingBounds
    delays: DelayBounds
    last_values: LastValueBounds


def read_limits(top: Section) -> ConfiguredLimits:
    section, usual = top.section("limits"), _USUAL.limits
    section.renamed("word", "control")
    frames = Limits(
        control=section.size("control", usual.control),
        header=section.size("header", usual.header),
        attributes=section.size("attributes", usual.attributes),
        body=section.size("body", usual.body),
        headers=section.size("headers", usual.headers),
    )
    connections = _connection_bounds(section, frames)
    host = HostLimits(
        closing=connections.strangers_max,
        congested_bytes=section.size("link", 1 << 20),
        stuck_bytes=section.size("stuck", 64 << 20),
        uncommitted_bytes=section.size("uncommitted", 64 << 20),
        unsent_bytes=section.size("unsent", 1 << 30),
    )
    subscriptions = SubscriptionBounds(
        subscriptions_max=section.count("subscriptions", _USUAL.subscriptions.subscriptions_max),
        text_bytes_max=section.size("predicate", _USUAL.subscriptions.text_bytes_max),
        filters_max=section.count("filters", _USUAL.subscriptions.filters_max),
        predicates_bytes_max=section.size("predicates", _USUAL.subscriptions.predicates_bytes_max),
        calls_max=section.count("calls", _USUAL.subscriptions.calls_max),
        steps_max=section.count("steps", _USUAL.subscriptions.steps_max),
        watches_max=section.count("watches", _USUAL.subscriptions.watches_max),
        advertisements_max=section.count("advertisements", _USUAL.subscriptions.advertisements_max),
    )
    waiting_max = section.count("waiting", _USUAL.waiting_max)
    waiting = _waiting_bounds(section, frames)
    usual_delays = DelayBounds()
    delays = DelayBounds(
        section.duration_us("delay", usual_delays.longest_us),
        section.count("delayed", usual_delays.messages),
        section.size("delayed_bytes", usual_delays.bytes),
    )
    usual_last_values = LastValueBounds()
    last_values = LastValueBounds(
        section.count("last_values", usual_last_values.values, 0),
        section.size("last_values_bytes", usual_last_values.bytes),
    )
    section.finish()
    if frames.header < usual.header:
        section.wrong(
            "header",
            f"brokers send headers of up to {usual.header >> 10} KiB: it must be that at least",
        )
    if frames.headers > SIZE_MAX:
        section.wrong("headers", f"message headers have at most {SIZE_MAX:,} bytes")
    if frames.control < CONTROL_BYTES_MIN:
        section.wrong(
            "control",
            f"brokers and clients send up to {CONTROL_BYTES_MIN >> 20} MiB: it must be that at least",
        )
    if subscriptions.text_bytes_max > TEXT_BYTES_MAX:
        section.wrong("predicate", f"other brokers take {TEXT_BYTES_MAX >> 10} KiB at most")
    if subscriptions.filters_max > FILTERS_MAX:
        section.wrong("filters", f"other brokers take {FILTERS_MAX:,} at most")
    if frames.frame >= 1 << 32:
        section.wrong("body", "all parts together must be smaller than 4 GiB")
    if host.stuck_bytes < host.congested_bytes + frames.frame:
        section.wrong(
            "stuck",
            "it must be at least `link` and a whole frame together, or the largest frames never pass",
        )
    if host.unsent_bytes < host.stuck_bytes:
        section.wrong("unsent", "it is for all connections, so it must not be smaller than stuck")
    return ConfiguredLimits(
        frames, host, connections, subscriptions, waiting_max, waiting, delays, last_values
    )


def _connection_bounds(section: Section, frames: Limits) -> ConnectionBounds:
    usual = _USUAL.connections
    clients_max = section.count("connections", usual.clients_max)
    found = ConnectionBounds(
        clients_max=clients_max,
        identity_max=section.count("identity_connections", -(-clients_max * 4 // 5)),
        strangers_max=section.count("strangers", usual.strangers_max),
        unfinished_bytes=section.size(
            "unfinished", max(usual.unfinished_bytes, _FRAMES_MIN * frames.frame)
        ),
    )
    if found.unfinished_bytes < frames.frame:
        section.wrong("unfinished", "it must be at least a whole frame, or none ever arrives")
    return found


def _waiting_bounds(section: Section, frames: Limits) -> WaitingBounds:
    usual, message = _USUAL.waiting, frames.message + WAITING_OVERHEAD
    queue_bytes = section.size("waiting_bytes", max(usual.queue_bytes, message))
    identity_bytes = section.size("waiting_identity", max(usual.identity_bytes, queue_bytes))
    held_bytes = section.size(
        "held", usual.held_bytes + max(0, frames.payload - _USUAL.limits.payload)
    )
    watch_bytes = section.size("watch", usual.watch_bytes)
    found = WaitingBounds(
        queue_bytes=queue_bytes,
        identity_bytes=identity_bytes,
        total_bytes=section.size("waiting_total", max(usual.total_bytes, identity_bytes)),
        held_bytes=held_bytes,
        held_total_bytes=section.size("held_total", max(usual.held_total_bytes, held_bytes)),
        watch_bytes=watch_bytes,
        watches_bytes=section.size("watches_total", max(usual.watches_bytes, watch_bytes)),
    )
    for key, size in (("waiting_bytes", found.queue_bytes), ("held", found.held_bytes)):
        if size < message:
            section.wrong(key, "it must be at least a whole message, or the largest never wait")
    for key, size, of_one, smaller in (
        ("waiting_identity", found.identity_bytes, found.queue_bytes, "waiting_bytes"),
        ("waiting_total", found.total_bytes, found.identity_bytes, "waiting_identity"),
        ("held_total", found.held_total_bytes, found.held_bytes, "held"),
        ("watches_total", found.watches_bytes, found.watch_bytes, "watch"),
    ):
        if size < of_one:
            section.wrong(key, f"it must not be smaller than {smaller}")
    return found
