"""Listeners: each accepts connections of one protocol and turns them into links of the host.

`listener.py` is the interface. `native.py` listens for Palio's own protocol, on TCP and TLS.
"""
