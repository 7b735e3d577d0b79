"""Thin binding of csrc/kfu/rank_solver.h: arrays in, one round at a time without the GIL."""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.utility cimport move
from libcpp.vector cimport vector

import numpy as np

from kfu._gram cimport DataView, Kernel, Simd, kernel_of, simd_of, view_of


cdef extern from "kfu/settings.h" namespace "kfu" nogil:
    cdef cppclass SolverSettings:
        double tolerance
        double cache_bytes
        int64_t chunk
        int threads
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
        int64_t chunk
        double gap
        double seconds_selection
        double seconds_block
        double seconds_subproblem
        double seconds_gradient


cdef extern from "kfu/certified_solver.h" namespace "kfu" nogil:
    cdef enum class Precision:
        float32
        float64
        automatic


cdef extern from "kfu/rank_dual.h" namespace "kfu" nogil:
    cdef cppclass RankProblem:
        vector[int64_t] points
        vector[int32_t] preferred
        vector[int32_t] other
        vector[double] upper
        vector[double] target

    cdef cppclass RankCertificate:
        double objective
        double duality_gap
        double kkt_gap
        int64_t n_sv
        int64_t n_usv


cdef extern from "kfu/rank_solver.h" namespace "kfu" nogil:
    cdef cppclass RankSolver:
        RankSolver(const DataView&, const Kernel&, RankProblem, vector[double],
                   const SolverSettings&, Precision) except +
        Status round() except +
        const RankCertificate& certificate() except +
        const vector[double]& alpha()
        vector[double] coefficients() except +
        Info info()
        int64_t verification_evaluations()
        double seconds_verification()
        int64_t refinements()
        cbool uses_float64()
        cbool changed_precision()
        Simd simd()
        const char* layout()


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


cdef vector[int32_t] short_indices(object values):
    cdef const int32_t[::1] view = np.ascontiguousarray(values, dtype=np.int32)
    cdef vector[int32_t] out
    out.resize(view.shape[0])
    if view.shape[0]:
        memcpy(out.data(), &view[0], view.shape[0] * sizeof(int32_t))
    return out


cdef object array_of(const vector[double]& values):
    out = np.empty(values.size())
    cdef double[::1] view = out
    if values.size():
        memcpy(&view[0], values.data(), values.size() * sizeof(double))
    return out


cdef class RankRun:
    """One run of the ranking solver, driven round by round.

    `arrays` holds points (rows of X that occur in a pair), preferred and other (positions in
    points, by pair), upper, target (None: 1) and alpha (the feasible start). `options` holds
    precision, tolerance, cache_bytes, chunk, threads, max_iterations, polish, simd.
    """

    cdef unique_ptr[RankSolver] solver
    cdef list keepalive

    def __cinit__(self, object X, object kernel, dict arrays, dict options):
        self.keepalive = []
        cdef DataView data = view_of(X, self.keepalive)
        cdef Kernel described = kernel_of(kernel, self.keepalive)
        cdef RankProblem problem
        problem.points = indices(arrays["points"])
        problem.preferred = short_indices(arrays["preferred"])
        problem.other = short_indices(arrays["other"])
        problem.upper = doubles(arrays["upper"])
        if arrays["target"] is not None:
            problem.target = doubles(arrays["target"])
        cdef vector[double] alpha = doubles(arrays["alpha"])
        cdef SolverSettings settings
        settings.tolerance = options["tolerance"]
        settings.cache_bytes = options["cache_bytes"]
        settings.chunk = options["chunk"]
        settings.threads = options["threads"]
        settings.max_iterations = options["max_iterations"]
        settings.polish = options["polish"]
        settings.simd = simd_of(options["simd"])
        cdef Precision precision = <Precision><int>PRECISIONS[options["precision"]]
        with nogil:
            self.solver.reset(new RankSolver(data, described, move(problem), move(alpha), settings,
                                             precision))

    def round(self):
        """One subproblem, or a check in float64 with refinement; returns the status by name."""
        cdef Status status
        with nogil:
            status = self.solver.get().round()
        return STATUS_NAMES[<int>status]

    def certificate(self):
        """The certificate of the current solution, from float64 values of K, as a dict."""
        cdef RankCertificate c
        with nogil:
            c = self.solver.get().certificate()
        return {
            "objective": c.objective, "duality_gap": c.duality_gap, "kkt_gap": c.kkt_gap,
            "n_sv": c.n_sv, "n_usv": c.n_usv,
        }

    def alpha(self):
        """The current dual variables, by pair."""
        return array_of(self.solver.get().alpha())

    def coefficients(self):
        """The expansion γ of f, by row of X."""
        return array_of(self.solver.get().coefficients())

    def gap(self):
        """The largest projected gradient by the maintained g."""
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
            "cache_misses": i.cache_misses, "chunk": i.chunk,
            "refinements": self.solver.get().refinements(),
            "changed_precision": bool(self.solver.get().changed_precision()),
            "verification_evaluations": self.solver.get().verification_evaluations(),
            "precision": "float64" if self.solver.get().uses_float64() else "float32",
            "simd": SIMD_NAMES[<int>self.solver.get().simd()],
            "layout": self.solver.get().layout().decode(),
        }
