"""Ranking from relevance levels: graphs of preference pairs (the solver is kfu.solvers.ranking)."""

from kfu.ranking.graphs import GRAPHS, complete_graph, edge_kinds, make_graph, reduced_graph

__all__ = ["GRAPHS", "complete_graph", "edge_kinds", "make_graph", "reduced_graph"]
