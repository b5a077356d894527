"""A fork server that loads nothing; what it forks does one of a few small things."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Sequence

from palio.net.cluster.fork_server import serve


def _run(arguments: Sequence[str]) -> None:
    match arguments:
        case ["tell"]:
            print(
                os.getcwd(), os.environ["PALIO_TEST"], os.getsid(0) == os.getpid(), file=sys.stderr
            )
        case ["sleep"]:
            print("sleeps", file=sys.stderr, flush=True)
            time.sleep(600)
        case ["read"]:
            sys.stdin.read()
        case ["exit", code]:
            sys.exit(int(code))
        case _:
            raise ValueError(f"no such test: {arguments}")


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        serve(connection, _run)
