"""Random control messages and headers, drawn from the types of their fields; random packets of routers."""

from __future__ import annotations

import types
from enum import Enum
from functools import partial
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import palio
from palio.model.values import as_value
from palio.protocol.wire.control import ControlMessage
from palio.protocol.wire.headers import Header
from palio.routing.packets import (
    Advertise,
    Packet,
    Publish,
    Restate,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from palio.routing.patterns.packets import Assembled, Compound, Sieved, Task, Unwatch, Watch
from palio.routing.patterns.pattern import Part, Pattern, Then, Within
from tests.routing.patterns.pattern_strategies import patterns as symbol_patterns
from tests.strategies import advertisements, filters, messages, names, predicates, values

numbers = st.integers(0, 9) | st.integers(0, 2**63 - 1)
raws = st.recursive(
    st.none() | st.integers(0, 9) | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)
).map(lambda plain: msgspec.Raw(msgspec.msgpack.encode(plain)))

_PLAIN: dict[Any, SearchStrategy[Any]] = {
    bool: st.booleans(),
    bytes: st.binary(max_size=40),
    float: st.floats(allow_nan=False),
    str: st.text(max_size=12),
    type(None): st.none(),
    msgspec.Raw: raws,
}


def of_type(kind: Any) -> SearchStrategy[Any]:
    """Values of the type of a field."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        most = min([meta.le for meta in inner[1:] if getattr(meta, "le", None)], default=2**63 - 1)
        return numbers.map(lambda n: min(n, most)) if inner[0] is int else of_type(inner[0])
    if origin is tuple and inner[-1] is Ellipsis:
        return st.lists(of_type(inner[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(of_type, inner))
    if origin is dict:
        return st.dictionaries(*map(of_type, inner), max_size=3)
    if origin is types.UnionType or inner:
        return st.one_of(*map(of_type, inner))
    return structs(kind)


def structs(kind: Any) -> SearchStrategy[Any]:
    hints = get_type_hints(kind, include_extras=True)
    return st.builds(kind, *(of_type(hints[name]) for name in kind.__struct_fields__))


CONTROL_MESSAGES = get_args(ControlMessage)
HEADERS = get_args(Header)
control_messages: SearchStrategy[ControlMessage] = st.one_of(*map(structs, CONTROL_MESSAGES))
headers: SearchStrategy[Header] = st.one_of(*map(structs, HEADERS))

# ---- packets

publications = st.builds(Publish, messages, st.text(max_size=8), numbers, numbers)
patterns: SearchStrategy[Pattern] = st.one_of(
    symbol_patterns(),
    st.builds(
        lambda parts, micros, same: Pattern(Within(Then(tuple(parts)), micros), tuple(same)),
        st.lists(predicates.map(str).map(palio.parse).map(Part), min_size=2, max_size=3),
        st.integers(1, 2**63 - 1),
        st.lists(names, max_size=2),
    ),
)
watches = st.builds(Watch, numbers, patterns, st.sampled_from(Task), st.none() | numbers)
_few_filters = st.lists(filters, max_size=3).map(tuple)
_few_advertisements = st.lists(advertisements, max_size=3).map(tuple)
packets: SearchStrategy[Packet] = st.one_of(
    st.builds(Subscribe, filters),
    st.builds(Unsubscribe, filters, _few_filters),
    st.builds(Advertise, advertisements),
    st.builds(Unadvertise, advertisements, _few_advertisements),
    st.builds(Restate, _few_filters, _few_advertisements, st.lists(watches, max_size=2).map(tuple)),
    watches,
    st.builds(Unwatch, numbers),
    st.builds(
        Assembled,
        numbers,
        st.builds(
            Compound,
            st.lists(publications, min_size=1, max_size=3).map(tuple),
            st.lists(values.map(partial(as_value, "key")), max_size=2).map(tuple),
        ),
    ),
    st.builds(Sieved, numbers, publications),
)
