"""A client without input and output: what it wants, sends again, and has had."""
