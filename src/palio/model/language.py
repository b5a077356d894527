"""The language: a SQL boolean expression becomes a predicate in disjunctive normal form.

    text --lift--> shape + literals --template (kept)--> predicate

Each shape is parsed once and kept; a text of a known shape costs a scan of its literals. Parsing
evaluates nothing, and every size is bounded: text, nesting, filters, constraints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palio.errors import InvalidPredicate, LimitExceeded, PalioError, ParseError
from palio.model.expressions.argument_counts import wrong_count
from palio.model.literals import BadLiteral, Literal, lift, origin, slot_origin
from palio.model.predicate import Predicate
from palio.model.shapes import UNREAD, Unsupported, lengths, parsed
from palio.model.time_zones import zone_name

if TYPE_CHECKING:
    from palio.model.templates import Template

FILTERS_MAX = 4096
TEXT_MAX = 64_000_000  # characters of a predicate
SHAPE_MAX = 4_000_000  # characters without the literals
_KEPT_SHAPE_MAX = 20_000  # characters of a shape worth keeping
_KEPT_MAX = 400_000  # characters of all of them; a template takes about 100 bytes for each


class _Templates(dict[str, "Template"]):
    """Templates by shape; all go when they have become too large."""

    characters = 0

    def keep(self, shape: str, template: Template) -> None:
        if self.characters + len(shape) > _KEPT_MAX:
            self.clear()
            self.characters = 0
        self.characters += len(shape)
        self[shape] = template


_kept = _Templates()


def parse(
    text: str | Predicate,
    *,
    limit: int = FILTERS_MAX,
    shape_max: int = SHAPE_MAX,
    zone: str | None = None,
    foreign: bool = False,
) -> Predicate:
    """Read a predicate written as a SQL boolean expression.

    `limit` bounds the number of filters of the normal form, `shape_max` the characters beside the
    literals. Raises ParseError, which points at the character, or its child LimitExceeded.

    `zone` is the time zone of the text, UTC by default: of TIMESTAMP literals without an offset, of what
    `hour(at)` shows, and of where a day begins. The predicate means the same anywhere. With `foreign` the
    text may have functions that only Spark computes.

    >>> parse("dest = 'MXP' AND price < 500 OR airline LIKE 'U%'")
    Predicate(dest = 'MXP' AND price < 500 OR airline LIKE 'U%')
    >>> parse("NOT (price < 500 OR gate IS NULL)")
    Predicate(price >= 500 AND gate IS NOT NULL)
    """
    if isinstance(text, Predicate):
        return text
    if not isinstance(text, str):
        raise InvalidPredicate(f"a predicate is a string of SQL, not a {type(text).__name__}")
    if len(text) > TEXT_MAX:
        raise LimitExceeded(
            f"the predicate has {len(text):,} characters, the limit is {TEXT_MAX:,}"
        )
    if (ended := text.rstrip()).endswith(";"):
        text = ended.rstrip("; \t\r\n")
    zone = zone_name(zone)
    shape, literals = lift(text)
    key = shape if zone is None and not foreign else f"{zone}\0{foreign:d}\0{shape}"
    template = _kept.get(key)
    if template is None or len(template.filters) > limit:
        if len(shape) > shape_max:
            raise LimitExceeded(
                f"the predicate has {len(shape):,} characters beside its literals, "
                f"the limit is {shape_max:,}"
            )
        template = _template(text, shape, literals, limit, zone=zone, foreign=foreign)
        if template.reusable and len(shape) <= _KEPT_SHAPE_MAX:
            _kept.keep(key, template)
    try:
        return template.fill(literals, limit)
    except BadLiteral as error:
        raise ParseError(error.reason, text, slot_origin(text, error.slot)) from None


def _template(
    text: str,
    shape: str,
    literals: list[Literal],
    limit: int,
    *,
    zone: str | None,
    foreign: bool,
) -> Template:
    from palio.model.dnf import Explosion
    from palio.model.sql import template
    from palio.model.sql_nodes import TreeReader

    if not text.strip():
        raise ParseError("the predicate is empty; TRUE selects every message")
    tree = parsed(text, shape, foreign=foreign)
    reader = TreeReader(foreign, zone)
    try:
        found = template(tree, literals, limit, reader)
        if unread := reader.unread(tree, len(literals)) - lengths(shape):
            raise BadLiteral(UNREAD, min(unread))
        return found
    except Unsupported as error:
        reason, position = wrong_count(shape) or (error.reason, error.position)
        raise ParseError(reason, text, origin(text, position)) from None
    except BadLiteral as error:
        raise ParseError(error.reason, text, slot_origin(text, error.slot)) from None
    except Explosion as error:
        raise LimitExceeded(error.reason, text, origin(text, error.node.position)) from None
    except RecursionError:
        raise ParseError("the expression is nested too deeply", text) from None
    except PalioError:
        raise
    except Exception:  # a tree that is not what its classes promise
        raise ParseError("this is not a SQL expression", text, 0) from None
