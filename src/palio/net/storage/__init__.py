"""Stores: each keeps a broker's data and commits it in groups.

`store.py` is the interface, `buffered.py` what all stores share, `opening.py` chooses one. `sqlite.py` is the
embedded default: one file in the broker's directory. `postgres.py` is for brokers that must survive their
machine: rows of a database, fenced by the lease on the broker's name (`lease.py`). `backups.py` copies either
into a file and back.
"""
