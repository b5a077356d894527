"""What a search finds, and how it is made small.

A case is a list of byte strings: texts, frames, the pieces of a stream. `shrink` leaves out items,
then bytes of items, as long as the case still fails, within a budget of tries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


class Finding(AssertionError):
    """A case in which what must hold does not."""

    def __init__(self, what: str, case: Sequence[bytes]) -> None:
        super().__init__(what)
        self.what = what
        self.case = list(case)


Check = Callable[[list[bytes]], object]
"""Raises if the case fails: a Finding, or what must not be raised."""


def failure_of(check: Check, case: list[bytes]) -> BaseException | None:
    """What is wrong with a case."""
    try:
        check(case)
    except Exception as error:
        return error
    return None


def shrink(case: Sequence[bytes], check: Check, tries: int = 5_000) -> list[bytes]:
    """A smaller case that fails too."""
    budget = [tries]

    def fails(smaller: list[bytes]) -> bool:
        budget[0] -= 1
        return budget[0] >= 0 and failure_of(check, smaller) is not None

    found = _reduced(list(case), fails)
    for i in range(len(found)):

        def with_item(item: Sequence[int], i: int = i) -> list[bytes]:
            return [*found[:i], bytes(item), *found[i + 1 :]]

        least = _reduced(list(found[i]), lambda item: fails(with_item(item)))
        found[i] = bytes(least)
    return found


def _reduced(items: list, fails: Callable[[list], bool]) -> list:
    """Items without those that need not be there: halves first, then ever smaller parts."""
    size = max(1, len(items) // 2)
    while items:
        at, is_smaller = 0, False
        while at < len(items):
            smaller = items[:at] + items[at + size :]
            if fails(smaller):
                items, is_smaller = smaller, True
            else:
                at += size
        if size == 1 and not is_smaller:
            break
        size = max(1, size // 2)
    return items
