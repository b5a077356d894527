"""Strategies for CloudEvents."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from palio.protocol.cloudevents.event import Event, is_text

texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12).filter(is_text)
names = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=20)
_STANDARD = {"specversion", "id", "source", "type", "subject", "time", "dataschema"}
extension_names = names.filter(lambda n: n not in _STANDARD | {"data", "datacontenttype"})
values = st.one_of(texts, st.booleans(), st.integers(-(1 << 31), (1 << 31) - 1))
sources = st.sampled_from(["/a", "https://example.com/x?y=1#z", "urn:uuid:1", "a%20b", "../up"])
times = st.one_of(
    st.datetimes().map(lambda at: at.isoformat() + "Z"),
    st.sampled_from(
        [
            "2018-04-26T14:48:09+02:00",
            "2018-04-26t14:48:09.123456789z",
            "2016-12-31T23:59:60Z",
            "2024-02-29T00:00:00.100-00:00",
        ]
    ),
)
json_values: Any = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(1 << 70), 1 << 70), texts, st.floats(-1e9, 1e9)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)


def _with_data(kind: str) -> Any:
    if kind == "json":
        types = st.sampled_from(["application/json", "application/x+json; charset=utf-8"])
        return st.tuples(types, json_values.map(msgspec.json.encode))
    if kind == "text":
        return st.tuples(st.sampled_from(["text/plain", "application/xml"]), texts.map(str.encode))
    if kind == "bytes":
        types = st.sampled_from(
            ["application/octet-stream", "application/json", "text/plain", None]
        )
        return st.tuples(types, st.binary(max_size=20))
    return st.tuples(st.sampled_from(["text/plain", None]), st.none())


@st.composite
def events(draw: Any) -> Event:
    attributes = {
        "specversion": "1.0",
        "id": draw(texts.filter(bool)),
        "source": draw(sources),
        "type": draw(texts.filter(bool)),
    }
    attributes |= draw(st.dictionaries(extension_names, values, max_size=4))
    for name, strategy in (("subject", texts.filter(bool)), ("time", times)):
        if draw(st.booleans()):
            attributes[name] = draw(strategy)
    kind = draw(st.sampled_from(["json", "text", "bytes", "none"]))
    content_type, data = draw(_with_data(kind))
    if content_type is not None:
        attributes["datacontenttype"] = content_type
    return Event(attributes, data)
