"""Listeners: each accepts connections of one protocol and turns them into links of the host.

`listener.py` is the interface. `native.py` listens for Palio's own protocol, `mqtt.py` for MQTT, both on
TCP and TLS. `http` serves HTTP, with native clients over `in_process` links.
"""
