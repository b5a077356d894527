"""Updates of a table: versions, levels, tombstones, merging, and a table that is updated while it is read."""
