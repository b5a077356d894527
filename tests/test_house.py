"""The rules of the house that a machine can check. Ruff, mypy and import-linter check the rest."""

import ast
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src" / "palio"
TESTS = ROOT / "tests"
SOURCES = sorted(SRC.rglob("*.py"))
TEST_FILES = sorted(TESTS.rglob("*.py"))

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 80
FIELDS_MAX = 15
METHODS_MAX = 25
SMALL_CLASSES = ("net", "protocol")
"""The layers whose classes are held to FIELDS_MAX and METHODS_MAX."""
LISTS_OF_SETTINGS = ("Settings", "Config")
"""How the names of classes end that may have more fields: they only hold what a file says."""

LAZY = ("numba", "pyspark", "pandas", "sqlglot", "pyarrow", "asyncio", "uvloop")
VAGUE_NAMES = {"utils", "misc", "helpers", "common"}
RETIRED = set(
    "landscape deposit deposits vault ledger ledgers onward placing wish wishes parcel parcels "
    "letter letters happening happenings receipts crowd crowds crowded homes trail trails giver "
    "pressed pay desk desks lot lots".split()
)
"""DESIGN: each has a word of the field that says the same."""
RETIRED_OF_CLASSES = {"again", "kept", "known", "picked", "standing", "standings"}
"""Good English in a function, and an unclear name of a class or a module."""
REGISTRY = re.compile(
    r"https?://|^\s*(-i|-f|--(extra-)?index-url|--find-links|--trusted-host)\b"
    r"|pypi\.org|pythonhosted\.org",
    re.MULTILINE,
)

MIRRORS_NOTHING = {
    "attack": "attacks on real brokers from outside, whichever module withstands them",
    "differential": "compares the language with DuckDB and Spark SQL, whichever module does it",
    "fuzz": "random searches through everything that reads foreign bytes",
    "paper": "examples and claims of the papers, in the order of their sections",
    "matching/computed/test_every_path.py": "random rules on every path that answers them",
    "model/expressions/test_hostile.py": "texts and messages of attackers, whichever module withstands them",
    "net/listeners/http/test_guide.py": "the examples of docs/guides/http.md",
    "net/listeners/http/test_openapi.py": "the description of the interface, openapi.json",
    "net/test_chaos.py": "a whole network under faults",
    "net/test_faults.py": "tests tests/net/faults.py, on which the chaos test rests",
    "net/test_judgement.py": "tests tests/net/judgement.py, which judges the chaos test",
    "sim/brokers/test_broken_brokers.py": "broken brokers, disks and sessions are caught",
    "sim/brokers/test_mutants.py": "broken parts of a broker are caught",
    "sim/brokers/test_scenarios.py": "tests/sim/brokers/scenarios",
    "sim/routers/test_mutants.py": "broken routers, disks and links are caught",
    "sim/routers/test_scenarios.py": "tests/sim/routers/scenarios",
    "spark_network/test_strangers.py": "clients of all kinds at the brokers of a ring",
    "test_docs.py": "README and docs",
    "test_house.py": "this file",
    "test_papers.py": "docs/papers.md",
}
"""Tests that are about no module or package of src/palio, and why."""


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree(path)))


def classes(path: Path) -> Iterator[ast.ClassDef]:
    return (node for node in nodes(path) if isinstance(node, ast.ClassDef))


SMALL = [path for path in SOURCES if path.relative_to(SRC).parts[0] in SMALL_CLASSES]
EVERYTHING = [*SOURCES, *TEST_FILES]


# ---- files and functions


def test_files_are_short() -> None:
    lines = {relative(path): len(path.read_text("utf-8").splitlines()) for path in SOURCES}
    long = {path: count for path, count in lines.items() if count > FILE_LINES_MAX}
    assert long == {}, f"the most lines of a file are {FILE_LINES_MAX}: divide it"


def test_functions_are_short() -> None:
    long = {
        f"{relative(path)}:{line} {name}": length
        for path in SOURCES
        for name, line, length in functions(path)
        if length > FUNCTION_LINES_MAX
    }
    assert long == {}, f"the most lines of a function are {FUNCTION_LINES_MAX}: divide it"


