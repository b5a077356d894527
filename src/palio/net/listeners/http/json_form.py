"""Messages as JSON: the form in which they are published and delivered.

    {"attributes": {"dest": "MXP", "price": 450}, "headers": {"content_type": "text/plain"}, "body": "a text"}

"body_base64" is for other bytes than those of a text. A header that is bytes is {"$base64": "..."}.
"expires_in" and "delay" are seconds from now on; they become the headers expires_us and not_before_us. With
"retain": ["dest"] it is the last value of the key that these attributes have; with "forget": true there is none
any more.

Delivered ones also say "publisher", "number", "time", of a durable subscription "id", "again" and
"deliveries", and "retained" if they were there before the subscription.
Attributes are the JSON of the model (docs/reference/values.md). A name that is given twice is refused, at the
top and in the attributes: readers would differ in which one counts.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any, NamedTuple

import msgspec

from palio.errors import InvalidValue, PalioError
from palio.model.arrays import Content
from palio.net.client.attributes import from_bytes, to_bytes
from palio.net.client.subscription import Note
from palio.net.client.times import check_delayed, with_delay, with_expiry
from palio.net.listeners.http.problems import Problem
from palio.protocol.wire.frames import Limits
from palio.protocol.wire.last_values import retaining
from palio.protocol.wire.message_headers import NOT_BEFORE_US, HeaderValue

_ABSENT = msgspec.Raw()
_JSON_FACTOR = 4
"""JSON may be so much longer than what it becomes."""


class MessageForm(msgspec.Struct, forbid_unknown_fields=True):
    """The members of a message; an empty one was not given."""

    attributes: msgspec.Raw
    headers: msgspec.Raw = _ABSENT
    body: msgspec.Raw = _ABSENT
    body_base64: msgspec.Raw = _ABSENT
    expires_in: float | None = None
    delay: float | None = None
    retain: list[str] = []
    forget: bool = False


_decode = msgspec.json.Decoder(MessageForm).decode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_headers = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


class Posted(NamedTuple):
    attributes: dict[str, Content]
    body: bytes
    headers: dict[str, HeaderValue]


def read_message(text: bytes, limits: Limits) -> Posted:
    """Raises InvalidValue, or Problem for what is too large."""
    try:
        form = _decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidValue(f"it is no message in JSON: {error}") from None
    check_names(text)
    return read_form(form, limits)


def check_names(text: bytes) -> None:
    """Raise InvalidValue if the JSON object `text` has two members of one name.

    msgspec takes the last of them; then there are more quotation marks than it has read.
    """
    try:
        members = _members(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidValue(f"it is no JSON object: {error}") from None
    if text.count(b'"') != sum(2 + bytes(value).count(b'"') for value in members.values()):
        raise InvalidValue("a member of the message is given twice")


def read_form(form: MessageForm, limits: Limits) -> Posted:
    return Posted(
        read_attributes(bytes(form.attributes), limits),
        _body(bytes(form.body), bytes(form.body_base64), limits),
        with_times(_headers(form, limits), form.expires_in, form.delay),
    )


def _headers(form: MessageForm, limits: Limits) -> dict[str, HeaderValue]:
    found = read_headers(bytes(form.headers), limits)
    if form.retain:
        found |= retaining(form.retain, forget=form.forget)
    elif form.forget:
        raise InvalidValue('"forget" needs a key: name its attributes in "retain"')
    return found


def with_times(
    headers: dict[str, HeaderValue], expires_in: float | None, delay: float | None
) -> dict[str, HeaderValue]:
    """Headers that say when a message expires and when it is published, from seconds."""
    if expires_in is not None:
        headers = dict(with_expiry(headers, expires_in))
    if delay is not None:
        headers = dict(with_delay(headers, delay, None))
    return headers


def check_times(posted: Posted, durable: bool) -> None:
    """Raise InvalidValue for a delayed message that is not durable."""
    if NOT_BEFORE_US in posted.headers:
        check_delayed(durable)


def read_headers(text: bytes, limits: Limits) -> dict[str, HeaderValue]:
    """Bytes are {"$base64": ...}; the client checks the rest."""
    if not text:
        return {}
    if (
        len(text) > _JSON_FACTOR * limits.headers
    ):  # before it is read: names cost far more than bytes
        raise Problem(413, "too_large", f"the headers have more than {limits.headers:,} bytes")
    check_names(text)
    try:
        values = _decode_headers(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidValue(f"the headers are no JSON object: {error}") from None
    found: dict[str, HeaderValue] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            coded = value.get("$base64")
            if len(value) != 1 or not isinstance(coded, str):
                raise InvalidValue(
                    f'the header {name!r:.60} is an object; bytes are {{"$base64": "..."}}'
                )
            try:
                value = b64decode(coded, validate=True)
            except ValueError as error:
                raise InvalidValue(f"the header {name!r:.60} is no base64: {error}") from None
        found[name] = value
    return found


def read_attributes(text: bytes, limits: Limits) -> dict[str, Content]:
    """A plain dictionary, which is written faster than a `Message`."""
    if len(text) > limits.attributes:
        most = f"{limits.attributes:,}"
        raise Problem(413, "too_large", f"the attributes have more than {most} bytes")
    try:
        found: dict[str, Content] = dict(from_bytes(text))
        if b"$" in text:  # a tag that was given twice is read, and cannot be written
            to_bytes(found)
        return found
    except PalioError:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"the attributes are no JSON object: {error}") from None


def _body(text: bytes, base64: bytes, limits: Limits) -> bytes:
    if text and base64:
        raise InvalidValue("a message has body or body_base64, not both")
    try:
        if text:
            body = _decode_text(text).encode()
        else:
            body = b64decode(_decode_text(base64 or b'""'), validate=True)
    except (msgspec.DecodeError, UnicodeError, ValueError) as error:
        what = "body is a text" if text else "body_base64 is bytes in base64"
        raise InvalidValue(f"{what}: {error}") from None
    check_body(body, limits)
    return body


def check_body(body: bytes, limits: Limits) -> None:
    if len(body) > limits.body:
        raise Problem(
            413, "too_large", f"the body of a message has more than {limits.body:,} bytes"
        )


def form_of(note: Note, id: str = "") -> dict[str, object]:
    """A message that has arrived, ready for `msgspec.json`."""
    found: dict[str, object] = {"attributes": msgspec.Raw(_on_one_line(note.json))}
    if note.headers:
        found["headers"] = {name: _plain(value) for name, value in note.headers.items()}
    if note.body:
        try:
            found["body"] = note.body.decode()
        except UnicodeDecodeError:
            found["body_base64"] = b64encode(note.body).decode()
    found |= {"publisher": note.publisher, "number": note.number, "time": note.time}
    if id:
        found |= {"id": id, "again": note.again, "deliveries": note.deliveries}
    if note.retained:
        found["retained"] = True
    return found


def _plain(value: HeaderValue) -> object:
    return {"$base64": b64encode(value).decode()} if isinstance(value, bytes) else value


def as_line(value: object) -> bytes:
    """JSON without a line break."""
    return _encode(value)


def _on_one_line(text: bytes) -> bytes:
    """The JSON of foreign clients may have line breaks between its words; never within a text."""
    if b"\n" in text or b"\r" in text:
        return text.replace(b"\n", b" ").replace(b"\r", b" ")
    return text


def event_id(version: int, position: int) -> str:
    """What a client remembers: a recreated subscription has another version.

    >>> event_id(3, 17), parse_event_id("3-17")
    ('3-17', (3, 17))
    """
    return f"{version}-{position}"


def parse_event_id(text: str) -> tuple[int, int]:
    version, dash, position = text.partition("-")
    if not (dash and _is_number(version) and _is_number(position)):
        raise Problem(400, "invalid", "it is no id of a message: give the last one that arrived")
    return int(version), int(position)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 20
