"""A network of brokers on this machine: real processes, for tries, tests and measurements.

async with local_cluster(5, "ring") as cluster:              # or: with
    async with palio.connect(cluster.urls[0]) as client: ...
"""

from palio.net.cluster.local import Cluster, local_cluster

__all__ = ["Cluster", "local_cluster"]
