"""Contestants of the broker benchmark on loopback: processes, connections, source and sinks."""
