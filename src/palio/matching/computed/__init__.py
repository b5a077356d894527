"""Expressions of messages, computed for many messages at once.

`columns` holds the values of one expression for all messages of a batch, `batches` takes them out of an
encoded batch and puts them into one, `vectors.compute` computes. The meaning is that of
`model/expressions/evaluation.py`, value for value.
"""
