"""As much of HTTP as a benchmark needs: requests that publish, one after the other on a connection."""

from __future__ import annotations

from base64 import b64encode

_HEAD = (
    b"POST /v1/messages?durable=%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/%s\r\n"
    b"Content-Length: %d\r\n\r\n"
)


def message(attributes: bytes, body: bytes) -> bytes:
    return b'{"attributes":%s,"body_base64":"%s"}' % (attributes, b64encode(body))


def one(message: bytes) -> bytes:
    """A request that publishes a message."""
    return _HEAD % (b"false", b"json", len(message)) + message


def many(messages: list[bytes], durable: bytes = b"false") -> bytes:
    """A request that publishes messages, a line for each."""
    lines = b"\n".join(messages)
    return _HEAD % (durable, b"x-ndjson", len(lines)) + lines


def many_durable(messages: list[bytes]) -> bytes:
    return many(messages, b"true")


def skip_answers(data: bytes) -> tuple[list[int], int]:
    """Answers are read, and not looked at: what counts is what arrives at the sinks."""
    return [], len(data)
