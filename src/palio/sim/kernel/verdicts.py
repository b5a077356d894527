"""How a run ends: a violation of a check, the verdict of a run, and sums over many runs."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from palio.errors import PalioError


class Violation(PalioError):
    """Something that must never happen. `kind` is the check that saw it."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        super().__init__(f"{kind}: {text}")


class RunTotals(msgspec.Struct):
    """What a run counted. The numbers of a seed add up to those of many."""

    def add(self, other: RunTotals) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


T = TypeVar("T", bound=RunTotals)


class RunVerdict(msgspec.Struct, Generic[T], frozen=True):
    """How a run ended."""

    seed: int
    kind: str | None
    """The check that failed; None: none did."""
    text: str
    totals: T
    fingerprint: str = ""
    """A digest of all bytes that were received and of their times; empty where none is taken."""

    def row(self) -> dict[str, object]:
        """One object for JSON."""
        row: dict[str, object] = {"seed": self.seed, "verdict": self.kind or "ok"}
        row["text"] = self.text
        if self.fingerprint:
            row["fingerprint"] = self.fingerprint
        return row | msgspec.structs.asdict(self.totals)


class RunSummary(Generic[T]):
    """The sums of many verdicts. `totals` starts at zero."""

    def __init__(self, totals: T) -> None:
        self.seeds = 0
        self.failed: list[int] = []
        self.totals = totals

    def add(self, verdict: RunVerdict[T]) -> None:
        self.seeds += 1
        if verdict.kind is not None:
            self.failed.append(verdict.seed)
        self.totals.add(verdict.totals)

    def row(self) -> dict[str, object]:
        """One object for JSON."""
        totals = msgspec.structs.asdict(self.totals)
        return {"seeds": self.seeds, "failed": self.failed, **totals}
