"""Claims of the 2000 paper on tables, traffic, patterns and the complexity of operations (2.3, 3.4, 3.6
and 3.7)."""

from __future__ import annotations

from palio.lab.reproduce.claims.claim import Claim, Decision, Readings, Rows, TooSmall
from palio.lab.reproduce.claims.evidence import growth
from palio.lab.reproduce.drawing import chosen, curve, distinct

FILTERS_MIN = 200
SIGNIFICANT = 0.5  # of the entries are left at most
DRAWN = ("500 Zipf names", "500 uniform names")  # shapes that decide something by being drawn
LINEAR, QUADRATIC = 1.1, 2.2  # powers, with a tenth for what is there at any size
CHAIN_SHARE = 0.1


def _largest(rows: Rows, shape: str) -> Rows:
    most = max(row["filters"] for row in rows)
    if most < FILTERS_MIN:
        raise TooSmall(f"{FILTERS_MIN} filters or more")
    return chosen(rows, shape=shape, filters=most)


def _share(rows: Rows, part: str, whole: str) -> float:
    return float(sum(row[part] for row in rows) / sum(row[whole] for row in rows))


# ---- 2.3 and 3.4: tables and traffic


def subnets_shrink_tables(rows: Rows) -> Readings:
    found: dict[str, Decision] = {}
    for shape in DRAWN:
        share = _share(_largest(rows, shape), "entries_stored", "entries")
        found[shape] = share <= SIGNIFICANT, f"{share:.0%} of the entries are left"
    return found


def only_roots_cause_traffic(rows: Rows) -> Readings:
    sent = sum(row["mixed_sent"] for row in rows)
    roots = sum(row["mixed_roots"] for row in rows)
    uncovered = sum(row["mixed_uncovered"] for row in rows)
    own, own_roots = (sum(row[key] for row in rows) for key in ("sent", "sent_roots"))
    return {
        "all subscriptions come from clients": (
            own == own_roots,
            f"{own_roots:,} of {own:,} forwarded subscriptions are roots",
        ),
        "roots of the whole table": (
            sent == roots,
            f"{roots:,} of {sent:,} forwarded subscriptions are roots",
        ),
        "roots without what the neighbour itself asked for": (
            sent == uncovered,
            f"{uncovered:,} of {sent:,} forwarded subscriptions are",
        ),
    }


def vertical_posets_save(rows: Rows) -> Decision:
    those = _largest(rows, "chain")
    share = sum(row["sent"] for row in those) / sum(2 * row["given"] for row in those)
    return share < CHAIN_SHARE, f"{share:.1%} of the subscriptions of a chain are forwarded"


def flat_posets_forward_all(rows: Rows) -> Decision:
    those = chosen(rows, shape="flat")
    share = sum(row["sent"] for row in those) / sum(2 * row["given"] for row in those)
    return share == 1, f"{share:.1%} of the subscriptions of a flat poset are forwarded"


# ---- 3.6: patterns


def patterns_near_sources(rows: Rows) -> Decision:
    watched = chosen(rows, way="pattern")
    single = sum(row["trunk_single"] for row in watched)
    apart = sum(row["arm_single"] for row in chosen(watched, sources="together"))
    return single == 0 and apart == 0, (
        f"{single + apart} messages travel alone beyond the server at which all sources of a pattern "
        f"meet, in {len(watched)} networks"
    )


def delegation_saves_packets(rows: Rows) -> Decision:
    shares = {}
    for where in distinct(rows, "sources"):
        watched, plain = (chosen(rows, sources=where, way=way) for way in ("pattern", "plain"))
        pairs = zip(watched, plain, strict=True)
        shares[where] = max(a["packets"] / b["packets"] for a, b in pairs)
    return max(shares.values()) < 1, ", ".join(
        f"at most {share:.0%} of the packets with sources {where}"
        for where, share in shares.items()
    )


# ---- 3.7: complexity


def _power(rows: Rows, relations: tuple[str, ...], most: float) -> Decision:
    texts, worst = [], 0.0
    for relation in relations:
        points = curve(chosen(rows, relation=relation), "argument", "lines")
        exponent, low, high = growth(points[-4:])
        worst = max(worst, low)
        texts.append(f"{relation}: to the power {exponent:.2f} ({low:.2f} to {high:.2f})")
    return worst <= most, "work grows with n = m " + "; ".join(texts)


def matching_is_linear(rows: Rows) -> Decision:
    pairs = ("subscription and notification", "advertisement and notification")
    return _power(rows, pairs, LINEAR)


def covering_is_quadratic(rows: Rows) -> Decision:
    pairs = (
        "subscription and subscription",
        "advertisement and advertisement",
        "advertisement and subscription",
    )
    return _power(rows, pairs, QUADRATIC)


def flat_look_up_scans(rows: Rows) -> Decision:
    return _flat(rows, "flat poset, look-up")