def functions(path: Path) -> Iterator[tuple[str, int, int]]:
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def test_modules_say_what_they_are() -> None:
    silent = [relative(path) for path in SOURCES if not ast.get_docstring(tree(path))]
    assert silent == [], "begin with a docstring: what it is, how it works, what always holds"


# ---- classes


def test_classes_are_small() -> None:
    large = {}
    small = [(path, node) for path in SMALL for node in classes(path)]
    for path, node in small:
        fields, methods = len(_fields(node)), len(_methods(node))
        too_large = fields > FIELDS_MAX or methods > METHODS_MAX
        if too_large and not node.name.endswith(LISTS_OF_SETTINGS):
            large[f"{relative(path)} {node.name}"] = f"{fields} fields, {methods} methods"
    assert large == {}, f"the most are {FIELDS_MAX} fields and {METHODS_MAX} methods: make two"


def test_no_part_takes_the_broker() -> None:
    takers = [
        f"{relative(path)} {node.name}({name}: {annotation})"
        for path in SMALL
        for node in classes(path)
        for name, annotation in _parameters(node)
        if re.search(r"\bBroker\b", annotation)
    ]
    assert takers == [], "a part takes the few objects that it uses, not the whole broker"


def _methods(node: ast.ClassDef) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]


def _fields(node: ast.ClassDef) -> set[str]:
    """What it assigns to self, and what it declares in its body."""
    found = {name for name, _ in _declared(node)}
    for one in ast.walk(node):
        if isinstance(one, ast.Assign | ast.AnnAssign):
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            found |= {
                target.attr
                for target in targets
                if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self"
            }
    return found


