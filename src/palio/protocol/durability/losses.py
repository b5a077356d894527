"""Entries of a queue that were lost, until the store has committed their loss."""

from __future__ import annotations


class Losses:
    """Entries that were dropped or purged, until the store has committed it: `are_new`, some are in no
    commit yet; `_commits`, how many commits in flight say so."""

    __slots__ = ("_commits", "are_new", "are_uncommitted")

    def __init__(self) -> None:
        self.are_new = self.are_uncommitted = False
        self._commits = 0

    def happened(self) -> None:
        self.are_new = self.are_uncommitted = True

    def changed(self, commits: int) -> None:
        """A commit that says so begins (1), or is done (-1)."""
        self.are_new = self.are_new and commits < 0
        self._commits += commits
        self.are_uncommitted = self.are_new or self._commits > 0
