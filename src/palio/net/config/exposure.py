"""Files and directories of a broker that other users of the machine can read, and should not."""

from __future__ import annotations

import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from palio.net.config.values import Config

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_READ = stat.S_IRGRP | stat.S_IROTH


def warnings(config: Config) -> Iterator[str]:
    """Sentences that name the file and what to do."""
    if _mode(config.data) & _OTHERS:
        yield (
            f"{config.data}: other users can reach the broker's data; `chmod 700 {config.data}` "
            f"keeps them out"
        )
    for path in dict.fromkeys(_secret_files(config)):
        if _mode(path) & _OTHERS_READ:
            yield f"{path}: other users can read a secret in it; `chmod 600 {path}` keeps them out"


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0


def _secret_files(config: Config) -> Iterator[Path]:
    try:
        with config.path.open("rb") as file:
            values = tomllib.load(file)
    except (OSError, ValueError):  # it could be read a moment ago
        return
    yield from _in_section(config.path, values)
    if config.tls is not None:
        yield config.tls.key


def _in_section(path: Path, values: dict[str, object]) -> Iterator[Path]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _in_section(path, value)
        elif isinstance(value, str):
            if key == "secret_file":
                yield path.parent / Path(value).expanduser()
            elif key in ("secret", "password") or _has_password(value):
                yield path


def _has_password(value: str) -> bool:
    """
    >>> _has_password("postgresql://palio:secret@db/palio"), _has_password("127.0.0.1:7400")
    (True, False)
    """
    try:
        return "://" in value and urlsplit(value).password is not None
    except ValueError:
        return False
