"""Attributes whose values have none of the types that predicates compare them with: said when all is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from palio.model.expressions.names import is_computed, value_of
from palio.model.message import Message
from palio.model.near_names import unlike_types
from palio.model.predicate import Predicate
from palio.model.values import NUMBERS, Type, kind_of

_NAMES_MAX = 1_000
_MESSAGES_MAX = 1_000
_SAID_MAX = 5


class UnlikeTypes:
    """Looks at the first thousand messages, and at each name until a value of a right type is there."""

    def __init__(self, predicates: Iterable[Predicate]) -> None:
        self._compared: dict[str, set[str]] = {}
        self._found: dict[str, str] = {}
        self._left = _MESSAGES_MAX
        for predicate in predicates:
            for constraint in (one for part in predicate for one in part):
                is_known = constraint.name in self._compared or len(self._compared) < _NAMES_MAX
                if is_known and constraint.value is not None and constraint.type is not None:
                    types = self._compared.setdefault(constraint.name, set())
                    types.add(_word(constraint.type))

    def see(self, message: Message) -> None:
        if not self._left:
            return
        self._left -= 1
        for name in list(self._compared):
            value = (
                value_of(name, message.read, lambda _reason: None)
                if is_computed(name)
                else message.get(name)
            )
            if value is None:
                continue
            kind = kind_of(value)
            found = "array" if kind is None else _word(kind)
            if found in self._compared[name]:
                del self._compared[name]
                self._found.pop(name, None)
            else:
                self._found[name] = found

    def said(self) -> Iterator[str]:
        for name, found in sorted(self._found.items())[:_SAID_MAX]:
            yield unlike_types(name, self._compared[name], found)


def _word(type: Type) -> str:
    return "number" if type in NUMBERS else str(type)
