"""Whole brokers in one process: the real core and real sessions on simulated wires and disks."""
