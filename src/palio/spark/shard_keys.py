"""Which shards a filter lies in, and which shards a message has to visit.

    filter   dest = 'MXP' AND price < 500     options  [[h(dest, MXP)]]        one for each = or in
             the rarest option                keys     [h(dest, MXP)]
    message  {dest: MXP, day: 3}              keys     h(dest, MXP)  h(day, 3)

    key      64 bits: the hash of name, domain and value; equal numbers have equal keys
    bits     0 1 1 0 1 ...   a bit for each key that a filter lies under, and rarely for another
    spread   0 1 3 0 1 ...   bucket of keys -> over how many shards its filters lie
    shards   first(key), first(key) + 1, ... as many as its spread

A filter lies under each key of one option, in one shard each; a message visits all shards of its
keys, so they meet. A hot key is one with many filters: they lie in several shards (the salt is the
filter's number). Filters without an option, the rest, lie where every message comes by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from palio.matching.encode import codes
from palio.matching.encode.arrays import EncodedMessages
from palio.matching.encode.columns import ConstraintColumns, Ints
from palio.matching.encode.json_word_kernels import fill_hashes

MEMBERS_MAX = 16  # of a set that is an option: its filter lies under each of them
COUNTED = 1 << 20  # buckets that keys are counted in to find the rarest
_PIECES = 8  # a key is hot when its filters are more than this part of a shard
_ROOM = 8  # buckets for a key, at least
_BUCKETS_MIN, _BUCKETS_MAX = 1 << 10, 1 << 27
_ALL = 255  # spread over all shards


# ---- keys


def filter_options(columns: ConstraintColumns) -> pa.ListArray:
    """For each filter its options, list<list<int64>>; none of them is empty."""
    c = columns
    names, texts = _hashes([name.encode() for name in c.names]), _hashes(c.strings)
    size = np.ones(len(c.op), np.int64)
    sets = np.flatnonzero(c.op == codes.IN)
    size[sets] = c.sets.start[c.key[sets] + 1] - c.sets.start[c.key[sets]]
    usable = (c.op == codes.EQ) | ((c.op == codes.IN) & (size > 0) & (size <= MEMBERS_MAX))
    rows = np.flatnonzero(usable)
    size = size[rows]
    row = np.repeat(rows, size)
    step = np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)
    key, domain = c.key[row].copy(), c.domain[row].astype(np.int64)
    member = np.flatnonzero(c.op[row] == codes.IN)
    at = c.sets.start[key[member]] + step[member]
    fraction = at >= c.sets.split[key[member]]
    domain[member[fraction]] = codes.FLOAT
    key[member] = c.sets.keys[at]
    text = domain == codes.STRING
    key[text] = texts[key[text]].view(np.int64)
    made = _mixed(names[c.name[row]], domain, key)
    inner = _lists(size, pa.array(made))
    return _lists(np.bincount(c.filter[rows], minlength=c.filters), inner)


def message_keys(batch: EncodedMessages, names: Ints) -> Ints:
    """The key of each attribute of a batch; `names` are the hashes of the batch's names."""
    domain, key = batch.type.astype(np.int64), batch.floor.copy()
    number = (domain == codes.INT) | (domain == codes.FLOAT)
    integral = batch.place == codes.EXACT
    domain[number] = np.where(integral[number], codes.INT, codes.FLOAT)
    fraction = number & ~integral
    key[fraction] = batch.float_floor[fraction]
    text = domain == codes.STRING
    key[text] = text_hashes(batch.text_blob, batch.text_begin)[batch.text[text]].view(np.int64)
    return _mixed(names[batch.name], domain, key)


def name_hashes(names: Sequence[str]) -> Ints:
    return _hashes([name.encode() for name in names])


def _hashes(texts: list[bytes]) -> Ints:
    begin = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=begin[1:])
    return text_hashes(np.frombuffer(b"".join(texts) or b"\0", np.uint8), begin)


def text_hashes(blob: Ints, begin: Ints) -> Ints:
    hashes = np.zeros(len(begin) - 1, np.uint64)
    blob = blob.view()
    blob.setflags(write=False)  # one type, one compiled kernel
    fill_hashes(blob, begin, hashes)
    return hashes


def _mixed(name: Ints, domain: Ints, key: Ints) -> Ints:
    place = _scrambled(name + domain.astype(np.uint64))
    return np.asarray(_scrambled(place ^ key.view(np.uint64)).view(np.int64))


