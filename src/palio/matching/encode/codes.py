"""Numbers for operators, types and ways of filing, as kernels and files know them.

They are part of the table file's format: never renumber, only append.
"""

from __future__ import annotations

from typing import Final

from palio.model.predicate import Op
from palio.model.values import Type

# The domains of operands and values. Numbers live in two: integral ones are INT, others FLOAT.
BOOL: Final = 0
INT: Final = 1
FLOAT: Final = 2
TIME: Final = 3
STRING: Final = 4
NUMBER: Final = 5  # of `any`: int or float
ARRAY: Final = 6  # of a value: an array, or bytes; it is there, and satisfies no other operand
EVERY: Final = 7  # of `any`: whatever it is
TYPE_BITS: Final = 3  # that hold a domain

DOMAIN: Final = {
    Type.BOOL: BOOL,
    Type.INT: INT,
    Type.FLOAT: FLOAT,
    Type.TIME: TIME,
    Type.STRING: STRING,
}

EQ: Final = 0
NE: Final = 1
LT: Final = 2
LE: Final = 3
GT: Final = 4
GE: Final = 5
IN: Final = 6
PREFIX: Final = 7
SUFFIX: Final = 8
CONTAINS: Final = 9
NOT_PREFIX: Final = 10
NOT_SUFFIX: Final = 11
NOT_CONTAINS: Final = 12
ANY: Final = 13
ABSENT: Final = 14

# Constraints that select too little to be filed under: under them a filter lies with the presence
# of their name, and they are verified with the rest.
KEPT_INLINE: Final = (NE, NOT_PREFIX, NOT_SUFFIX, NOT_CONTAINS)

OP: Final = {
    Op.EQ: EQ,
    Op.NE: NE,
    Op.LT: LT,
    Op.LE: LE,
    Op.GT: GT,
    Op.GE: GE,
    Op.IN: IN,
    Op.PREFIX: PREFIX,
    Op.SUFFIX: SUFFIX,
    Op.CONTAINS: CONTAINS,
    Op.NOT_PREFIX: NOT_PREFIX,
    Op.NOT_SUFFIX: NOT_SUFFIX,
    Op.NOT_CONTAINS: NOT_CONTAINS,
    Op.ANY: ANY,
    Op.ABSENT: ABSENT,
}

# Where a value stands among the keys of its domain.
BETWEEN: Final = 0  # above its floor key, below the next
EXACT: Final = 1  # equal to its floor key
UNPLACED: Final = 2  # nobody has asked for its floor key
BELOW: Final = 2  # below all keys

# Types of raw values only, until `settle` has placed them: a decimal above this int or double that no
# number of a constraint equals, and below the next one.
ABOVE_INT: Final = 5
ABOVE_FLOAT: Final = 7

# The position of the text of a value that has none.
NO_TEXT: Final = -1
NEGATIVE_ZERO: Final = -2  # of -0.0, whose key is that of 0.0: only expressions tell them apart

# The head of an inline constraint: name << 8 | op << 4 | domain << 1 | last.
NAME_SHIFT: Final = 8
OP_SHIFT: Final = 4
DOMAIN_SHIFT: Final = 1
NAMES_MAX: Final = 1 << 23
