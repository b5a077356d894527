"""A network of routers in one process: virtual time, bad links, crashes, and checkers that watch."""
