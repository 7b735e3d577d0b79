# distutils: language = c++
"""Kernel matrices from Python: views in, the GIL released, arrays out.

Everything numerical is in csrc/kfu; this module owns nothing but the arrays it hands over.
"""

import numpy as np
import scipy.sparse

cimport numpy as cnp
from cython.operator cimport dereference
from libc.stdint cimport int32_t, int64_t
from libcpp.memory cimport unique_ptr
from libcpp.utility cimport move
from libcpp.vector cimport vector

cnp.import_array()

cdef extern from "kfu/panel.h" namespace "kfu" nogil:
    cdef cppclass PanelOps[T]:
        void (*exp2)(const T* x, Index count, T* y)
        void (*tanh)(const T* x, Index count, T* y)

    const PanelOps[T]& panel_ops[T](Simd simd) except +
    bint has_simd(Simd simd)


cdef extern from "kfu/extent.h" namespace "kfu" nogil:
    double largest_modulus_ "kfu::largest_modulus"(const double*, Index, int)
    double largest_modulus_ "kfu::largest_modulus"(const float*, Index, int)


cdef dict SIMD_OF = {
    "baseline": <int>Simd.baseline,
    "avx2": <int>Simd.avx2,
    "avx512": <int>Simd.avx512,
    "best": <int>Simd.best,
}
cdef dict NAME_OF_SIMD = {number: name for name, number in SIMD_OF.items()}
cdef dict FORM_OF = {
    "value": <int>Form.value,
    "slope": <int>Form.slope,
    "d_gamma": <int>Form.d_gamma,
    "d_coef0": <int>Form.d_coef0,
}


cdef Simd simd_of(str name) except *:
    if name not in SIMD_OF:
        raise ValueError(f"simd is {name!r}; known: {', '.join(SIMD_OF)}")
    return <Simd><int>SIMD_OF[name]


def available_simd() -> list:
    """The instruction sets this build and this processor have, narrowest first."""
    return [name for name in ("baseline", "avx2", "avx512") if has_simd(simd_of(name))]


def largest_modulus(values, int threads=1) -> float:
    """The largest modulus of an array of numbers, 0 of none; NaN if one is. No copy is made of
    contiguous float64 and float32."""
    cdef const double[::1] doubles
    cdef const float[::1] singles
    cdef double found = 0.0
    flat = np.ascontiguousarray(values).reshape(-1)
    if flat.dtype != np.float32:
        flat = flat.astype(np.float64, copy=False)
    if flat.dtype == np.float32:
        singles = flat
        if singles.shape[0]:
            with nogil:
                found = largest_modulus_(&singles[0], singles.shape[0], threads)
    else:
        doubles = flat
        if doubles.shape[0]:
            with nogil:
                found = largest_modulus_(&doubles[0], doubles.shape[0], threads)
    return found


def kernel_table() -> list:
    """The compiled list of kernels, as dictionaries."""
    cdef int kind
    table = []
    for kind in range(kernel_count()):
        info = &kernel_info(kind)
        table.append({
            "kind": kind,
            "name": info.name.decode(),
            "formula": info.formula.decode(),
            "has_gamma": bool(info.has_gamma),
            "is_per_feature": bool(info.is_per_feature),
            "has_coef0": bool(info.has_coef0),
            "has_degree": bool(info.has_degree),
            "needs_non_negative": bool(info.needs_non_negative),
            "is_psd": bool(info.is_psd),
            "is_internal": bool(info.is_internal),
        })
    return table


