"""Whether a predicate selects a stored message, decided in parts: for replays.

A predicate of 256 KiB may have millions of constraints in its normal form, so one message may take
seconds. The generator yields what it has spent, in evaluations of a constraint (0.5 to 1 µs), and the
replay resumes it when it has units again.
"""

from __future__ import annotations

from typing import Final

from palio.model.expression_costs import cost_of
from palio.model.expressions.names import is_computed, value_of
from palio.model.message import Message
from palio.model.predicate import Op, Predicate
from palio.protocol.durability.subscriptions import Matching, Verdict

PART_UNITS: Final = 1000
"""What is spent before the generator yields."""
_BYTES_PARSED_PER_UNIT: Final = 16
_BYTES_SEARCHED_PER_UNIT: Final = 2048
_SEARCHES: Final = frozenset({Op.CONTAINS, Op.NOT_CONTAINS})


def matching(predicate: Predicate) -> Matching:
    """A function that decides which attributes (JSON) a predicate selects."""

    def decide(text: bytes) -> Verdict:
        values = dict(Message.from_json(text))
        spent = len(text) // _BYTES_PARSED_PER_UNIT
        search = 1 + len(text) // _BYTES_SEARCHED_PER_UNIT
        is_selected = False
        for one in predicate.filters:
            for constraint in one.constraints:
                if is_computed(constraint.name):
                    spent += cost_of(constraint.name).of(1, len(text))
                else:
                    spent += search if constraint.op in _SEARCHES else 1
                if spent >= PART_UNITS:
                    yield spent
                    spent = 0
                if not constraint.matches(value_of(constraint.name, values)):
                    break
            else:
                is_selected = True
                break
        yield spent
        return is_selected

    return decide
