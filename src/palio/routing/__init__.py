"""Routing: what a router keeps, decides and says, without sockets, clocks or randomness."""
