"""Rules that others wrote, read as predicates: one module a dialect."""
