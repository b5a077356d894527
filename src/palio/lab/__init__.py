"""The lab: data sets, workloads, experiments and benchmarks. It may use every other layer."""
