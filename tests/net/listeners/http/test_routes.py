"""Who may ask from where: hosts, origins, methods; logins of browsers; operators; TLS."""

from __future__ import annotations

from pathlib import Path

import pytest

from palio.net import security
from palio.net.listeners.http.logins import Logins
from tests.net.listeners.http.peer import http_broker, identity
from tests.net.peers import run
from tests.net.test_security import Office, tls_text

APP = "https://app.example.org"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "path"),
        ("GET", "/v1/messages/", 404, "path"),
        ("GET", "/v1/subscriptions//messages", 400, "invalid"),
        ("GET", "/v1/subscriptions/%FF/messages", 400, "invalid"),
        ("DELETE", "/v1/subscriptions/none", 404, "unknown"),
        ("PUT", "/v1/messages", 405, "method"),
        ("GET", "/v1/socket", 426, "websocket"),
        ("GET", "/v1/subscriptions/a/messages?where=TRUE&wait=61", 400, "invalid"),
        ("GET", "/v1/subscriptions/a/messages?where=TRUE&wait=nan", 400, "invalid"),
        ("POST", "/v1/login", 401, "unauthorized"),
    ],
)
def test_what_there_is_not(tmp_path: Path, method: str, path: str, status: int, code: str) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            answer = await broker.ask(method, path)
            assert (answer.status, answer.json["code"]) == (status, code)

    run(scene())


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"host": "evil.example"}, 421),  # DNS rebinding
        ({"host": "palio.example.org"}, 200),
        ({"host": "127.0.0.1:7490"}, 200),
        ({"host": "[::1]:7490"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost"}, 200),
        ({"Origin": APP}, 200),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-origin"}, 200),
        ({"Sec_Fetch_Site": "cross-site", "Origin": APP}, 200),
    ],
)
def test_hosts_and_sites(tmp_path: Path, fields: dict[str, str], status: int) -> None:
    http = f'origins = ["{APP}"]\nhosts = ["palio.example.org"]\n'

    async def scene() -> None:
        async with http_broker(tmp_path, http) as broker:
            answer = await broker.ask("GET", "/v1/topology", **fields)
            assert answer.status == status
            allowed = answer.headers.get("access-control-allow-origin")
            assert allowed == (APP if fields.get("Origin") == APP else None)

    run(scene())


def test_a_preflight(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path, f'origins = ["{APP}"]\n') as broker:
            answer = await broker.ask("OPTIONS", "/v1/messages", Origin=APP)
            assert answer.status == 204
            assert answer.headers["access-control-allow-methods"] == "POST"
            assert "authorization" in answer.headers["access-control-allow-headers"].lower()
            answer = await broker.ask("OPTIONS", "/v1/messages", Origin="https://evil.example")
            assert answer.status == 403

    run(scene())


def test_a_login_is_for_reading_only(tmp_path: Path) -> None:
    more = identity("ann", 'subscribe = "TRUE"\npublish = "TRUE"')

    async def scene() -> None:
        async with http_broker(tmp_path, more=more) as broker:
            assert (await broker.ask("POST", "/v1/login", Authorization="Bearer eve")).status == 401
            answer = await broker.ask("POST", "/v1/login", Authorization="Bearer ann")
            assert answer.json == {"identity": "ann", "seconds": 3600}
            cookie = answer.headers["set-cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
            assert "ann" not in cookie
            mine = {"Cookie": cookie.partition(";")[0]}
            path = "/v1/subscriptions/desk/messages?where=TRUE"
            assert (await broker.ask("GET", path, **mine)).status == 200
            assert (await broker.ask("POST", path, **mine)).status == 401
            assert (await broker.publish({"attributes": {"a": 1}}, **mine)).status == 401
            assert (await broker.ask("DELETE", "/v1/subscriptions/desk", **mine)).status == 401
            question = b'{"attributes": {"a": 1}}'
            kind = {"Content_Type": "application/json"}
            for fields in (mine, mine | kind):
                assert (await broker.ask("POST", "/v1/explain", question, **fields)).status != 200
            assert (await broker.ask("GET", "/v1/topology", **mine)).status == 401
            assert (await broker.ask("GET", path, Cookie="palio_login=x")).status == 401
            assert (await broker.ask("DELETE", "/v1/login", **mine)).status == 204
            assert (await broker.ask("GET", path, **mine)).status == 401

    run(scene())


def test_operators(tmp_path: Path) -> None:
    more = identity("ann", 'subscribe = "TRUE"') + identity("root", "admin = true")

    async def scene() -> None:
        async with http_broker(tmp_path, more=more) as broker:
            ann, root = ({"Authorization": f"Bearer {name}"} for name in ("ann", "root"))
            await broker.ask("GET", "/v1/subscriptions/d/messages?where=a%20=%201", **ann)
            assert (await broker.ask("GET", "/v1/topology", **ann)).status == 403
            answer = await broker.ask("GET", "/v1/topology", **root)
            assert [place["broker"] for place in answer.json["brokers"]] == ["milan"]
            question = b'{"attributes": {"a": 1}}'
            kind = {"Content_Type": "application/json"}
            assert (await broker.ask("POST", "/v1/explain", question, **kind, **ann)).status == 403
            answer = await broker.ask("POST", "/v1/explain", question, **kind, **root)
            assert answer.json["hops"][0]["delivers"][0]["subscription"] == "ann/d"

    run(scene())


def test_tls_and_the_name_in_a_certificate(tmp_path: Path) -> None:
    office = Office(tmp_path)
    ann = '[identities.ann]\ncertificate = "ann"\nsubscribe = "TRUE"\npublish = "TRUE"\n'
    more = tls_text(office, *office.issue("milan", "localhost")) + ann

    async def scene() -> None:
        async with http_broker(tmp_path, more=more) as broker:
            for names, status in (
                ((), 401),
                (office.issue("ann", "ann.example", common_name="ann"), 200),
            ):
                context = security.connecting(office.authority, *names)
                peer = await broker.connect(ssl=context, server_hostname="localhost")
                assert (await peer.publish({"attributes": {"a": 1}})).status == status
                peer.close()
            silent = [await broker.connect() for _ in range(3)]  # they begin no handshake
            silent[0].writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert b"HTTP" not in await silent[0].reader.read()
            for one in silent:
                one.close()

    run(scene())


def test_who_logs_in_again_and_again_ends_the_logins_of_no_other() -> None:
    logins = Logins(60.0, lambda: 0.0)
    ann = logins.open("ann")
    numbers = [logins.open("eve") for _ in range(20_000)]
    assert logins.token(ann) == "ann"
    assert [number for number in numbers if logins.token(number)] == numbers[-1000:]
    for number in [ann, *numbers]:
        logins.close(number)
    assert (logins._tokens, logins._numbers) == ({}, {})
