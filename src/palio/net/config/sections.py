"""Reading a TOML file, with an error for every mistake that says what would be right.

A `Section` gives its values key by key and checks their types. `finish` raises for keys that nobody
asked for and names the nearest that exists. Every error names the file, the section and the key:

    broker.toml: [limits] bdoy: there is no such key; did you mean body?
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Collection, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn, TypeVar

from palio.errors import PalioError
from palio.net.endpoint import Endpoint, parse_endpoint

T = TypeVar("T")
Made = TypeVar("Made")

_SIZES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_DURATIONS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MOST = 1 << 53
"""The largest amount: 285 years, or 8 million GiB. Sums of such amounts stay below 2^63."""


class InvalidConfig(PalioError):
    """A configuration that cannot be read, or asks for what does not exist.

    `path`, `section` (such as `[limits]`) and `key` say where, as far as that is known.
    """

    def __init__(
        self, reason: str, *, path: Path | None = None, section: str = "", key: str = ""
    ) -> None:
        super().__init__(reason)
        self.path, self.section, self.key = path, section, key

    def __str__(self) -> str:
        place = " ".join(part for part in (self.section, self.key) if part)
        return ": ".join(str(part) for part in (self.path, place, self.detail) if part)


class Section:
    """A table of the file. `place` is its title, such as `[limits]`, or empty at the top."""

    def __init__(self, path: Path, place: str, values: dict[str, object]) -> None:
        self._path, self._place, self._values = path, place, values
        self._known: list[str] = []

    @classmethod
    def read(cls, path: Path) -> Section:
        """The whole file."""
        try:
            with path.open("rb") as file:
                return cls(path, "", tomllib.load(file))
        except OSError as error:
            raise InvalidConfig(f"{path} cannot be read: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidConfig(f"{path} is not TOML: {error}") from None

    def wrong(self, key: str, reason: str) -> NoReturn:
        raise InvalidConfig(reason, path=self._path, section=self._place, key=key)

    def renamed(self, old: str, new: str) -> None:
        """Complain about a key that has another name now, and say which."""
        if old in self._values:
            self.wrong(old, f"this key is called {new} now; rename it")

    def has(self, key: str) -> bool:
        self._known.append(key)
        return key in self._values

    def finish(self) -> None:
        """Complain about keys that nobody asked for."""
        for key in self._values:
            if key not in self._known:
                near = get_close_matches(key, self._known, 1, 0.5)
                known = ", ".join(dict.fromkeys(self._known))
                self.wrong(
                    key,
                    "there is no such key; "
                    + (f"did you mean {near[0]}?" if near else f"the keys are {known}"),
                )

    # ---- sections

    def section(self, key: str) -> Section:
        """A table within this one; empty if it is missing."""
        values = self._values[key] if self.has(key) else {}
        if not isinstance(values, dict):
            self.wrong(key, f"this is a section: begin it with a line [{key}]")
        return Section(self._path, f"[{self._inner(key)}]", values)

    def sections(self, key: str) -> Iterator[tuple[str, Section]]:
        """The tables [key.NAME], by name."""
        section = self.section(key)
        for name in section._values:
            if not _NAME.fullmatch(name):
                section.wrong(name, _NAME_RULE)
            yield name, section.section(name)

    def _inner(self, key: str) -> str:
        return f"{self._place[1:-1]}.{key}" if self._place else key

    # ---- values

    def text(self, key: str, default: T) -> str | T:
        return self._typed(key, str, 'a text in quotes: "..."', default)

    def truth(self, key: str, default: T) -> bool | T:
        return self._typed(key, bool, "true or false", default)

    def count(self, key: str, default: int, least: int = 1) -> int:
        value: int = self._typed(key, int, "a whole number", default)
        if value < least:
            self.wrong(key, f"{value} is too small; it must be at least {least}")
        if value > _MOST:
            self.wrong(key, f"{value} is too large; it must be at most {_MOST}")
        return value

    def number(self, key: str, default: float, least: float, most: float) -> float:
        value: float = self._typed(key, (int, float), "a number", default)
        if not least <= value <= most:
            self.wrong(key, f"{value} is not a number from {least:g} to {most:,.0f}")
        return float(value)

    def choice(self, key: str, choices: Collection[str], default: str) -> str:
        value = self.text(key, default)
        if value not in choices:
            near = get_close_matches(value, choices, 1, 0.5)
            hint = f"; did you mean {near[0]}?" if near else ""
            self.wrong(key, f"{value!r} is not one of {', '.join(choices)}{hint}")
        return value

    def name(self, key: str) -> str:
        value = self.text(key, None)
        if value is None:
            self.wrong(key, 'it is missing; for example name = "milan"')
        if not _NAME.fullmatch(value):
            self.wrong(key, f"{value!r}: {_NAME_RULE}")
        return value

    def endpoint(self, key: str, default: T) -> Endpoint | T:
        return self._made(key, parse_endpoint, default)

    def endpoints(self, key: str) -> tuple[Endpoint, ...]:
        """One endpoint, or a list of them; empty if the key is missing."""
        texts = self._values[key] if self.has(key) else []
        if isinstance(texts, str):
            texts = [texts]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            self.wrong(key, f'it must be "HOST:PORT", or a list ["HOST:PORT", ...], not {texts!r}')
        if key in self._values and not texts:
            self.wrong(key, "the list is empty; leave the key out if the other end dials")
        found = []
        for text in texts:
            try:
                found.append(parse_endpoint(text))
            except ValueError as error:
                self.wrong(key, f"{text!r}: {error}")
        return tuple(found)

    def file(self, key: str, default: T) -> Path | T:
        """A path, relative to the directory of the configuration."""
        return self._made(key, lambda text: self._path.parent / Path(text).expanduser(), default)

    def size(self, key: str, default: int) -> int:
        """Bytes."""
        return self._amount(key, _SIZES, 'a size: 65536 (bytes) or "64 KiB"', 1, default)

    def duration_us(self, key: str, default: int, *, never: bool = False) -> int:
        """With `never`, that word is allowed too; it is 0."""
        if never and self.has(key) and self._values[key] == "never":
            return 0
        return self._amount(
            key, _DURATIONS, 'a duration: 30 (seconds) or "30 s"', 1_000_000, default
        )

    def secret(self, default: T) -> bytes | T:
        """The secret, given by at most one of `secret`, `secret_file` and `secret_env`."""
        keys = ("secret", "secret_file", "secret_env")
        given = [key for key in keys if self.has(key)]
        if not given:
            return default
        if len(given) > 1:
            self.wrong(given[1], f"{given[0]} is given too; keep one of them")
        text = self.text(given[0], "")
        if given[0] == "secret_file":
            text = self._file_text(given[0])
        elif given[0] == "secret_env":
            if text not in os.environ:
                self.wrong(given[0], f"the environment has no variable {text}; set it")
            text = os.environ[text]
        if len(text) < 16:
            self.wrong(
                given[0], "a secret has at least 16 characters; `openssl rand -hex 32` makes one"
            )
        return text.encode()

    def _file_text(self, key: str) -> str:
        path = self.file(key, Path())
        try:
            return path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            self.wrong(key, f"{path} cannot be read: {reason}")

    def _typed(self, key: str, types: type | tuple[type, ...], expected: str, default: T) -> T:
        if not self.has(key):
            return default
        value = self._values[key]
        # To Python a bool is an int; in a configuration it is not a number.
        if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
            got = "something else" if key.startswith("secret") else repr(value)
            self.wrong(key, f"it must be {expected}, not {got}")
        return value  # type: ignore[return-value]

    def _made(self, key: str, make: Callable[[str], Made], default: T) -> Made | T:
        text = self.text(key, None)
        if text is None:
            return default
        try:
            return make(text)
        except ValueError as error:
            self.wrong(key, f"{text!r}: {error}")

    def _amount(
        self, key: str, units: dict[str, int], expected: str, plain: int, default: int
    ) -> int:
        if not self.has(key):
            return default
        value = self._values[key]
        found = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            amount = value * plain
        elif found is not None and found[2] in units:
            amount = float(found[1]) * units[found[2]]
        else:
            self.wrong(key, f"it must be {expected}, in {', '.join(units)}; not {value!r}")
        if amount > _MOST:  # infinity, too
            self.wrong(key, f"{value!r} is too large; the most is 2^53 microseconds or bytes")
        return int(amount)


def texts(section: Section, key: str) -> tuple[str, ...]:
    """A list of texts; empty if the key is missing."""
    found = section._values[key] if section.has(key) else []
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        section.wrong(key, f'it must be a list of texts: ["...", "..."], not {found!r}')
    return tuple(found)


_NAME_RULE = "names are letters, digits, dots, dashes and underscores, at most 64"