cdef DataView view_of(object X, list keepalive) except *:
    cdef DataView view
    cdef cnp.ndarray array
    view.is_csr = scipy.sparse.issparse(X)
    if view.is_csr:
        if X.format != "csr":
            X = X.tocsr()
        if not X.has_sorted_indices:
            X = X.sorted_indices()
        if X.shape[1] >= 2**31:
            raise ValueError(f"{X.shape[1]} features; at most 2147483647 are supported")
        data, indices, indptr = X.data, X.indices, X.indptr
    else:
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"the data have {X.ndim} dimensions; two are needed")
        data = X
    if data.dtype != np.float32 and data.dtype != np.float64:
        data = data.astype(np.float64)
    view.n, view.d = X.shape
    view.is_double = data.dtype == np.float64
    if view.is_csr:
        data = np.ascontiguousarray(data)
        indptr = np.ascontiguousarray(indptr, dtype=np.int64)
        indices = np.ascontiguousarray(indices, dtype=np.int32)
        keepalive.append((data, indices, indptr))
        array = indptr
        view.indptr = <const int64_t*>cnp.PyArray_DATA(array)
        array = indices
        view.indices = <const int32_t*>cnp.PyArray_DATA(array)
        view.ld = 0
    else:
        size = data.itemsize
        if data.shape[0] > 1 and data.shape[1] > 0 and (
            data.strides[1] != size or data.strides[0] % size or data.strides[0] < 0
        ):
            data = np.ascontiguousarray(data)
        elif data.shape[1] > 1 and data.strides[1] != size:
            data = np.ascontiguousarray(data)
        keepalive.append(data)
        view.ld = data.strides[0] // size if data.shape[0] > 1 else data.shape[1]
        view.indptr = NULL
        view.indices = NULL
    array = data
    view.values = cnp.PyArray_DATA(array)
    return view


cdef void fill_leaf(Leaf& leaf, object part) except *:
    leaf.kind = kernel_kind(part.name.encode())
    leaf.form = <Form><int>FORM_OF[part.form]
    leaf.gamma = part.gamma
    leaf.coef0 = part.coef0
    leaf.degree = part.degree
    if part.scale is not None:
        for factor in part.scale:
            leaf.scale.push_back(<double>factor)


cdef Kernel kernel_of(object spec, list keepalive) except *:
    cdef Kernel kernel
    cdef size_t t, k
    terms = spec.normal_form()
    kernel.terms.resize(len(terms))
    for t, (weight, leaves) in enumerate(terms):
        kernel.terms[t].weight = weight
        kernel.terms[t].leaves.resize(len(leaves))
        for k, part in enumerate(leaves):
            fill_leaf(kernel.terms[t].leaves[k], part)
    return kernel


ctypedef fused Value:
    float
    double


cdef void run_rows(const CGram[Value]& gram, const int64_t[::1] points, const ColumnSet& columns,
                   Value[:, ::1] out) except *:
    cdef vector[Value*] rows
    cdef Index r, n_rows = points.shape[0], n_columns = columns.size()
    if n_rows == 0 or n_columns == 0:
        return
    for r in range(n_rows):
        rows.push_back(&out[r, 0])
    with nogil:
        (<CGram[Value]*>&gram).rows(&points[0], n_rows, columns, 0, n_columns, rows.data())


cdef void run_sums(const CGram[Value]& gram, const int64_t[::1] points,
                   const double[:, ::1] coef, const ColumnSet& columns,
                   double[:, ::1] sums) except *:
    cdef Index n_columns = columns.size()
    if points.shape[0] == 0 or n_columns == 0 or coef.shape[1] == 0:
        return
    with nogil:
        (<CGram[Value]*>&gram).accumulate(&points[0], &coef[0, 0], points.shape[0], coef.shape[1],
                                          columns, 0, n_columns, &sums[0, 0], sums.shape[1],
                                          KeepRows[Value]())


