"""Expressions for many messages at once."""
