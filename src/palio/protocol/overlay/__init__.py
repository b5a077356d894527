"""The other brokers: the map that all of them keep, and the way to each."""
