"""Unicast, multicast, channels and subjects as predicates: all are content-based addressing.

A traditional address is one attribute of the message and one constraint of the receiver.
"""

from __future__ import annotations

import palio

NETWORKS = {
    # each host has one address; the sender names it
    "unicast": (
        {"host-7": "dest = '10.0.0.7'", "host-8": "dest = '10.0.0.8'"},
        {"dest": "10.0.0.7", "payload": "hello"},
    ),
    # each member joins groups; the sender names one
    "multicast": (
        {
            "ann": "`group` IN ('news', 'sport')",
            "bob": "`group` = 'news'",
            "cy": "`group` = 'weather'",
        },
        {"group": "news", "payload": "headline"},
    ),
    # a pipe, chosen by its name
    "channel": (
        {"trader": "channel = 'NYSE'", "farmer": "channel = 'CBOT'"},
        {"channel": "NYSE", "symbol": "DIS", "price": 31.5},
    ),
    # a tree of subjects, chosen by a prefix
    "subject": (
        {
            "desk": "subject LIKE 'finance/exchanges/%'",
            "archive": "subject LIKE 'finance/%'",
            "stadium": "subject LIKE 'sport/%'",
        },
        {"subject": "finance/exchanges/NYSE", "symbol": "DIS"},
    ),
}


def deliveries() -> dict[str, list[str]]:
    """Who gets the message in each network."""
    return {
        kind: palio.ForwardingTable.compile(receivers).forward(message)
        for kind, (receivers, message) in NETWORKS.items()
    }


if __name__ == "__main__":
    for kind, receivers in deliveries().items():
        print(f"{kind:10} -> {', '.join(receivers)}")
