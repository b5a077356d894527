"""The examples in README and docs run, and say what they claim."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
ARCHITECTURE = ROOT / "docs" / "architecture"
MAPS = [ROOT / "ARCHITECTURE.md", *sorted(ARCHITECTURE.glob("*.md"))]
FOLDERS = {
    "client": ("protocol/client", "net/client", "net/blocking"),
    "durability": ("protocol/durability",),
    "policies": ("protocol/policies",),
    "spark": ("spark", "spark_network"),
    "ARCHITECTURE": ("protocol",),
}
"""What a page of docs/architecture is about, where it is not the folder of its name."""
BLOCKS = re.compile(r"```python\n(.*?)```", re.DOTALL)


def _with_marks(page: Path) -> Any:
    """Pages on Spark share the session of the other tests."""
    marks = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
    needs = "import palio.spark" in page.read_text()
    return pytest.param(page, marks=marks if needs else [], id=page.name)


def _java_in(folder: Path, spark: Any) -> Callable[[], None]:
    """Let relative paths of Spark begin in a folder; what is given back undoes it."""
    hadoop = spark._jvm.org.apache.hadoop.fs
    files = hadoop.FileSystem.get(spark._jsc.hadoopConfiguration())
    before = files.getWorkingDirectory()
    files.setWorkingDirectory(hadoop.Path(str(folder)))
    return lambda: files.setWorkingDirectory(before)


@pytest.mark.parametrize("page", [_with_marks(page) for page in PAGES])
def test_examples_run(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """A comment behind an expression is its value, up to a colon, if it looks like one."""
    if "import palio.spark" in page.read_text():
        request.addfinalizer(_java_in(tmp_path, request.getfixturevalue("spark")))
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    exec("import palio", scope)
    for block in BLOCKS.findall(page.read_text()):
        lines = block.splitlines()
        for statement in ast.parse(block).body:
            code = ast.unparse(statement)
            if not isinstance(statement, ast.Expr) or code.startswith("print("):
                exec(code, scope)
                continue
            comment = lines[(statement.end_lineno or 1) - 1].rpartition("  # ")[2]
            value = eval(code, scope)
            claimed = comment.partition(":")[0].strip()
            if re.match(r"True|False|\[|\(|Predicate\(|\d", claimed):
                expected = (
                    claimed if not claimed.startswith("[") else repr(ast.literal_eval(claimed))
                )
                assert repr(value) == expected, code


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_that_are_named_exist(page: Path) -> None:
    for file, names in re.findall(r"`(tests/[\w/]+\.py)::([\w:]+)`", page.read_text()):
        found = (ROOT / file).read_text()
        *classes, test = names.split("::")
        assert f"def {test}(" in found, names
        assert all(f"class {name}" in found for name in classes), names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_configurations_are_read(page: Path, tmp_path: Path) -> None:
    from palio.net.config import read

    for block in re.findall(r"```toml\n(\[broker\].*?)```", page.read_text(), re.DOTALL):
        path = tmp_path / "broker.toml"
        path.write_text(block)
        assert list(read(path).warnings()) == []


def test_every_layer_is_on_the_map() -> None:
    """ARCHITECTURE.md names the layers that exist, and docs/architecture has a page of each."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    index = (ARCHITECTURE / "README.md").read_text()
    for layer in (ROOT / "src" / "palio").iterdir():
        if layer.is_dir() and (layer / "__init__.py").exists():
            assert f"  {layer.name}/" in page, layer.name
            assert f"`src/palio/{layer.name}/`" in index, layer.name


def test_the_map_is_on_two_screens() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) <= 100


def test_every_page_of_a_layer_is_in_the_index() -> None:
    index = (ARCHITECTURE / "README.md").read_text()
    pages = [path.name for path in ARCHITECTURE.glob("*.md") if path.name != "README.md"]
    assert [name for name in pages if f"]({name})" not in index] == []


@pytest.mark.parametrize("page", MAPS, ids=lambda page: page.stem)
def test_paths_on_the_map_exist(page: Path) -> None:
    """Seen from the root, from src or src/palio, from the page, or the end of a path in the folders
    that the page is about, tests included."""
    roots = [ROOT, ROOT / "src", ROOT / "src" / "palio", page.parent]
    about = [
        root / name
        for root in (ROOT / "src" / "palio", ROOT / "tests")
        for name in FOLDERS.get(page.stem, (page.stem,))
    ]
    text = re.sub(r"\]\([^)]*\)", "]", page.read_text())  # links have a test of their own
    named = re.findall(r"(?<![\w*/<>.-])[\w/-]+\.(?:py|md)\b", text)
    named += re.findall(r"`([\w/]+)/`", text)
    assert named
    gone = [
        name
        for name in named
        if not any((root / name).exists() for root in roots)
        and not any(found for folder in about for found in folder.rglob(name))
    ]
    assert gone == [], f"{page.name} names what is not there"


