"""What the lab feeds to Palio: workloads of the papers, a year of flights, words, and an oracle.

Everything is seeded: the same arguments give the same predicates and messages on every machine.
"""
