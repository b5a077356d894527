"""Arrow messages as lists of attributes: structs of name, type and value."""

from datetime import datetime

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.errors import InvalidValue
from palio.matching.encode.arrow_messages import encode_attributes
from palio.model.message import Message
from palio.model.values import Value, format_instant
from tests.matching.encode.batches import assert_same, decoded
from tests.strategies import messages as message_strategy

NAMES = {"x": 4, "s.x": 2, "y": 0}
ATTRIBUTE = pa.struct([("name", pa.string()), ("type", pa.string()), ("value", pa.string())])
ENCODED = pa.dictionary(pa.int32(), pa.string())
ENCODED_ATTRIBUTE = pa.struct([("name", ENCODED), ("type", ENCODED), ("value", pa.string())])


def as_text(value: Value) -> str:
    if isinstance(value, datetime):
        return format_instant(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_list(message: Message) -> list[dict[str, str | None]]:
    found: list[dict[str, str | None]] = [
        {"name": a.name, "type": str(a.type), "value": as_text(a.value)} for a in message.attributes
    ]
    return found


def refused_list(entries: list[tuple[str | None, str | None, str | None]]) -> str:
    items = [dict(zip(("name", "type", "value"), entry, strict=True)) for entry in entries]
    with pytest.raises(InvalidValue) as caught:
        encode_attributes(NAMES, pa.array([[], items], pa.list_(ATTRIBUTE)))
    return str(caught.value)


def test_bad_attributes() -> None:
    x = ("x", "int", "1")
    assert refused_list([x, x]) == "row 1: the attribute 'x' is there twice"
    assert refused_list([(None, "int", "1")]) == "row 1: an attribute has no name"
    assert refused_list([("", "int", "1")]) == "row 1: an attribute's name is empty"
    assert "row 1: 'double' is not the type" in refused_list([("x", "double", "1")])
    assert "row 1: NULL is not the type" in refused_list([("x", None, "1")])
    assert "attribute 'x', row 1: a bool is true" in refused_list([("x", "bool", "True")])
    assert "attribute 'x', row 1: invalid literal" in refused_list([("x", "int", "1.5")])
    assert "row 1: the integer 9223372036854775808" in refused_list([("x", "int", str(2**63))])
    assert "attribute 'y', row 1: could not" in refused_list([x, ("y", "float", "z")])
    assert "attribute 'x', row 1: 'z' is not an instant" in refused_list([("x", "time", "z")])
    with pytest.raises(InvalidValue, match="a column of attributes is list<struct<name, type"):
        encode_attributes(NAMES, pa.array([[1]]))


def test_attributes_that_are_not_there() -> None:
    entries = [
        None,
        [None, {"name": "x", "type": "int", "value": None}],
        [{"name": None, "type": None, "value": None}, {"name": "x", "type": "int", "value": "5"}],
        [{"name": "unknown", "type": "what", "value": "5"}],
    ]
    for kind in (pa.list_(ATTRIBUTE), pa.large_list(ENCODED_ATTRIBUTE)):
        batch = encode_attributes(NAMES, pa.array(entries, kind))
        assert_same(batch, NAMES, [{}, {}, {"x": 5}, {}])
        assert decoded(batch)[2]


def test_a_dictionary_of_names_with_an_entry_twice() -> None:
    names = pa.DictionaryArray.from_arrays([0, 1], ["x", "x"])
    texts = pa.array(["int", "int"]), pa.array(["1", "2"])
    structs = pa.StructArray.from_arrays([names, *texts], ["name", "type", "value"])
    with pytest.raises(InvalidValue, match="row 0: the attribute 'x' is there twice"):
        encode_attributes(NAMES, pa.ListArray.from_arrays([0, 2], structs))


@settings(max_examples=200, deadline=None)
@given(st.lists(message_strategy, max_size=6), st.data())
def test_messages_as_lists(messages: list[Message], data: st.DataObject) -> None:
    names = {name: i for i, name in enumerate(set().union(*messages))}
    if data.draw(st.booleans()):
        names = dict(list(names.items())[::2])
    kind = data.draw(st.sampled_from([ATTRIBUTE, ENCODED_ATTRIBUTE]))
    column = pa.array(list(map(as_list, messages)), pa.list_(kind))
    assert_same(encode_attributes(names, column), names, messages)
    cut = data.draw(st.integers(0, len(messages)))
    chunked = pa.chunked_array([column[cut:], column[:cut]])
    assert_same(encode_attributes(names, chunked), names, messages[cut:] + messages[:cut])
