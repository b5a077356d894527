"""JSON Schemas for messages: reading, checking, and saying what is wrong."""
