"""The arrays that the kernels of every engine read: operands and messages, as flat numpy arrays.

`Strings`: the operands that are strings, sorted, and how to find those that a value begins with,
ends with or contains. Every operand's hash is a polynomial modulo 2^64, so that the hash of any
piece of a value is a difference of two running sums.

    rank      0        1        2             blob   a b a b c b c
    begin     0        2        5     7       hash   h(ab) h(abc) h(bc)
    slots     open addressing: hash -> rank + 1; 0 is free
    uses      1 prefix, 2 suffix, 4 contains: which operators have this operand
    lengths   the distinct lengths in bytes of the operands of each operator, ascending

`EncodedMessages`: attributes in rows, one row a message. A value is a floor key and its place
relative to that key, in the domain of its type; numbers have one in INT and one in FLOAT.

    row_at    0           3     5             message 0 has the attributes 0, 1 and 2
    name      n4  n0  n7  n0  n2
    text      -1   0  -1   1  -1              string attributes: their place in `Texts`

An array (ARRAY) has its JSON text among those of the batch, `{}` where it is bytes. Its floor key
and places mean nothing: it is there, which only `any` of EVERY asks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from palio.matching.encode.columns import Ints


class Strings(NamedTuple):
    """Operands that are strings."""

    blob: Ints  # uint8
    begin: Ints  # int64, one more than strings
    hash: Ints  # uint64
    slots: Ints  # int32
    uses: Ints  # uint8
    prefix_lengths: Ints  # int32
    suffix_lengths: Ints
    part_lengths: Ints


class EncodedMessages(NamedTuple):
    """Messages, as rows of attributes whose names the table knows."""

    row_at: Ints  # int64: row -> attributes
    name: Ints  # int32
    type: Ints  # uint8
    floor: Ints  # int64: in the domain of the type; INT for numbers
    place: Ints  # uint8: BETWEEN, EXACT, BELOW
    float_floor: Ints  # int64: in FLOAT, for numbers
    float_place: Ints  # uint8
    text: Ints  # int32: position of a string, or array, among the distinct ones of the batch
    text_blob: Ints  # uint8
    text_begin: Ints  # int64


class Texts(NamedTuple):
    """The distinct strings of a batch, and what each was found to be when it was first needed.

    Text t begins with the operands hits[at[4 t] : at[4 t + 1]], ends with the next run, and
    contains the third, up to at[4 t + 3]; at[4 t] is -1 while nobody has asked for it.
    """

    at: Ints  # int64
    hits: Ints  # int32: ranks
    floor: Ints  # int64: its place among all operands
    place: Ints  # uint8
    limits: Ints  # int64, two: how many hits there are, and how many one text can have
    sums: Ints  # uint64: room for the running sums of a text
    powers: Ints  # uint64


def empty(dtype: type = np.int32) -> Ints:
    return np.empty(0, dtype)
