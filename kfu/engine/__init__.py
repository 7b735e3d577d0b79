"""Training on data in partitions, in this process or on a cluster.

    from kfu.engine import train_rectangle_partitioned
    fit = train_rectangle_partitioned("day-*.svm", kernel=kernel, ridge=10, n_centres=2000)

`ENGINES` says where the partitions are worked on: `local` threads of this process, or `dask`.
"""

from kfu.engine.partitions import Partition, ReadSettings, plan, read_blocks
from kfu.engine.rectangle import ENGINES, PartitionedFit, train_rectangle_partitioned

__all__ = [
    "ENGINES",
    "Partition",
    "PartitionedFit",
    "ReadSettings",
    "plan",
    "read_blocks",
    "train_rectangle_partitioned",
]
