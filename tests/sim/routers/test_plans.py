"""Plans as text: bad ones get a sentence that names the line, or the thing."""

from __future__ import annotations

import pytest

from palio.errors import PalioError
from palio.sim.kernel.datagrams import DatagramFaults
from palio.sim.routers.drawing import RouterSettings
from palio.sim.routers.plans import parse_router_plan

NETWORK = "routing plain\nlinks 1-2 2-3\nclients a@1 b@3\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0.0 a subscribe x > ", "line 4"),
        ("0.0 a subscribe x > 1 OR y > 1", "one filter, this is 2"),
        ('0.0 a publish {"x": [1}', "the message is not JSON"),
        ("0.0 z publish {}", "no client 'z'"),
        ("0.0 crash 9", "no such router"),
        ("0.0 crash 1 2", "crash takes 1 places"),
        ("0.0 partition 1 3", "no link between"),
        ("0.0 a sing", "no verb"),
        ("x.0 a subscribe x > 1", "a setting is one of"),
        ("datagrams loss=2", "a share of datagrams"),
        ("datagrams rain=1", "no 'rain' in the datagrams; there are delay_us_min"),
        ("limits window=0", "limits of a link"),
        ("routing magic", "a setting is one of"),
        ("links 1", "not of the form a-b"),
        ("links 1-2 2-3 3-1", "no cycles"),
        ("links 1-2 3-4", "no islands"),
        ("clients a@1 a@2", "each named once"),
        ("clients 1@2", "each named once"),
        ("hierarchy\nlinks 1-3 2-3", "one master"),
    ],
)
def test_bad_scenarios_get_a_sentence(text: str, says: str) -> None:
    with pytest.raises(PalioError, match=says):
        parse_router_plan(NETWORK + text)


def test_an_empty_scenario_has_no_router() -> None:
    with pytest.raises(PalioError, match="at least one router"):
        parse_router_plan("")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"routers": 0}, "1 to 1,000 routers"),
        ({"operations": -1}, "operations, not -1"),
        ({"topology": "cube"}, "no topology 'cube'; there are tree"),
        ({"routing": "magic"}, "no routing 'magic'"),
        ({"faults": ("fire",)}, "no fault 'fire'"),
    ],
)
def test_bad_settings_get_a_sentence(values: dict[str, object], says: str) -> None:
    with pytest.raises(PalioError, match=says):
        RouterSettings(**values)  # type: ignore[arg-type]


def test_delays_have_an_order() -> None:
    with pytest.raises(PalioError, match="a delay goes from"):
        DatagramFaults(delay_us_min=5, delay_us_max=4)
