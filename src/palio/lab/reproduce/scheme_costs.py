"""What routing costs on one large network, for each way of routing: memory, packets, stretch, and table
entries that a failure changes.

    PSF, iPS, PIF, DRP   the schemes of 2006
    forwarding           subscription forwarding on the trees of all origins (2000, 3.5: NST)
    one tree             subscription forwarding on one spanning tree for all, of shortest paths from
                         the best-connected node

An interest is a set of topics, so that a disjunction is a union and its size is the number of topics.
Bits are counted as in `routing.schemes.memory`: CONSTRAINT bits a constraint, log n an identifier.

    PSF         a union for each source and next hop
    iPS         each distinct union of a next hop once, an identifier for it, and one for each source
                (I_u; where headers are rewritten there are fewer)
    PIF         a union for each next hop, and child_u(v)
    DRP         the interests of all, and unicast_u
    forwarding  each topic once, an identifier for each neighbour and class of origins that said it, and
                child_u(v). Covering between classes is not taken into account: a bound from above
    one tree    each topic once, and an identifier for each neighbour behind which somebody wants it

After a failure the constraints are counted that entries of all nodes gain or lose. These are changes of
tables, not messages: nodes that know the topology get the news of the failure, two packets a link, and
compute their entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from palio.lab.reproduce import study_kernels
from palio.routing.topology import Topology

CONSTRAINT = 8 * len("topic") + 4 + 3 + 64  # name, operator, type, number: bits
WAYS = ("PSF", "iPS", "PIF", "DRP", "forwarding", "one tree")
_SAMPLED = 100  # nodes whose classes of origins are counted

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NetworkArrays:
    """A network as arrays, drawn in `study_kernels`; `back` is the same link in the other direction."""

    first: Ints
    begin: Ints
    end: Ints
    length: npt.NDArray[np.float64]
    back: Ints

    @classmethod
    def of(cls, net: Topology) -> NetworkArrays:
        number = {node: i for i, node in enumerate(net.nodes)}
        pairs = np.array([(number[u], number[v]) for u, v, _ in net.edges])
        weights = np.array([w for _, _, w in net.edges])
        begin = np.concatenate((pairs[:, 0], pairs[:, 1]))
        end = np.concatenate((pairs[:, 1], pairs[:, 0]))
        order = np.lexsort((end, begin))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        half = len(pairs)
        back = np.empty(len(order), np.int64)
        back[place[:half]], back[place[half:]] = place[half:], place[:half]
        first = np.searchsorted(begin[order], np.arange(len(net) + 1))
        length = np.concatenate((weights, weights))[order]
        return cls(first.astype(np.int64), begin[order], end[order], length, back)

    def __len__(self) -> int:
        return len(self.first) - 1

    def without(self, link: int) -> npt.NDArray[np.float64]:
        """The lengths after a failure."""
        left = self.length.copy()
        left[link] = left[self.back[link]] = np.inf
        return left

    def is_bridge(self, link: int) -> bool:
        distance, through, order = _buffers(len(self))
        reached = study_kernels.tree_of(
            int(self.begin[link]),
            self.first,
            self.end,
            self.without(link),
            distance,
            through,
            order,
        )
        return bool(reached < len(self))


def _buffers(nodes: int) -> tuple[npt.NDArray[np.float64], Ints, Ints]:
    return np.empty(nodes), np.empty(nodes, np.int64), np.empty(nodes, np.int64)


def drawn_interests(nodes: int, topics: int, each: int, rng: np.random.Generator) -> Words:
    """`each` different topics a node by Zipf's law, as bits."""
    weights = 1 / np.arange(1, topics + 1)
    words = np.zeros((nodes, (topics + 63) // 64), np.uint64)
    for node in range(nodes):
        for topic in rng.choice(topics, each, replace=False, p=weights / weights.sum()):
            words[node, topic // 64] |= np.uint64(1) << np.uint64(topic % 64)
    return words


class Study:
    """One network with its interests; the pass over all trees is made at once."""

    def __init__(self, net: Topology, interests: Words, rng: np.random.Generator) -> None:
        self.links, self.interests = NetworkArrays.of(net), interests
        nodes = len(self.links)
        self.tags = rng.integers(1, 2**63, nodes, dtype=np.uint64)
        self.sampled = rng.permutation(nodes)[: min(nodes, _SAMPLED)].astype(np.int64)
        self.psf, self.ips, self.ips_sets, self.children = (
            np.zeros(nodes, np.int64) for _ in range(4)
        )
        self.star = np.zeros((len(self.links.end), interests.shape[1]), np.uint64)
        self._came = np.zeros((len(self.sampled), nodes), np.int64)
        self._behind = np.zeros((len(self.sampled), nodes), np.uint64)
        study_kernels.store(
            self.links.first, self.links.begin, self.links.end, self.links.length, interests,
            self.tags, self._seen(), self.sampled, self.psf, self.ips, self.ips_sets,
            self.children, self.star, self._came, self._behind,
        )  # fmt: skip
        self.tree = SpanningTree(self.links, interests)

    def _seen(self) -> Words:
        """Bits for what is counted once: sixty for each pair of nodes, up to 2^32 in all."""
        pairs = 64 * len(self.links) ** 2
        return np.zeros(max(16, min(2**32, 1 << (pairs - 1).bit_length()) // 64), np.uint64)

    # ---- memory

    def memory(self) -> dict[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
        """Constraints and bits of nodes, by the way of routing; of `forwarding` the sampled nodes."""
        nodes = len(self.links)
        name = float(max(1, (nodes - 1).bit_length()))
        star = _sizes(self.star)
        pif = np.bincount(self.links.begin, star, nodes)
        topics = self._topics_held()
        said = self._said()
        tree = self.tree.said
        drp = np.full(nodes, float(_sizes(self.interests).sum()))
        ids = {
            "PSF": np.ones(nodes),
            "iPS": nodes + self.ips_sets,
            "PIF": self.children,
            "DRP": np.full(nodes, nodes - 1),
            "forwarding": said + self.children[self.sampled],
            "one tree": np.bincount(self.links.begin, _sizes(tree), nodes),
        }
        constraints = {
            "PSF": self.psf,
            "iPS": self.ips,
            "PIF": pif,
            "DRP": drp,
            "forwarding": topics[self.sampled],
            "one tree": topics,
        }
        return {
            way: (
                constraints[way].astype(np.float64),
                constraints[way] * CONSTRAINT + ids[way] * name,
            )
            for way in WAYS
        }

    def _topics_held(self) -> npt.NDArray[np.float64]:
        """How many different topics a node hears of, its own included: in a connected network, all."""
        everything = np.bitwise_or.reduce(self.interests, axis=0)
        return np.full(len(self.links), float(_sizes(everything[None, :])[0]))

    def _said(self) -> npt.NDArray[np.float64]:
        """For each sampled node: topics, for each neighbour and class of origins behind it."""
        found = []
        for came, behind, node in zip(self._came, self._behind, self.sampled, strict=True):
            others = np.flatnonzero(np.arange(len(self.links)) != node)
            keys = np.stack((came[others].astype(np.uint64), behind[others]), axis=1)
            _, classes = np.unique(keys, axis=0, return_inverse=True)
            order = np.argsort(classes.ravel(), kind="stable")
            starts = np.flatnonzero(np.diff(classes.ravel()[order], prepend=-1))
            unions = np.bitwise_or.reduceat(self.interests[others[order]], starts, axis=0)
            found.append(float(_sizes(unions).sum()))
        return np.array(found)

    # ---- messages

    def sent(self, source: int, topic: int) -> dict[str, Any]:
        """Packets of one message by way of routing, its receivers, and the stretch of one tree."""
        distance = np.empty(len(self.links))
        links = self.links
        exact, loose, wanted = study_kernels.send(
            source, topic, links.first, links.begin, links.end, links.length, self.interests,
            self.tags, self.star, distance,
        )  # fmt: skip
        word, bit = topic // 64, np.uint64(1) << np.uint64(topic % 64)
        receivers = np.flatnonzero((self.interests[:, word] & bit) != 0)
        receivers = receivers[receivers != source]
        stretch = self.tree.distances(source)[receivers] / distance[receivers]
        packets = {"PSF": exact, "iPS": exact, "PIF": loose, "DRP": exact, "forwarding": loose}
        return {
            "packets": {**packets, "one tree": self.tree.packets(source, receivers)},
            "receivers": wanted,
            "stretch": stretch,
        }

    # ---- failures

    def failed(self, link: int) -> dict[str, float]:
        """Constraints that entries gain or lose when a link fails that is no bridge."""
        links = self.links
        after = links.without(link)
        psf, ips, _ = study_kernels.recover(
            links.first, links.begin, links.end, links.length, after, link, int(links.back[link]),
            self.interests, self.tags, self._seen(),
        )  # fmt: skip
        star = np.zeros_like(self.star)
        study_kernels.stars(
            links.first, links.begin, links.end, after, self.interests, self.tags, star
        )
        changed = float(_sizes(star ^ self.star).sum())
        tree = self.tree.repaired(link)
        return {
            "PSF": float(psf),
            "iPS": float(ips),
            "PIF": changed,
            "DRP": 0.0,
            "forwarding": changed,
            "one tree": 0.0 if tree is None else float(_sizes(tree.said ^ self.tree.said).sum()),
        }


class SpanningTree:
    """One tree for all; `said` has, by link of the network, the topics wanted behind it."""

    def __init__(
        self, links: NetworkArrays, interests: Words, length: npt.NDArray[np.float64] | None = None
    ) -> None:
        self._links, self._interests = links, interests
        lengths = links.length if length is None else length
        nodes = len(links)
        root = int(np.diff(links.first).argmax())
        distance, through, order = _buffers(nodes)
        study_kernels.tree_of(root, links.first, links.end, lengths, distance, through, order)
        self._link, self._order = through, order
        self.parent = np.where(through >= 0, links.begin[through], -1)
        self._length = np.where(through >= 0, links.length[through], 0.0)
        self.said = self._unions()

    def _unions(self) -> Words:
        """Topics below each node go into the link to it; all other topics into the link back."""
        links, parent = self._links, self.parent
        topics = self._interests.shape[1] * 64
        counts = np.zeros((len(links), topics), np.int32)
        bits = np.unpackbits(self._interests.view(np.uint8), axis=1, bitorder="little")
        counts += bits
        for x in self._order[:0:-1]:
            counts[parent[x]] += counts[x]
        total = counts[self._order[0]]
        said = np.zeros((len(links.end), self._interests.shape[1]), np.uint64)
        for x in self._order[1:]:
            down = int(self._link[x])
            said[down] = _packed(counts[x] > 0)
            said[links.back[down]] = _packed(total - counts[x] > 0)
        return said

    def _path_up(self, node: int) -> list[int]:
        path = [node]
        while self.parent[path[-1]] >= 0:
            path.append(int(self.parent[path[-1]]))
        return path

    def distances(self, source: int) -> npt.NDArray[np.float64]:
        """From one node to all, on the tree: outward from the source."""
        found = np.full(len(self._links), np.inf)
        along = 0.0
        for node in self._path_up(source):
            found[node] = along
            along += self._length[node]
        for x in self._order:
            if not np.isfinite(found[x]):
                found[x] = found[self.parent[x]] + self._length[x]
        return found

    def packets(self, source: int, receivers: Ints) -> int:
        """Links of the smallest part of the tree that has them all: those that lead to some of them, but
        not to all, from either side."""
        marked = np.zeros(len(self._links), np.int64)
        marked[receivers] = 1
        marked[source] = 1
        total = int(marked.sum())
        for x in self._order[:0:-1]:
            marked[self.parent[x]] += marked[x]
        inside = (marked > 0) & (marked < total)
        return int(inside[self._order[1:]].sum())

    def repaired(self, link: int) -> SpanningTree | None:
        """The tree after a failure; None if it did not use the link."""
        used = set(self._link.tolist())
        if link not in used and int(self._links.back[link]) not in used:
            return None
        return SpanningTree(self._links, self._interests, self._links.without(link))


def _sizes(words: Words) -> npt.NDArray[np.int64]:
    """How many bits each row has."""
    return np.asarray(np.bitwise_count(words).sum(axis=1, dtype=np.int64))


def _packed(bits: npt.NDArray[np.bool_]) -> Words:
    return np.packbits(bits, bitorder="little").view(np.uint64)
