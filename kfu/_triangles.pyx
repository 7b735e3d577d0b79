"""Triangles of dense matrices, in place: SciPy's Python layer copies any part of a matrix first."""

from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport ddot, dtrsm

import numpy as np

cdef enum:
    STRIP = 256  # columns that are solved for at a time


def solved_square(const double[::1, :] L, const double[::1, :] R):
    """‖L⁻¹R‖² of two lower triangles; what is above the diagonals is not looked at. m³/3.

    L⁻¹R is a lower triangle too, so that a strip of its columns needs the rows from its first on.
    """
    cdef int m = <int>L.shape[0], start = 0, k, rows, columns, one = 1, length
    cdef double unit = 1.0, total = 0.0
    cdef char left = b"L", lower = b"L", no = b"N"  # side; which triangle; transposed, of units
    if L.shape[1] != m or R.shape[0] != m or R.shape[1] != m:
        raise ValueError("two square matrices of one size are needed")
    cdef double[::1] strip = np.empty(<size_t>m * min(m, STRIP))
    with nogil:
        while start < m:
            rows, columns = m - start, min(STRIP, m - start)
            for k in range(columns):
                memset(&strip[<size_t>k * rows], 0, k * sizeof(double))
                memcpy(&strip[<size_t>k * rows + k], &R[start + k, start + k],
                       (rows - k) * sizeof(double))
            dtrsm(&left, &lower, &no, &no, &rows, &columns, &unit, <double*>&L[start, start], &m,
                  &strip[0], &rows)
            for k in range(columns):
                length = rows - k
                total += ddot(&length, &strip[<size_t>k * rows + k], &one,
                              &strip[<size_t>k * rows + k], &one)
            start += columns
    return total
