"""Machines: what turns labels and costs into dual problems, and solutions into a Model."""

from kfu.machines.checkpoint import Checkpoint
from kfu.machines.registry import MACHINES, OPTIONS, Machine, machine_named, option_word
from kfu.machines.training import train

__all__ = ["MACHINES", "OPTIONS", "Checkpoint", "Machine", "machine_named", "option_word", "train"]
