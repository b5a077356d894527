"""A broker with HTTP, and a client of it that sends exactly what it is told."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from palio.net.broker.server import Server, serving
from palio.net.endpoint import Endpoint
from tests.net.peers import configured

pytest.importorskip("h11", reason="needs palio[http]")
websockets = pytest.importorskip("websockets", reason="needs palio[http]")

HTTP = '[http]\nlisten = "127.0.0.1:0"\n'


def identity(name: str, grants: str) -> str:
    """Its token is its name."""
    hash = hashlib.sha256(name.encode()).hexdigest()
    return f'[identities.{name}]\ntoken_sha256 = "{hash}"\n{grants}\n'


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class HttpPeer:
    """A connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(
        self, method: str, path: str, body: bytes = b"", host: str = "localhost", **fields: str
    ) -> None:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await self.writer.drain()

    async def head(self) -> Answer:
        """The status line and the header fields."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.split(": ", 1) for line in lines if line)
        return Answer(int(first.split(" ")[1]), {n.lower(): v for n, v in pairs}, b"")

    async def answer(self) -> Answer:
        head = await self.head()
        while head.status == 100:
            head = await self.head()
        body = await self.reader.readexactly(int(head.headers.get("content-length", "0")))
        return head._replace(body=body)

    async def ask(self, method: str, path: str, body: bytes = b"", **fields: str) -> Answer:
        await self.send(method, path, body, **fields)
        return await self.answer()

    async def publish(self, *values: object, durable: str = "true", **fields: str) -> Answer:
        """Messages, as objects of JSON."""
        lines = b"\n".join(json.dumps(value).encode() for value in values)
        kind = "application/x-ndjson" if len(values) > 1 else "application/json"
        path = f"/v1/messages?durable={durable}"
        return await self.ask("POST", path, lines, Content_Type=kind, **fields)

    async def chunk(self) -> bytes:
        """The next chunk of an answer; empty: it is complete."""
        size = int(await self.reader.readline(), 16)
        data = await self.reader.readexactly(size)
        await self.reader.readexactly(2)
        return data

    async def event(self) -> dict[str, str]:
        """The next event of a stream, without heartbeats; empty: it has ended."""
        if not hasattr(self, "_text"):
            self._text = b""
        while True:
            while b"\n\n" not in self._text:
                chunk = await self.chunk()
                if not chunk:
                    return {}
                self._text += chunk
            event, self._text = self._text.split(b"\n\n", 1)
            pairs = [line.split(": ", 1) for line in event.decode().split("\n")]
            found = {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
            if "data" in found:
                return found

    def close(self) -> None:
        self.writer.close()


class HttpBroker(NamedTuple):
    server: Server
    endpoint: Endpoint

    async def connect(self, **options: Any) -> HttpPeer:
        at = self.endpoint
        return HttpPeer(*await asyncio.open_connection(at.host, at.port, **options))

    async def ask(self, method: str, path: str, body: bytes = b"", **fields: str) -> Answer:
        peer = await self.connect()
        try:
            return await peer.ask(method, path, body, **fields)
        finally:
            peer.close()

    async def publish(self, *values: object, **fields: str) -> Answer:
        peer = await self.connect()
        try:
            return await peer.publish(*values, **fields)
        finally:
            peer.close()


@asynccontextmanager
async def http_broker(folder: Path, http: str = "", more: str = "") -> AsyncIterator[HttpBroker]:
    """`http`: more keys of [http]; `more`: more sections."""
    async with serving(configured(folder, HTTP + http + more)) as server:
        assert server.http_endpoint is not None
        yield HttpBroker(server, server.http_endpoint)
        assert not server.host.finished.done(), "the broker failed"
