"""Routing policies: which neighbours get a message next. And the link-state database below them."""