@pytest.mark.parametrize("page", MAPS[1:], ids=lambda page: page.stem)
def test_every_folder_of_a_layer_is_on_its_page(page: Path) -> None:
    layer = ROOT / "src" / "palio" / page.stem
    if page.stem == "README" or not layer.is_dir():
        return
    folders = [path.parent.name for path in layer.glob("*/__init__.py")]
    text = page.read_text()
    assert [name for name in folders if not re.search(rf"\b{name}/", text)] == []


SECURITY = ROOT / "docs" / "concepts" / "security.md"
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}


def _limits_on_the_page() -> dict[str, dict[str, str]]:
    """The defaults in the table of limits: by section and key, as TOML writes them."""
    found: dict[str, dict[str, str]] = {}
    keys: dict[str, str] = {}
    for line in SECURITY.read_text().splitlines():
        if section := re.match(r"\| \*\*`\[(\w+)\]`\*\* \|", line):
            keys = found.setdefault(section[1], {})
        elif found and (row := re.match(r"\| `(\w+)` \| `([^`]+)` \|", line)):
            is_plain = re.fullmatch(r"\d+|true|false", row[2])
            keys[row[1]] = row[2] if is_plain else f'"{row[2]}"'
        elif line.startswith("### Bounds"):
            break
    return found


UNBOUNDED = {"mqtt": {"listen", "websocket", "websocket_origins", "tls", "payload", "deny"}}
"""Keys that bound nothing."""


def test_limits_on_the_security_page_are_those_of_the_code(tmp_path: Path) -> None:
    """Every key of these sections is there, and a configuration of the defaults changes nothing."""
    import tomllib

    from palio.net.config import changes_that_wait, example, read

    uncommented = re.sub(r"^# (?=\[|\w+ = )", "", example(), flags=re.MULTILINE)
    known = tomllib.loads(uncommented)
    shown = _limits_on_the_page()
    assert shown.keys() == {"limits", "times", "queues", "log", "access", "mqtt"}
    for section, keys in shown.items():
        assert keys.keys() == known[section].keys() - UNBOUNDED.get(section, set()), section
    path = tmp_path / "broker.toml"
    for section, keys in shown.items():
        text = f'[broker]\nname = "milan"\n[{section}]\n'
        text += 'listen = "127.0.0.1:1883"\n' if section == "mqtt" else ""
        path.write_text(text)
        usual = read(path)
        path.write_text(text + "".join(f"{key} = {value}\n" for key, value in keys.items()))
        assert changes_that_wait(usual, read(path)) == [], section
        assert read(path).settings.access == usual.settings.access


def test_bounds_on_the_security_page_are_those_of_the_code() -> None:
    rows = re.findall(r"\| `([\d.]+)(?: (\w+))?` \| `(palio\.[\w.]+)` \|", SECURITY.read_text())
    assert len(rows) > 10
    for number, unit, constant in rows:
        module, _, name = constant.rpartition(".")
        value = getattr(import_module(module), name)
        assert value == int(number) * UNITS.get(unit, 1), constant


def test_events_and_metrics_on_the_security_page_exist() -> None:
    text = SECURITY.read_text().partition("## What is logged")[2].partition("\n## ")[0]
    source = "".join(
        path.read_text()
        for layer in ("net", "protocol")
        for path in (ROOT / "src" / "palio" / layer).rglob("*.py")
    )
    rows = [line.split("|")[2:4] for line in text.splitlines() if line.startswith("| ")]
    events = [name for row in rows for name in re.findall(r"`([\w:;]+ [^`]+)`", row[0])]
    metrics = [name for row in rows for name in re.findall(r"`palio_(\w+)", row[1])]
    assert len(events) > 10
    assert len(metrics) > 10
    assert [name for name in events if f'"{name}"' not in source] == []
    names = [re.sub(r"_total$|(?<=hold)_seconds$", "", name) for name in metrics]
    assert [name for name in names if f'"{name}"' not in source] == []


