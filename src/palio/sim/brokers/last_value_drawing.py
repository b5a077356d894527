"""Last values in drawn plans: some durable messages become last values, some live subscriptions begin with them."""

from __future__ import annotations

from random import Random

import msgspec

from palio.sim.brokers.plans import BrokerOperation, MessageSpec, SubscriptionSpec

KEYS = ("s", "x", "x,s")


def with_last_values(
    operations: tuple[BrokerOperation, ...], random: Random
) -> tuple[BrokerOperation, ...]:
    """The same operations; in half of the plans with last values."""
    if random.random() < 0.5:
        return operations
    share = random.choice((0.1, 0.5, 1.0))
    chosen: dict[str, bool] = {}
    found = []
    for operation in operations:
        argument = operation.argument
        if isinstance(argument, MessageSpec) and argument.durable and random.random() < share:
            forget = random.random() < 0.1
            argument = msgspec.structs.replace(argument, retain=random.choice(KEYS), forget=forget)
        elif isinstance(argument, SubscriptionSpec) and not (argument.durable or argument.group):
            is_last = chosen.setdefault(argument.name, random.random() < 0.7)
            argument = msgspec.structs.replace(argument, last=is_last)
        found.append(msgspec.structs.replace(operation, argument=argument))
    return tuple(found)
