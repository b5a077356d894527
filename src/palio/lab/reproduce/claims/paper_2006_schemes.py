"""Claims of the 2006 paper on correct and ideal delivery (sections 2 and 3).

Deliveries are random. Where a claim says `always`, a single exception refutes it; where all are as
claimed, the rate of exceptions is below what is told, with an error of 1%.
"""

from __future__ import annotations

from palio.lab.reproduce.claims.claim import Claim, Decision, Readings, Rows, TooSmall
from palio.lab.reproduce.claims.evidence import rate_max
from palio.lab.reproduce.drawing import chosen, curve

DELIVERIES_MIN = 250


def _total(rows: Rows, column: str) -> int:
    return int(sum(row[column] for row in rows))


def _always(rows: Rows, column: str) -> Decision:
    deliveries = _total(rows, "deliveries")
    if deliveries < DELIVERIES_MIN:
        raise TooSmall(f"{DELIVERIES_MIN} deliveries or more")
    as_claimed = _total(rows, column)
    if as_claimed == deliveries:
        return (
            True,
            f"all of {deliveries:,} deliveries (exceptions below {rate_max(deliveries):.2%})",
        )
    return False, f"{deliveries - as_claimed:,} of {deliveries:,} deliveries are not"


def psf_is_correct(rows: Rows) -> Decision:
    return _always(chosen(rows, scheme="PSF"), "correct")


def psf_is_ideal(rows: Rows) -> Readings:
    those = chosen(rows, scheme="PSF")
    return {
        "shortest paths are unique": _always(chosen(those, unique=True), "ideal"),
        "any network, as printed": _always(those, "ideal"),
    }


def psf_latency(rows: Rows) -> Decision:
    return _always(chosen(rows, scheme="PSF"), "latency")


def ips_is_psf(rows: Rows) -> Decision:
    return _always(chosen(rows, scheme="iPS"), "ips_as_psf")


def pif_is_correct(rows: Rows) -> Decision:
    return _always(chosen(rows, scheme="PIF"), "correct")


def psf_inside_pif(rows: Rows) -> Decision:
    return _always(chosen(rows, scheme="PIF"), "psf_inside_pif")


def pif_is_not_ideal(rows: Rows) -> Decision:
    those = chosen(rows, scheme="PIF", unique=True)
    deliveries, ideal = _total(those, "deliveries"), _total(those, "ideal")
    if deliveries < DELIVERIES_MIN:
        raise TooSmall(f"{DELIVERIES_MIN} deliveries or more")
    return ideal < deliveries, (
        f"{deliveries - ideal:,} of {deliveries:,} deliveries are not, though shortest paths are unique"
    )


def drp_is_correct(rows: Rows) -> Decision:
    return _always([row for row in rows if row["scheme"].startswith("DRP")], "correct")


def drp_ideal_if_unique(rows: Rows) -> Decision:
    those = [row for row in rows if row["scheme"].startswith("DRP")]
    return _always(chosen(those, unique=True), "ideal")


def drp_ideal_only_if_unique(rows: Rows) -> Readings:
    found: dict[str, Decision] = {}
    those = [r for r in chosen(rows, scheme="DRP", unique=False) if r["drp_ideal_any"] is not None]
    if len(those) < 5:
        raise TooSmall("five small networks with ties or more")
    for column, reading in (
        ("drp_ideal_any", "for some choice of unicast functions"),
        ("drp_ideal_trees", "for the unicast of Dijkstra's trees"),
    ):
        ideal = _total(those, column)
        found[reading] = (
            ideal == 0,
            f"in {len(those) - ideal} of {len(those)} networks with ties some delivery is not ideal",
        )
    return found


def bridges_hide_sources(rows: Rows) -> Decision:
    those = chosen(rows, scheme="iPS")
    pairs, alike = (_total(those, key) for key in ("bridge_pairs", "bridge_pairs_alike"))
    if pairs < 100:
        raise TooSmall("100 pairs of a bridge and a processor or more")
    return alike == pairs, f"{alike:,} of {pairs:,} pairs of a bridge and a processor"


# ---- ips-classes


def trees_know_neighbours(rows: Rows) -> Decision:
    those = chosen(rows, family="tree")
    off = max(abs(row["mean"] - (2 * row["links"] / row["n"] + 1)) for row in those)
    return off < 1e-9, (
        f"on {len(those)} trees a processor has its degree and one, itself, as classes: off by "
        f"{off:.3f} at most"
    )


