"""Caches that are bounded in bytes: a stranger may send large predicates one after another, and none
of them may stay.

    small keys   functools.lru_cache: very many, and fast
    large keys   the last ones, LARGE_BYTES together
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

SMALL_BYTES = 1024
LARGE_BYTES = 16 << 20
"""Of the large keys of one function; its results are about as large."""


def cached(
    count: int, size: Callable[[K], int], large_bytes: int = LARGE_BYTES
) -> Callable[[Callable[[K], V]], Callable[[K], V]]:
    """Cache a function of one argument; `size` is about the bytes of a key."""

    def decorate(function: Callable[[K], V]) -> Callable[[K], V]:
        small, large = lru_cache(count)(function), _LargeCache(function, large_bytes)

        @wraps(function)
        def call(key: K) -> V:
            bytes_ = size(key)
            return small(key) if bytes_ <= SMALL_BYTES else large.get(key, bytes_)

        return call

    return decorate


def text_bytes(text: str) -> int:
    """About the size of what is parsed of a text."""
    return 10 * len(text)


def operand_bytes(value: object) -> int:
    """About the size of a value, or of a set of them."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, tuple | frozenset):
        some = next(iter(value), None)
        return 16 * len(value) + (sum(map(len, value)) if isinstance(some, str) else 0)
    return 8


class _LargeCache(Generic[K, V]):
    def __init__(self, function: Callable[[K], V], bytes_max: int) -> None:
        self._function = function
        self._bytes_max = bytes_max
        self._found: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: K, bytes_: int) -> V:
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key][0]
        value = self._function(key)
        with self._lock:
            if key not in self._found:
                self._found[key] = value, bytes_
                self._bytes += bytes_
            while self._bytes > self._bytes_max:
                _, (_, freed) = self._found.popitem(last=False)
                self._bytes -= freed
        return value
