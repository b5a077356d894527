"""What makes a message the last value of a key when it is published."""

from __future__ import annotations

from collections.abc import Iterable

from palio.errors import InvalidValue
from palio.protocol.wire.last_values import retaining
from palio.protocol.wire.message_headers import Headers


def with_retain(
    headers: Headers | None, retain: str | Iterable[str] | None, forget: bool, durable: bool
) -> Headers:
    """Headers that say of which key a message is the last value, or that the key is forgotten."""
    if not retain:
        raise InvalidValue("`forget` needs a key: name its attributes, retain=[...]")
    if not durable:
        raise InvalidValue(
            "the last value of a key must be durable",
            remedy="publish it with durable=True, or without retain",
        )
    return {**(headers or {}), **retaining(retain, forget=forget)}
