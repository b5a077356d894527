"""`python -m palio.cli.fork_server DESCRIPTOR`: loads what brokers need and forks them on request.

`palio.net.cluster` starts it, and talks with it by the socket of this descriptor.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence

from palio.cli import main
from palio.net.broker import kernels, server
from palio.net.cluster import fork_server


def _run(arguments: Sequence[str]) -> None:
    sys.argv = ["palio", *arguments]
    main()


if __name__ == "__main__":
    kernels.prepare()
    server.loop_factory()
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        fork_server.serve(connection, _run)
