"""[schemas.NAME]: every mistake is a sentence with the file and the key."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from palio import Message
from palio.net.config import InvalidConfig, changes_that_wait, read

pytest.importorskip("jsonschema_rs", reason="needs palio[schemas]")

LOCAL = '[broker]\nname = "milan"\n[schemas.orders]\n'
WHERE = "where = \"kind = 'order'\"\n"


def written(folder: Path, section: str, schema: str = '{"required": ["id"]}') -> Path:
    (folder / "order.json").write_text(schema)
    path = folder / "broker.toml"
    path.write_text(LOCAL + section)
    return path


def test_a_schema_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, WHERE + 'schema = "order.json"\n')
    config = read(path)
    schema = config.settings.schemas["orders"]
    assert str(schema.where) == "kind = 'order'"
    assert schema.check(Message({"id": 1})) is None
    assert schema.check(Message({})) is not None
    assert config.settings.schemas == read(path).settings.schemas
    (tmp_path / "order.json").write_text("{}")
    assert config.settings.schemas != read(path).settings.schemas
    assert changes_that_wait(config, read(path)) == []


@pytest.mark.parametrize(
    ("section", "schema", "said"),
    [
        ('schema = "order.json"\n', "{}", "where: it says which messages"),
        (WHERE, "{}", "schema: it names the file"),
        ("where = \"kind = \"\nschema = \"order.json\"\n", "{}", "[schemas.orders] where: "),
        (WHERE + 'schema = "none.json"\n', "{}", "none.json cannot be read: No such file"),
        (WHERE + 'schema = "."\n', "{}", "cannot be read: Is a directory"),
        (WHERE + 'schema = "order.json"\nmode = 1\n', "{}", "mode: there is no such key"),
        (WHERE + 'schema = "order.json"\n', "{", "order.json: it is not JSON"),
        (WHERE + 'schema = "order.json"\n', '{"type": "nope"}', "order.json: it is not a valid schema"),
        (WHERE + 'schema = "order.json"\n', '{"$ref": "http://x.org/s"}', "is elsewhere"),
        (WHERE + 'schema = "order.json"\n', "{}" + " " * (1 << 20), "has more than 1,048,576 bytes"),
    ],
)  # fmt: skip
def test_mistakes(tmp_path: Path, section: str, schema: str, said: str) -> None:
    path = written(tmp_path, section, schema)
    with pytest.raises(InvalidConfig) as caught:
        read(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_check_says_it(tmp_path: Path) -> None:
    from palio.cli import app

    path = written(tmp_path, WHERE + 'schema = "order.json"\n', '{"pattern": "(?=a)"}')
    result = CliRunner().invoke(app, ["broker", "--config", str(path), "--check"])
    assert isinstance(result.exception, InvalidConfig)  # a sentence and exit code 2
    assert "RE2" in str(result.exception)
