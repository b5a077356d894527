"""Claims of the 2006 paper on memory (sections 2.4 and 3): four formulas, and the average distance.

Two formulas are sums over the network that the model of `routing.schemes.memory` computes in the same
way, so for PSF and DRP the tables of running brokers decide.
"""

from __future__ import annotations

from math import log
from statistics import mean

from palio.lab.reproduce.claims.claim import Claim, Decision, Readings, Rows, TooSmall
from palio.lab.reproduce.claims.evidence import ERROR, fits_better, mean_range
from palio.lab.reproduce.drawing import chosen, distinct
from palio.lab.reproduce.experiment import Row
from palio.lab.reproduce.figures.paper_2006_distances import ATTACHED

NODES_MIN = 50


def _ratios(rows: Rows, scheme: str, formula: str = "formula_bits", **values: str) -> list[float]:
    those = [row for row in chosen(rows, scheme=scheme, **values) if row[formula]]
    if not those or max(row["n"] for row in those) < NODES_MIN:
        raise TooSmall(f"networks of {NODES_MIN} processors or more")
    return [row["bits"] / row[formula] for row in those]


def _text(ratios: list[float]) -> str:
    return f"{min(ratios):.3f} to {max(ratios):.3f} of the formula in {len(ratios)} networks"


def psf_sum(rows: Rows) -> Decision:
    return _held(rows, "PSF", "distances")


def drp(rows: Rows) -> Decision:
    return _held(rows, "DRP", "pairs")


def _held(rows: Rows, scheme: str, expected: str) -> Decision:
    """The predicates in the tables of all brokers, against a count that knows only the links."""
    those = chosen(rows, scheme=scheme)
    ratios = [row["held"] / row[expected] for row in those]
    return min(ratios) == max(ratios) == 1, (
        f"{sum(row['held'] for row in those):,} predicates in {len(those)} networks, "
        f"{min(ratios):.3f} to {max(ratios):.3f} of what is expected"
    )


def psf_average(rows: Rows) -> Decision:
    ratios = _ratios(rows, "PSF", "average_bits", interests="apart")
    low, high = mean_range(ratios)
    return low >= 0.95 and high <= 1.05, f"{mean(ratios):.3f} on average ({low:.3f} to {high:.3f})"


def psf_advantage(rows: Rows) -> Decision:
    ratios = _ratios(rows, "PSF", interests="shared")
    return max(ratios) < 1, _text(ratios)


def ips_tree(rows: Rows) -> Decision:
    ratios = _ratios(rows, "iPS", interests="apart", family="tree")
    return max(ratios) <= 1.5, _text(ratios)


def ips_below_psf(rows: Rows) -> Decision:
    pairs = [
        ips["bits"] / psf["bits"]
        for ips, psf in zip(chosen(rows, scheme="iPS"), chosen(rows, scheme="PSF"), strict=True)
    ]
    return max(pairs) <= 1, f"{min(pairs):.2f} to {max(pairs):.2f} of the bits of PSF"


def pif(rows: Rows) -> Readings:
    ratios = _ratios(rows, "PIF")
    largest = [row for row in chosen(rows, scheme="PIF") if row["n"] >= NODES_MIN]
    printed = [row["bits"] / _printed(row) for row in largest]
    return {
        "n (s Delta log n + r M_p alpha), the sum over processors": (
            max(ratios) <= 1,
            _text(ratios),
        ),
        "n (s Delta log n + n r M_p alpha), as printed": (
            max(printed) <= 1,
            f"{max(printed):.4f} at most: a bound, n times too large in its second term",
        ),
    }


def _printed(row: Row) -> float:
    """The formula with the n that the paper prints too much."""
    more = (row["n"] - 1) * row["n"] * row["receivers"] * row["interest_bits"]
    return float(row["formula_bits"] + more)


