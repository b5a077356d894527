"""Addresses of brokers."""

from __future__ import annotations

import pytest

import palio
from palio.errors import InvalidValue


class TestAddresses:
    @pytest.mark.parametrize(
        "url",
        ["http://x", "palio://", "palio://h:99999", "palio://u:p@h", "palio://h/x", "h:7400",
         "palio://a,", "palio://a:1,b:99999", "palio://a,palio://b"],
    )  # fmt: skip
    def test_bad_addresses(self, url: str) -> None:
        with pytest.raises(InvalidValue):
            palio.connect(url)

    def test_tls_needs_its_scheme(self) -> None:
        with pytest.raises(InvalidValue, match="palios"):
            palio.connect("palio://h", tls="ca.pem")
