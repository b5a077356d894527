"""What a pivot table holds and what a message costs: sizes, pivots, and expected touches.

Everything comes out of the compiled arrays, so a mapped table tells as much as a fresh one. How
often a key is hit is counted on a sample of messages where there is one, and guessed from the
predicates otherwise (`likelihood`). The checks assume that the constraints of a filter hold
independently of each other. `statistics` says what the figures mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from palio.matching.encode import codes
from palio.matching.encode.columns import Ints, Sets
from palio.matching.pivot.arrays import HotKeys, Pivots, PivotTable
from palio.matching.pivot.hot_keys import grouped
from palio.matching.pivot.likelihood import Constraints, guess
from palio.matching.pivot.sample import Sample
from palio.matching.statistics import ALWAYS, NameCost, PivotStats, Reduction, Stats

_COSTLY = 10  # names that are shown
_OPS = {code: op.value for op, code in codes.OP.items()}
_PARTS = {
    "keys": ("directory_at", "kind", "domain", "keys_at", "keys", "missing", "missing_name"),
    "alone": ("alone_at", "alone"),
    "candidates": ("entries_at", "entries"),
    "further constraints": ("rest",),
    "sets": ("set_at", "set_split", "set_keys"),
}


def measure(
    table: PivotTable,
    walked: Pivots,
    hot_keys: HotKeys,
    sample: Sample | None,
    matches: float | None,
    reduction: Reduction | None = None,
) -> Stats:
    """The statistics of a table: costs are counted on the sample, or guessed.

    `walked` are the pivots without what masks decide, and `matches` the interfaces that a sampled
    message reaches, where there is a sample.
    """
    pivots = table.pivots
    name, kind = _directories(pivots)
    of_key = np.repeat(np.arange(len(kind)), np.diff(pivots.keys_at))
    alone, entries = np.diff(pivots.alone_at), np.diff(pivots.entries_at)
    stored = _stored(pivots, name[of_key], kind[of_key], pivots.domain[of_key], len(table.names))
    hit, inline = _chances(stored, alone + entries, sample)
    reached = _reached(pivots, hot_keys, inline)
    candidates = hit * _sums(reached, pivots.entries_at)
    checks = hit * _sums(reached * _judged(pivots, inline, reached), pivots.entries_at)
    found = _pivots(table.names, name, kind, of_key, (alone, entries, hit, candidates, checks))
    bytes_by_part = _bytes(table)
    weak = _filed_under_presence(pivots, name[of_key], kind[of_key])
    bare = int((alone + entries)[name[of_key] < 0].sum())
    return Stats(
        interfaces=table.interfaces,
        filters=int(alone.sum() + entries.sum()),
        alone=int(alone.sum()),
        constraints=len(pivots.alone) + 2 * len(pivots.entries) + len(pivots.rest) - weak - bare,
        names=len(table.names),
        strings=len(table.strings.begin) - 1,
        bytes=sum(bytes_by_part.values()),
        bytes_by_part=bytes_by_part,
        sampled=sample.messages if sample is not None else 0,
        under_keys=float((hit * entries).sum()),
        candidates=float(candidates.sum()),
        taken=float((hit * alone).sum()),
        checks=float(checks.sum()),
        matches=matches,
        pivots=found,
        costly=_costly(found),
        hot_keys=len(hot_keys.key),
        grouped=grouped(walked, hot_keys),
        reduction=reduction,
    )


def _directories(pivots: Pivots) -> tuple[Ints, Ints]:
    """The name, -1 for TRUE, and the kind of each directory."""
    name = np.searchsorted(pivots.directory_at, np.arange(len(pivots.kind)), side="right") - 1
    name[pivots.always] = -1
    return name, pivots.kind


@dataclass(frozen=True, slots=True)
class _Stored:
    """Constraints out of pivots: the keys, and what is verified (entries, then rest)."""

    keys: Constraints
    inline: Constraints


def _stored(pivots: Pivots, name: Ints, kind: Ints, domain: Ints, names: int) -> _Stored:
    sets = Sets(pivots.set_at, pivots.set_split, pivots.set_keys)
    packed = np.concatenate([pivots.entries[:, 2:], pivots.rest])
    head = packed[:, 0].astype(np.int64)
    key = packed[:, 2].astype(np.int64) << 32 | (packed[:, 1].astype(np.int64) & 0xFFFFFFFF)
    inline = Constraints(
        head >> codes.NAME_SHIFT,
        (head >> codes.OP_SHIFT) & 15,
        (head >> codes.DOMAIN_SHIFT) & 7,
        key,
        sets,
        names,
    )
    return _Stored(Constraints(name, kind, domain, pivots.keys, sets, names), inline)


def _chances(stored: _Stored, filters: Ints, sample: Sample | None) -> tuple[Ints, Ints]:
    """How likely each key is hit, and each inline constraint holds."""
    keys, inline = stored.keys, stored.inline
    if sample is not None and sample.messages:
        return sample.hits(keys) / sample.messages, sample.hits(inline) / sample.messages
    # A key stands for as many constraints as filters lie under it, and for one at least.
    times = np.maximum(1, filters)
    guessed = guess(
        Constraints(
            np.concatenate([np.repeat(keys.name, times), inline.name]),
            np.concatenate([np.repeat(keys.op, times), inline.op]),
            np.concatenate([np.repeat(keys.domain, times), inline.domain]),
            np.concatenate([np.repeat(keys.key, times), inline.key]),
            keys.sets,
            keys.names,
        )
    )
    first = np.cumsum(times) - times
    return guessed[first], guessed[int(times.sum()) :]


def _sums(values: Ints, at: Ints) -> Ints:
    """The sum of the values of each run."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(total[at[1:]] - total[at[:-1]])


