"""Plans: what happens in a run, as values and as text. A run depends on nothing else.

A plan in text: first settings, one a line, then operations with their times in milliseconds.

    # a comment
    seed 17
    links a-b b-c                      settings are the workload's own

    0.000 ann subscribe ...            what a client does: client, verb, argument
    10.000 crash a                     what happens to processes and the network: verb, places
    12.000 restart a
    13.000 freeze a                    until `thaw a`: nothing is read, timers run late
    14.000 partition a b               until `heal a b`
    15.000 cut a b                     all connections of two places end; `silence`: unnoticed
    20.000 settle                      everything heals; on when the network is quiet
    20.000 show a                      the state of a place, into the trace

A workload says which of these verbs it has. A plan and its text say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from palio.errors import PalioError
from palio.sim.kernel.process import CrashMode

S = TypeVar("S", bound=msgspec.Struct)
Op = TypeVar("Op", bound="Operation")
TIME_DIGITS = "0123456789"


class NetworkVerb(StrEnum):
    """What happens to processes and the network, whatever runs there."""

    CRASH = "crash"
    RESTART = "restart"
    FREEZE = "freeze"
    THAW = "thaw"
    CUT = "cut"
    SILENCE = "silence"
    PARTITION = "partition"
    HEAL = "heal"
    SETTLE = "settle"
    SHOW = "show"


PLACES = {
    NetworkVerb.CRASH: 1, NetworkVerb.RESTART: 1, NetworkVerb.FREEZE: 1, NetworkVerb.THAW: 1,
    NetworkVerb.CUT: 2, NetworkVerb.SILENCE: 2, NetworkVerb.PARTITION: 2, NetworkVerb.HEAL: 2,
    NetworkVerb.SETTLE: 0, NetworkVerb.SHOW: 1,
}  # fmt: skip
"""How many places each verb names."""


class Operation(msgspec.Struct, frozen=True):
    """One thing that happens. `client` is empty when it happens to the network."""

    time_us: int
    verb: StrEnum
    client: str = ""
    places: tuple[str, ...] = ()
    """What it happens to; empty for what clients do."""
    mode: CrashMode = CrashMode.NOW

    def __str__(self) -> str:
        mode = "" if self.mode is CrashMode.NOW else self.mode.value
        parts = (ms(self.time_us), self.client, self.verb, *self.places, mode, self.argument_text)
        return " ".join(part for part in parts if part)

    @property
    def argument_text(self) -> str:
        """The argument of what a client does."""
        return ""


class SimulationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What both workloads' plans have."""

    seed: int = 0
    operations: tuple[Operation, ...] = ()


def ms(time_us: int) -> str:
    """A time as it is written."""
    sign, us = "-" if time_us < 0 else "", abs(time_us)
    return f"{sign}{us // 1000}.{us % 1000:03d}"


class PlanGrammar:
    """How the text of one workload's plans is read.

    `setting` reads a line of settings, `client_verbs` says how each verb's argument is read.
    """

    def __init__(
        self,
        setting: Callable[[str], dict[str, Any]],
        client_verbs: Mapping[str, Callable[[str], Any]],
        network_verbs: Iterable[NetworkVerb],
        crash_modes: Iterable[CrashMode] = (CrashMode.NOW,),
    ) -> None:
        self._setting = setting
        self._client_verbs = client_verbs
        self._network_verbs = {verb.value: verb for verb in network_verbs}
        self._crash_modes = tuple(crash_modes)

    def read(
        self, text: str, client_operation: Callable[[int, str, str, Any], Op], operation: type[Op]
    ) -> tuple[dict[str, Any], tuple[Op, ...]]:
        """The settings and the operations of a text; an error names the line."""
        settings: dict[str, Any] = {}
        operations: list[Op] = []
        for number, raw in enumerate(text.splitlines(), 1):
            line = raw.strip()
            if not line or line.startswith("#"):
                continue
            try:
                if line[0] not in TIME_DIGITS:
                    settings.update(self._setting(line))
                    continue
                time, _, rest = line.partition(" ")
                time_us, rest = round(float(time) * 1000), rest.strip()
                word, _, argument = rest.partition(" ")
                if word in self._network_verbs:
                    places, mode = self._places(self._network_verbs[word], argument)
                    planned = operation(time_us, self._network_verbs[word], "", places, mode)
                else:
                    verb, value = self._argument(rest, argument)
                    planned = client_operation(time_us, verb, word, value)
                operations.append(planned)
            except (PalioError, ValueError, TypeError) as error:
                raise PalioError(f"line {number} of the scenario, {line!r}: {error}") from None
        return settings, tuple(operations)

    def _places(self, verb: NetworkVerb, text: str) -> tuple[tuple[str, ...], CrashMode]:
        words, mode = text.split(), CrashMode.NOW
        if verb is NetworkVerb.CRASH and len(words) == 2 and words[1] in self._crash_modes:
            mode = CrashMode(words.pop())
        if len(words) != PLACES[verb]:
            raise PalioError(f"{verb} takes {PLACES[verb]} places")
        return tuple(words), mode

    def _argument(self, rest: str, text: str) -> tuple[str, Any]:
        verb, _, argument = text.partition(" ")
        if verb not in self._client_verbs:
            verbs = ", ".join([*self._client_verbs, *self._network_verbs])
            raise PalioError(f"no verb in {rest!r}; the verbs are {verbs}")
        return verb, self._client_verbs[verb](argument)


def pair_of(value: str, separator: str) -> tuple[str, str]:
    """The two sides of `a-b`."""
    left, middle, right = value.partition(separator)
    if not (left and middle and right):
        raise PalioError(f"{value!r} is not of the form a{separator}b")
    return left, right


def struct_line(word: str, value: msgspec.Struct, default: msgspec.Struct) -> list[str]:
    """A setting with the fields that differ from the default; nothing where none do."""
    changed = {
        name: getattr(value, name)
        for name in value.__struct_fields__
        if getattr(value, name) != getattr(default, name)
    }
    return [" ".join([word, *(f"{n}={v}" for n, v in changed.items())])] if changed else []


def read_struct(word: str, values: Iterable[str], kind: type[S]) -> S:
    """The setting that `struct_line` writes."""
    pairs = dict(pair_of(value, "=") for value in values)
    for name in pairs.keys() - set(kind.__struct_fields__):
        known = ", ".join(kind.__struct_fields__)
        raise PalioError(f"there is no {name!r} in the {word}; there are {known}")
    return msgspec.convert(pairs, kind, strict=False)
