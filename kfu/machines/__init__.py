"""Machines: what turns labels and costs into dual problems, and solutions into a Model."""

from kfu.machines.checkpoint import Checkpoint
from kfu.machines.svc import train_svc
from kfu.machines.training import MACHINES, train

__all__ = ["MACHINES", "Checkpoint", "train", "train_svc"]
