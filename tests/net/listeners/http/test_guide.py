"""The examples of docs/guides/http.md run, each where its runtime is."""

from __future__ import annotations

import asyncio
import http.server
import os
import re
import shutil
import threading
from functools import partial
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

import pytest

from tests.net.listeners.http.peer import http_broker
from tests.net.peers import LOOPS

GUIDE = Path(__file__).parents[4] / "docs" / "guides" / "http.md"
BLOCKS = re.compile(r"```(bash|js|html|go|java)\n(.*?)```", re.DOTALL)
EXAMPLES = BLOCKS.findall(GUIDE.read_text("utf-8"))
PORT = "127.0.0.1:7490"
RUN_S_MAX = 60
"""A compiler on a busy machine takes long."""
PROGRAMS = {
    "bash": ("curl", ["bash", "-e"], "example.sh"),
    "js": ("node", ["node"], "example.mjs"),
    "go": ("go", ["go", "run"], "example.go"),
    "java": ("java", ["java"], "Desk.java"),
}
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")


async def output(folder: Path, command: list[str]) -> str:
    environment = {**os.environ, "GOFLAGS": "-mod=mod"}
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    return said.decode()


def run(folder: Path, language: str, text: str, expected: str) -> None:
    needed, command, name = PROGRAMS[language]
    if shutil.which(needed) is None:
        pytest.skip(f"{needed} is not installed")

    async def scene() -> None:
        async with asyncio.timeout(RUN_S_MAX), http_broker(folder) as broker:
            (folder / name).write_text(text.replace(PORT, str(broker.endpoint)))
            assert expected in await output(folder, [*command, name])

    with asyncio.Runner(loop_factory=LOOPS["uvloop"]) as runner:
        runner.run(scene())


def test_curl(tmp_path: Path) -> None:
    blocks = [text for language, text in EXAMPLES if language == "bash"]
    assert len(blocks) == 4
    poll = next(text for text in blocks if "/v1/subscriptions/" in text)
    blocks.remove(poll)
    run(tmp_path, "bash", "\n".join([poll, *blocks, poll]), '"body":"seat 12A"')


@pytest.mark.parametrize("language", ["js", "go", "java"])
def test_programs(tmp_path: Path, language: str) -> None:
    (text,) = [text for each, text in EXAMPLES if each == language]
    expected = '"body":"seat 12A"' if language == "java" else "450 seat 12A"
    run(tmp_path, language, text, expected)


TELLING = """
<script type="module">
  const tell = (what) => fetch("/tell?" + encodeURIComponent(what));
  new MutationObserver(() => tell("title " + document.title)).observe(document.head, {subtree: true, childList: true});
  const socket = new WebSocket("ws://127.0.0.1:7490/v1/socket");
  socket.onopen = () => {
    socket.send('{"op": "subscribe", "id": 1, "where": "price > 500"}');
  };
  socket.onmessage = (event) => {
    const said = JSON.parse(event.data);
    if (said.op === "subscribed") {
      socket.send('{"op": "publish", "id": 2, "attributes": {"price": 900}, "body": "from a page"}');
    }
    if (said.op === "message") tell("socket " + said.message.body);
  };
</script>
"""


class Pages(http.server.SimpleHTTPRequestHandler):
    """Serves the page, and hears what it tells."""

    told: ClassVar[set[str]] = set()

    def do_GET(self) -> None:
        if self.path.startswith("/tell?"):
            self.told.add(unquote(self.path.removeprefix("/tell?")))
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


def test_a_page_in_a_browser(tmp_path: Path) -> None:
    """Its own EventSource and WebSocket, from another origin that is allowed."""
    browser = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if browser is None:
        pytest.skip("no Chromium is installed")
    (text,) = [text for each, text in EXAMPLES if each == "html"]
    text = "<head><title>empty</title></head>" + TELLING + text
    pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Pages, directory=tmp_path))
    threading.Thread(target=pages.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{pages.server_port}"
    wanted = {"title 450 seat 12A", "socket from a page"}

    async def scene() -> None:
        origins = f'origins = ["{origin}"]\n'
        async with asyncio.timeout(RUN_S_MAX), http_broker(tmp_path, origins) as broker:
            (tmp_path / "page.html").write_text(text.replace(PORT, str(broker.endpoint)))
            await broker.ask("GET", "/v1/subscriptions/desk-page/messages?where=price%20%3C%20500")
            await broker.publish({"attributes": {"price": 450}, "body": "seat 12A"})
            options = [
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                f"--user-data-dir={tmp_path}/profile",
            ]
            process = await asyncio.create_subprocess_exec(
                browser, *options, "--remote-debugging-port=0", f"{origin}/page.html",
                stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            try:
                while not wanted <= Pages.told:
                    await asyncio.sleep(0.1)
            finally:
                process.terminate()
                await process.wait()

    try:
        with asyncio.Runner(loop_factory=LOOPS["uvloop"]) as runner:
            runner.run(scene())
    finally:
        pages.shutdown()
