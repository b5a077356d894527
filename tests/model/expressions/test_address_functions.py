"""Keys of addresses: one for each address, in the order of the addresses."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio.model.expressions.address_functions import address_with_key, ip_key
from palio.model.expressions.errors import ExpressionError

ADDRESSES = st.one_of(
    st.integers(0, 2**32 - 1).map(IPv4Address), st.integers(0, 2**128 - 1).map(IPv6Address)
)


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("10.0.0.1", "40a000001"),
        ("255.255.255.255", "4ffffffff"),
        ("::1", "600000000000000000000000000000001"),
        ("0:0:0:0:0:0:0:1", "600000000000000000000000000000001"),
        ("2001:DB8::5", "620010db8000000000000000000000005"),
        ("::ffff:a00:1", "40a000001"),
        ("::ffff:10.0.0.1", "40a000001"),
        ("10.0.0.01", None),
        ("10.0.1", None),
        ("256.0.0.1", None),
        ("fe80::1%eth0", None),
        (" 10.0.0.1", None),
        ("", None),
        ("1:" * 1000, None),
    ],
)
def test_key(written: str, key: str | None) -> None:
    assert ip_key(written) == key


def test_it_takes_a_string() -> None:
    with pytest.raises(ExpressionError):
        ip_key(167772161)


@given(ADDRESSES, ADDRESSES)
def test_keys_are_ordered_as_addresses(
    a: IPv4Address | IPv6Address, b: IPv4Address | IPv6Address
) -> None:
    x, y = str(ip_key(str(a))), str(ip_key(str(b)))
    a, b = (getattr(one, "ipv4_mapped", None) or one for one in (a, b))
    assert (x < y) == ((a.version, int(a)) < (b.version, int(b)))


@given(ADDRESSES)
def test_the_address_of_a_key(address: IPv4Address | IPv6Address) -> None:
    key = str(ip_key(str(address)))
    found = address_with_key(key)
    assert found is not None
    assert ip_key(str(found)) == key


@pytest.mark.parametrize(
    "key", ["", "4", "40a0000", "40A000001", "5" + "0" * 8, "6" + "0" * 8, "4zz"]
)
def test_what_is_no_key(key: str) -> None:
    assert address_with_key(key) is None


def test_an_ipv4_address_within_ipv6_has_no_key_of_its_own() -> None:
    assert address_with_key("6" + ip_address("::ffff:a00:1").packed.hex()) is None
