"""Secrets and data that other users can read."""

from __future__ import annotations

from pathlib import Path

from palio.net.config import exposure
from palio.net.config.reading import read

SECRET = "0123456789abcdef"


def write(folder: Path, text: str, mode: int) -> Path:
    path = folder / "milan.toml"
    path.write_text(f'[broker]\nname = "milan"\n{text}')
    path.chmod(mode)
    return path


def test_a_configuration_with_a_secret(tmp_path: Path) -> None:
    path = write(tmp_path, f'[neighbours.rome]\nsecret = "{SECRET}"\n', 0o644)
    assert list(exposure.warnings(read(path))) == [
        f"{path}: other users can read a secret in it; `chmod 600 {path}` keeps them out"
    ]
    path.chmod(0o600)
    assert list(exposure.warnings(read(path))) == []


def test_a_configuration_without_a_secret(tmp_path: Path) -> None:
    assert list(exposure.warnings(read(write(tmp_path, "", 0o666)))) == []


def test_a_file_with_a_secret(tmp_path: Path) -> None:
    (tmp_path / "rome.secret").write_text(SECRET)
    (tmp_path / "rome.secret").chmod(0o640)
    path = write(tmp_path, '[neighbours.rome]\nsecret_file = "rome.secret"\n', 0o644)
    (warning,) = exposure.warnings(read(path))
    assert f"chmod 600 {tmp_path / 'rome.secret'}" in warning


def test_a_directory_that_others_can_reach(tmp_path: Path) -> None:
    config = read(write(tmp_path, "", 0o644))
    config.data.mkdir(0o755)
    config.data.chmod(0o755)
    (warning,) = exposure.warnings(config)
    assert f"chmod 700 {config.data}" in warning
    config.data.chmod(0o700)
    assert list(exposure.warnings(config)) == []