def _reached(pivots: Pivots, hot_keys: HotKeys, inline: Ints) -> Ints:
    """How likely each filter under a key that is hit is a candidate: in a group that has no words, if its
    second constraint holds."""
    found = np.ones(len(pivots.entries))
    if not len(hot_keys.words):
        for key, end in zip(hot_keys.key.tolist(), hot_keys.others.tolist(), strict=True):
            found[pivots.entries_at[key] : end] = inline[pivots.entries_at[key] : end]
    return found


def _judged(pivots: Pivots, inline: Ints, reached: Ints) -> Ints:
    """How many constraints of each candidate are judged: the next only while all before it hold. Of a
    candidate that is only reached where its second constraint holds, that one always does."""
    entries, rest = pivots.entries, pivots.rest
    first, further = inline[: len(entries)], inline[len(entries) :]
    last = (rest[:, 0] & 1) == 1
    begin = np.concatenate([[0], np.flatnonzero(last) + 1])[:-1]  # of the runs of `rest`
    size = np.diff(np.append(begin, len(rest)))
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(further, 1e-12)))])
    all_before = np.exp(logs[:-1] - np.repeat(logs[begin], size))  # in its run hold
    total = np.concatenate([[0.0], np.cumsum(all_before)])
    ends = begin + size
    runs = np.zeros(len(rest) + 1)
    runs[begin] = total[ends] - total[begin]
    more = (entries[:, 2] & 1) == 0
    holds = np.where(reached < 1.0, 1.0, first)
    return 1.0 + np.where(more, holds * runs[np.where(more, entries[:, 1], 0)], 0.0)


def _filed_under_presence(pivots: Pivots, name: Ints, kind: Ints) -> int:
    """How many filters lie under the presence of a name for a weak constraint on it."""
    per_key = np.diff(pivots.entries_at)
    head = pivots.entries[:, 2]
    op = (head >> codes.OP_SHIFT) & 15
    weak = (np.repeat(kind, per_key) == codes.ANY) & np.isin(op, codes.KEPT_INLINE)
    return int((weak & (np.repeat(name, per_key) == head >> codes.NAME_SHIFT)).sum())


def _pivots(
    names: list[str],
    name: Ints,
    kind: Ints,
    of_key: Ints,
    counted: tuple[Ints, Ints, Ints, Ints, Ints],
) -> tuple[PivotStats, ...]:
    """Sums for each name and operator, the costliest first."""
    alone, entries, hit, candidates, checks = counted
    group, which = np.unique(name * 16 + kind, return_inverse=True)
    sums = [
        np.bincount(which[of_key], weights=weights, minlength=len(group))
        for weights in (np.ones(len(hit)), alone + entries, candidates, hit * alone, checks)
    ]
    found = [
        PivotStats(
            names[code >> 4] if code >= 0 else ALWAYS,
            _OPS[code & 15] if code >= 0 else "",
            int(keys),
            int(filters),
            *(float(x) for x in costs),
        )
        for code, keys, filters, *costs in zip(group.tolist(), *sums, strict=True)
    ]
    return tuple(sorted(found, key=lambda p: (-p.checks, -p.filters, p.name, p.op)))


def _costly(pivots: Sequence[PivotStats]) -> tuple[NameCost, ...]:
    """The names whose filters cost most."""
    candidates: dict[str, float] = {}
    checks: dict[str, float] = {}
    for p in pivots:
        candidates[p.name] = candidates.get(p.name, 0.0) + p.candidates
        checks[p.name] = checks.get(p.name, 0.0) + p.checks
    whole = sum(checks.values()) or 1.0
    names = sorted((n for n in checks if checks[n] > 0), key=lambda n: (-checks[n], n))
    return tuple(NameCost(n, candidates[n], checks[n], checks[n] / whole) for n in names[:_COSTLY])


def _bytes(table: PivotTable) -> dict[str, int]:
    found = {
        part: sum(getattr(table.pivots, field).nbytes for field in fields)
        for part, fields in _PARTS.items()
    }
    found["strings"] = sum(array.nbytes for array in table.strings)
    whole = sum(array.nbytes for array in (*table.pivots, *table.strings))
    found["others"] = whole - sum(found.values())
    return found
