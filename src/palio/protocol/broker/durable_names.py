"""The names of the durable subscriptions here, and who owns them.

    key      "ann/desk-7:night"   how all brokers and the store know a subscription; it never changes
    name     "bob/desk-7:night"   IDENTITY/NAME, and :GROUP if it has a group: its owner now, and what the
                                  owner calls it

Both are the same until an operator gives a subscription to another identity. The key stays then, because
messages on their way from other brokers carry it. If the first owner uses the name again, its new
subscription gets another key. Each group of a name is a subscription of its own, with a queue of its own.

Older versions stored no group: whoever asks first for the name of such a subscription decides (`is_open`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from palio.protocol.broker.numbered_rows import NumberedRows


class DurableName(NamedTuple):
    owner: str
    """An identity."""
    called: str
    group: str | None = ""
    """Empty: it has none. None: not known, because an older version stored it."""

    def __str__(self) -> str:
        name = f"{self.owner}/{self.called}"
        return f"{name}:{self.group}" if self.group else name


class DurableNames:
    def __init__(self) -> None:
        self._names: dict[str, DurableName] = {}  # by key
        self._keys: dict[str, str] = {}  # by name, as text
        self._owned: dict[str, dict[str, None]] = {}  # keys, by owner
        self._versions: dict[str, int] = {}
        self._rows: NumberedRows[str] = NumberedRows()  # keys, by version

    # ---- changes

    def add(self, key: str, name: DurableName, version: int) -> None:
        self._names[key] = name
        self._keys[str(name)] = key
        self._owned.setdefault(name.owner, {})[key] = None
        self._versions[key] = version
        self._rows.add(version, key)

    def remove(self, key: str) -> None:
        self._release(self._names.pop(key), key)
        self._rows.remove(self._versions.pop(key))

    def rename(self, key: str, name: DurableName) -> None:
        """A subscription belongs to another identity, or its group is known now."""
        self._release(self._names[key], key)
        self._names[key] = name
        self._keys[str(name)] = key
        self._owned.setdefault(name.owner, {})[key] = None

    def _release(self, name: DurableName, key: str) -> None:
        del self._keys[str(name)]
        owned = self._owned[name.owner]
        del owned[key]
        if not owned:
            del self._owned[name.owner]

    # ---- what is there

    def name(self, key: str) -> DurableName:
        return self._names[key]

    def shown(self, key: str) -> str:
        """The name for people; the key itself, if the subscription has just ended."""
        return str(self._names.get(key, key))

    def key(self, name: str) -> str | None:
        """The key of the subscription of this name; None: there is none."""
        return self._keys.get(name)

    def key_of(self, name: DurableName) -> str | None:
        """The key of the subscription that its owner calls so; one whose group is not known fits any."""
        for text in (str(name), str(name._replace(group=None))):
            key = self._keys.get(text)
            if key is not None and self._names[key] in (name, name._replace(group=None)):
                return key
        return None

    def is_open(self, key: str) -> bool:
        """Whether the group of a subscription is not known."""
        return key in self._names and self._names[key].group is None

    def new_key(self, name: str) -> str:
        """A key for a new subscription of this name."""
        key, number = name, 0
        while key in self._names:
            number += 1
            key = f"{name}~{number}"
        return key

    def owners(self) -> list[str]:
        """The identities that own subscriptions."""
        return list(self._owned)

    def owned(self, identity: str) -> list[str]:
        """The keys of the subscriptions of an identity."""
        return list(self._owned.get(identity, ()))

    def after(self, version: int) -> Iterator[tuple[int, str]]:
        """Versions and keys after a version."""
        return self._rows.after(version)
