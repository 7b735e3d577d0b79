"""Thin binding of csrc/kfu/linear_*.h: coordinate descent, passes over rows, and the certificate."""

from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector
from libc.stdint cimport int64_t
from libc.string cimport memcpy

import numpy as np

from kfu._gram cimport DataView, view_of


cdef extern from "kfu/dual.h" namespace "kfu" nogil:
    cdef cppclass DualProblem:
        vector[double] linear
        vector[double] lower
        vector[double] upper
        vector[double] ridge
        vector[double] kink
        vector[int64_t] points
        cbool has_equality


cdef extern from "kfu/certificate.h" namespace "kfu" nogil:
    cdef cppclass Certificate:
        double objective
        double duality_gap
        double kkt_gap
        double kkt_violation
        double bias
        double bias_std
        double bias_low
        double bias_high
        int64_t n_sv
        int64_t n_usv

    Certificate certify(const DualProblem&, const vector[double]&, const vector[double]&) except +


cdef extern from "kfu/linear_rows.h" namespace "kfu" nogil:
    cdef cppclass CRows "kfu::LinearRows":
        CRows(const DataView&, vector[int64_t], int) except +
        int64_t size()
        int64_t n_features()
        void squares(double*) except +
        void apply(const int64_t*, int64_t, const double*, double*) except +
        void add(const int64_t*, int64_t, const double*, double*) except +
        void add_outer(const int64_t*, int64_t, const double*, const double*, double*) except +


cdef extern from "kfu/linear_dual.h" namespace "kfu" nogil:
    cdef cppclass Epoch:
        double gap
        int64_t steps
        int64_t visits
        int64_t n_active
        cbool finished

    cdef cppclass CDescent "kfu::LinearDual":
        CDescent(const CRows&, const DualProblem&, vector[double], double, cbool) except +
        Epoch descend(int64_t) except +
        void unshrink() except +
        void reset(const vector[double]&, double) except +
        vector[double] beta()
        double theta()
        double imbalance()
        int64_t shrinks()


cdef extern from "kfu/linear_normal.h" namespace "kfu" nogil:
    cdef cppclass CNormalProducts "kfu::NormalProducts":
        CNormalProducts(const DataView&, const double*, const double*, double) except +
        int64_t n_rows()
        int64_t n_features()
        void of_rows(const double*, int64_t, double*) except +
        void of_features(const double*, int64_t, double*) except +


cdef extern from "kfu/linear_proximal.h" namespace "kfu" nogil:
    cdef cppclass ProximalArrays:
        int64_t n
        const double* centre
        const double* weight
        const double* lower
        const double* upper
        const double* kink
        const double* score

    cdef cppclass ProximalSlope:
        double first
        double second

    int64_t proximal_point(const ProximalArrays&, double*, int64_t*)
    ProximalSlope proximal_slope(const ProximalArrays&, const double*, double, int) except +


cdef vector[double] doubles(object values):
    cdef const double[::1] view = np.ascontiguousarray(values, dtype=np.float64)
    cdef vector[double] out
    out.resize(view.shape[0])
    if view.shape[0]:
        memcpy(out.data(), &view[0], view.shape[0] * sizeof(double))
    return out


cdef vector[int64_t] integers(object values):
    cdef const int64_t[::1] view = np.ascontiguousarray(values, dtype=np.int64)
    cdef vector[int64_t] out
    out.resize(view.shape[0])
    if view.shape[0]:
        memcpy(out.data(), &view[0], view.shape[0] * sizeof(int64_t))
    return out


cdef object array_of(const vector[double]& values):
    out = np.empty(values.size())
    cdef double[::1] view = out
    if values.size():
        memcpy(&view[0], values.data(), values.size() * sizeof(double))
    return out


# Addresses that are valid for empty arrays too.
cdef inline const double* start_of(const double[::1] view) noexcept nogil:
    return &view[0] if view.shape[0] else NULL