def hierarchies_hide_sources(rows: Rows) -> Decision:
    most = max(row["n"] for row in chosen(rows, family="internet"))
    if most < 400:
        raise TooSmall("hierarchies of 400 processors or more: scale 0.25")
    share = {}
    for family in ("internet", "power law", "ring"):
        n, mean = curve(chosen(rows, family=family), "n", "mean")[-1]
        share[family] = mean / n
    return share["internet"] < 0.1, (
        f"classes a processor over n at the largest n: {share['internet']:.1%} in hierarchies, "
        f"{share['power law']:.1%} in power-law networks, {share['ring']:.1%} in rings"
    )


_ONE = "One delivery that is not."
CLAIMS = (
    Claim("2006-psf-correct", "2006, 3.1", "PSF is a correct routing scheme.",
          "Every delivery reaches all who are interested.", _ONE, "2006-deliveries", psf_is_correct),
    Claim("2006-psf-latency", "2006, 3.1", "PSF's trees contain only minimal paths.",
          "Every delivery has the least latency to every receiver.", _ONE, "2006-deliveries", psf_latency),
    Claim("2006-psf-ideal", "2006, 3.1", "PSF is an ideal scheme.",
          "Every delivery has, among all trees of least latency, the fewest packets. The paper does not say "
          "whether shortest paths are unique: both are readings.", _ONE, "2006-deliveries", psf_is_ideal,
          "Every tree of least latency is a tree of shortest paths; where these are not unique, Dijkstra's "
          "may branch earlier than another one would."),
    Claim("2006-bridges", "2006, 3.2",
          "All sources on one side of a bridge are indistinguishable on the other side.",
          "For every bridge and processor they are one class.", "Two classes.",
          "2006-deliveries", bridges_hide_sources),
    Claim("2006-ips-same", "2006, 3.2", "iPS forwards as PSF does, with fewer entries.",
          "Every delivery sends packets over the same links as PSF.", _ONE, "2006-deliveries", ips_is_psf),
    Claim("2006-ips-tree", "2006, 3.2", "On a tree the domain of F_u is N(u).",
          "On every tree the classes of a processor are its neighbours, and itself.", "Another number.",
          "ips-classes", trees_know_neighbours),
    Claim("2006-hierarchy", "2006, 3.2",
          "Indistinguishability is important in practice because networks are hierarchical.",
          "In hierarchies of 400 processors or more, a processor has fewer than n / 10 classes on average.",
          "n / 10 or more.", "ips-classes", hierarchies_hide_sources),
    Claim("2006-pif-correct", "2006, 3.3", "PIF is correct.",
          "Every delivery reaches all who are interested.", _ONE, "2006-deliveries", pif_is_correct),
    Claim("2006-psf-in-pif", "2006, 3.3", "The delivery tree of PSF is always a subtree of that of PIF.",
          "Every link that PSF uses for a message, PIF uses.", _ONE, "2006-deliveries", psf_inside_pif),
    Claim("2006-pif-not-ideal", "2006, 3.3", "PIF is not ideal.",
          "Some delivery is not ideal in a network of unique shortest paths, where PSF's are.",
          "Only ideal deliveries.", "2006-deliveries", pif_is_not_ideal),
    Claim("2006-drp-correct", "2006, 3.4", "DRP is correct if its unicast functions are.",
          "Every delivery reaches all who are interested, by two unicast functions.", _ONE,
          "2006-deliveries", drp_is_correct),
    Claim("2006-drp-if", "2006, 3.4", "DRP is ideal if shortest paths are unique.",
          "Every delivery in a network of unique shortest paths is ideal.", _ONE,
          "2006-deliveries", drp_ideal_if_unique),
    Claim("2006-drp-only-if", "2006, 3.4", "DRP is ideal only if shortest paths are unique.",
          "In every network of six processors where they are not, some delivery to one or two receivers is "
          "not ideal. Which shortest paths unicast takes is open: two readings.",
          "A network with ties where all are ideal.", "2006-deliveries", drp_ideal_only_if_unique,
          "Where a link is as long as a path of two, the unicast that takes the link is ideal in spite of "
          "the tie."),
)  # fmt: skip
