"""The options of `format("palio")`, checked: an error says what is wrong and what to do.

Spark gives all values as texts, and does not distinguish upper and lower case in names.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any

import msgspec

from palio.errors import InvalidValue, PalioError
from palio.model.language import parse
from palio.net import blocking
from palio.net.client.address import parse_addresses

_CONNECTION = ("url", "token", "tls", "certificate", "key", "timeout")
_READING = ("predicate", "startingTime", "mode", "full")
STREAM_READ = (*_CONNECTION, *_READING, "durable", "maxMessages")
BATCH_READ = (*_CONNECTION, *_READING, "endingTime", "quiet")
WRITE = (*_CONNECTION, "orderBy")
_OF_SPARK = {"checkpointlocation", "queryname", "path"}

MODES = ("PERMISSIVE", "FAILFAST")
FULL = ("block", "drop", "end")
MAX_MESSAGES = 10_000
TIMEOUT_S = 60.0
QUIET_S = 2.0


class Options(msgspec.Struct, frozen=True):
    """The options, read. Times are microseconds since 1970."""

    url: str
    token: str | None
    tls: str | None
    certificate: tuple[str, str] | None
    timeout: float
    predicate: str
    durable: str
    starting_time: int | None
    ending_time: int | None
    max_messages: int
    quiet: float
    full: str
    is_strict: bool
    order_by: tuple[str, ...]

    def connect(self, name: str, first: int | None = None) -> blocking.Client:
        """A client; it tries for `timeout` seconds, as does whatever waits for the broker."""
        return blocking.connect(
            self.url,
            token=self.token,
            name=name,
            tls=self.tls,
            certificate=self.certificate,
            wait=self.timeout,
            max_wait=self.timeout,
            first=first,
        )


def read_options(given: Mapping[str, str], allowed: tuple[str, ...], what: str) -> Options:
    """Read the options; `what` names the use in errors: "a stream that is read", ..."""
    options = {name.lower(): text for name, text in given.items()}
    known = {name.lower(): name for name in allowed}
    for name in options:
        if name not in known and name not in _OF_SPARK:
            raise InvalidValue(_unknown(name, known, what))
    if "path" in options and "url" not in options:
        raise InvalidValue('give the broker as .option("url", "palio://host:port"), not as a path')
    url = options.get("url", "")
    if not url:
        raise InvalidValue(f'{what} needs the broker: .option("url", "palio://host:port")')
    parse_addresses(url)
    certificate = options.get("certificate"), options.get("key")
    if (certificate[0] is None) != (certificate[1] is None):
        raise InvalidValue("`certificate` and `key` are files that go together: give both")
    order_by = tuple(name.strip() for name in options.get("orderby", "").split(",") if name.strip())
    return Options(
        url=url,
        token=options.get("token"),
        tls=options.get("tls"),
        certificate=certificate if certificate[0] is not None else None,  # type: ignore[arg-type]
        timeout=_seconds(options, "timeout", TIMEOUT_S),
        predicate=_predicate(options.get("predicate", "TRUE")),
        durable=options.get("durable", ""),
        starting_time=_time(options, "startingTime"),
        ending_time=_time(options, "endingTime"),
        max_messages=_count(options, "maxMessages", MAX_MESSAGES),
        quiet=_seconds(options, "quiet", QUIET_S),
        full=_choice(options, "full", FULL),
        is_strict=_choice(options, "mode", MODES) == "FAILFAST",
        order_by=order_by,
    )


def _unknown(name: str, known: dict[str, str], what: str) -> str:
    near = get_close_matches(name, known, 1, 0.5)
    hint = f"; did you mean {known[near[0]]!r}?" if near else "."
    return f"{what} has no option {name!r}{hint} There are {', '.join(known.values())}"


def _predicate(text: str) -> str:
    try:
        return str(parse(text))
    except PalioError as error:
        raise InvalidValue(f"the option `predicate`: {error}") from None


def _seconds(options: dict[str, str], name: str, usual: float) -> float:
    text = options.get(name.lower())
    try:
        value = usual if text is None else float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 86_400:
        raise InvalidValue(f"the option `{name}` is a number of seconds up to a day, not {text!r}")
    return value


def _count(options: dict[str, str], name: str, usual: int) -> int:
    text = options.get(name.lower(), str(usual))
    if not text.isdigit() or not 0 < int(text) <= 10_000_000:
        raise InvalidValue(f"the option `{name}` is a number from 1 to 10,000,000, not {text!r}")
    return int(text)


def _choice(options: dict[str, str], name: str, choices: tuple[str, ...]) -> str:
    text = options.get(name.lower(), choices[0])
    found = {choice.lower(): choice for choice in choices}.get(text.lower())
    if found is None:
        raise InvalidValue(f"the option `{name}` is {' or '.join(choices)}, not {text!r}")
    return found


def _time(options: dict[str, str], name: str) -> int | None:
    """ISO 8601; without a zone it is UTC."""
    text: Any = options.get(name.lower())
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValue(
            f"the option `{name}` is a time such as 2026-11-01T08:00:00Z, not {text!r}"
        ) from None
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return max(0, int((time - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000))