cdef class LinearProblem:
    """A dual problem over the rows of X under the plain linear kernel, and passes over its rows.

    `arrays` is the signed form of kfu.solvers.DualProblem; variables are numbered as there.
    """

    cdef unique_ptr[CRows] rows
    cdef DualProblem problem
    cdef list keepalive
    cdef int threads
    cdef readonly object layout

    def __cinit__(self, object X, dict arrays, int threads):
        self.keepalive = []
        self.threads = threads
        cdef DataView data = view_of(X, self.keepalive)
        self.layout = "csr" if data.is_csr else "dense"
        points = np.ascontiguousarray(arrays["points"], dtype=np.int64)
        if points.size and (points.min() < 0 or points.max() >= data.n):
            raise IndexError(f"a point is outside 0..{data.n - 1}")
        if points.size >= 2**31:
            raise ValueError(f"{points.size} variables; at most 2147483647 are supported")
        self.problem.linear = doubles(arrays["linear"])
        self.problem.lower = doubles(arrays["lower"])
        self.problem.upper = doubles(arrays["upper"])
        if arrays.get("ridge") is not None:
            self.problem.ridge = doubles(arrays["ridge"])
        if arrays.get("kink") is not None:
            self.problem.kink = doubles(arrays["kink"])
        if arrays.get("group") is not None:
            raise ValueError("the linear solver knows one equality only")
        self.problem.points = integers(points)
        self.problem.has_equality = arrays["has_equality"]
        self.rows.reset(new CRows(data, self.problem.points, threads))

    @property
    def n_features(self):
        return self.rows.get().n_features()

    def squares(self):
        """‖x‖² of every variable."""
        cdef double[::1] out = np.empty(self.rows.get().size())
        if out.shape[0]:
            with nogil:
                self.rows.get().squares(&out[0])
        return np.asarray(out)

    def apply(self, const double[::1] w, const int64_t[::1] which=None):
        """x · w for the variables `which`, in their order (None: all)."""
        cdef int64_t count = self.rows.get().size() if which is None else which.shape[0]
        cdef double[::1] out = np.empty(count)
        if w.shape[0] != self.rows.get().n_features():
            raise ValueError("w has another number of features")
        cdef const int64_t* chosen = NULL
        if count:
            if which is not None:
                chosen = &which[0]
            with nogil:
                self.rows.get().apply(chosen, count, start_of(w), &out[0])
        return np.asarray(out)

    def add(self, const double[::1] coef, const int64_t[::1] which=None):
        """Σ coef x over the variables `which` (None: all)."""
        cdef int64_t count = self.rows.get().size() if which is None else which.shape[0]
        if coef.shape[0] != count:
            raise ValueError("as many coefficients as variables are needed")
        cdef double[::1] out = np.zeros(self.rows.get().n_features())
        cdef const int64_t* chosen = NULL
        if count and out.shape[0]:
            if which is not None:
                chosen = &which[0]
            with nogil:
                self.rows.get().add(chosen, count, &coef[0], &out[0])
        return np.asarray(out)

    def add_outer(self, const int64_t[::1] which, const double[::1] weight,
                  const double[::1] mean, double[:, ::1] H):
        """Lower triangle of H += Σ weight (x − mean)(x − mean)ᵀ over the variables `which`.

        `mean` is their weighted mean or zero.
        """
        cdef int64_t count = which.shape[0], d = self.rows.get().n_features()
        if weight.shape[0] != count or mean.shape[0] != d or not (H.shape[0] == H.shape[1] == d):
            raise ValueError("a weight per variable, a mean of d and H of d × d are needed")
        if count and d:
            with nogil:
                self.rows.get().add_outer(&which[0], count, &weight[0], &mean[0], &H[0, 0])

    def gradient(self, beta):
        """F at β, from scratch, in float64."""
        F = self.apply(self.add(beta))
        F += array_of(self.problem.linear)
        if self.problem.ridge.size():
            F += array_of(self.problem.ridge) * beta
        return F

    def certificate(self, beta, F):
        """The certificate of csrc/kfu/certificate.h at β with the gradient F, as a dict."""
        cdef Certificate c = certify(self.problem, doubles(beta), doubles(F))
        return {
            "objective": c.objective, "duality_gap": c.duality_gap, "kkt_gap": c.kkt_gap,
            "kkt_violation": c.kkt_violation, "bias": c.bias, "bias_std": c.bias_std,
            "bias_interval": (c.bias_low, c.bias_high), "n_sv": c.n_sv, "n_usv": c.n_usv,
        }

    cdef ProximalArrays proximal_arrays(self, const double[::1] centre, const double[::1] weight,
                                        const double[::1] score) except *:
        cdef ProximalArrays arrays
        arrays.n = self.rows.get().size()
        if not (centre.shape[0] == weight.shape[0] == score.shape[0] == arrays.n):
            raise ValueError("arrays of different lengths")
        arrays.centre = start_of(centre)
        arrays.weight = start_of(weight)
        arrays.lower = self.problem.lower.data()
        arrays.upper = self.problem.upper.data()
        arrays.kink = self.problem.kink.data() if self.problem.kink.size() else NULL
        arrays.score = start_of(score)
        return arrays

    def proximal_point(self, centre, weight, score):
        """β(score) of csrc/kfu/linear_proximal.h and the variables inside."""
        cdef ProximalArrays arrays = self.proximal_arrays(centre, weight, score)
        cdef double[::1] beta = np.empty(arrays.n)
        cdef int64_t[::1] inside = np.empty(arrays.n, dtype=np.int64)
        cdef int64_t count = 0
        if arrays.n:
            with nogil:
                count = proximal_point(arrays, &beta[0], &inside[0])
        return np.asarray(beta), np.asarray(inside)[:count]

    def proximal_slope(self, centre, weight, score, const double[::1] direction, double t):
        """(Σ (β − centre) ds, Σ weight ds² over the inside) at score + t·direction."""
        cdef ProximalArrays arrays = self.proximal_arrays(centre, weight, score)
        if direction.shape[0] != arrays.n:
            raise ValueError("arrays of different lengths")
        cdef ProximalSlope slope
        with nogil:
            slope = proximal_slope(arrays, start_of(direction), t, self.threads)
        return slope.first, slope.second


