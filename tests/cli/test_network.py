"""The commands of the network against real brokers: output, exit codes, signals, sentences."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.commands import palio as command
from typer.testing import CliRunner

import palio
from palio.cli import app
from palio.errors import PalioError
from palio.net.cluster import Cluster, local_cluster

pytestmark = pytest.mark.xdist_group("network-commands")
PATIENCE_S = 60


@pytest.fixture(scope="module")
def line() -> Iterator[Cluster]:
    """b1 ─── b2"""
    with local_cluster(2, "line") as cluster:
        yield cluster


class Running:
    """A command that goes on; its lines are read as they come."""

    def __init__(self, *arguments: str, stdin: bool = False) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "palio.cli", *arguments],
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._timer = threading.Timer(PATIENCE_S, self.process.kill)
        self._timer.start()

    def error_line(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.readline()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def end(self, number: int | None = None) -> tuple[int, str, str]:
        """Wait for it, after a signal if there is one: exit code, what is left of its output."""
        if number is not None:
            self.process.send_signal(number)
        out, err = self.process.communicate()
        self._timer.cancel()
        return self.process.returncode, out, err


def call(*arguments: str) -> str:
    """A command within this process: what it prints."""
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


# ---- publish and subscribe


@pytest.mark.slow
def test_a_message_with_a_body_reaches_a_durable_subscription(
    line: Cluster, tmp_path: Path
) -> None:
    reader = Running("subscribe", "price < 500 AND dest = 'MXP'", "--durable", "desk", "--json",
                     "--count", "2", "--url", line.urls[0])  # fmt: skip
    assert reader.error_line() == "palio: subscribed at b1\n"
    body = tmp_path / "body"
    body.write_bytes(b"\xff\x00")
    to = ("--url", line.urls[1], "--name", "shop")
    done = command("publish", "price=450", "dest=MXP", "--body", body, "--header", "trace=7",
                   "--header", "correlation=ab", *to)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("palio: stored by b2 as number ")
    assert done.stderr.endswith(" of anonymous/shop\n")
    call("publish", "price=550", "dest=MXP", *to)
    call("publish", "--json", '{"price": 1, "dest": "MXP"}', *to)
    code, out, err = reader.end()
    first, second = map(json.loads, out.splitlines())
    assert (code, err) == (0, "")
    assert first["attributes"] == {"price": 450, "dest": "MXP"}
    assert first["publisher"] == "anonymous/shop"
    assert first["body_base64"] == "/wA="
    assert first["headers"] == {"trace": 7, "correlation": {"$binary": "YWI="}}
    assert [first["position"], second["position"]] == [1, 2]
    assert second["number"] > first["number"]
    assert "body" not in second
    assert "headers" not in second


def test_what_was_printed_is_acknowledged_and_the_rest_waits(line: Cluster) -> None:
    with palio.blocking.connect(line.urls[1]) as client:
        client.subscribe("n > 0", durable="waits").close()
        client.publish_many([{"n": n} for n in range(1, 6)])
    arguments = ("subscribe", "n > 0", "--durable", "waits", "--url", line.urls[1])
    assert call(*arguments, "--count", "2") == '{"n":1}\n{"n":2}\n'
    assert call(*arguments, "--count", "3") == '{"n":3}\n{"n":4}\n{"n":5}\n'
    done = command(*arguments, "--forget")
    assert (done.returncode, done.stderr) == (0, "palio: waits is forgotten by b2\n")
    replay = call("subscribe", "n > 3", "--durable", "later", "--since", "1 h", "--count", "2",
                     "--url", line.urls[0])  # fmt: skip
    assert replay == '{"n":4}\n{"n":5}\n'


def test_what_does_not_exist_cannot_be_forgotten(line: Cluster) -> None:
    for predicate in ((), ("n > 0",)):
        done = command(
            "subscribe", *predicate, "--durable", "nosuch", "--forget", "--url", line.urls[1]
        )
        assert (done.returncode, done.stdout) == (2, "")
        text = " ".join(done.stderr.split())
        assert "broker 'b2' has no durable subscription 'anonymous/nosuch'" in text
    with palio.blocking.connect(line.urls[1]) as client:
        assert "anonymous/nosuch" not in [row.name for row in client.queues()]


@pytest.mark.slow
def test_lines_of_standard_input(line: Cluster) -> None:
    reader = Running("subscribe", "k = 7", "--durable", "lines", "--url", line.urls[0])
    reader.error_line()
    writer = Running("publish", "--url", line.urls[0], stdin=True)
    assert writer.process.stdin is not None
    writer.process.stdin.write('{"k": 7, "i": 1}\n\n{"k": 8}\n{"k": 7, "i": 2}\n')
    writer.process.stdin.flush()
    # They travel while the input is open: the last line has no end yet.
    assert [json.loads(reader.line())["i"] for _ in range(2)] == [1, 2]
    writer.process.stdin.write('{"k": 7, "i": [1]}')
    code, out, err = writer.end()
    assert (code, out) == (2, "")
    assert "3 messages stored by b1 in " in err
    assert "palio: standard input, line 5: " in err
    assert "Traceback" not in err
    code, out, err = reader.end(signal.SIGINT)
    assert (code, out, err) == (0, "", "")


def test_ctrl_c_while_publishing(line: Cluster) -> None:
    writer = Running("publish", "--best-effort", "--url", line.urls[0], stdin=True)
    assert writer.process.stdin is not None
    with palio.blocking.connect(line.urls[0]) as client, client.subscribe("c = 1") as subscription:
        writer.process.stdin.write('{"c": 1}\n')
        writer.process.stdin.flush()
        assert subscription.next(PATIENCE_S).attributes["c"] == 1
    writer.process.send_signal(signal.SIGINT)
    assert writer.process.wait(PATIENCE_S) == 130
    code, _, err = writer.end()
    assert code == 130
    assert "1 messages sent to b1" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_patterns_and_groups(line: Cluster) -> None:
    watcher = Running("subscribe", "--pattern", "[step = 1] then [step = 2]", "--count", "1",
                      "--json", "--url", line.urls[0])  # fmt: skip
    members = [Running("subscribe", "step > 0", "--group", "g", "--durable", "both", "--count", "1",
                       "--url", line.urls[0]) for _ in range(2)]  # fmt: skip
    for each in (watcher, *members):
        each.error_line()
    with palio.blocking.connect(line.urls[0]) as client:
        for step in (1, 2):
            client.publish({"step": step})
    code, out, _ = watcher.end()
    assert code == 0
    assert [part["attributes"] for part in json.loads(out)["messages"]] == [
        {"step": 1},
        {"step": 2},
    ]
    assert sorted(member.end()[1] for member in members) == ['{"step":1}\n', '{"step":2}\n']


@pytest.mark.slow
def test_advertise_until_a_signal(line: Cluster) -> None:
    running = Running("advertise", "price > 0", "dest IS NOT NULL", "--url", line.urls[0])
    assert running.error_line() == "palio: advertised at b1 until Ctrl-C\n"
    assert running.end(signal.SIGTERM) == (0, "", "")
    done = command("advertise", "price > 0 AND dest = 'MXP'", "--url", line.urls[0])
    assert done.returncode == 2
    assert "write AND as two" in done.stderr


# ---- the map


def test_topology_with_memory(line: Cluster) -> None:
    done = command("topology", "--memory", "--url", line.urls[1])
    assert done.stdout.split()[:3] == ["broker", "scheme", "predicates"]
    rows = [
        json.loads(row)
        for row in call("topology", "--memory", "--json", "--url", line.urls[1]).splitlines()
    ]
    assert {row["memory"]["scheme"] for row in rows} == {"iPS"}


def test_topology(line: Cluster) -> None:
    done = command("topology", "--url", line.urls[1])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("b1 ─── b2*\n\nbroker  links  filters  durable\n")
    rows = [
        json.loads(row) for row in call("topology", "--json", "--url", line.urls[1]).splitlines()
    ]
    assert [(row["broker"], row["links"], row["reachable"]) for row in rows] == [
        ("b1", {"b2": 1.0}, True),
        ("b2", {"b1": 1.0}, True),
    ]


def test_explain(line: Cluster) -> None:
    with palio.blocking.connect(line.urls[0], name="cy") as client:
        client.subscribe("fare < 500", durable="why").close()
        with client.subscribe("fare > 100"):
            done = _explained(line, '{"fare": 450}')
            assert done[:2] == ["b2", "└─▶ b1  (the next hop to brokers that want the message)"]
            assert re.fullmatch(r"       anonymous/cy#\d+: fare > 100 holds: fare is 450", done[2])
            assert done[3:] == ["       anonymous/why: fare < 500 holds: fare is 450"]
    assert _explained(line, '{"fare": 450}')[1:] == [
        "  anonymous/why: durable, at b1: kept here until b1 has it; fare < 500 holds: fare is 450"
    ]
    done = _explained(line, '{"fare": 550}', "--subscription", "why")
    assert done[1:] == [
        "  anonymous/why: durable, at b1: not sent; fare < 500 fails: fare is 550",
    ]
    done = _explained(line, '{"fare": 550}', "--subscription", "nobody")
    assert done[-1].startswith("nobody: no broker that the message visits has a subscription")
    assert _explained(line, '{"other": 1}') == ["b2", "nobody gets it"]
    (row,) = map(json.loads, _explained(line, '{"fare": 450}', "--json"))
    assert list(row["delivers"]) == ["anonymous/why"]


def _explained(line: Cluster, *arguments: str) -> list[str]:
    return call("explain", *arguments, "--url", line.urls[1]).splitlines()


# ---- a cluster


@pytest.mark.slow
def test_cluster_up_until_ctrl_c(tmp_path: Path) -> None:
    running = Running("cluster", "up", "--brokers", "2", "--topology", "line", "--port", "0",
                      "--data", str(tmp_path))  # fmt: skip
    assert running.error_line() == "palio: starting 2 brokers\n"
    text = ""
    while "Ctrl-C" not in text:
        read = running.line()
        assert read, running.end()
        text += read
    assert text.startswith("b1 ─── b2\n")
    assert text.count("palio://127.0.0.1:") == 6
    assert len(_brokers_of(tmp_path)) == 2
    code, _, err = running.end(signal.SIGINT)
    assert (code, err) == (0, "")
    assert _brokers_of(tmp_path) == []


def _brokers_of(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:  # it has just ended
            continue
        if any(word.startswith(f"{folder}/".encode()) for word in words) and b"broker" in words:
            found.append(int(entry.parent.name))
    return sorted(found)


# ---- mistakes


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["publish", "price"], "an attribute is written name=value"),
        (["publish", "a=1", "a=2"], "given twice"),
        (["publish", "a=1", "--json", "{}"], "not both"),
        (["publish", "--json", "[1]"], "--json: "),
        (["publish", "a=1", "--body", "/no/such"], "cannot be read: No such file"),
        (["publish", "--body", "x"], "--body belongs to one message"),
        (["publish", "--header", "x=1"], "--header belongs to one message"),
        (["publish", "--expires-in", "1 s"], "--expires-in belongs to one message"),
        (["publish", "a=1", "--expires-in", "soon"], "--expires-in: 'soon' is no time: 30 s"),
        (["publish", "a=1", "--header", "x"], "--header: an attribute is written name=value"),
        (["publish", "a=1", "--url", "http://x"], "not of the form palio://host:port"),
        (["publish", "a=1", "--key", "x"], "--certificate and --key belong together"),
        (["publish", "a=1", "--url", "palio://127.0.0.1:1"], "127.0.0.1:1"),
        (["subscribe"], "takes a predicate, or --pattern"),
        (["subscribe", "x = 1", "--pattern", "[x = 1]"], "takes a predicate, or --pattern"),
        (["subscribe", "--pattern", "[x = 1]", "--durable", "d"], "no --durable"),
        (["subscribe", "--pattern", "[x = 1]", "--dialect", "jms"], "not for --pattern"),
        (["subscribe", "--pattern", "[x = 1]", "--zone", "Nowhere"], "no time zone"),
        (["subscribe", "x = 1", "--full", "burst"], "--full is one of"),
        (["subscribe", "x = 1", "--forget"], "name it with --durable"),
        (["subscribe", "x = 1", "--durable", "d", "--since", "noon"], "--since: "),
        (["explain", "price=450"], "JSON"),
        (["cluster", "up", "--topology", "web"], "there is no shape 'web'"),
    ],
)
def test_mistakes_are_sentences(arguments: list[str], says: str) -> None:
    result = CliRunner().invoke(app, arguments, input="")
    assert isinstance(result.exception, PalioError), result.output
    assert says in str(result.exception)


def test_what_the_broker_refuses(line: Cluster) -> None:
    for arguments, says in (
        (["subscribe", "price <"], "price <"),
        (["subscribe", "x = 1", "--since", "1 h"], "needs a durable subscription"),
        (["publish", "x=1", "--token", "wrong"], "does not know the token"),
    ):
        done = command(*arguments, "--url", line.urls[0])
        assert done.returncode == 2
        assert done.stderr.startswith("palio: ")
        assert says in done.stderr
        assert "Traceback" not in done.stderr