def _scrambled(h: Ints) -> Ints:
    """A bijection of 64 bits in which each bit depends on all (the finaliser of MurmurHash3)."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        h = (h ^ (h >> np.uint64(33))) * np.uint64(factor)
    return np.asarray(h ^ (h >> np.uint64(33)))


# ---- choosing


def counted(keys: Ints, count: Ints | None = None) -> Ints:
    """How often the keys of each of COUNTED buckets occur."""
    found = np.bincount(keys & (COUNTED - 1), count, minlength=COUNTED)
    return found.astype(np.int64)


def rarest(options: pa.ListArray, counts: Ints) -> pa.ListArray:
    """The keys of each filter: its option that occurs least often, NULL when it has none."""
    filter = np.repeat(np.arange(len(options)), options.value_lengths().to_numpy())
    each = options.flatten()
    size = each.value_lengths().to_numpy()
    keys = each.flatten().to_numpy()
    best = np.full(len(options), -1)
    if len(size):
        cost = np.add.reduceat(counts[keys & (len(counts) - 1)], np.cumsum(size) - size)
        order = np.lexsort((cost, filter))[::-1]  # so that the cheapest of a filter is written last
        best[filter[order]] = order
    return each.take(pa.array(best, mask=best < 0))


# ---- the directory


@dataclass(frozen=True, slots=True)
class Directory:
    """Where keys lie; see the head of the module."""

    spread: Ints  # uint8, a power of two of them
    bits: Ints  # uint8, eight keys each
    shards: int  # that have keys
    everywhere: int  # shards behind those, which every message visits

    @classmethod
    def of(cls, keys: Ints, counts: Ints, filters: int, shards: int, everywhere: int) -> Directory:
        """From the distinct keys and how many filters lie under each."""
        wanted = max(_BUCKETS_MIN, min(_BUCKETS_MAX, _ROOM * len(keys)))
        size = 1 << (wanted - 1).bit_length()
        total = np.bincount(keys & (size - 1), counts, minlength=size)
        piece = max(1, filters // (shards * _PIECES))
        spread = np.minimum(-(-total // piece), shards)
        spread[spread >= _ALL] = _ALL
        marks = np.zeros(size, np.uint8)
        marks[_second(keys, size)] = 1
        return cls(spread.astype(np.uint8), np.packbits(marks), shards, everywhere)

    def save(self, path: Path) -> None:
        head = np.array([self.shards, self.everywhere], np.int64).view(np.uint8)
        with path.open("wb") as file:
            np.save(file, np.concatenate([head, self.spread, self.bits]))

    @classmethod
    def load(cls, path: Path) -> Directory:
        """Mapped into memory: the workers of a machine share it."""
        whole = np.load(path, mmap_mode="r")
        shards, everywhere = whole[:16].view(np.int64).tolist()
        size = (len(whole) - 16) // 9 * 8
        return cls(whole[16 : 16 + size], whole[16 + size :], shards, everywhere)

    @property
    def all_shards(self) -> int:
        return self.shards + self.everywhere

    def of_filters(self, keys: pa.ListArray, number: Ints) -> pa.ListArray:
        """The shards in which filters lie, of their keys and numbers; NULL keys: the rest, in the
        shard -1 where it is one for all messages."""
        filter = np.repeat(np.arange(len(keys)), keys.value_lengths().fill_null(0).to_numpy())
        flat = keys.flatten().to_numpy()
        salt = number[filter] % np.maximum(1, self._spread(flat))
        shard = (self._first_shard(flat) + salt) % self.shards
        rest = np.flatnonzero(keys.is_null().to_numpy(zero_copy_only=False))
        where = self.shards + number[rest] % self.everywhere if self.everywhere else rest * 0 - 1
        return self._distinct(
            np.concatenate([filter, rest]), np.concatenate([shard, where]), len(keys)
        )

    def of_messages(self, row_at: Ints, keys: Ints) -> pa.ListArray:
        """The shards that messages visit, of where their attributes begin and of their keys."""
        rows = len(row_at) - 1
        at = np.flatnonzero(self._are_known(keys))
        row = np.searchsorted(row_at, at, side="right") - 1
        keys = keys[at]
        spread = self._spread(keys)
        step = np.arange(spread.sum()) - np.repeat(np.cumsum(spread) - spread, spread)
        shard = (np.repeat(self._first_shard(keys), spread) + step) % self.shards
        every = np.tile(np.arange(self.shards, self.all_shards), rows)
        return self._distinct(
            np.concatenate([np.repeat(row, spread), np.repeat(np.arange(rows), self.everywhere)]),
            np.concatenate([shard, every]),
            rows,
        )

    def _are_known(self, keys: Ints) -> Ints:
        second = _second(keys, len(self.spread))
        marked = (self.bits[second >> 3] >> (7 - (second & 7)).astype(np.uint8)) & 1
        return np.asarray((marked != 0) & (self.spread[keys & (len(self.spread) - 1)] != 0))

    def _spread(self, keys: Ints) -> Ints:
        spread = self.spread[keys & (len(self.spread) - 1)].astype(np.int64)
        return np.where(spread == _ALL, self.shards, spread)

    def _first_shard(self, keys: Ints) -> Ints:
        return (keys.view(np.uint64) >> np.uint64(36)).astype(np.int64) % self.shards

    def _distinct(self, row: Ints, shard: Ints, rows: int) -> pa.ListArray:
        """The shards of each row, each once."""
        pairs = np.unique(row * (self.all_shards + 1) + shard + 1)  # a shard may be -1
        row, shard = np.divmod(pairs, self.all_shards + 1)
        return _lists(np.bincount(row, minlength=rows), pa.array((shard - 1).astype(np.int32)))


def _second(keys: Ints, size: int) -> Ints:
    """Another bucket of a key, of other bits; there are at most 2^27."""
    return (keys.view(np.uint64) >> np.uint64(17)).astype(np.int64) & (size - 1)


def _lists(sizes: Ints, values: Any) -> pa.ListArray:
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), values)
