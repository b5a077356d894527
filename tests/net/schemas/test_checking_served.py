"""Schemas at a real broker: native clients and HTTP, what operators see, a change while it runs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import palio
from palio.errors import NetworkError
from palio.net.broker.server import serving
from tests.net.peers import configured, run

pytest.importorskip("jsonschema_rs", reason="needs palio[schemas]")

ORDER = {"required": ["id"], "properties": {"price": {"type": "number", "minimum": 0}}}
SECTION = '[schemas.orders]\nwhere = "kind = \'order\'"\nschema = "order.schema.json"\n'
MISSING = (
    "the message is not valid by the schema 'orders': it has no attribute \"id\", which is required"
)


def test_a_native_client_and_a_change(tmp_path: Path) -> None:
    async def scene() -> None:
        file = tmp_path / "order.schema.json"
        file.write_text(json.dumps(ORDER))
        async with serving(configured(tmp_path, SECTION)) as server:
            url = f"palio://{server.endpoint}"
            async with palio.connect(url, max_wait=5) as client, client.subscribe("TRUE") as notes:
                with pytest.raises(NetworkError, match='no attribute "id"') as caught:
                    await client.publish({"kind": "order"})
                assert str(tmp_path) not in str(caught.value)
                with pytest.raises(NetworkError, match='"price" is -1, and must satisfy'):
                    await client.publish({"kind": "order", "id": 1, "price": -1})
                await client.publish({"kind": "order", "id": 1})
                await client.publish({"kind": "offer"})
                assert [(await anext(notes)).attributes["kind"] for _ in range(2)] == [
                    "order", "offer",
                ]  # fmt: skip
                counts = server.host.snapshot().table.schemas["orders"]
                assert (counts.checked, counts.refused) == (3, 2)
                file.write_text(json.dumps({"required": ["at"]}))
                await server.reload()
                with pytest.raises(NetworkError, match='no attribute "at"'):
                    await client.publish({"kind": "order", "id": 1})
                file.write_text("{")  # a mistake: the old one stays
                await server.reload()
                with pytest.raises(NetworkError, match='no attribute "at"'):
                    await client.publish({"kind": "order", "id": 1})

    run(scene())


def test_http(tmp_path: Path) -> None:
    pytest.importorskip("h11", reason="needs palio[http]")
    from tests.net.listeners.http.peer import http_broker

    async def scene() -> None:
        (tmp_path / "order.schema.json").write_text(json.dumps(ORDER))
        async with http_broker(tmp_path, SECTION) as broker:
            answer = await broker.publish({"attributes": {"kind": "order"}})
            assert answer.status == 403
            assert MISSING in answer.json["detail"]
            answer = await broker.publish({"attributes": {"kind": "order", "id": 7}})
            assert answer.status == 200

    run(scene())


def test_mqtt(tmp_path: Path) -> None:
    mqtt = pytest.importorskip("aiomqtt", reason="needs aiomqtt")

    async def scene() -> None:
        (tmp_path / "order.schema.json").write_text(json.dumps(ORDER))
        text = f'[mqtt]\nlisten = "127.0.0.1:0"\npayload = "json"\n{SECTION}'
        async with serving(configured(tmp_path, text)) as server:
            assert server.mqtt_endpoint is not None
            port, five = server.mqtt_endpoint.port, mqtt.ProtocolVersion.V5
            answers: list[str] = []
            async with mqtt.Client("127.0.0.1", port, protocol=five, timeout=5) as client:
                before = client._client.on_publish

                def on_publish(*given: object) -> None:
                    answers.append(f"{given[3]} {given[4]}")
                    before(*given)

                client._client.on_publish = on_publish
                await client.publish("orders", json.dumps({"kind": "order"}), qos=1)
                await client.publish("orders", json.dumps({"kind": "order", "id": 7}), qos=1)
                for _ in range(50):
                    if server.host.snapshot().table.schemas["orders"].checked == 2:
                        break
                    await asyncio.sleep(0.05)
            counts = server.host.snapshot().table.schemas["orders"]
            assert (counts.checked, counts.refused) == (2, 1)
            assert answers[0].startswith("Payload format invalid")
            assert MISSING in answers[0]

    run(scene())
