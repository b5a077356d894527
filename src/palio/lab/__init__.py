"""The lab: it measures Palio and runs the papers' evaluations again. It may use every other layer.

    data/        workloads, data sets, an oracle: what the other rooms feed to Palio
    bench/       benchmarks, `palio bench`
    reproduce/   experiments, figures and claims of the papers, `palio lab`
    demo/        `palio demo`

`data` uses no other room. `reproduce` takes its timing from `bench.harness`. No layer below the lab
imports it.
"""
