"""Whole brokers in one process: shipped cores and client sessions on simulated connections."""
