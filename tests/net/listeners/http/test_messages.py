"""Publishing over HTTP: 2xx means stored, and what is wrong is a problem with a place."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import palio
from tests.net.listeners.http.peer import http_broker, identity
from tests.net.peers import run

JSON = "application/json"


def test_one_and_many_arrive_at_a_native_subscriber(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            url = f"palio://{broker.server.endpoint}"
            async with (
                palio.connect(url) as client,
                client.subscribe("price < 500", durable="desk") as notes,
            ):
                answer = await broker.publish({"attributes": {"price": 450}, "body": "grüezi"})
                assert (answer.status, answer.json) == (200, {"stored": 1})
                values = [{"attributes": {"price": price}} for price in (1, 600, 2)]
                answer = await broker.publish(*values)
                assert (answer.status, answer.json) == (200, {"stored": 3})
                found = [await anext(notes) for _ in range(3)]
                assert [note.attributes["price"] for note in found] == [450, 1, 2]
                assert found[0].body == "grüezi".encode()
                assert found[0].publisher == "anonymous/http"

    run(scene())


def test_a_body_of_any_type_has_its_attributes_in_a_field(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            url = f"palio://{broker.server.endpoint}"
            async with palio.connect(url) as client, client.subscribe("kind = 'map'") as notes:
                answer = await broker.ask(
                    "POST", "/v1/messages?durable=false", b"\x89PNG\xff",
                    Content_Type="image/png", Palio_Attributes='{"kind": "map"}',
                )  # fmt: skip
                assert (answer.status, answer.json) == (202, {"sent": 1})
                note = await anext(notes)
                assert note.body == b"\x89PNG\xff"
                assert dict(note.headers) == {"content_type": "image/png"}

    run(scene())


def test_headers_go_both_ways(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            path = "/v1/subscriptions/desk/messages?where=TRUE"
            await broker.ask("GET", path)
            headers = {"content_type": "text/plain", "correlation": {"$base64": "AP8="}, "n": 7}
            answer = await broker.publish({"attributes": {"a": 1}, "headers": headers})
            assert answer.status == 200
            found = (await broker.ask("GET", path)).json["messages"]
            assert found[0]["headers"] == headers
            for wrong in ({"expires_us": "x"}, {"a": {}}, {"a": {"$base64": "?"}}, {"a": None}):
                answer = await broker.publish({"attributes": {"a": 1}, "headers": wrong})
                assert (answer.status, answer.json["code"]) == (400, "invalid")

    run(scene())


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "invalid"),
        (b"{}", 400, "invalid"),
        (b"[]", 400, "invalid"),
        (b'{"attributes": {"a": 1}', 400, "invalid"),
        (b'{"attributes": {"a": 1}, "atributes": {}}', 400, "invalid"),
        (b'{"attributes": {"a": 1}, "attributes": {"a": 2}}', 400, "invalid"),
        (b'{"attributes": {"a": 1, "a": 2}}', 400, "invalid"),
        (b'{"attributes": {"a": [{"$float": "", "$float": 1}]}}', 400, "invalid"),
        (b'{"attributes": {"a": 1}, "body": "a", "body_base64": ""}', 400, "invalid"),
        (b'{"attributes": {"a": 1}, "body": {}}', 400, "invalid"),
        (b'{"attributes": {"a": 1}, "body": "\\ud800"}', 400, "invalid"),
        (b'{"attributes": {"a": 1}, "body_base64": "?"}', 400, "invalid"),
        (b'{"attributes": 7}', 400, "invalid"),
        (b'{"attributes": ' + b"[" * 20_000 + b"}", 400, "invalid"),
        (b'{"attributes": {"a": ' + b"[" * 20_000 + b"]" * 20_000 + b"}}", 400, "invalid"),
        ('{"attributes": {"a": 1}}'.encode("utf-16"), 400, "invalid"),
        (b'\xef\xbb\xbf{"attributes": {"a": 1}}', 400, "invalid"),
        (b'{"attributes": {"a": "\xff"}}', 400, "invalid"),
        (b'{"attributes": {"a": "' + b"x" * 70_000 + b'"}}', 413, "too_large"),
        (b'{"attributes": {"a": 1}, "body": "' + b"x" * (5 << 20) + b'"}', 413, "too_large"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_no_message_is_a_problem(
    tmp_path: Path, body: bytes, status: int, code: str
) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            answer = await broker.ask("POST", "/v1/messages", body, Content_Type=JSON)
            assert (answer.status, answer.json["code"]) == (status, code)
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json["status"] == status

    run(scene())


def test_a_wrong_line_is_named_and_nothing_is_published(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            lines = b'{"attributes": {"a": 1}}\n\n{"attributes": }\n'
            answer = await broker.ask(
                "POST", "/v1/messages", lines, Content_Type="application/x-ndjson"
            )
            assert (answer.status, answer.json["line"]) == (400, 3)
            assert broker.server.host.snapshot().durable.published == 0

    run(scene())


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"Content_Type": "application/x-www-form-urlencoded"},
        {"Content_Type": f"{JSON}; charset=utf-16"},
        {"Content_Type": JSON, "Content_Encoding": "gzip"},
    ],
)
def test_other_types_are_refused(tmp_path: Path, fields: dict[str, str]) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            answer = await broker.ask("POST", "/v1/messages", b'{"attributes": {}}', **fields)
            assert answer.status == 415

    run(scene())


def test_grants_decide(tmp_path: Path) -> None:
    more = identity("ann", 'publish = "desk = 7"') + identity("bob", "")

    async def scene() -> None:
        async with http_broker(tmp_path, more=more) as broker:
            message = {"attributes": {"desk": 7}}
            ann = {"Authorization": "Bearer ann"}
            assert (await broker.publish(message, **ann)).status == 200
            answer = await broker.publish({"attributes": {"desk": 8}}, **ann)
            assert (answer.status, answer.json["code"]) == (403, "rejected")
            assert (await broker.publish(message, Authorization="Bearer bob")).status == 403
            for fields in ({}, {"Authorization": "Bearer eve"}, {"Authorization": "Basic YTpi"}):
                answer = await broker.publish(message, **fields)
                assert answer.status == 401
                assert answer.headers["www-authenticate"].startswith("Bearer")
                assert "ann" not in json.dumps(answer.json)

    run(scene())


def test_expiry_and_delay_in_seconds(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            url = f"palio://{broker.server.endpoint}"
            async with palio.connect(url) as client, client.subscribe("n > 0") as notes:
                before_us = time.time_ns() // 1000
                answer = await broker.publish(
                    {"attributes": {"n": 1}, "delay": 0.2, "expires_in": 60},
                    {"attributes": {"n": 2}, "expires_in": 1000},
                )
                assert answer.json == {"stored": 2}
                second, first = await anext(notes), await anext(notes)
                assert (second.attributes["n"], first.attributes["n"]) == (2, 1)
                assert time.time_ns() // 1000 - before_us >= 200_000
                for note, seconds in ((first, 60), (second, 1000)):
                    expires_us = note.headers["expires_us"]
                    assert isinstance(expires_us, int)
                    assert 0 <= expires_us - before_us - seconds * 1_000_000 < 20_000_000
                path = "/v1/messages?expires_in=1000"
                for body, fields in (
                    (b"x", {"Content_Type": "text/plain", "Palio_Attributes": '{"n": 3}'}),
                    (b'{"attributes": {"n": 3}}', {"Content_Type": JSON}),
                    (b'{"attributes": {"n": 3}, "expires_in": 5000}', {"Content_Type": JSON}),
                ):
                    assert (await broker.ask("POST", path, body, **fields)).status == 200
                found = [(await anext(notes)).headers["expires_us"] for _ in range(3)]
                assert isinstance(found[1], int)
                assert isinstance(found[2], int)
                assert found[2] - found[1] > 3_900_000_000, "what a message says itself counts"

    run(scene())


@pytest.mark.parametrize("value", ["0", "-1", "1e9", "1e999", '"x"', "true", "[]"])
@pytest.mark.parametrize("name", ["expires_in", "delay"])
def test_times_are_bounded(tmp_path: Path, name: str, value: str) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            body = f'{{"attributes": {{"n": 1}}, "{name}": {value}}}'.encode()
            answer = await broker.ask("POST", "/v1/messages", body, Content_Type=JSON)
            assert (answer.status, answer.json["code"]) == (400, "invalid")
            plain = value.strip('"[]') or "x"
            path = f"/v1/messages?{name}={plain}"
            body = b'{"attributes": {"n": 1}}'
            assert (await broker.ask("POST", path, body, Content_Type=JSON)).status == 400

    run(scene())


def test_what_is_not_stored_cannot_wait(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            for message in (
                {"attributes": {"n": 1}, "delay": 1},
                {"attributes": {"n": 1}, "headers": {"not_before_us": 9_999_999_999_999_999}},
            ):
                answer = await broker.publish(message, durable="false")
                assert (answer.status, answer.json["code"]) == (400, "invalid")

    run(scene())
