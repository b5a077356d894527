"""Ports that are reserved: two processes that look for free ones at once never get the same."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from palio.errors import PalioError
from palio.net.cluster.ports import HOST, free_ports

_TRY = """
import socket, sys
with socket.socket() as probe:
    probe.bind(("127.0.0.1", int(sys.argv[1])))
"""


def test_a_reserved_port_is_free_for_whoever_listens_and_taken_for_whoever_looks() -> None:
    (port,) = free_ports(0, 1)
    looked = subprocess.run(
        [sys.executable, "-c", _TRY, str(port)], capture_output=True, text=True, check=False
    )
    assert "Address already in use" in looked.stderr
    with socket.create_server((HOST, port)), socket.create_connection((HOST, port)):
        pass


def test_no_port_is_given_twice() -> None:
    ports = [port for _ in range(30) for port in free_ports(0, 8)]
    assert len(set(ports)) == len(ports)


def test_ports_that_are_named_must_be_free() -> None:
    (port,) = free_ports(0, 1)
    assert free_ports(port, 1) == [port]
    with (
        socket.create_server((HOST, port)),
        pytest.raises(PalioError, match=f"port {port} cannot be used"),
    ):
        free_ports(port, 1)
