"""Functions of network addresses.

    10.0.0.1       40a000001                              4, and 8 hexadecimal digits
    2001:db8::5    620010db8000000000000000000000005      6, and 32 of them

Keys of the addresses of a block lie side by side, so a block is a range of strings.
"""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address, IPv6Address

from palio.model.expressions.number_functions import Computed
from palio.model.expressions.text_functions import text

_LONGEST = 45
"""Characters of an address: eight groups of IPv6, the last two written as IPv4."""


def ip_key(value: Computed) -> str | None:
    """The key of an IPv4 or IPv6 address; NULL of a string that is none.

    Different spellings of an address have one key, and an IPv4 address inside IPv6 (`::ffff:a00:1`) has
    that of the IPv4 address. Leading zeros in IPv4 are refused: some programs read them as octal.

    >>> ip_key("10.0.0.1"), ip_key("::ffff:a00:1"), ip_key("10.0.0.01")
    ('40a000001', '40a000001', None)
    """
    address = address_of(text(value))
    return None if address is None else key_of(address)


def address_of(written: str) -> IPv4Address | IPv6Address | None:
    """The address that a string is."""
    if len(written) > _LONGEST:
        return None
    try:
        if ":" not in written:
            return IPv4Address(written)
        if "%" in written:  # the name of an interface of some host
            return None
        address = IPv6Address(written)
    except AddressValueError:
        return None
    return address.ipv4_mapped or address


def key_of(address: IPv4Address | IPv6Address) -> str:
    return f"{address.version}{address.packed.hex()}"


def address_with_key(key: str) -> IPv4Address | IPv6Address | None:
    """The address that has a key; None: no address has it."""
    try:
        packed = bytes.fromhex(key[1:])
        address = IPv4Address(packed) if key[:1] == "4" else IPv6Address(packed)
    except ValueError:
        return None
    return address if ip_key(str(address)) == key else None
