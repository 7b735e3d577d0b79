"""Thin binding of csrc/kfu/certified_solver.h: arrays in, one round at a time without the GIL."""

from libcpp cimport bool as cbool
from libcpp.memory cimport make_shared, shared_ptr, unique_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector
from libc.stdint cimport int64_t
from libc.string cimport memcpy

import numpy as np

from kfu._gram cimport DataView, Kernel, Simd, kernel_of, simd_of, view_of


cdef extern from "kfu/dual.h" namespace "kfu" nogil:
    cdef cppclass DualProblem:
        vector[double] linear
        vector[double] lower
        vector[double] upper
        vector[double] ridge
        vector[double] kink
        vector[char] group
        vector[int64_t] points
        cbool has_equality


cdef extern from "kfu/settings.h" namespace "kfu" nogil:
    cdef enum class WorkingSetRule:
        svmfu
        svmlight
        osuna
        keerthi

    cdef enum class PairRule:
        first_order
        second_order

    cdef cppclass SolverSettings:
        double tolerance
        double cache_bytes
        int64_t chunk
        int threads
        WorkingSetRule working_set
        PairRule pair
        cbool shrinking
        int64_t max_iterations
        cbool polish
        Simd simd


cdef extern from "kfu/info.h" namespace "kfu" nogil:
    cdef enum class Status:
        running
        optimal
        max_iterations
        stalled

    cdef cppclass Info:
        int64_t rounds
        int64_t iterations
        int64_t kernel_evaluations
        int64_t cache_hits
        int64_t cache_misses
        int64_t reductions
        int64_t shrinks
        int64_t renewals
        int64_t extrapolations
        int64_t chunk
        int64_t n_active
        double gap
        double seconds_selection
        double seconds_block
        double seconds_subproblem
        double seconds_gradient


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
        double margin
        int64_t n_sv
        int64_t n_usv


cdef extern from "kfu/kernel_store.h" namespace "kfu" nogil:
    cdef cppclass KernelStoreCore "kfu::KernelStore":
        KernelStoreCore(const DataView&, const Kernel&, int, Simd) except +
        double value_cost()
        void share_rows(double) except +


cdef extern from "kfu/certified_solver.h" namespace "kfu" nogil:
    cdef enum class Precision:
        float32
        float64
        automatic

    cdef cppclass CertifiedSolver:
        CertifiedSolver(shared_ptr[KernelStoreCore], DualProblem, vector[double],
                        const SolverSettings&, Precision) except +
        Status round() except +
        const Certificate& certificate() except +
        vector[double] beta()
        double objective()
        Info info()
        int64_t verification_evaluations()
        double seconds_verification()
        int64_t refinements()
        cbool uses_float64_rows()
        cbool changed_precision()
        Simd simd()
        const char* layout()


cdef dict WORKING_SETS = {"svmfu": <int>WorkingSetRule.svmfu,
                          "svmlight": <int>WorkingSetRule.svmlight,
                          "osuna": <int>WorkingSetRule.osuna,
                          "keerthi": <int>WorkingSetRule.keerthi}
cdef dict PAIRS = {"first": <int>PairRule.first_order, "second": <int>PairRule.second_order}
cdef dict PRECISIONS = {"float32": <int>Precision.float32, "float64": <int>Precision.float64,
                        "auto": <int>Precision.automatic}
cdef dict STATUS_NAMES = {<int>Status.running: "running", <int>Status.optimal: "optimal",
                          <int>Status.max_iterations: "max_iterations",
                          <int>Status.stalled: "stalled"}


cdef dict SIMD_NAMES = {<int>Simd.baseline: "baseline", <int>Simd.avx2: "avx2",
                        <int>Simd.avx512: "avx512"}


cdef vector[double] doubles(object values):
    cdef const double[::1] view = np.ascontiguousarray(values, dtype=np.float64)
    cdef vector[double] out
    out.resize(view.shape[0])
    if view.shape[0]:
        memcpy(out.data(), &view[0], view.shape[0] * sizeof(double))
    return out


cdef vector[int64_t] indices(object values):
    cdef const int64_t[::1] view = np.ascontiguousarray(values, dtype=np.int64)
    cdef vector[int64_t] out
    out.resize(view.shape[0])
    if view.shape[0]:
        memcpy(out.data(), &view[0], view.shape[0] * sizeof(int64_t))
    return out


cdef vector[char] chars(object values):
    cdef const signed char[::1] view = np.ascontiguousarray(values, dtype=np.int8)
    cdef vector[char] out
    out.resize(view.shape[0])
    if view.shape[0]:
        memcpy(out.data(), &view[0], view.shape[0])
    return out


