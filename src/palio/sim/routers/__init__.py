"""Routers in a simulated network of lossy datagram links."""
