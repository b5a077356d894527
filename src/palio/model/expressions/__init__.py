"""Expressions: what is computed from the attributes of a message, or from literals alone."""
