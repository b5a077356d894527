"""The plans of the chaos test: which faults, how many, how long. The same seed draws the same faults."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.net.chaos.listeners import LISTENING

BROKERS = 5
CLIENTS = 20

STORM = ("kill", "client cut", "cut", "freeze", "break", "silence", "kill", "client break",
         "stall", "kill", "delay", "client silence", "kill twice", "cut", "client cut",
         "freeze")  # fmt: skip
CLOCK = ("clock +5", "clock -5", "clock +90", "clock -90", "kill", "clock +3600", "clock -3600",
         "clock kill", "client cut", "clock +5", "kill", "clock -3600", "cut",
         "clock kill", "clock +3600", "clock 0")  # fmt: skip
STOP = ("freeze", "kill", "cut", "client cut")
CONFIG = ("reconfigure", "reload", "reconfigure kill", "visitor", "reload", "client cut",
          "reconfigure", "visitor")  # fmt: skip
DISK = ("disk full", "kill", "disk full", "disk full kill", "client cut", "disk full", "cut")
TAKEOVER = ("take over",)
FAILOVER = ("fail over",)

_OF_BROKERS = {"kill", "kill twice", "freeze", "reconfigure", "reconfigure kill", "reload", "visitor",
               "disk full", "disk full kill", "take over"}  # fmt: skip
_OF_NOBODY = {"fail over"}
DATABASE = "database"


@dataclass(frozen=True)
class Fault:
    kind: str
    target: str
    """A broker, a link as "b1-b2", a client, a listener, or the database."""
    lasts_s: float
    detail: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind} {self.target} for {self.lasts_s:.1f} s"


@dataclass(frozen=True)
class Plan:
    seed: int
    messages: int
    faults: int
    pause_s: float
    """From the beginning of a fault to that of the next."""
    lasts_s: float
    """The longest fault."""
    keepalive: str
    patience_s: float
    """How long nothing may come at the end before it counts as lost."""
    kinds: tuple[str, ...] = STORM
    lasts_s_min: float = 0.0
    """The shortest one; 0: a tenth of the longest."""


SHORT = Plan(seed=1, messages=3_000, faults=8, pause_s=0.8, lasts_s=2.5, keepalive="500 ms",
             patience_s=15)  # fmt: skip
FULL = Plan(seed=1, messages=100_000, faults=64, pause_s=2.5, lasts_s=6.0, keepalive="1 s",
            patience_s=60)  # fmt: skip

OTHERS: dict[str, tuple[Plan, Plan]] = {
    "clock": (
        Plan(1, 3_000, 8, 0.8, 2.5, "500 ms", 30, CLOCK),
        Plan(1, 100_000, 64, 2.5, 6.0, "1 s", 90, CLOCK),
    ),
    "stop": (
        Plan(1, 3_000, 4, 2.5, 5.0, "500 ms", 30, STOP, 5.0),
        Plan(1, 100_000, 12, 20.0, 60.0, "1 s", 90, STOP, 60.0),
    ),
    "config": (
        Plan(1, 3_000, 8, 0.8, 1.0, "500 ms", 30, CONFIG),
        Plan(1, 100_000, 64, 2.5, 4.0, "1 s", 60, CONFIG),
    ),
    "disk": (
        Plan(1, 3_000, 6, 1.0, 2.5, "500 ms", 30, DISK),
        Plan(1, 100_000, 42, 3.0, 8.0, "1 s", 60, DISK),
    ),
    "takeover": (
        Plan(1, 3_000, 2, 3.0, 0.5, "500 ms", 30, TAKEOVER),
        Plan(1, 100_000, 15, 10.0, 2.0, "1 s", 60, TAKEOVER),
    ),
    "failover": (
        Plan(1, 3_000, 1, 3.0, 1.0, "500 ms", 30, FAILOVER),
        Plan(1, 100_000, 6, 30.0, 8.0, "1 s", 60, FAILOVER),
    ),
}
"""By name: the short one and the long one."""


def drawn(plan: Plan, links: list[str], random: Random) -> list[Fault]:
    """The plan in full: the same for the same seed."""
    kinds = [plan.kinds[i % len(plan.kinds)] for i in range(plan.faults)]
    random.shuffle(kinds)
    return [_fault(kind, plan, links, random) for kind in kinds]


def _fault(kind: str, plan: Plan, links: list[str], random: Random) -> Fault:
    if kind in _OF_NOBODY:
        target = DATABASE
    elif kind in _OF_BROKERS or kind.startswith("clock"):
        target = f"b{random.randint(1, BROKERS)}"
    elif kind.startswith("client"):
        target = random.choice([*(f"c{number}" for number in range(1, CLIENTS + 1)), *LISTENING])
    else:
        target = random.choice(links)
    least = plan.lasts_s_min / plan.lasts_s or 0.1
    return Fault(kind, target, random.uniform(least, 1) * plan.lasts_s, random.random())