def flat_insertion_scans(rows: Rows) -> Decision:
    return _flat(rows, "flat poset, insertion")


def _flat(rows: Rows, operation: str) -> Decision:
    points = curve(chosen(rows, relation=operation), "argument", "lines")
    exponent, low, high = growth(points)
    return high <= LINEAR, (
        f"{points[-1][1]:,.0f} lines at R = {points[-1][0]:,.0f}; work grows with R to the power "
        f"{exponent:.2f} ({low:.2f} to {high:.2f})"
    )


def subtrees_are_skipped(rows: Rows) -> Readings:
    found: dict[str, Decision] = {}
    for shape in ("chain", "500 Zipf names", "500 uniform names"):
        share = _share(_largest(rows, shape), "compared", "items")
        found[shape] = share < 0.9, f"a message is compared with {share:.0%} of the filters"
    return found


CLAIMS = (
    Claim("2000-subnets", "2000, 2.3",
          "Content-based subnets reduce the size of a routing table significantly.",
          f"Of the mappings from filters to ten next hops at most {SIGNIFICANT:.0%} are left at the most "
          "filters. What subscriptions are like is open: the two workloads of the 2006 paper with 500 names "
          "are readings.", "More are left.", "2000-tables", subnets_shrink_tables,
          "How much is saved depends on how often subscriptions cover each other. A next hop has 300 here, "
          "and the 2006 paper too has half of the constraints left only from hundreds to thousands on.",
          changed="A chain and a flat set were readings too: by their definition they save everything and "
          "nothing, so that the verdict was known beforehand."),
    Claim("2000-roots", "2000, 3.4", "Only root filters cause network traffic.",
          "Every subscription that a router forwards is a root of its table at that time. What is a root is "
          "open where subscriptions come from neighbours: formula (1) leaves out what the neighbour itself "
          "asked for.", "A forwarded subscription that is no root.",
          "2000-tables", only_roots_cause_traffic,
          "A filter that is covered only by subscriptions of a neighbour goes to that neighbour, as the "
          "paper's own figure 4 shows, though it is no root of the table."),
    Claim("2000-vertical", "2000, 3.4", "A poset that extends vertically has a few subscriptions for all others.",
          f"Of a chain in random order less than {CHAIN_SHARE:.0%} is forwarded.", f"{CHAIN_SHARE:.0%} or more.",
          "2000-tables", vertical_posets_save),
    Claim("2000-flat", "2000, 3.4", "A flat poset is the degenerate case: every subscription is forwarded.",
          "All subscriptions of a flat set are forwarded to all neighbours.", "One that is not.",
          "2000-tables", flat_posets_forward_all),
    Claim("2000-pattern-place", "2000, 3.6",
          "Patterns are assembled as close as possible to the sources of their parts.",
          "Beyond the server where all sources of a pattern meet, no message travels alone, but only "
          "assembled sequences.", "A single message beyond that server.",
          "2000-patterns", patterns_near_sources),
    Claim("2000-pattern-packets", "2000, 2.4.1 and 3.6",
          "Factoring and delegation save traffic over assembling at the subscriber.",
          "In every network fewer packets of messages cross links than with plain subscriptions.",
          "A network with as many or more.", "2000-patterns", delegation_saves_packets),
    Claim("2000-matching", "2000, 3.7",
          "Comparing a notification with a subscription or an advertisement takes O(n + m).",
          f"Lines executed grow with n = m to a power whose range (error 1%) begins at {LINEAR} or below.",
          f"A range above {LINEAR}.", "2000-relations", matching_is_linear),
    Claim("2000-covering", "2000, 3.7",
          "Comparing two filters, two advertisements, or one with the other takes O(nm).",
          f"Lines executed grow with n = m to a power whose range (error 1%) begins at {QUADRATIC} or below.",
          f"A range above {QUADRATIC}.", "2000-relations", covering_is_quadratic),
    Claim("2000-flat-look-up", "2000, 3.7",
          "In a flat poset of R filters a notification takes O(R (n + m)).",
          f"Lines executed grow with R to a power whose range (error 1%) ends at {LINEAR} or below.",
          f"A power above {LINEAR}.", "2000-relations", flat_look_up_scans),
    Claim("2000-flat-insertion", "2000, 3.7",
          "In a flat poset of R filters an insertion takes O(R n m).",
          f"Lines executed grow with R to a power whose range (error 1%) ends at {LINEAR} or below.",
          f"A power above {LINEAR}.", "2000-relations", flat_insertion_scans),
    Claim("2000-skipped", "2000, 3.7",
          "Subscriptions below one that does not match are skipped.",
          "A message is compared with less than 90% of the filters of a poset with subnets. How many there "
          "are is open: three shapes are readings.", "90% or more.", "2000-tables", subtrees_are_skipped,
          "Where few filters cover others, most are roots, and there is little to skip."),
)  # fmt: skip
