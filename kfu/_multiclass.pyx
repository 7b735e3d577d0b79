"""Thin binding of csrc/kfu/multiclass_dual.h: arrays in, one round at a time without the GIL."""

from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector
from libc.stdint cimport int64_t
from libc.string cimport memcpy

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
        int64_t reductions
        int64_t chunk
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
        int64_t n_sv
        int64_t n_usv


cdef extern from "kfu/multiclass_dual.h" namespace "kfu" nogil:
    cdef enum class MulticlassKind:
        crammer_singer
        weston_watkins

    cdef cppclass MulticlassProblem:
        MulticlassKind kind
        int64_t n_classes
        vector[int64_t] labels
        vector[double] costs
        cbool has_bias

    cdef enum class Precision "kfu::MulticlassSolver::Precision":
        float32
        float64
        automatic

    cdef cppclass MulticlassSolver:
        MulticlassSolver(const DataView&, const Kernel&, MulticlassProblem, vector[double],
                         vector[double], const SolverSettings&, Precision) except +
        Status round() except +
        const Certificate& certificate() except +
        const vector[double]& B()
        vector[double] bias()
        Info info()
        int64_t verification_evaluations()
        double seconds_verification()
        int64_t refinements()
        cbool uses_float64_rows()
        cbool changed_precision()
        Simd simd()
        const char* layout()


cdef dict KINDS = {"crammer-singer": <int>MulticlassKind.crammer_singer,
                   "weston-watkins": <int>MulticlassKind.weston_watkins}
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


cdef object array_of(const vector[double]& values):
    out = np.empty(values.size())
    cdef double[::1] view = out
    if values.size():
        memcpy(&view[0], values.data(), values.size() * sizeof(double))
    return out


cdef class MulticlassRun:
    """One run of the certified multiclass solver, driven round by round.

    `problem` holds kind, n_classes, labels, costs, has_bias, coef (n × n_classes, feasible) and
    bias, the last two None for zeros; `options` holds precision, tolerance, cache_bytes, chunk,
    threads, max_iterations, polish, simd.
    """

    cdef unique_ptr[MulticlassSolver] solver
    cdef int64_t n_classes
    cdef list keepalive

    def __cinit__(self, object X, object kernel, dict problem, dict options):
        self.keepalive = []
        self.n_classes = problem["n_classes"]
        cdef DataView data = view_of(X, self.keepalive)
        cdef Kernel described = kernel_of(kernel, self.keepalive)
        cdef MulticlassProblem task
        task.kind = <MulticlassKind><int>KINDS[problem["kind"]]
        task.n_classes = self.n_classes
        task.labels = indices(problem["labels"])
        task.costs = doubles(problem["costs"])
        task.has_bias = problem["has_bias"]
        cdef vector[double] coef, bias
        if problem["coef"] is not None:
            coef = doubles(np.ravel(problem["coef"]))
        if problem["bias"] is not None:
            bias = doubles(problem["bias"])
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
            self.solver.reset(
                new MulticlassSolver(data, described, task, coef, bias, settings, precision))

    def round(self):
        """One chunk, or a check in float64 with refinement; returns the status by name."""
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
            "kkt_violation": c.kkt_violation, "n_sv": c.n_sv, "n_usv": c.n_usv,
        }

    def coef(self):
        """The current coefficients, n_classes × n."""
        rows = array_of(self.solver.get().B()).reshape(-1, self.n_classes)
        return np.ascontiguousarray(rows.T)

    def bias(self):
        """The current biases, by class."""
        return array_of(self.solver.get().bias())

    def gap(self):
        """The largest violation by the maintained gradient."""
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
            "kernel_evaluations": i.kernel_evaluations, "reductions": i.reductions,
            "chunk": i.chunk,
            "refinements": self.solver.get().refinements(),
            "changed_precision": bool(self.solver.get().changed_precision()),
            "verification_evaluations": self.solver.get().verification_evaluations(),
            "precision": "float64" if self.solver.get().uses_float64_rows() else "float32",
            "simd": SIMD_NAMES[<int>self.solver.get().simd()],
            "layout": self.solver.get().layout().decode(),
        }
