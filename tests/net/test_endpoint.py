"""Endpoints as text."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given, settings

from palio.net.endpoint import parse_endpoint


@given(st.text(max_size=20))
@settings(max_examples=200)
def test_an_address_is_read_or_refused(text: str) -> None:
    try:
        address = parse_endpoint(text)
    except ValueError:
        return
    assert parse_endpoint(str(address)) == address
