"""Sinks: which URLs and addresses are refused."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from palio.errors import InvalidValue
from palio.protocol.cloudevents.sinks import (
    RefusedSink,
    SinkRules,
    check_address,
    check_addresses,
    check_sink,
)

PUBLIC = SinkRules()
LOCAL = SinkRules(networks=("127.0.0.0/8", "::1/128"), allows_http=True)


def test_a_public_url() -> None:
    sink = check_sink("https://Example.com./in/a?x=1", PUBLIC)
    assert (sink.scheme, sink.host, sink.port, sink.target) == (
        "https",
        "example.com",
        443,
        "/in/a?x=1",
    )
    assert check_sink("https://93.184.216.34:8443", PUBLIC).target == "/"
    assert check_sink("http://127.0.0.1:80/", LOCAL).port == 80
    assert check_sink("http://[::1]:8080/", LOCAL).host == "::1"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (5, "a sink is a URL"),
        ("", "a sink is a URL"),
        ("http://example.com/", "a URL with https"),
        ("ftp://example.com/", "a URL with https"),
        ("file:///etc/passwd", "a URL with https"),
        ("https:///x", "has no host"),
        ("https://a@example.com/", "no user or password"),
        ("https://example.com/#x", "no fragment"),
        ("https://example.com/\r\nHost: x", "printable ASCII"),
        ("https://example.com\\@127.0.0.1/", "printable ASCII"),
        ("https://ex\u0430mple.com/", "printable ASCII"),
        ("https://example.com:0/", "port 0"),
        ("https://example.com:99999/", "is no URL"),
        ("https://[fe80::1%25eth0]/", "has no host"),
        ("https://127.0.0.1/", "not public"),
        ("https://169.254.169.254/latest/meta-data", "not public"),
        ("https://10.0.0.1/", "not public"),
        ("https://[::1]/", "not public"),
        ("https://[::ffff:127.0.0.1]/", "not public"),
        ("https://[64:ff9b::7f00:1]/", "not public"),
        ("https://[2002:7f00:1::]/", "not public"),
        ("https://[fd00::1]/", "not public"),
    ],
)
def test_urls_that_are_refused(url: object, reason: str) -> None:
    with pytest.raises(RefusedSink, match=reason):
        check_sink(url, PUBLIC)


@pytest.mark.parametrize(
    "address",
    "0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 127.255.255.254 169.254.1.1 172.16.0.1 192.168.1.1 192.0.2.1 "
    "198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:10.0.0.1 64:ff9b::a00:1 "
    "2002:c0a8:101:: 2001:0:4136:e378:8000:63bf:f5ff:fffe fc00::1 fe80::1 ff02::1 2001:db8::1".split(),
)
def test_addresses_that_are_refused(address: str) -> None:
    with pytest.raises(RefusedSink):
        check_address(ip_address(address), PUBLIC)


def test_all_addresses_of_a_name_are_checked() -> None:
    found = check_addresses("a.example", ["93.184.216.34", "2606:4700::1111"], PUBLIC)
    assert list(map(str, found)) == ["93.184.216.34", "2606:4700::1111"]
    with pytest.raises(RefusedSink):
        check_addresses("rebinding.example", ["93.184.216.34", "127.0.0.1"], PUBLIC)
    with pytest.raises(RefusedSink, match="has no address"):
        check_addresses("a.example", [], PUBLIC)


def test_hosts_and_ports_by_configuration() -> None:
    rules = SinkRules(hosts=("a.example", "*.b.example"), ports=(443,))
    for allowed in ("a.example", "x.b.example", "A.EXAMPLE"):
        check_sink(f"https://{allowed}/", rules)
    for refused in ("b.example", "xa.example", "a.example.evil", "evilb.example"):
        with pytest.raises(RefusedSink, match="not among the hosts"):
            check_sink(f"https://{refused}/", rules)
    with pytest.raises(RefusedSink, match="port 8443"):
        check_sink("https://a.example:8443/", rules)
    with pytest.raises(InvalidValue, match="is no network"):
        SinkRules(networks=("10.0.0.1/8",))


@pytest.mark.parametrize(
    "address",
    ["fec0::1", "2606:4700::5efe:7f00:1", "2606:4700::200:5efe:a00:1", "192.88.99.1", "3fff::1"],
)
def test_addresses_that_only_look_public(address: str) -> None:
    with pytest.raises(RefusedSink):
        check_addresses("example.com", [address], SinkRules())


@pytest.mark.parametrize("host", ["a" * 64 + ".com", "a..b", "...", "a|b", "a." * 130])
def test_hosts_that_no_resolver_takes(host: str) -> None:
    with pytest.raises(RefusedSink):
        check_sink(f"https://{host}/", SinkRules())
