"""A claim of a paper, the criterion that decides it, and what comes out.

The criterion and what would refute the claim are written before the run, next to the sentence. The
work of an algorithm (increments, comparisons, packets) decides wherever the sentence is about cost;
times are told beside it, and decide only where the sentence is about time.

`decide` reads stored rows and says whether the claim holds, and by which figure. Where the paper
leaves open what was meant, it gives an answer for each reading, by name: if they differ, the verdict
is "depends on what the paper leaves open". When the rows cannot tell, because the run was too small, it
raises TooSmall with what is needed: never a guess. `reason` is what we know about a claim that does
not hold in every reading. A criterion that was changed after data were seen says so (`changed`), with
the reason; the report shows it.
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
Readings: TypeAlias = Mapping[str, Decision]


class TooSmall(PalioError):
    """The stored rows do not decide a claim; the message says what would."""


class ClaimOutcome(Enum):
    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "not decided here"
    DEPENDS = "depends on what the paper leaves open"


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """What came out, our figure, a reason where there is one, and the answer in each reading."""

    outcome: ClaimOutcome
    figure: str
    reason: str = ""
    readings: tuple[tuple[str, bool, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """A checkable sentence of a paper, in our words."""

    id: str  # as it is named on the command line
    place: str  # "2006, 4.2"
    text: str
    criterion: str  # when it holds
    refuted: str  # what would refute it
    experiment: str
    decide: Callable[[Rows], Decision | Readings]
    reason: str = ""
    also: tuple[str, ...] = ()  # experiments whose rows it reads too
    changed: str = ""  # how and why the criterion was changed after data were seen

    @property
    def experiments(self) -> tuple[str, ...]:
        return (self.experiment, *self.also)


def judged(
    claim: Claim, results: Mapping[str, Rows], unfinished: Mapping[str, str] | None = None
) -> ClaimVerdict:
    """The verdict on a claim from the rows of all experiments.

    `unfinished` says of experiments how far they are: of a part of their points nothing follows.
    """
    rows: list[Row] = []
    for id in claim.experiments:
        if not results.get(id):
            return ClaimVerdict(ClaimOutcome.UNDECIDED, "", f"{id} has not been run")
        if unfinished and unfinished.get(id):
            return ClaimVerdict(ClaimOutcome.UNDECIDED, "", f"{id}: {unfinished[id]}")
        rows += results[id]
    try:
        decided = claim.decide(rows)
    except TooSmall as error:
        return ClaimVerdict(ClaimOutcome.UNDECIDED, "", f"it needs {error}")
    if not isinstance(decided, Mapping):
        holds, figure = decided
        outcome = ClaimOutcome.HOLDS if holds else ClaimOutcome.FAILS
        return ClaimVerdict(outcome, figure, "" if holds else claim.reason)
    readings = tuple((name, holds, figure) for name, (holds, figure) in decided.items())
    answers = {holds for _, holds, _ in readings}
    if answers == {True}:
        return ClaimVerdict(ClaimOutcome.HOLDS, "in every reading", "", readings)
    outcome = ClaimOutcome.DEPENDS if len(answers) > 1 else ClaimOutcome.FAILS
    text = "the readings differ" if len(answers) > 1 else "in no reading"
    return ClaimVerdict(outcome, text, claim.reason, readings)
