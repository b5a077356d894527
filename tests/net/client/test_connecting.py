"""Making the first connection: addresses, TLS, tokens, and brokers that refuse."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import sys

import pytest
import trustme

import palio
from palio.errors import InvalidValue, RefusedByBroker, Unreachable
from palio.protocol.wire.codes import CloseCode
from palio.protocol.wire.control import VERSION
from tests.net.running import in_loop
from tests.net.served import Served
from tests.protocol.stand_in import StandIn


class TestOpening:
    def test_no_broker(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            url = f"palio://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Unreachable, match=f"no broker at {url} .*palio broker --config"):
            asyncio.run(self.enter(url))

    async def enter(self, url: str, **options: object) -> None:
        async with palio.connect(url, **options):  # type: ignore[arg-type]
            pass

    @in_loop
    async def test_waits_for_the_first_broker(self) -> None:
        served = Served()
        await served.start()
        await served.stop()
        task = asyncio.create_task(self.enter(served.url, wait=10))
        await asyncio.sleep(0.1)
        await served.start()
        await task
        await served.stop()

    @in_loop
    async def test_refused(self) -> None:
        core = StandIn()
        async with Served(core) as served:
            core.tokens = {"right": "ann"}
            with pytest.raises(RefusedByBroker, match="nobody here knows this token"):
                await self.enter(served.url, token="wrong")
            core.tokens = None
            core.version = VERSION + 1
            with pytest.raises(
                RefusedByBroker, match=f"speaks version {VERSION + 1} of the protocol"
            ):
                await self.enter(served.url)

    @pytest.mark.parametrize(
        "code", [CloseCode.STOPPING, CloseCode.STORE_FULL, CloseCode.TOO_MANY_CONNECTIONS]
    )
    def test_a_broker_that_takes_no_clients_now_is_tried_again(self, code: CloseCode) -> None:
        @in_loop
        async def run() -> None:
            core = StandIn()
            core.dismissal = code
            async with Served(core) as served:
                with pytest.raises(Unreachable, match="takes no clients now") as error:
                    await self.enter(served.url, wait=0)
                assert error.value.code == code
                task = asyncio.create_task(self.enter(served.url, wait=10))
                await asyncio.sleep(0.1)
                assert not task.done()
                core.dismissal = None
                await task

        run()

    @in_loop
    async def test_a_refusal_is_not_tried_again(self) -> None:
        core = StandIn()
        core.tokens = {"right": "ann"}
        async with Served(core) as served:
            async with asyncio.timeout(5):
                with pytest.raises(RefusedByBroker) as error:
                    await self.enter(served.url, token="wrong", wait=60)
            assert error.value.code == CloseCode.DENIED

    @in_loop
    async def test_something_else_listens_there(self) -> None:
        async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Unreachable, match="is no Palio broker, or it wants palios"):
            await self.enter(f"palio://127.0.0.1:{port}")
        server.close()

    @in_loop
    async def test_tls(self) -> None:
        authority, stranger = trustme.CA(), trustme.CA()
        server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("127.0.0.1").configure_cert(server_side)
        async with Served(tls=server_side) as served:
            with authority.cert_pem.tempfile() as trusted, stranger.cert_pem.tempfile() as other:
                async with palio.connect(served.url, tls=trusted) as client:
                    await client.publish({"x": 1})
                assert len(served.core.stored) == 1
                for tls in (None, other):
                    with pytest.raises(Unreachable, match=r"certificate of .* is not trusted"):
                        await self.enter(served.url, tls=tls)
            with pytest.raises(Unreachable, match="wants palios://"):
                await self.enter(served.url.replace("palios", "palio"))
            with pytest.raises(InvalidValue, match="certificates for"):
                palio.connect(served.url, tls="no-such-file")
        async with Served() as served:
            with pytest.raises(Unreachable, match="plain palio://"):
                await self.enter(served.url.replace("palio", "palios"))

    def test_a_token_in_the_clear_is_told_and_never_shown(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        client = palio.connect("palio://far.example", token="s3cret")
        assert "in the clear" in caplog.text
        assert "s3cret" not in caplog.text + repr(client)
        caplog.clear()
        palio.connect("palio://127.0.0.1", token="s3cret")
        assert caplog.text == ""

    def test_import_is_lazy(self) -> None:
        script = (
            "import palio, sys; assert 'asyncio' not in sys.modules, 'too early'; "
            "palio.connect; palio.blocking.connect; assert 'numba' not in sys.modules"
        )
        subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