def test_metrics_of_the_listeners_are_those_of_the_code() -> None:
    """The guide for operators names each of them, as Prometheus shows it, and no other."""
    from types import SimpleNamespace

    from palio.net.monitoring.counts import HttpCounts
    from palio.net.monitoring.http_metrics import http_measures
    from palio.net.monitoring.mqtt_metrics import mqtt_measures
    from palio.net.sinks.metrics import sink_measures
    from palio.protocol.mqtt.counts import MqttCounts

    class Some(SimpleNamespace):
        def __len__(self) -> int:
            return 1

        def __getattr__(self, name: str) -> int:
            return 1

    sessions: Any = Some(counts=MqttCounts())
    http = HttpCounts()
    http.statuses[200] += 1
    some: Any = Some(counts=Some())
    measures = [*mqtt_measures(sessions, some), *http_measures(http), *sink_measures(some)]
    expected = {
        f"palio_{one.name}{'_total' if one.kind == 'counter' else ''}{'{status}' if one.labels else ''}"
        for one in measures
    }
    guide = (ROOT / "docs" / "guides" / "operations.md").read_text()
    section = guide.partition("## Listeners of MQTT and HTTP")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`palio_.*?) \|", section, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([^`]+)`", row)} == expected


DELIVERY = ROOT / "docs" / "concepts" / "delivery.md"


def test_every_promise_has_its_tests() -> None:
    """`test_tests_that_are_named_exist` checks that the tests are there."""
    promises, _, table = DELIVERY.read_text().partition("## The tests behind the promises")
    promises = promises.partition("## The promise\n")[2]
    numbers = [int(number) for number in re.findall(r"\[D(\d+)\]", promises)]
    assert numbers == list(range(1, len(numbers) + 1)), "in the order of the text"
    rows = re.findall(r"^\| D(\d+) \| (.+) \|$", table, re.MULTILINE)
    assert [int(number) for number, _ in rows] == numbers
    assert [row for row in rows if "`tests/" not in row[1]] == []


def test_everything_on_the_delivery_page_is_a_promise_with_a_test() -> None:
    promises = DELIVERY.read_text().partition("## The promise\n")[2].partition("## The tests")[0]
    lines = [line for line in promises.splitlines() if line and not line.startswith("#")]
    heads = [line for line, below in pairwise(lines) if below.startswith("| --")]
    plain = [
        line
        for line in lines
        if not re.search(r"\[D\d+\]", line) and not line.startswith("| --") and line not in heads
    ]
    assert plain == []


def test_bounds_on_the_delivery_page_are_those_of_the_code() -> None:
    import inspect

    from palio.net.client import connecting
    from palio.net.client.client import CREDIT
    from palio.protocol.broker.access import Access
    from palio.protocol.broker.neighbours import DEDUP_WINDOW
    from palio.protocol.broker.scheduler import BACKLOG_BYTES, BACKLOGS_BYTES
    from palio.protocol.broker.settings import Settings
    from palio.protocol.client.session import SessionSettings

    settings, session = Settings("a", Access()), SessionSettings()
    bounds, waiting = settings.bounds, settings.waiting
    wait_s = inspect.signature(connecting.connect).parameters["max_wait"].default
    page = DELIVERY.read_text()
    for claim in (
        f"{session.outbox_messages_max:,} messages or {session.outbox_bytes_max >> 20} MiB",
        f"`max_wait` ({wait_s:g} s)",
        f"`[queues] backlog`, {bounds.backlog:,}",
        f"`[log] bytes`, {bounds.journal_bytes >> 30} GiB",
        f"{settings.held_max:,} for each client, or `[limits] held`, {waiting.held_bytes >> 20} MiB",
        f"`held_total`, {waiting.held_total_bytes >> 20} MiB",
        f"`[limits] waiting`, {settings.waiting_max:,} messages, or `waiting_bytes`, "
        f"{waiting.queue_bytes >> 20} MiB",
        f"`[limits] waiting_identity`, {waiting.identity_bytes >> 20} MiB",
        f"`[limits] waiting_total`, {waiting.total_bytes >> 20} MiB",
        f"`[queues] bound`, {bounds.queue:,}, or `bound_bytes`, {bounds.queue_bytes >> 30} GiB",
        f"`credit`, {CREDIT:,}",
        f"at most {BACKLOG_BYTES >> 20} MiB a connection and {BACKLOGS_BYTES >> 20} MiB in all",
        f"among the last {DEDUP_WINDOW:,} messages",
        f"`[log] keep` ({bounds.retention_us // 3_600_000_000} h)",
        f"`keep_bytes` ({bounds.retention_bytes >> 30} GiB)",
        f"`[log] publishers` ({bounds.publisher_us // 86_400_000_000} days)",
        f"took it for dead ({3 * settings.keepalive_us / 1e6:g} s)",
    ):
        assert claim in page
