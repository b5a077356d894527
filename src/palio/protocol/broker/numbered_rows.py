"""Values under ascending numbers, read in pages: the next page begins after the last number of the one before.

    numbers   3  5  6  8  9 ...      sorted; some may be gone
    values    3: a   6: b   8: c     in the same order

Adding a value under a number that is larger than all others, removing one and finding the begin of a page take
little time, however many there are: removed numbers stay in the list until they are the larger part of it.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class NumberedRows(Generic[T]):
    """
    >>> rows = NumberedRows()
    >>> for number, value in enumerate("abc", 1):
    ...     rows.add(number, value)
    >>> rows.remove(2)
    >>> list(rows.after(1))
    [(3, 'c')]
    """

    __slots__ = ("_numbers", "_values")

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._values: dict[int, T] = {}

    def add(self, number: int, value: T) -> None:
        """Add a value under a number that was never used."""
        if self._numbers and number < self._numbers[-1]:
            insort(self._numbers, number)
        else:
            self._numbers.append(number)
        self._values[number] = value

    def remove(self, number: int) -> None:
        """Remove a value; no error if it is not there."""
        self._values.pop(number, None)
        if len(self._numbers) > 2 * len(self._values) + 16:
            self._numbers = [number for number in self._numbers if number in self._values]

    def after(self, number: int) -> Iterator[tuple[int, T]]:
        """Numbers and values after a number. The rows must not change meanwhile."""
        numbers, values = self._numbers, self._values
        for at in range(bisect_right(numbers, number), len(numbers)):
            if numbers[at] in values:
                yield numbers[at], values[numbers[at]]
