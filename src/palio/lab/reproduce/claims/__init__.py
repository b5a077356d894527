"""The papers' claims as data: every checkable sentence, with its criterion and who decides it."""

from palio.errors import InvalidValue
from palio.lab.reproduce.claims import (
    paper_2000,
    paper_2001_matches,
    paper_2001_work,
    paper_2003,
    paper_2006_alpha,
    paper_2006_memory,
    paper_2006_schemes,
)
from palio.lab.reproduce.claims.claim import Claim, ClaimOutcome, ClaimVerdict, judged

CLAIMS: tuple[Claim, ...] = (
    *paper_2000.CLAIMS,
    *paper_2001_work.CLAIMS,
    *paper_2001_matches.CLAIMS,
    *paper_2003.CLAIMS,
    *paper_2006_schemes.CLAIMS,
    *paper_2006_memory.CLAIMS,
    *paper_2006_alpha.CLAIMS,
)


def claim(id: str) -> Claim:
    """The claim of this ID."""
    for known in CLAIMS:
        if known.id == id:
            return known
    raise InvalidValue(f"no claim {id!r}; `palio lab claims` shows them")


__all__ = ["CLAIMS", "Claim", "ClaimOutcome", "ClaimVerdict", "claim", "judged"]
