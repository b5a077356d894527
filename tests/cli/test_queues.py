"""Commands of operators against a real broker: tables, JSON, confirmations, sentences."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator

import pytest
from tests.cli.commands import Done
from tests.cli.commands import palio as command

import palio
from palio.net.cluster import Cluster, local_cluster

pytestmark = pytest.mark.xdist_group("network-commands")


@pytest.fixture(scope="module")
def broker() -> Iterator[Cluster]:
    with local_cluster(1, "line") as cluster:
        yield cluster


def queue(broker: Cluster, name: str, count: int = 0) -> None:
    """A durable subscription with so many messages."""
    with palio.blocking.connect(broker.urls[0]) as client:
        client.subscribe(f"q = '{name}'", durable=name).close()
        client.publish_many([{"q": name} for _ in range(count)])


def queues(broker: Cluster, *words: str) -> Done:
    return command("queues", *words, "--url", broker.urls[0])


def row(broker: Cluster, name: str) -> dict[str, object]:
    rows = [json.loads(line) for line in queues(broker, "--json").stdout.splitlines()]
    (found,) = [one for one in rows if one["queue"] == f"anonymous/{name}"]
    return dict(found)


def test_the_table_and_its_json(broker: Cluster) -> None:
    queue(broker, "listed", 3)
    done = queues(broker)
    assert (done.returncode, done.stderr) == (0, "")
    head, *lines = done.stdout.splitlines()
    assert head.split() == "QUEUE MESSAGES BYTES OLDEST CONSUMERS FULL STATE GROUP FOR".split()
    (line,) = [line for line in lines if line.startswith("anonymous/listed ")]
    assert "q = 'listed'" in line
    found = row(broker, "listed")
    assert found.pop("bytes") > 3 * 8  # type: ignore[operator]
    assert 0 < found.pop("oldest_s") < 60  # type: ignore[operator]
    assert found == {
        "queue": "anonymous/listed", "identity": "anonymous", "group": "",
        "predicate": "q = 'listed'", "messages": 3, "consumers": 0, "full": "block",
        "paused": False,
    }  # fmt: skip


def test_queues_of_groups(broker: Cluster) -> None:
    with palio.blocking.connect(broker.urls[0]) as client:
        for group in ("day", "night"):
            client.subscribe("q = 'grouped'", durable="desk", group=group).close()
        client.publish_many([{"q": "grouped"} for _ in range(2)])
    assert queues(broker, "purge", "anonymous/desk:day", "--yes").returncode == 0
    found = [(row(broker, f"desk:{g}")["group"], row(broker, f"desk:{g}")["messages"])
             for g in ("day", "night")]  # fmt: skip
    assert found == [("day", 0), ("night", 2)]
    done = queues(broker, "purge", "anonymous/desk", "--yes")
    assert (done.returncode, "no durable subscription" in done.stderr) == (2, True)
    words = ("subscribe", "--durable", "desk", "--forget", "--url", broker.urls[0])
    assert command(*words).returncode == 2
    done = command(*words, "--group", "night")
    assert (done.returncode, done.stderr) == (0, "palio: group night of desk is forgotten by b1\n")
    listed = queues(broker, "--json").stdout
    assert "anonymous/desk:day" in listed
    assert "anonymous/desk:night" not in listed


def test_pausing_and_resuming(broker: Cluster) -> None:
    queue(broker, "paused", 1)
    done = queues(broker, "pause", "anonymous/paused")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("palio: anonymous/paused is paused: ")
    assert row(broker, "paused")["paused"] is True
    done = queues(broker, "resume", "anonymous/paused", "--json")
    assert json.loads(done.stdout) == {"act": "resume", "queue": "anonymous/paused"}
    assert row(broker, "paused")["paused"] is False


def test_what_deletes_asks_first(broker: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    queue(broker, "asks", 2)
    for act in ("purge", "end"):
        done = queues(broker, act, "anonymous/asks")
        assert done.returncode == 2
        assert "there is nobody to ask; add --yes" in done.stderr
    assert row(broker, "asks")["messages"] == 2
    done = queues(broker, "purge", "anonymous/asks", "--yes")
    assert (done.returncode, "2 messages are deleted" in done.stderr) == (0, True)
    assert row(broker, "asks")["messages"] == 0
    done = queues(broker, "end", "anonymous/asks", "--yes", "--json")
    assert json.loads(done.stdout) == {"act": "end", "queue": "anonymous/asks", "messages": 0}
    assert queues(broker, "end", "anonymous/asks", "--yes").returncode == 2


@pytest.mark.parametrize(("answer", "left", "code"), [("n", 2, 1), ("y", 0, 0)])
def test_an_answer_at_a_terminal(
    broker: Cluster, monkeypatch: pytest.MonkeyPatch, answer: str, left: int, code: int
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    queue(broker, f"tty-{answer}", 2)
    monkeypatch.setattr(io, "StringIO", lambda *_: Terminal(f"{answer}\n"))
    done = queues(broker, "purge", f"anonymous/tty-{answer}")
    monkeypatch.undo()
    assert done.returncode == code
    assert row(broker, f"tty-{answer}")["messages"] == left
    assert sys.stdin is not None


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("drop", "a/b"), "palio queues does pause, resume, purge, end, move"),
        (("pause",), "palio queues pause takes the name of a queue, IDENTITY/NAME"),
        (("move", "a/b"), "--to IDENTITY belongs to `palio queues move NAME`"),
        (("pause", "a/b", "--to", "x"), "--to IDENTITY belongs to"),
        (("pause", "a/b"), "broker 'b1' has no durable subscription 'a/b'"),
        (
            ("end", "nosuch", "--yes"),
            "IDENTITY/NAME, or IDENTITY/NAME:GROUP, and `palio queues` lists",
        ),
        (("move", "a/b", "--to", "zoe"), "has no durable subscription 'a/b'"),
    ],
)
def test_mistakes(broker: Cluster, words: tuple[str, ...], sentence: str) -> None:
    done = queues(broker, *words)
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_moving_to_nobody(broker: Cluster) -> None:
    queue(broker, "moves")
    done = queues(broker, "move", "anonymous/moves", "--to", "zoe")
    assert done.returncode == 2
    assert "there is no identity 'zoe'" in " ".join(done.stderr.split())


def test_subscriptions(broker: Cluster) -> None:
    with palio.blocking.connect(broker.urls[0], name="desk") as client:
        live = client.subscribe("x < 3", group="team")
        watch = client.watch("[x = 1] then [x = 2]")
        done = command("subscriptions", "--json", "--url", broker.urls[0])
        rows = {one["kind"]: one for one in map(json.loads, done.stdout.splitlines())}
        assert rows["shared"] == {
            "identity": "anonymous", "client": "desk", "id": rows["shared"]["id"], "kind": "shared",
            "predicate": "x < 3", "queue": None, "group": "team", "waiting": 0, "credit": 1000,
            "congested": False,
        }  # fmt: skip
        assert rows["pattern"]["pattern"] == "[x = 1] then [x = 2]"
        done = command("subscriptions", "--url", broker.urls[0])
        assert done.stdout.startswith("IDENTITY")
        assert "x < 3" in done.stdout
        live.close()
        watch.close()
    done = command("subscriptions", "--url", broker.urls[0])
    assert (done.stdout, done.stderr) == ("", "palio: no subscriptions\n")