cdef class Descent:
    """Dual coordinate descent on a LinearProblem, one epoch at a time without the GIL."""

    cdef unique_ptr[CDescent] descent
    cdef LinearProblem problem

    def __cinit__(self, LinearProblem problem, beta, double penalty, cbool shrinking):
        self.problem = problem
        self.descent.reset(new CDescent(problem.rows.get()[0], problem.problem, doubles(beta),
                                        penalty, shrinking))

    def epoch(self, int64_t most_steps):
        """One epoch of at most `most_steps` steps; what it saw, as a dict."""
        cdef Epoch e
        with nogil:
            e = self.descent.get().descend(most_steps)
        return {"gap": e.gap, "steps": e.steps, "visits": e.visits, "n_active": e.n_active,
                "finished": bool(e.finished)}

    def unshrink(self):
        self.descent.get().unshrink()

    def reset(self, beta, double theta):
        """Start again from β and the multiplier θ."""
        self.descent.get().reset(doubles(beta), theta)

    def beta(self):
        return array_of(self.descent.get().beta())

    @property
    def theta(self):
        return self.descent.get().theta()

    @property
    def imbalance(self):
        """Σβ − c."""
        return self.descent.get().imbalance()

    @property
    def shrinks(self):
        return self.descent.get().shrinks()


cdef class NormalProducts:
    """Products with the normal equations of CSR rows X (csrc/kfu/linear_normal.h).

    root: √w of the rows or None; mean: what an intercept takes from the rows (d) or None.
    """

    cdef unique_ptr[CNormalProducts] products
    cdef list keepalive

    def __cinit__(self, object X, root, mean, double ridge):
        self.keepalive = []
        cdef DataView data = view_of(X, self.keepalive)
        cdef const double[::1] roots, means
        cdef const double* root_start = NULL
        cdef const double* mean_start = NULL
        if root is not None:
            roots = root
            if roots.shape[0] != data.n:
                raise ValueError("a root of the weight for every row is needed")
            root_start = start_of(roots)
        if mean is not None:
            means = mean
            if means.shape[0] != data.d:
                raise ValueError("a mean for every feature is needed")
            mean_start = start_of(means)
        self.keepalive.append((root, mean))
        self.products.reset(new CNormalProducts(data, root_start, mean_start, ridge))

    def of_rows(self, const double[:, ::1] P):
        """(A Aᵀ + ridge I) P for P (n, t)."""
        if P.shape[0] != self.products.get().n_rows():
            raise ValueError("P needs as many rows as X")
        cdef double[:, ::1] out = np.empty((P.shape[0], P.shape[1]))
        if P.shape[0] and P.shape[1]:
            with nogil:
                self.products.get().of_rows(&P[0, 0], P.shape[1], &out[0, 0])
        return np.asarray(out)

    def of_features(self, const double[:, ::1] P):
        """(AᵀA + ridge I) P for P (d, t)."""
        if P.shape[0] != self.products.get().n_features():
            raise ValueError("P needs as many rows as X has features")
        cdef double[:, ::1] out = np.empty((P.shape[0], P.shape[1]))
        if P.shape[0] and P.shape[1]:
            with nogil:
                self.products.get().of_features(&P[0, 0], P.shape[1], &out[0, 0])
        return np.asarray(out)
