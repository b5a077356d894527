"""How likely a message satisfies a constraint: what chooses pivots and orders what is verified.

Without a sample of messages it is guessed from the predicates, as if people asked for what comes:

    presence       names that are asked for often are there often
    =, in          an operand that is asked for often comes often
    < <= > >=      by the place of the operand among all those of its name; people ask for the
                   tails, so a ray that looks as if it always held is taken for a half
    strings        as =, and twice as likely, since they select more

Shares of few constraints say little, so all are drawn to a constant. `sample` counts instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from palio.matching.encode import codes
from palio.matching.encode.columns import ConstraintColumns, Ints, Sets

_ATTRIBUTES = 10  # that a message has, where only the order of guesses matters
_PRESENCE = 0.75  # exponent: between "there as often as asked for" (1) and "always there" (0)
_DRAWN = 10  # constraints that a constant counts for beside the counted ones
_EQUAL, _BOOL = 0.05, 0.4
_PIECES = {codes.PREFIX: 0.02, codes.SUFFIX: 0.02, codes.CONTAINS: 0.04}
_WEAK = {codes.NE: 0.95, codes.NOT_PREFIX: 0.97, codes.NOT_SUFFIX: 0.97, codes.NOT_CONTAINS: 0.95}


@dataclass(frozen=True, slots=True)
class Constraints:
    """Constraints as flat arrays, whatever they come from; the name -1 stands for TRUE."""

    name: Ints
    op: Ints
    domain: Ints
    key: Ints
    sets: Sets
    names: int  # how many names there are

    @classmethod
    def of(cls, columns: ConstraintColumns) -> Constraints:
        c = columns
        return cls(c.name, c.op, c.domain, c.key, c.sets, len(c.names))

    def filed(self) -> Constraints:
        """The constraints under which filters lie: the weak ones under the presence of a name."""
        weak = np.isin(self.op, codes.KEPT_INLINE)
        number = weak & ((self.domain == codes.INT) | (self.domain == codes.FLOAT))
        op = np.where(weak, codes.ANY, self.op)
        plain = (op == codes.ANY) | (op == codes.ABSENT)
        return replace(
            self,
            op=op,
            domain=np.where(number, codes.NUMBER, self.domain),
            key=np.where(plain, 0, self.key),
        )


def guess(constraints: Constraints) -> Ints:
    """For each constraint, a guess of how likely a message satisfies it."""
    c = constraints
    known = np.flatnonzero(c.name >= 0)
    if len(known) < len(c.name):
        result = np.ones(len(c.name))
        result[known] = guess(
            Constraints(c.name[known], c.op[known], c.domain[known], c.key[known], c.sets, c.names)
        )
        return result
    share = np.bincount(c.name, minlength=c.names) / max(1, len(c.name))
    present = (np.minimum(1.0, share * _ATTRIBUTES) ** _PRESENCE)[c.name]
    selectivity = np.ones(len(c.op))
    for op, constant in _WEAK.items():
        selectivity[c.op == op] = constant
    place = c.name.astype(np.int64) * 8 + c.domain
    _judge_equal(c, place, selectivity)
    _judge_rays(c, place, selectivity)
    for op, constant in _PIECES.items():
        rows = np.flatnonzero(c.op == op)
        shared, size, _ = _counted(place[rows], c.key[rows])
        selectivity[rows] = 2 * (shared - 1 + _DRAWN * constant) / (size - 1 + _DRAWN)
    result = present * np.clip(selectivity, 1e-9, 1.0)
    absent = c.op == codes.ABSENT
    result[absent] = 1.0 - 0.5 * present[absent]
    return np.asarray(result)


def _judge_equal(c: Constraints, place: Ints, selectivity: Ints) -> None:
    """= by the share of its operand, a set by the sum over its members."""
    equal, sets = np.flatnonzero(c.op == codes.EQ), np.flatnonzero(c.op == codes.IN)
    low, high = c.sets.start[c.key[sets]], c.sets.start[c.key[sets] + 1]
    members = high - low
    ends = np.cumsum(members)
    at = np.repeat(low - ends + members, members) + np.arange(members.sum())
    split = np.repeat(c.sets.split[c.key[sets]], members)
    fraction = np.where(at < split, 0, codes.FLOAT - codes.INT)
    places = np.concatenate([place[equal], np.repeat(place[sets], members) + fraction])
    shared, size, _ = _counted(places, np.concatenate([c.key[equal], c.sets.keys[at]]))
    chance = (shared - 1 + _DRAWN * _EQUAL) / (size - 1 + _DRAWN)
    chance[places % 8 == codes.BOOL] = _BOOL
    selectivity[equal] = chance[: len(equal)]
    sums = np.concatenate([[0.0], np.cumsum(chance[len(equal) :])])
    selectivity[sets] = np.minimum(0.9, sums[ends] - sums[ends - members])


def _judge_rays(c: Constraints, place: Ints, selectivity: Ints) -> None:
    """< and > by the place of their operand among the ordered ones of the name."""
    rows = np.flatnonzero((c.op <= codes.GE) & (c.op != codes.NE))
    shared, size, below = _counted(place[rows], c.key[rows])
    rank = (below + shared / 2) / np.maximum(1, size)
    op = c.op[rows]
    chance = np.where((op == codes.LT) | (op == codes.LE), rank, 1.0 - rank)
    rays = op != codes.EQ
    selectivity[rows[rays]] = (chance * (1.0 - chance / 2))[rays]


def _counted(place: Ints, key: Ints) -> tuple[Ints, Ints, Ints]:
    """For each row, how many have its place and key, how many its place, how many of those have a
    smaller key."""
    shared, size, below = (np.zeros(len(place), np.int64) for _ in range(3))
    if not len(place):
        return shared, size, below
    order = np.lexsort((key, place))
    group, keys = place[order], key[order]
    new_group = np.concatenate([[True], group[1:] != group[:-1]])
    new_key = new_group.copy()
    new_key[1:] |= keys[1:] != keys[:-1]
    groups, runs = np.flatnonzero(new_group), np.flatnonzero(new_key)
    group_size = np.diff(np.append(groups, len(group)))
    run_size = np.diff(np.append(runs, len(group)))
    shared[order] = np.repeat(run_size, run_size)
    size[order] = np.repeat(group_size, group_size)
    below[order] = np.repeat(runs, run_size) - np.repeat(groups, group_size)
    return shared, size, below
