"""Time zones: what a clock of one shows at an instant, and which instant a clock shows.

A zone is a name of the tz database, or a distance from UTC: +02:00. None is UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from palio.errors import InvalidValue
from palio.model.values import has_offset, parse_instant

_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::([0-5][0-9])(?::([0-5][0-9]))?)?", re.ASCII
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")
_NAME_MAX = 60
_IN_REGION = re.compile(
    r"([^A-Za-z]*(?:T[^A-Za-z]*)?[0-9])\s*([A-Za-z_]{1,20}/[A-Za-z0-9_+/-]{1,40})\s*"
)
_OFFSET_MAX = timedelta(hours=18)
_UTC = frozenset("UTC ETC/UTC GMT ETC/GMT Z UCT ETC/UCT ZULU ETC/ZULU".split())


def zone_name(zone: str | None) -> str | None:
    """The zone as expressions have it; None is UTC. InvalidValue where there is none of this name.

    >>> zone_name("Etc/UTC"), zone_name("+02:00"), zone_name("Europe/Rome")
    (None, '+02:00', 'Europe/Rome')
    """
    if zone is None or zone_of(zone).utcoffset(None) == timedelta(0):
        return None
    return zone


@lru_cache(256)
def zone_of(zone: str) -> tzinfo:
    """A zone by its name, or by its distance from UTC."""
    if zone.upper() in _UTC:
        return UTC
    if found := _OFFSET.fullmatch(zone[:20]):
        hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
        size = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if size <= _OFFSET_MAX:
            return timezone(-size if found[1] == "-" else size)
    elif len(zone) <= _NAME_MAX and _NAME.fullmatch(zone):
        try:
            return ZoneInfo(zone)
        except (KeyError, ValueError, OSError):
            pass
    raise InvalidValue(
        f"no time zone {zone[:60]!r}", remedy="it is a name such as 'Europe/Rome', or '+02:00'"
    )


def shown_at(instant: datetime, zone: str) -> datetime:
    """What a clock of the zone shows at an instant, as if it were in UTC. May raise OverflowError."""
    return instant.astimezone(zone_of(zone)).replace(tzinfo=UTC, fold=0)


def instant_of(shown: datetime, zone: str) -> datetime:
    """The instant at which a clock of the zone shows this: the first of two, and where a clock is put
    forward over it, what it would be without that."""
    return shown.replace(tzinfo=zone_of(zone), fold=0).astimezone(UTC)


def parse_instant_in(text: str, zone: str | None) -> datetime:
    """Read an instant; a text without an offset is in the zone, or in that which it names.

    >>> parse_instant_in("2024-03-01 10:00:00", "Europe/Rome")
    datetime.datetime(2024, 3, 1, 9, 0, tzinfo=datetime.timezone.utc)
    >>> parse_instant_in("2024-03-01 10:00:00 Europe/Rome", None)
    datetime.datetime(2024, 3, 1, 9, 0, tzinfo=datetime.timezone.utc)
    """
    if named := _IN_REGION.fullmatch(text):
        text, zone = named.groups()
    found = parse_instant(text)
    if zone is None or has_offset(text):
        return found
    try:
        return instant_of(found, zone)
    except OverflowError:
        raise InvalidValue(f"{text!r} is not an instant of the years 1 to 9999") from None
