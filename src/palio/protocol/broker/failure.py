"""A failure of the broker itself."""

from __future__ import annotations


class BrokerFailed(Exception):
    """The broker cannot go on, and nobody who sent something is the cause: it stops as in a crash.

    It is no PalioError on purpose: whoever refuses a request or closes a link because of what came
    over it must not catch this.
    """
