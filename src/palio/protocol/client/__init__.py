"""The client side of the protocol, without input and output.

`session.py` is the way in; `docs/architecture/client.md` has a drawing.
"""
