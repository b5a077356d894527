"""Messages and predicates as the numbers that kernels read."""
