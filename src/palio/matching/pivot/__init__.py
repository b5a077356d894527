"""The default engine: each filter is filed once, under its least likely constraint."""
