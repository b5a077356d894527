"""Kernels of the study of schemes: shortest-paths trees of all sources, and what they make nodes store.

Links are in both directions, by node: those of u are at first[u] : first[u + 1], with `end` and
`length`; a link's position is its number. One that is infinitely long is not there. Interests are
sets of topics, a row of words a node. The set of nodes below a node is told by the sum of random
numbers, `tags`, of its members: equal sets have equal sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching import bits
from palio.matching.jit import allocating

population: Any = bits.population


@allocating
def tree_of(source: Any, first: Any, end: Any, length: Any, distance: Any, through: Any, order: Any) -> Any:
    """Dijkstra. `through` is the link by which a node is reached (-1: none), `order` the nodes from
    near to far. How many are reached."""
    keys, heap = np.empty(len(end) + 1), np.empty(len(end) + 1, np.int64)
    distance[:] = np.inf
    through[:] = -1
    distance[source] = 0.0
    keys[0], heap[0], size, done = 0.0, source, 1, 0
    while size:
        key, u = keys[0], heap[0]
        size -= 1
        last_key, last, at = keys[size], heap[size], 0
        while True:
            child = 2 * at + 1
            if child >= size:
                break
            if child + 1 < size and keys[child + 1] < keys[child]:
                child += 1
            if keys[child] >= last_key:
                break
            keys[at], heap[at] = keys[child], heap[child]
            at = child
        keys[at], heap[at] = last_key, last
        if key > distance[u]:
            continue
        order[done] = u
        done += 1
        for link in range(first[u], first[u + 1]):
            w, there = end[link], key + length[link]
            if there < distance[w]:
                distance[w], through[w] = there, link
                at = size
                size += 1
                while at and keys[(at - 1) // 2] > there:
                    keys[at], heap[at] = keys[(at - 1) // 2], heap[(at - 1) // 2]
                    at = (at - 1) // 2
                keys[at], heap[at] = there, w
    return done


@allocating
def below(order: Any, done: Any, through: Any, begin: Any, interests: Any, tags: Any, topics: Any,
          sums: Any) -> Any:
    """Topics and sum of every node and all below it."""
    for u in range(len(sums)):  # as a slice, numba would compile its error in text for seconds
        sums[u] = tags[u]
        for word in range(topics.shape[1]):
            topics[u, word] = interests[u, word]
    for i in range(done - 1, 0, -1):
        x = order[i]
        u = begin[through[x]]
        sums[u] += sums[x]
        for word in range(topics.shape[1]):
            topics[u, word] |= topics[x, word]


@allocating
def size_of(topics: Any) -> Any:
    found = 0
    for word in range(len(topics)):
        found += population(topics[word])
    return found


@allocating
def mixed(a: Any, b: Any) -> Any:
    """A hash of two numbers."""
    x = (np.uint64(a) * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(b)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@allocating
def is_new(seen: Any, key: Any) -> Any:
    """Note a key in a table of bits; was it not there? Two keys in a hundred may share a bit."""
    place = np.uint64(key) & np.uint64(len(seen) * 64 - 1)
    bit = np.uint64(1) << (place & np.uint64(63))
    word = np.int64(place >> np.uint64(6))
    if seen[word] & bit:
        return False
    seen[word] |= bit
    return True


@allocating
def store(first: Any, begin: Any, end: Any, length: Any, interests: Any, tags: Any, seen: Any,
          sampled: Any, psf: Any, ips: Any, ips_sets: Any, children: Any, star: Any, came: Any,
          behind: Any) -> Any:
    """Pass over the trees of all sources.

    psf, ips: constraints of each node. ips_sets: distinct sets, a next hop each, of each node.
    children: child_u(v) summed over v. star: topics of F*_u(w) by link. For the sampled nodes, and each
    source v: `came`, the link by which T_v reaches them, and `behind`, the sum of what is below them.
    """
    nodes = len(first) - 1
    distance, through = np.empty(nodes), np.empty(nodes, np.int64)
    order, topics = np.empty(nodes, np.int64), np.empty_like(interests)
    sums = np.empty_like(tags)
    for v in range(nodes):
        done = tree_of(v, first, end, length, distance, through, order)
        below(order, done, through, begin, interests, tags, topics, sums)
        for i in range(1, done):
            x = order[i]
            link = through[x]
            u = begin[link]
            size = size_of(topics[x])
            children[u] += 1
            psf[u] += size
            if is_new(seen, mixed(sums[x], link)):
                ips[u] += size
                ips_sets[u] += 1
            if u == v:
                star[link] = topics[x]
        for i in range(len(sampled)):
            came[i, v] = through[sampled[i]]
            behind[i, v] = sums[sampled[i]]


@allocating
def recover(first: Any, begin: Any, end: Any, before: Any, after: Any, failed: Any, back: Any,
            interests: Any, tags: Any, seen: Any) -> Any:
    """Constraints that entries gain or lose, in PSF and in iPS, when a link fails, and how many sources
    used it. Sources whose trees do not use the link keep their trees."""
    nodes = len(first) - 1
    distance, order = np.empty(nodes), np.empty(nodes, np.int64)
    old, new = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    old_topics, new_topics = np.empty_like(interests), np.empty_like(interests)
    old_sums, new_sums = np.empty_like(tags), np.empty_like(tags)
    psf = ips = used = 0
    for v in range(nodes):
        done = tree_of(v, first, end, before, distance, old, order)
        if old[end[failed]] != failed and old[end[back]] != back:
            continue
        used += 1
        below(order, done, old, begin, interests, tags, old_topics, old_sums)
        done = tree_of(v, first, end, after, distance, new, order)
        below(order, done, new, begin, interests, tags, new_topics, new_sums)
        for x in range(nodes):
            if x == v or (old[x] == new[x] and old_sums[x] == new_sums[x]):
                continue
            changed = 0
            for word in range(interests.shape[1]):
                if old[x] == new[x]:
                    changed += population(old_topics[x, word] ^ new_topics[x, word])
                else:
                    changed += population(old_topics[x, word]) + population(new_topics[x, word])
            psf += changed
            if is_new(seen, mixed(mixed(old_sums[x], old[x]), mixed(new_sums[x], new[x]))):
                ips += changed
    return psf, ips, used


@allocating
def stars(first: Any, begin: Any, end: Any, length: Any, interests: Any, tags: Any, star: Any) -> Any:
    """F*_u(w) by link: since shortest paths fit each other, what is behind w in T_u."""
    nodes = len(first) - 1
    distance, through = np.empty(nodes), np.empty(nodes, np.int64)
    order, topics = np.empty(nodes, np.int64), np.empty_like(interests)
    sums = np.empty_like(tags)
    star[:] = np.uint64(0)
    for u in range(nodes):
        done = tree_of(u, first, end, length, distance, through, order)
        below(order, done, through, begin, interests, tags, topics, sums)
        for link in range(first[u], first[u + 1]):
            if through[end[link]] == link:
                star[link] = topics[end[link]]


@allocating
def send(source: Any, topic: Any, first: Any, begin: Any, end: Any, length: Any, interests: Any,
         tags: Any, star: Any, distance: Any) -> Any:
    """Packets of a message by the tree of its source where somebody below wants it (PSF, iPS, DRP), by
    F* (PIF, subscription forwarding), and how many want it. `distance` is from the source."""
    nodes = len(first) - 1
    through, order = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    topics, sums = np.empty_like(interests), np.empty_like(tags)
    reached = np.zeros(nodes, np.bool_)
    done = tree_of(source, first, end, length, distance, through, order)
    below(order, done, through, begin, interests, tags, topics, sums)
    word, bit = topic // 64, np.uint64(1) << np.uint64(topic % 64)
    reached[source] = True
    exact = loose = wanted = 0
    for i in range(1, done):
        x = order[i]
        exact += (topics[x, word] & bit) != 0
        wanted += (interests[x, word] & bit) != 0
        if reached[begin[through[x]]] and star[through[x], word] & bit:
            reached[x] = True
            loose += 1
    return exact, loose, wanted
