"""Least squares as machines: what is asked for (run), how it is solved (full, linear, low_rank),
what leave-one-out says of it (judged). kfu.machines.least_squares puts them together."""