def _declared(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            yield one.target.id, ast.unparse(one.annotation)


def _parameters(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Of the constructor; those of dataclasses and Structs are their fields."""
    yield from _declared(node)
    for method in _methods(node):
        if method.name == "__init__":
            for one in (*method.args.args, *method.args.kwonlyargs):
                yield one.arg, "" if one.annotation is None else ast.unparse(one.annotation)


# ---- imports


def test_import_palio_is_light() -> None:
    script = f"import palio, json, sys; print(json.dumps([m for m in {LAZY} if m in sys.modules]))"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == [], "`import palio` loads these; import them where needed"


def test_imports_have_no_cycles() -> None:
    """Imports for typing and within functions count. Whoever imports a module does not depend on
    the packages around it; whoever takes a name from a package depends on that package."""
    modules = {_module(path): path for path in SOURCES}
    graph = {
        name: {found for found in _imported(path) if found in modules} - {name}
        for name, path in modules.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("a cycle of imports: " + " <- ".join(error.args[1]))


def test_imports_lead_somewhere() -> None:
    """mypy would take a module that has moved from another copy of palio that is installed."""
    known = {_module(found) for found in (*SRC.rglob("*.py"), *TESTS.rglob("*.py"))}
    known |= {name.rpartition(".")[0] for name in known}  # folders without an __init__
    gone = [
        f"{relative(path)}:{node.lineno}: {node.module}"
        for path in EVERYTHING
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom)
        and node.module is not None
        and node.module.split(".")[0] in ("palio", "tests")
        and node.module not in known
    ]
    assert gone == [], "no such modules"


def _module(path: Path) -> str:
    found = path.relative_to(SRC.parent if path.is_relative_to(SRC) else ROOT)
    return ".".join(found.with_suffix("").parts).removesuffix(".__init__")


def _imported(path: Path) -> Iterator[str]:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, f"{relative(path)}:{node.lineno}: imports are absolute"
            folder = SRC.parent.joinpath(*node.module.split("."))
            for alias in node.names:
                is_module = (folder / alias.name).is_dir() or (folder / f"{alias.name}.py").exists()
                yield f"{node.module}.{alias.name}" if is_module else node.module


# ---- names


def test_modules_have_names_that_say_something() -> None:
    parts = {relative(path): {part.strip("_") for part in path.parts} for path in SOURCES}
    vague = [path for path, names in parts.items() if VAGUE_NAMES & {*names, Path(path).stem}]
    assert vague == [], "name it by what it does"


def test_no_retired_word_is_a_name() -> None:
    found = [
        f"{relative(path)}:{line}: {name}"
        for path in EVERYTHING
        for name, line, is_class in [(path.stem, 1, True), *_names(path)]
        if not _words(name).isdisjoint(RETIRED | (RETIRED_OF_CLASSES if is_class else set()))
    ]
    assert found == [], "retired words; docs/concepts/glossary.md has those that replace them"


@cache
def _words(name: str) -> frozenset[str]:
    name = re.sub("dead_?letter", "dead", name, flags=re.IGNORECASE)  # one word of brokers
    return frozenset(word.lower() for word in re.split(r"[_.]|(?<=[a-z])(?=[A-Z])", name))


def _names(path: Path) -> Iterator[tuple[str, int, bool]]:
    """Every identifier with its line, and whether it is the name of a class."""
    for node in nodes(path):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name, node.lineno, False
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, node.lineno, False
            case ast.ClassDef(name=name):
                yield name, node.lineno, True
            case ast.arg(arg=str(name)) | ast.keyword(arg=str(name)):
                yield name, node.lineno, False
            case ast.alias(name=name, asname=other):
                yield name, node.lineno, False
                yield other or "", node.lineno, False


def test_a_class_name_exists_once() -> None:
    places = defaultdict(list)
    for path in SOURCES:
        for node in classes(path):
            places[node.name].append(f"{relative(path)}:{node.lineno}")
    twice = {name: where for name, where in places.items() if len(where) > 1}
    allowed = _allowed_twice()
    assert {name: twice[name] for name in twice.keys() - allowed} == {}, (
        "rename one, or say in the table of CONTRIBUTING.md why both keep the name"
    )
    assert allowed - twice.keys() == set(), "the table of CONTRIBUTING.md: these exist once"


def _allowed_twice() -> set[str]:
    """The first column of the table under the heading "Class names that exist twice"."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    _, found, after = text.partition("## Class names that exist twice\n")
    assert found, "CONTRIBUTING.md has lost its heading"
    return set(re.findall(r"^\| `(\w+)` \|", after.partition("\n## ")[0], re.MULTILINE))


# ---- tests


def test_tests_mirror_the_sources() -> None:
    """tests/a/test_b.py and tests/a/test_b_aspect.py are about src/palio/a/b.py, or a/b/."""
    alone = [
        relative(path)
        for path in TEST_FILES
        if path.name.startswith("test_") and not _mirrors(path.relative_to(TESTS))
    ]
    assert alone == [], "name it after its module, or say in MIRRORS_NOTHING what it is about"


def _mirrors(test: Path) -> bool:
    if test.as_posix() in MIRRORS_NOTHING or test.parts[0] in MIRRORS_NOTHING:
        return True
    folder = SRC / test.parent
    words = test.stem.removeprefix("test_").split("_")
    names = ["_".join(words[:end]) for end in range(len(words), 0, -1)]
    modules = {path.stem for path in folder.iterdir()} if folder.exists() else set()
    return not modules.isdisjoint(names) or folder.name in names


def test_exceptions_from_mirroring_exist() -> None:
    assert [name for name in MIRRORS_NOTHING if not (TESTS / name).exists()] == []


# ---- the environment


def test_requirements_name_no_registry() -> None:
    text = (ROOT / "requirements.txt").read_text("utf-8")
    assert [match.group() for match in REGISTRY.finditer(text)] == []


def test_every_requirement_is_pinned_with_a_hash() -> None:
    text = (ROOT / "requirements.txt").read_text("utf-8").replace("\\\n", " ")
    requirements = [
        line for line in text.splitlines() if line and not line.lstrip().startswith("#")
    ]
    assert requirements
    assert [r for r in requirements if "==" not in r or "--hash=sha256:" not in r] == []


def test_ci_checks_and_tests() -> None:
    path = ROOT / ".ci" / "run"
    assert os.access(path, os.X_OK)
    lines = path.read_text("utf-8").splitlines()
    assert "set -euo pipefail" in lines
    assert lines.index("make check") < lines.index("make test")


def test_groups_of_tests_share_a_worker(request: pytest.FixtureRequest) -> None:
    """xdist tells the group by the name of a test. Where it is lost, each worker starts Spark."""
    if getattr(request.config.option, "loadgroup", False):  # a worker of --dist loadgroup
        assert request.node.nodeid.endswith("@tests/test_house.py")
