"""What a table shows of itself."""

from __future__ import annotations

import palio
from palio import ForwardingTable


def test_a_line() -> None:
    assert (
        repr(ForwardingTable.compile({"ann": "x = 1"}))
        == "<ForwardingTable of 1 interfaces: 'ann'>"
    )
    many = ForwardingTable.compile({f"i{n}": "x = 1" for n in range(1234)})
    assert repr(many) == "<ForwardingTable of 1,234 interfaces: 'i0', 'i1', 'i2', ...>"
    assert len(many) == 1234
    newer = many.updated(remove=["i0"], add={"new": "x = 2"})
    assert repr(newer) == "<ForwardingTable of 1,234 interfaces: 'i1', 'i2', 'i3', ...>"


def test_html_shows_names_as_text() -> None:
    rules = {"<b>ann</b>": "x = '<script>'", **{f"i{n}": f"x = {n}" for n in range(20)}}
    html = ForwardingTable.compile(rules)._repr_html_()
    assert "<b>" not in html
    assert "<script>" not in html
    assert "&lt;b&gt;ann&lt;/b&gt;" in html
    assert "and 11 more" in html
    long = ForwardingTable.compile({"ann": f"x = '{'a' * 1000}'"})._repr_html_()
    assert len(long) < 500
    assert "..." in long


def test_a_table_without_interfaces_is_a_table() -> None:
    empty = ForwardingTable.compile({})
    assert len(empty) == 0
    assert empty
    assert repr(empty) == "<ForwardingTable of 0 interfaces: >"


def test_completion() -> None:
    assert {*palio.__all__, "spark"} <= {*dir(palio)}
