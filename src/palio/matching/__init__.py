"""Forwarding tables: which interfaces does this message go to?"""
