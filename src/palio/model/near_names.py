"""What predicates ask for and messages do not have: names, with those that are near them, and types."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from palio.model.values import shortened

_SHOWN_MAX = 5


def missing_names(missing: Iterable[str], known: Collection[str]) -> str:
    """The first few of the missing names, and how many more there are.

    >>> missing_names(["prise", "q"], ["price", "dest"])
    "'prise' (near it: 'price'), 'q'"
    """
    names = list(missing)
    shown = ", ".join(_with_near(name, known) for name in names[:_SHOWN_MAX])
    more = len(names) - _SHOWN_MAX
    return f"{shown} and {more} more" if more > 0 else shown


def _with_near(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, known, 2, 0.6)
    return f"{name!r} (near it: {', '.join(map(repr, near))})" if near else repr(name)


def unlike_types(name: str, compared: Collection[str], found: str) -> str:
    """What is said of values of one type that predicates compare with literals of others only.

    >>> unlike_types("at", {"string"}, "time")
    "predicates compare 'at' with strings, and it is a time: nothing is cast, so none of these selects \
anything; write DATE '2024-03-01' or TIMESTAMP '2024-03-01 10:00:00'"
    """
    asked = " and ".join(f"{one}s" for one in sorted(compared))
    return (
        f"predicates compare {shortened(name.removeprefix('='))} with {asked}, and it is {_ARTICLE.get(found, 'a')} "
        f"{found}: nothing is cast, so none of these selects anything{_remedy(compared, found)}"
    )


_ARTICLE = {"array": "an"}
_LITERALS = {
    "time": "write DATE '2024-03-01' or TIMESTAMP '2024-03-01 10:00:00'",
    "number": "write the number without quotes",
    "bool": "write TRUE or FALSE",
    "array": "array_contains(tags, 'x') asks for an element",
}


def _remedy(compared: Collection[str], found: str) -> str:
    if found == "string":
        wanted = {"time": "TIMESTAMP", "number": "DOUBLE", "bool": "BOOLEAN"}[min(compared)]
        return f"; write the literal in quotes, or CAST(x AS {wanted})"
    return f"; {_LITERALS[found]}"
