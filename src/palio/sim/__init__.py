"""The simulator: one kernel (clock, networks, disk, plans, shrinking) under two workloads.

`routers/` runs the state machines of `palio.routing`, `brokers/` the shipped broker cores and client
sessions of `palio.protocol`. A seed decides everything, so each run replays.
"""
