"""A claim of a paper, the experiment that decides it, and what comes out.

`decide` reads stored rows and says whether the claim holds and by which figure. When the rows cannot
tell, because the run was too small, it raises TooSmall with what is needed: the verdict is then "not
decided at this scale", never a guess. `reason` is what we know about a claim that does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from palio.errors import PalioError
from palio.lab.reproduce.experiment import Row

Rows: TypeAlias = Sequence[Row]
Decision: TypeAlias = tuple[bool, str]


class TooSmall(PalioError):
    """The stored rows do not decide a claim; the message says what would."""


class ClaimOutcome(Enum):
    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "not decided at this scale"


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """What came out, our figure, and a reason where there is one."""

    outcome: ClaimOutcome
    figure: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A checkable sentence of a paper, in our words."""

    place: str  # "2006, 4.2"
    text: str
    experiment: str
    decide: Callable[[Rows], Decision]
    reason: str = ""
    also: tuple[str, ...] = ()  # experiments whose rows it reads too


def judged(claim: Claim, results: Mapping[str, Rows]) -> ClaimVerdict:
    """The verdict on a claim from the rows of all experiments."""
    rows: list[Row] = []
    for id in (claim.experiment, *claim.also):
        if not results.get(id):
            return ClaimVerdict(ClaimOutcome.UNDECIDED, "", f"{id} has not been run")
        rows += results[id]
    try:
        holds, figure = claim.decide(rows)
    except TooSmall as error:
        return ClaimVerdict(ClaimOutcome.UNDECIDED, "", f"it needs {error}")
    if holds:
        return ClaimVerdict(ClaimOutcome.HOLDS, figure)
    return ClaimVerdict(ClaimOutcome.FAILS, figure, claim.reason)