def senders_times_receivers(rows: Rows) -> Decision:
    """From the smallest to the largest networks of a family, entries of PSF over s r d."""
    worst, texts = 0.0, []
    for family in distinct(rows, "family"):
        those = chosen(rows, scheme="PSF", interests="apart", family=family)
        per = [row["predicate_bits"] / ((row["n"] // 2) ** 2 * row["d"]) for row in those]
        spread = max(per) / min(per)
        worst = max(worst, spread)
        texts.append(f"{family} {spread:.2f}")
    return worst < 1.5, f"bits over s r d differ by a factor of: {', '.join(texts)}"


# ---- the average distance


def distance_is_log_log(rows: Rows) -> Readings:
    most = max(row["nodes"] for row in rows)
    if most < 10_000 or len(distinct(rows, "nodes")) < 4:
        raise TooSmall("four sizes of graphs, up to 10,000 nodes: the full scale")
    found: dict[str, Decision] = {}
    for graph in distinct(rows, "graph"):
        draws: dict[float, list[float]] = {}
        for row in chosen(rows, graph=graph):
            draws.setdefault(row["nodes"], []).append(row["d"])
        share = fits_better(draws, lambda n: log(log(n)), log)
        name = f"exponent {graph}" if graph != ATTACHED else "attachment, exponent 3"
        found[name] = (
            share >= 1 - ERROR,
            f"d is {mean(draws[min(draws)]):.2f} at {min(draws):,} and {mean(draws[most]):.2f} at "
            f"{most:,} nodes; log log n is nearer than log n in {share:.0%} of the resamples",
        )
    return found


def distance_is_small(rows: Rows) -> Decision:
    most = max(row["nodes"] for row in rows)
    those = [row["d"] for row in chosen(rows, nodes=most) if row["graph"] != "4"]
    return max(those) < log(most), (
        f"d is {max(those):.2f} at most at {most:,} nodes, where log n is {log(most):.1f}"
    )


_ITSELF = (
    "Bits of the model were compared with the formula before, and both were computed from the same trees: "
    "they could not differ. Now running brokers are compared with the links alone."
)
CLAIMS = (
    Claim("2006-psf-memory", "2006, 3.1",
          "Beside s log n, PSF stores M_p times the sum of the distances from senders to receivers.",
          "With interests apart (alpha = 1), the tables of brokers that run PSF hold for other brokers as many "
          "predicates as the distances of breadth-first searches over the links sum to, in every network.",
          "A network with more or fewer.", "2006-brokers", psf_sum, changed=_ITSELF),
    Claim("2006-psf-average", "2006, 3.1",
          "With random senders and receivers PSF stores s log n + s r M_p d.",
          "The mean of measured bits over the formula is within 5% of 1 (error 1%).", "A mean further off.",
          "2006-memory", psf_average),
    Claim("2006-psf-product", "2006, 3.1", "The product s r is the crucial factor in the memory of PSF.",
          "In each family the bits of predicates over s r d differ by a factor below 1.5, for all n.",
          "A larger factor.", "2006-memory", senders_times_receivers),
    Claim("2006-psf-advantage", "2006, 3.1", "Disjunctions tighten the memory requirement of PSF.",
          "With shared interests PSF stores less than the formula in every network.", "As much or more.",
          "2006-memory", psf_advantage),
    Claim("2006-log-log", "2006, 3.1",
          "In power-law random graphs the average distance d is O(log log n) in most cases.",
          "From 100 to 10,000 nodes a + b log log n is nearer to d than a + b log n, by least squares, in 99% of "
          "the resamples of the graphs. Which power-law graph is open: exponents are readings, as in the "
          "source that is cited.", "log n as near or nearer.", "2006-distances", distance_is_log_log,
          "Chung and Lu have log log n for exponents between 2 and 3, and log n beyond.",
          changed="Average distances may have an additive constant now."),
    Claim("2006-small-d", "2006, 3.1", "The average distance is very small in many common cases.",
          "In power-law graphs d is below log n at the most nodes.", "d of log n or more.",
          "2006-distances", distance_is_small),
    Claim("2006-ips-memory", "2006, 3.2", "On a tree iPS stores O(n r M_p alpha(r / Delta)).",
          "With interests apart measured bits are at most 1.5 times n r M_p on every tree.", "More.",
          "2006-memory", ips_tree),
    Claim("2006-ips-less", "2006, 3.2", "iPS improves on PSF.",
          "iPS stores no more bits than PSF in every network.", "A network where it stores more.",
          "2006-memory", ips_below_psf),
    Claim("2006-pif-memory", "2006, 3.3", "PIF stores O(n (s Delta log n + n r M_p alpha(r / Delta))).",
          "Measured bits are at most the formula, with constant 1 and alpha 1. The printed sum has an n more "
          "than its parts: both are readings.", "More.", "2006-memory", pif),
    Claim("2006-drp-memory", "2006, 3.4",
          "Beside unicast tables of n r log n, DRP stores s r M_p, whatever the paths.",
          "The tables of brokers that run DRP hold each predicate of another broker once at each, in every "
          "network. Unicast tables are not counted: all schemes have the trees that they follow from.",
          "A network with more or fewer.", "2006-brokers", drp, changed=_ITSELF),
)  # fmt: skip
