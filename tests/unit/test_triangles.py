"""Triangles in place: against a dense solve, across strips, halves above the diagonal spoilt."""

from __future__ import annotations

import numpy as np
import pytest
from kfu._triangles import solved_square


@pytest.mark.parametrize("m", [1, 7, 255, 256, 257, 600])
def test_the_square_of_a_solve_with_two_triangles(m):
    rng = np.random.default_rng(m)
    L = np.tril(rng.normal(size=(m, m)) / m) + np.eye(m)
    R = np.tril(rng.normal(size=(m, m)))
    expected = np.square(np.linalg.solve(L, R)).sum()
    above = np.triu_indices(m, 1)
    L[above] = R[above] = np.nan
    L, R = np.asfortranarray(L), np.asfortranarray(R)
    L.flags.writeable = R.flags.writeable = False  # as arrays from another process are
    found = solved_square(L, R)
    assert found == pytest.approx(expected, rel=1e-10)


def test_sizes_that_differ_are_refused():
    with pytest.raises(ValueError, match="one size"):
        solved_square(np.eye(3, order="F"), np.eye(4, order="F"))
