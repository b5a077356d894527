"""2003, section 4.2: characters that a look-up compares, in one index of all operators and in one for each.

    one_index   the paper's extended ternary search tree: nodes that the engine visits, a character each
    trees       such a tree for each operator, which is searched from as many characters as it needs
    bisected    a sorted list for each operator, searched for each piece of the value
    scanned     the same for =, < and >; every operand of prefix, suffix and contains is compared

The paper does not say what its earlier sub-indexes were. All of them are run and counted here, and find
what the engine finds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from palio.lab.bench.engines import matcher
from palio.lab.data.workloads import DrawOptions
from palio.lab.data.workloads.paper_2003 import WORDS
from palio.lab.data.workloads.recipe import dictionary_words
from palio.lab.reproduce.drawing import chosen, curve, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid, sizes
from palio.lab.reproduce.figures.paper_2003_strings import (
    NAME,
    Constraint,
    as_rows,
    drawn,
    two_words,
)
from palio.matching.counting.engine import CountingEngine
from palio.matching.encode.constraint_rows import from_constraint_rows
from palio.model.message import Message
from palio.model.predicate import Op

SETTINGS = ExperimentSettings(
    id="2003-comparisons",
    figure="2003, section 4.2",
    title="Characters compared by one index of strings, and by one for each operator",
    text="Up to 10,000 constraints on one name with the operators of the 2003 workload; operands as in "
    "2003-strings, of palio's dictionary (drawn) and of a generated one of 100,000 words; 50 look-ups. "
    "Walks along results of < and > are not comparisons.",
    is_paired=True,
)
CONSTRAINTS = 10_000
LOOKUPS = 50
DICTIONARIES = {"small": DrawOptions(), "large": DrawOptions(large=True)}
APART = {
    "trees": "a tree for each operator",
    "bisected": "a sorted list for each operator, searched for each piece",
    "scanned": "every operand of prefix, suffix and contains compared",
}
ORDERED = (Op.EQ, Op.LT, Op.GT)
PIECES = (Op.PREFIX, Op.SUFFIX, Op.CONTAINS)
Found = set[Constraint]


def points(scale: float) -> list[dict[str, Plain]]:
    most = max(1_000, round(CONSTRAINTS * min(scale, 1.0)))
    return grid(dictionary=list(DICTIONARIES), constraints=sizes(100, most, 10))


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    words = dictionary_words(WORDS, seed, options=DICTIONARIES[values["dictionary"]])
    constraints = sorted(set(drawn(rng, words, values["constraints"], has_orders=True)))
    whole = [operand for op, operand in constraints if op is Op.EQ]
    texts = [str(rng.choice(whole)) if i % 2 else two_words(rng, words) for i in range(LOOKUPS)]
    engine = CountingEngine(from_constraint_rows(as_rows(constraints)), strings="tst")
    matcher(engine, [Message({NAME: text}) for text in texts])()
    compared = {"one_index": engine.counters.tree_nodes / LOOKUPS}
    for name, index in apart(constraints).items():
        found = sum(len(index.look_up(text)) for text in texts)
        assert found == engine.counters.constraints_touched, "all indexes find the same"
        compared[name] = index.compared / LOOKUPS
    return [compared]


def apart(constraints: Sequence[Constraint]) -> dict[str, SubIndexes]:
    return {
        "trees": Trees(constraints),
        "bisected": Bisected(constraints),
        "scanned": Scanned(constraints),
    }


class SubIndexes:
    """Operands by operator, and how many characters were compared so far."""

    def __init__(self, constraints: Iterable[Constraint]) -> None:
        self.compared = 0
        self.operands: dict[Op, list[str]] = defaultdict(list)
        for op, operand in sorted(constraints):
            self.operands[op].append(operand)

    def look_up(self, text: str) -> Found:
        """The constraints that a text satisfies."""
        raise NotImplementedError

    def above(self, sorted_texts: Sequence[str], text: str) -> int:
        """By bisection, how many are not above a text."""
        low, high = 0, len(sorted_texts)
        while low < high:
            middle = (low + high) // 2
            self.compared += common(sorted_texts[middle], text) + 1
            if sorted_texts[middle] <= text:
                low = middle + 1
            else:
                high = middle
        return low

    def is_in(self, sorted_texts: Sequence[str], text: str) -> bool:
        at = self.above(sorted_texts, text)
        return at > 0 and sorted_texts[at - 1] == text

    def ordered(self, text: str) -> Found:
        """=, < and >: one bisection each."""
        found: Found = set()
        for op in ORDERED:
            operands = self.operands[op]
            at = self.above(operands, text)
            below = at - 1 if at and operands[at - 1] == text else at
            held = {Op.EQ: operands[below:at], Op.LT: operands[at:], Op.GT: operands[:below]}
            found.update((op, operand) for operand in held[op])
        return found


def common(a: str, b: str) -> int:
    """How many characters two texts begin with alike."""
    return next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )


class Scanned(SubIndexes):
    def look_up(self, text: str) -> Found:
        found = self.ordered(text)
        for op in PIECES:
            found.update(
                (op, operand) for operand in self.operands[op] if self._holds(op, operand, text)
            )
        return found

    def _holds(self, op: Op, operand: str, text: str) -> bool:
        last = len(text) - len(operand)
        starts = {
            Op.PREFIX: range(1),
            Op.SUFFIX: range(last, last + 1),
            Op.CONTAINS: range(last + 1),
        }
        for start in starts[op] if last >= 0 else ():
            same = common(text[start:], operand)
            self.compared += min(same + 1, len(operand))
            if same == len(operand):
                return True
        return False


class Bisected(SubIndexes):
    """Suffixes lie in their list backwards; pieces have the lengths that operands have."""

    def __init__(self, constraints: Iterable[Constraint]) -> None:
        super().__init__(constraints)
        self._backwards = sorted(operand[::-1] for operand in self.operands[Op.SUFFIX])
        self._lengths = {
            op: sorted({len(operand) for operand in self.operands[op]}) for op in PIECES
        }

    def look_up(self, text: str) -> Found:
        found, back = self.ordered(text), text[::-1]
        for op in PIECES:
            for length in self._lengths[op]:
                starts = (
                    range(len(text) - length + 1)
                    if op is Op.CONTAINS
                    else range(length <= len(text))
                )
                for start in starts:
                    piece = (back if op is Op.SUFFIX else text)[start : start + length]
                    operands = self._backwards if op is Op.SUFFIX else self.operands[op]
                    if self.is_in(operands, piece):
                        found.add((op, piece[::-1] if op is Op.SUFFIX else piece))
        return found


class Trees(SubIndexes):
    """A ternary search tree for each operator. Only suffixes and parts are looked for from every
    character on. What < and > find after their search is not compared."""

    def __init__(self, constraints: Iterable[Constraint]) -> None:
        super().__init__(constraints)
        self._trees = {op: grown(operands) for op, operands in self.operands.items()}

    def look_up(self, text: str) -> Found:
        found: Found = set()
        for op, tree in self._trees.items():
            is_anywhere = op in (Op.SUFFIX, Op.CONTAINS)
            for start in range(len(text) if is_anywhere else 1):
                held = self._begins(tree, text[start:])
                if op in (Op.EQ, Op.SUFFIX):
                    held = [operand for operand in held if operand == text[start:]]
                found.update((op, operand) for operand in held if op not in (Op.LT, Op.GT))
        found.update((Op.LT, operand) for operand in self.operands[Op.LT] if text < operand)
        found.update((Op.GT, operand) for operand in self.operands[Op.GT] if text > operand)
        return found

    def _begins(self, tree: TreeNode | None, text: str) -> list[str]:
        """The operands that a text begins with: a comparison for each node on the way."""
        found: list[str] = []
        at, node = 0, tree
        while node is not None and at < len(text):
            self.compared += 1
            if text[at] == node.character:
                at += 1
                if node.ends:
                    found.append(text[:at])
                node = node.equal
            else:
                node = node.low if text[at] < node.character else node.high
        return found


class TreeNode:
    """A character, and where to go on from it."""

    __slots__ = ("character", "ends", "equal", "high", "low")

    def __init__(self, character: str) -> None:
        self.character = character
        self.low: TreeNode | None = None
        self.equal: TreeNode | None = None
        self.high: TreeNode | None = None
        self.ends = False
        """Whether an operand ends here."""


def grown(operands: Sequence[str]) -> TreeNode | None:
    """A tree of sorted operands, none empty; the middle one goes first, as in the engine's."""
    top: TreeNode | None = None
    runs = [(0, len(operands))]
    while runs:
        low, high = runs.pop()
        if low < high:
            middle = (low + high) // 2
            top = _inserted(top, operands[middle])
            runs += [(middle + 1, high), (low, middle)]
    return top


def _inserted(top: TreeNode | None, operand: str) -> TreeNode:
    top = top or TreeNode(operand[0])
    node, at = top, 0
    while True:
        character = operand[at]
        if character == node.character:
            at += 1
            if at == len(operand):
                node.ends = True
                return top
            node.equal = node = node.equal or TreeNode(operand[at])
        elif character < node.character:
            node.low = node = node.low or TreeNode(character)
        else:
            node.high = node = node.high or TreeNode(character)


def plot(rows: Sequence[Row], figure: Any) -> None:
    axis = figure.subplots()
    for column, label in {"one_index": "one tree of all operators", **APART}.items():
        those = chosen(rows, dictionary=next(iter(DICTIONARIES)))
        line(axis, curve(those, "constraints", column), label)
    axis.set(xlabel="string constraints", ylabel="characters compared a look-up")
    axis.set(xscale="log", yscale="log")