cdef class Gram:
    """The kernel matrix of the points X: K(i, j) for i, j rows of X, or of X and another set.

    `kernel` is a resolved KernelSpec (or a derivative of one). Values have the given precision;
    sums over points (`decision`) are always float64. `threads=0` uses all processors.
    """

    cdef unique_ptr[CGram[float]] single
    cdef unique_ptr[CGram[double]] double_
    cdef bint is_double
    cdef list keepalive
    cdef object X, kernel
    cdef int threads

    def __init__(self, X, kernel, precision="float32", threads=0, simd="best"):
        if precision not in ("float32", "float64"):
            raise ValueError(f"precision is {precision!r}; known: float32, float64")
        self.keepalive = []
        self.X, self.kernel, self.threads = X, kernel, threads
        self.is_double = precision == "float64"
        cdef DataView view = view_of(X, self.keepalive)
        cdef Kernel description = kernel_of(kernel, self.keepalive)
        cdef Simd chosen = simd_of(simd)
        if self.is_double:
            with nogil:
                self.double_ = make_gram[double](view, description, self.threads, chosen)
        else:
            with nogil:
                self.single = make_gram[float](view, description, self.threads, chosen)

    def __len__(self):
        return self.double_.get().size() if self.is_double else self.single.get().size()

    @property
    def precision(self):
        return "float64" if self.is_double else "float32"

    @property
    def simd(self):
        """Name of the instruction set in use."""
        cdef Simd chosen
        chosen = self.double_.get().simd() if self.is_double else self.single.get().simd()
        return NAME_OF_SIMD[<int>chosen]

    @property
    def layout(self):
        """"dense", "csr" or "precomputed"."""
        cdef const char* name
        name = self.double_.get().layout() if self.is_double else self.single.get().layout()
        return name.decode()

    def diagonal(self):
        """K(i, i) for all points, float64."""
        cdef double[::1] out = np.empty(len(self))
        if out.shape[0] == 0:
            return np.asarray(out)
        with nogil:
            if self.is_double:
                self.double_.get().diagonal(&out[0])
            else:
                self.single.get().diagonal(&out[0])
        return np.asarray(out)

    cdef cnp.ndarray points_of(self, object rows):
        if rows is None:
            return np.arange(len(self), dtype=np.int64)
        points = np.ascontiguousarray(rows, dtype=np.int64)
        if points.ndim != 1:
            raise ValueError("points are given as a one-dimensional list of row numbers")
        if points.size and (points.min() < 0 or points.max() >= len(self)):
            raise IndexError(f"a point is outside 0..{len(self) - 1}")
        return points

    cdef unique_ptr[ColumnSet] columns_of(self, object cols) except *:
        cdef const int64_t[::1] points = self.points_of(cols)
        cdef Index count = points.shape[0]
        cdef unique_ptr[ColumnSet] columns
        if self.is_double:
            columns = self.double_.get().make_columns(count)
        else:
            columns = self.single.get().make_columns(count)
        if count > 0:
            with nogil:
                columns.get().assign(0, &points[0], count)
        return move(columns)

    cdef unique_ptr[ColumnSet] columns_of_other(self, object Z, list keepalive) except *:
        if self.layout == "dense" and scipy.sparse.issparse(Z):
            Z = Z.toarray()  # the other way round the core does it, on all threads
        cdef DataView view = view_of(Z, keepalive)
        cdef unique_ptr[ColumnSet] columns
        if self.is_double:
            columns = self.double_.get().make_columns_of(view)
        else:
            columns = self.single.get().make_columns_of(view)
        return move(columns)

    cdef object fill(self, const int64_t[::1] points, const ColumnSet& columns, object room=None):
        shape = (points.shape[0], columns.size())
        dtype = np.float64 if self.is_double else np.float32
        if room is None or room.dtype != dtype or room.size < shape[0] * shape[1]:
            out = np.empty(shape, dtype=dtype)
        else:
            out = room[: shape[0] * shape[1]].reshape(shape)
        if self.is_double:
            run_rows[double](dereference(self.double_), points, columns, out)
        else:
            run_rows[float](dereference(self.single), points, columns, out)
        return out

    def block(self, rows=None, cols=None):
        """K(rows, cols): row numbers of X, None = all."""
        cdef unique_ptr[ColumnSet] columns = self.columns_of(cols)
        return self.fill(self.points_of(rows), dereference(columns))

    def cross(self, Z, room=None):
        """K(all points, the rows of Z), in the memory of the one-dimensional `room` if that does."""
        keepalive = []
        cdef unique_ptr[ColumnSet] columns = self.columns_of_other(Z, keepalive)
        return self.fill(self.points_of(None), dereference(columns), room)

    def decision(self, points, coef, Z, out=None):
        """Σ_i coef[i, m] K(points[i], z) for the rows z of Z: float64, (rows of Z) × outputs.

        `points` are row numbers of X (None = all), one row of `coef` each; a one-dimensional `coef`
        is one output.
        """
        cdef const int64_t[::1] indices = self.points_of(points)
        coef = np.ascontiguousarray(coef, dtype=np.float64)
        if coef.ndim == 1:
            coef = coef[:, None]
        if coef.ndim != 2 or coef.shape[0] != indices.shape[0]:
            raise ValueError(f"{coef.shape[0]} coefficients for {indices.shape[0]} points")
        keepalive = []
        cdef unique_ptr[ColumnSet] columns = self.columns_of_other(Z, keepalive)
        sums = np.zeros((coef.shape[1], columns.get().size()))
        if self.is_double:
            run_sums[double](dereference(self.double_), indices, coef, dereference(columns), sums)
        else:
            run_sums[float](dereference(self.single), indices, coef, dereference(columns), sums)
        if out is None:
            return np.ascontiguousarray(sums.T)
        out[...] = sums.T
        return out

    def bounded_decision(self, coef, Z):
        """Σ_i coef[i] K(x_i, z) over all points, and a bound on the error of each sum.

        `coef` is one-dimensional. Needs float32 values; None where no error bound is known (kernels
        other than rbf).
        """
        if self.is_double:
            raise ValueError("bounds are for float32 values")
        cdef ValueError_ of_points = self.single.get().value_error()
        if not of_points.is_known:
            return None
        coef = np.asarray(coef, dtype=np.float64)
        moduli = np.abs(coef)
        cdef const double[:, ::1] outputs = np.column_stack([coef, moduli])
        cdef const int64_t[::1] indices = self.points_of(None)
        keepalive = []
        cdef unique_ptr[ColumnSet] columns = self.columns_of_other(Z, keepalive)
        cdef ValueError_ of_columns = self.single.get().value_error_of(dereference(columns))
        sums = np.zeros((2, columns.get().size()))
        run_sums[float](dereference(self.single), indices, outputs, dereference(columns), sums)
        cdef const double[::1] weighed = sums[1]
        bounds = np.empty(columns.get().size())
        cdef double[::1] view = bounds
        cdef Index k
        cdef double worst = 0.0
        cdef double total = moduli.sum()
        for k in range(<Index>of_points.by_point.size()):
            worst = max(worst, of_points.by_point[k])
        worst += of_points.constant
        for k in range(bounds.shape[0]):
            view[k] = sum_error(worst + of_columns.by_point[k], weighed[k], total)
            view[k] += 1e-12 * weighed[k]  # rounding of the float64 sums
        return sums[0], bounds

    def derivative(self, rows, cols, parameter):
        """∂K(rows, cols)/∂log(parameter); names as in `kernel.parameters()`."""
        derived = self.kernel.derivative(parameter)
        gram = Gram(self.X, derived, self.precision, self.threads, self.simd)
        return gram.block(rows, cols)


