"""Reading the section [http] of broker.toml: where the HTTP listener is, whom it serves, its bounds."""

from __future__ import annotations

import re

from palio.net.config.sections import Section, texts
from palio.net.config.values import HttpSettings
from palio.net.endpoint import Endpoint

_ORIGIN = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+|null")
_SECOND = 1_000_000


def read_http(top: Section, others: list[Endpoint | None], has_tls: bool) -> HttpSettings | None:
    """`others`: where the broker listens already."""
    if not top.has("http"):
        return None
    section = top.section("http")
    listen = section.endpoint("listen", None)
    if listen is None:
        section.wrong("listen", 'it is missing; for example listen = "127.0.0.1:7490"')
    if listen in others and listen.port:
        section.wrong("listen", f"{listen} is in use by this broker; choose another port")
    tls = section.truth("tls", has_tls)
    if tls and not has_tls:
        section.wrong("tls", "it needs a certificate and its key: add [tls]")
    origins = texts(section, "origins")
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            section.wrong(
                "origins", f'{origin!r} is no origin; for example "https://app.example.org"'
            )
    found = HttpSettings(
        listen=listen,
        tls=tls,
        origins=origins,
        hosts=tuple(host.lower() for host in texts(section, "hosts")),
        connections_max=section.count("connections", 2000),
        head_bytes_max=section.size("head", 16 << 10),
        body_bytes_max=section.size("body", 8 << 20),
        bodies_bytes_max=section.size("bodies", 128 << 20),
        head_us_max=section.duration_us("receive", 10 * _SECOND),
        idle_us_max=section.duration_us("idle", 60 * _SECOND),
        answer_us_max=section.duration_us("answer", 30 * _SECOND),
        stalled_us_max=section.duration_us("stalled", 30 * _SECOND),
        heartbeat_us=section.duration_us("heartbeat", 15 * _SECOND),
        login_us=section.duration_us("login", 3600 * _SECOND),
        requests_max=section.count("requests", 256),
    )
    section.finish()
    if found.bodies_bytes_max < found.body_bytes_max:
        section.wrong("bodies", "it must not be smaller than body")
    for key, time_us in (
        ("receive", found.head_us_max), ("idle", found.idle_us_max), ("answer", found.answer_us_max),
        ("stalled", found.stalled_us_max), ("heartbeat", found.heartbeat_us),
        ("login", found.login_us),
    ):  # fmt: skip
        if time_us < _SECOND // 10:
            section.wrong(key, "it must be at least 100 ms")
    return found
