"""The description of the interface: valid, complete, and what the broker answers is as it says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from palio.net.listeners.http.routes import ROUTES, description
from tests.net.listeners.http.peer import http_broker
from tests.net.peers import run

DESCRIPTION: dict[str, Any] = json.loads(description())


def test_it_is_openapi() -> None:
    validator = pytest.importorskip("openapi_spec_validator", reason="needs the extra dev")
    validator.validate(DESCRIPTION)


def test_it_has_every_route_and_no_other() -> None:
    described = {
        (path, method) for path, methods in DESCRIPTION["paths"].items() for method in methods
    }
    assert described == {(r.path, method.lower()) for r in ROUTES for method in r.handlers}


def test_every_reference_leads_somewhere_and_every_path_has_its_parameters() -> None:
    for name in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(DESCRIPTION)):
        assert name in DESCRIPTION["components"]["schemas"]
    for path, methods in DESCRIPTION["paths"].items():
        for method in methods.values():
            named = {one["name"] for one in method.get("parameters", ()) if one["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path))


def test_every_parameter_of_a_query_is_known(tmp_path: Path) -> None:
    """And those that are not described are refused."""

    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            assert json.loads((await broker.ask("GET", "/openapi.json")).body) == DESCRIPTION
            for path, methods in DESCRIPTION["paths"].items():
                for method, operation in methods.items():
                    if path in ("/openapi.json", "/v1/login"):
                        continue
                    for one in operation.get("parameters", ()):
                        if one["in"] != "query":
                            continue
                        url = f"{path.replace('{name}', 'd')}?{one['name']}=%FF"
                        answer = await broker.ask(method.upper(), url)
                        assert "no parameter" not in answer.json["detail"]
                        answer = await broker.ask(
                            method.upper(), f"{url}&strange=1".replace("%FF", "1")
                        )
                        assert answer.status in (400, 415, 426), (url, answer)

    run(scene())


def test_answers_are_as_described(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            path = "/v1/subscriptions/desk/messages?where=TRUE"
            await broker.ask("GET", path)
            message = {"attributes": {"a": 1}, "headers": {"n": 1}, "body": "b"}
            await broker.publish(message)
            found = (await broker.ask("GET", path)).json["messages"][0]
            _check("Delivered", found)
            _check("Problem", (await broker.ask("GET", "/v1/events?where=a%20%3E")).json)
            topology = (await broker.ask("GET", "/v1/topology")).json
            _check("Place", topology["brokers"][0])
            kind = {"Content_Type": "application/json"}
            question = json.dumps({"attributes": {"a": 1}}).encode()
            explained = (await broker.ask("POST", "/v1/explain", question, **kind)).json
            _check("Hop", explained["hops"][0])

    run(scene())


def _check(schema: str, value: dict[str, Any]) -> None:
    described = DESCRIPTION["components"]["schemas"][schema]
    assert set(described["required"]) <= set(value) <= set(described["properties"])
