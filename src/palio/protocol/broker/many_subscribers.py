"""Delivery of one message to very many subscriptions: their credit is taken by arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

MANY = 64
"""Subscriptions; fewer are faster one by one."""


def take_credit(
    destinations: Any, links: list[int], credits: Any, slots: Any
) -> tuple[dict[int, list[int]], Any]:
    """Take the credit of the subscribers behind these slots, where each is the only one of its
    interface and has some. Returns their ids by link, and the other slots."""
    rows = destinations[slots]
    has_credit = rows[:, 0] >= 0
    has_credit[has_credit] = credits[rows[has_credit, 2]] > 0
    chosen = rows[has_credit]
    credits[chosen[:, 2]] -= 1
    chosen = chosen[np.argsort(chosen[:, 0], kind="stable")]
    ids: dict[int, list[int]] = {}
    places, begins = np.unique(chosen[:, 0], return_index=True)
    for place, part in zip(places.tolist(), np.split(chosen[:, 1], begins[1:]), strict=False):
        ids[links[place]] = part.tolist()
    return ids, slots[~has_credit]
