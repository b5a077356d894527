"""The examples in README and docs run, and say what they claim."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
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


def test_every_module_is_on_the_map() -> None:
    """ARCHITECTURE.md names the layers that exist."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    for layer in (ROOT / "src" / "palio").iterdir():
        if layer.is_dir() and (layer / "__init__.py").exists():
            assert f"  {layer.name}/" in page, layer.name


@pytest.mark.parametrize("layer", ["net", "protocol"])
def test_every_module_of_the_network_is_in_its_list(layer: str) -> None:
    page = (ROOT / "docs" / "concepts" / "network.md").read_text()
    listed = set(re.findall(r"\w+", page[page.index("## The modules") :]))
    modules = {path.stem for path in (ROOT / "src" / "palio" / layer).rglob("*.py")}
    assert modules - listed == {"__init__"}
