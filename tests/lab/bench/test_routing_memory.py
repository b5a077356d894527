"""The benchmark of the schemes' memory on a small network: the trade-off of the 2006 paper, section 3."""

from __future__ import annotations

import pytest

from palio.lab.bench.routing_memory import SCHEMES, RoutingMemoryResult, measure


@pytest.fixture(scope="module")
def results() -> dict[str, RoutingMemoryResult]:
    return {scheme: measure(scheme, 10, 5, 50) for scheme in SCHEMES}


def test_memory_is_ordered_as_the_paper_argues(results: dict[str, RoutingMemoryResult]) -> None:
    psf, ips, pif, drp = (results[scheme] for scheme in SCHEMES)
    assert psf.bytes > ips.bytes >= pif.bytes
    assert psf.predicates > ips.predicates >= pif.predicates
    assert drp.alpha == 1.0
    for one in (psf, ips, pif):
        assert one.bytes <= one.formula_bytes
        assert one.alpha < 1


def test_what_is_kept_to_recover_does_not_depend_on_the_scheme(
    results: dict[str, RoutingMemoryResult],
) -> None:
    assert len({one.database_bytes for one in results.values()}) == 1


def test_packets(results: dict[str, RoutingMemoryResult]) -> None:
    """PSF, iPS and DRP send the same packets, PIF at least these; DRP does not match in transit."""
    psf, ips, pif, drp = (results[scheme] for scheme in SCHEMES)
    assert psf.packets_per_message == ips.packets_per_message == drp.packets_per_message
    assert pif.packets_per_message >= psf.packets_per_message
    assert drp.matched_per_message < psf.matched_per_message


def test_a_lost_link_changes_no_entry_of_drp(results: dict[str, RoutingMemoryResult]) -> None:
    assert results["DRP"].link_changes == 0
    assert results["PSF"].link_changes > 0
    assert results["DRP"].filter_changes == 9  # one at each other broker
