"""Regularisation paths: every solution of a machine as its cost (or its ε, or ν) varies.

    path = kfu.svm_path(X, y, kernel="rbf", gamma=0.5)
    path.at(10.0).predict(X)

A path is followed by kfu.solvers.parametric, described for each machine by kfu.paths.registry, and
kept as its events (kfu.paths.path), from which the solution anywhere is rebuilt.
"""