cdef object mapped(object x, str simd, bint is_tanh):
    cdef Simd chosen = simd_of(simd)
    cdef float[::1] single_in, single_out
    cdef double[::1] double_in, double_out
    x = np.ascontiguousarray(x)
    if x.dtype != np.float32:
        x = x.astype(np.float64, copy=False)
    y = np.empty_like(x)
    if x.size == 0:
        return y
    if x.dtype == np.float32:
        single_in, single_out = x.reshape(-1), y.reshape(-1)
        if is_tanh:
            panel_ops[float](chosen).tanh(&single_in[0], x.size, &single_out[0])
        else:
            panel_ops[float](chosen).exp2(&single_in[0], x.size, &single_out[0])
    else:
        double_in, double_out = x.reshape(-1), y.reshape(-1)
        if is_tanh:
            panel_ops[double](chosen).tanh(&double_in[0], x.size, &double_out[0])
        else:
            panel_ops[double](chosen).exp2(&double_in[0], x.size, &double_out[0])
    return y


def vector_exp2(x, simd="best"):
    """2ˣ for x ≤ 0 as the kernels compute it, in the precision of x (float32 or float64)."""
    return mapped(x, simd, False)


def vector_tanh(x, simd="best"):
    """tanh as the kernels compute it, in the precision of x (float32 or float64)."""
    return mapped(x, simd, True)
