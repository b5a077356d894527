"""Benchmarks: each module gives cases to `harness`, which times, compares and prints them.

    forward, update, poset, spark, broker    the commands of `palio bench`
    model                                    `python -m palio.lab.bench.model`
    loopback/                                what `broker` compares: processes, load, a relay

A benchmark is a function `run(..., progress=...)` that yields results and a function
`show(console, results)` that prints them as a table.
"""