cdef class KernelStore:
    """One data set under one kernel, shared by the solvers that work on it (see kernel_store.h)."""

    cdef shared_ptr[KernelStoreCore] core
    cdef list keepalive

    def __cinit__(self, object X, object kernel, int threads, str simd="best"):
        self.keepalive = []
        cdef DataView data = view_of(X, self.keepalive)
        cdef Kernel described = kernel_of(kernel, self.keepalive)
        cdef Simd level = simd_of(simd)
        with nogil:
            self.core = make_shared[KernelStoreCore](data, described, threads, level)

    def value_cost(self):
        """Multiply-adds behind one kernel value."""
        return self.core.get().value_cost()

    def share_rows(self, double n_bytes):
        """Keep full rows for the solvers to come, within so many bytes."""
        with nogil:
            self.core.get().share_rows(n_bytes)


cdef class DualRun:
    """One run of the certified solver on one dual problem, driven round by round.

    `linear`, `lower`, `upper`, `ridge`, `kink` and `beta` are in the signed form of csrc/kfu/dual.h; `points`
    gives the row of X behind each variable. `options` holds working_set, pair, precision, tolerance,
    cache_bytes, chunk, threads, shrinking, max_iterations, simd.
    """

    cdef unique_ptr[CertifiedSolver] solver
    cdef list keepalive

    def __cinit__(self, KernelStore store not None, dict arrays, dict options):
        self.keepalive = store.keepalive
        cdef DualProblem problem
        problem.linear = doubles(arrays["linear"])
        problem.lower = doubles(arrays["lower"])
        problem.upper = doubles(arrays["upper"])
        if arrays.get("ridge") is not None:
            problem.ridge = doubles(arrays["ridge"])
        if arrays.get("kink") is not None:
            problem.kink = doubles(arrays["kink"])
        if arrays.get("group") is not None:
            problem.group = chars(arrays["group"])
        problem.points = indices(arrays["points"])
        problem.has_equality = arrays["has_equality"]
        cdef vector[double] beta = doubles(arrays["beta"])
        cdef SolverSettings settings
        settings.tolerance = options["tolerance"]
        settings.cache_bytes = options["cache_bytes"]
        settings.chunk = options["chunk"]
        settings.threads = options["threads"]
        settings.working_set = <WorkingSetRule><int>WORKING_SETS[options["working_set"]]
        settings.pair = <PairRule><int>PAIRS[options["pair"]]
        settings.shrinking = options["shrinking"]
        settings.max_iterations = options["max_iterations"]
        settings.polish = options["polish"]
        settings.simd = simd_of(options["simd"])
        cdef Precision precision = <Precision><int>PRECISIONS[options["precision"]]
        with nogil:
            self.solver.reset(
                new CertifiedSolver(store.core, problem, beta, settings, precision))

    def round(self):
        """One subproblem, or a check in float64 with refinement; returns the status by name."""
        cdef Status status
        with nogil:
            status = self.solver.get().round()
        return STATUS_NAMES[<int>status]

    def certificate(self):
        """The certificate of the current solution, from float64 values of K, as a dict."""
        cdef Certificate c
        with nogil:
            c = self.solver.get().certificate()
        return {
            "objective": c.objective, "duality_gap": c.duality_gap, "kkt_gap": c.kkt_gap,
            "kkt_violation": c.kkt_violation, "bias": c.bias, "bias_std": c.bias_std,
            "bias_interval": (c.bias_low, c.bias_high), "n_sv": c.n_sv, "n_usv": c.n_usv,
            "margin": c.margin,
        }

    def beta(self):
        """The current signed coefficients, by variable."""
        cdef vector[double] values = self.solver.get().beta()
        out = np.empty(values.size())
        cdef double[::1] view = out
        if values.size():
            memcpy(&view[0], values.data(), values.size() * sizeof(double))
        return out

    def objective(self):
        """The dual by the maintained gradient; that of variables set aside may be out of date."""
        return self.solver.get().objective()

    def gap(self):
        """The gap of the maximal violating pair by the maintained gradient."""
        return self.solver.get().info().gap

    def seconds(self):
        """Where the time of the rounds and of the certificate went, as a dict."""
        cdef Info i = self.solver.get().info()
        return {
            "selection": i.seconds_selection, "block": i.seconds_block,
            "subproblem": i.seconds_subproblem, "gradient": i.seconds_gradient,
            "verification": self.solver.get().seconds_verification(),
        }

    def counters(self):
        """Counters of the run and the code path taken, as a dict."""
        cdef Info i = self.solver.get().info()
        return {
            "rounds": i.rounds, "iterations": i.iterations,
            "kernel_evaluations": i.kernel_evaluations, "cache_hits": i.cache_hits,
            "cache_misses": i.cache_misses, "reductions": i.reductions, "shrinks": i.shrinks,
            "renewals": i.renewals, "extrapolations": i.extrapolations,
            "chunk": i.chunk, "refinements": self.solver.get().refinements(),
            "changed_precision": bool(self.solver.get().changed_precision()),
            "verification_evaluations": self.solver.get().verification_evaluations(),
            "precision": "float64" if self.solver.get().uses_float64_rows() else "float32",
            "simd": SIMD_NAMES[<int>self.solver.get().simd()],
            "layout": self.solver.get().layout().decode(),
        }
