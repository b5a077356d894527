"""Reading the sections [schemas.NAME] of broker.toml, and the files that they name."""

from __future__ import annotations

from pathlib import Path

from palio.errors import PalioError
from palio.model.language import parse
from palio.net.config.sections import Section
from palio.net.schemas.checking import JsonSchema
from palio.protocol.broker.schemas import MessageSchema

_FILE_BYTES_MAX = 1 << 20
_SCHEMAS_MAX = 100


def read_schemas(top: Section) -> dict[str, MessageSchema]:
    found: dict[str, MessageSchema] = {}
    for name, section in top.sections("schemas"):
        where = section.text("where", None)
        path = section.file("schema", None)
        section.finish()
        if where is None:
            section.wrong("where", 'it says which messages: a predicate; "TRUE" for all')
        if path is None:
            section.wrong("schema", "it names the file with the JSON Schema")
        try:
            predicate = parse(where)
        except PalioError as error:
            section.wrong("where", f"{error}")
        found[name] = MessageSchema(predicate, _schema(section, path))
        if len(found) > _SCHEMAS_MAX:
            section.wrong("schema", f"there are more than {_SCHEMAS_MAX} schemas")
    return found


def _schema(section: Section, path: Path) -> JsonSchema:
    try:
        with path.open("rb") as file:
            data = file.read(_FILE_BYTES_MAX + 1)
        text = data.decode()
    except OSError as error:
        section.wrong("schema", f"{path} cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        section.wrong("schema", f"{path} cannot be read: it is not UTF-8")
    if len(data) > _FILE_BYTES_MAX:
        section.wrong("schema", f"{path} has more than {_FILE_BYTES_MAX:,} bytes")
    try:
        return JsonSchema(text)
    except PalioError as error:
        section.wrong("schema", f"{path}: {error}")
