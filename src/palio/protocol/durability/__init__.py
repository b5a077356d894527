"""Durable messages at a broker: what is kept, for whom, and when it may be forgotten."""
