"""The interoperability suites of Eclipse Paho (eclipse/paho.mqtt.testing), from a checkout of theirs.

    PALIO_PAHO=FOLDER pytest -m slow tests/net/listeners/test_mqtt_suites.py

Both run one after the other against one broker, twice: what the first run leaves there must not matter.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from palio.lab.bench.loopback.processes import free_port
from tests.net.listeners import mqtt_suite_run
from tests.net.peers import configured
from tests.net.test_broker_process import Process

CASES = {"client_test": 10, "client_test5": 27}
CONFIG = """
[mqtt]
listen = "127.0.0.1:0"
max_keepalive = "60 s"
topic_alias_maximum = 10
receive_maximum = 20
deny = ["test/nosubscribe"]
"""
SUITE_S = 600.0


@pytest.mark.slow
def test_all_cases_pass_twice(tmp_path: Path) -> None:
    folder = os.environ.get("PALIO_PAHO")
    if not folder:
        pytest.skip("PALIO_PAHO is not set: the folder of a checkout of eclipse/paho.mqtt.testing")

    port = free_port()
    config = configured(tmp_path, CONFIG.replace("127.0.0.1:0", f"127.0.0.1:{port}"))
    broker = Process(config.path)  # as users start it: with its kernels loaded

    async def scene() -> None:
        for _ in range(2):
            for name, count in CASES.items():
                said = await suite(Path(folder), name, port)
                assert re.search(rf"Ran {count} tests in .*\n\nOK", said), said

    try:
        asyncio.run(scene())
    finally:
        assert broker.end(signal.SIGTERM) == 0


async def suite(folder: Path, name: str, port: int) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", mqtt_suite_run.__file__, str(folder / "interoperability"), name, str(port),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(SUITE_S):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        output, _ = await process.communicate()
    return output.decode()
