"""The papers' claims as data: every checkable sentence of three evaluations, with who decides it."""

from palio.lab.reproduce.claims import paper_2001, paper_2003, paper_2006
from palio.lab.reproduce.claims.claim import Claim, ClaimOutcome, ClaimVerdict, judged

CLAIMS: tuple[Claim, ...] = (*paper_2001.CLAIMS, *paper_2003.CLAIMS, *paper_2006.CLAIMS)

__all__ = ["CLAIMS", "Claim", "ClaimOutcome", "ClaimVerdict", "judged"]
