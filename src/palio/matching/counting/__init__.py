"""The papers' engine: filters are counted down, constraint by constraint."""
