"""Patterns: compound subscriptions over several messages.

parse ──▶ Pattern ──▶ Monitor ──feed──▶ Compound, Compound, ...
             └──plan──▶ PatternPlan: what is delegated to which neighbour, and what is matched here
"""

from palio.routing.patterns.language import parse
from palio.routing.patterns.monitor import Assembler, Monitor, Sieve, matcher
from palio.routing.patterns.packets import Assembled, Compound, Sieved, Task, Unwatch, Watch
from palio.routing.patterns.pattern import And, Or, Part, Pattern, Then, With, Within
from palio.routing.patterns.planning import Delegation, PatternPlan, plan

__all__ = [
    "And",
    "Assembled",
    "Assembler",
    "Compound",
    "Delegation",
    "Monitor",
    "Or",
    "Part",
    "Pattern",
    "PatternPlan",
    "Sieve",
    "Sieved",
    "Task",
    "Then",
    "Unwatch",
    "Watch",
    "With",
    "Within",
    "matcher",
    "parse",
    "plan",
]
