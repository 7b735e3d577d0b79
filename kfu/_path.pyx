"""Thin binding of csrc/kfu/parametric_run.h: arrays in, breakpoints out, the GIL released."""

from cython.operator cimport dereference
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.memory cimport make_shared, shared_ptr, unique_ptr
from libcpp.vector cimport vector
from scipy.linalg.cython_blas cimport dgemm, dgemv, drot, dtrsm, dtrsv
from scipy.linalg.cython_lapack cimport dpotrf

import numpy as np

from kfu._gram cimport DataView, Kernel, Simd, kernel_of, simd_of, view_of


cdef extern from "kfu/lapack.h" namespace "kfu" nogil:
    cdef cppclass Lapack:
        pass


cdef extern from *:
    """
    #include "kfu/lapack.h"
    static kfu::Lapack kfu_lapack(void* trsv, void* rot, void* trsm, void* gemv, void* gemm,
                                  void* potrf) {
      kfu::Lapack lapack;
      lapack.dtrsv = reinterpret_cast<kfu::Lapack::Trsv>(trsv);
      lapack.drot = reinterpret_cast<kfu::Lapack::Rot>(rot);
      lapack.dtrsm = reinterpret_cast<kfu::Lapack::Trsm>(trsm);
      lapack.dgemv = reinterpret_cast<kfu::Lapack::Gemv>(gemv);
      lapack.dgemm = reinterpret_cast<kfu::Lapack::Gemm>(gemm);
      lapack.dpotrf = reinterpret_cast<kfu::Lapack::Potrf>(potrf);
      return lapack;
    }
    """
    Lapack kfu_lapack(void* trsv, void* rot, void* trsm, void* gemv, void* gemm,
                      void* potrf) nogil


cdef extern from "kfu/kernel_store.h" namespace "kfu" nogil:
    cdef cppclass KernelStoreCore "kfu::KernelStore":
        KernelStoreCore(const DataView&, const Kernel&, int, Simd) except +


cdef extern from "kfu/kernel_rows.h" namespace "kfu" nogil:
    cdef cppclass KernelRowsCore "kfu::KernelRows":
        KernelRowsCore(shared_ptr[KernelStoreCore], vector[int64_t], const DataView*,
                       double) except +
        void fill() except +
        cbool is_full()
        int64_t n_variables()
        int64_t n_watched()
        int64_t evaluations()


cdef extern from "kfu/parametric_problem.h" namespace "kfu" nogil:
    cdef cppclass Moving:
        vector[double] value
        vector[double] rate

    cdef cppclass ProblemCore "kfu::ParametricProblem":
        Moving linear
        Moving lower
        Moving upper
        Moving kink
        vector[double] ridge
        vector[char] group
        cbool has_equality
        double total[2]
        double total_rate[2]
        vector[int64_t] points

    cdef enum class Place(signed char):
        lower
        upper
        kink
        free
        free_below


cdef extern from "kfu/parametric_run.h" namespace "kfu" nogil:
    cdef cppclass SettingsCore "kfu::ParametricSettings":
        int threads
        cbool stop_without_bound
        cbool records
        vector[signed char] labels
        vector[signed char] watched_labels

    cdef enum class PathStatus:
        running
        done
        no_bound
        infeasible
        indefinite
        stuck

    cdef cppclass Breakpoint:
        double t
        double theta[2]
        double objective
        double kkt
        int64_t n_free
        int64_t n_bound
        int64_t n_null
        int64_t errors[2]
        int64_t end_of_events

    cdef cppclass PlaceChange:
        int64_t item
        Place place

    cdef cppclass SignChange:
        double t
        int64_t row
        int set
        int change

    cdef cppclass RunCore "kfu::ParametricRun":
        RunCore(shared_ptr[KernelRowsCore], ProblemCore, const vector[double]&, double,
                const SettingsCore&, const Lapack&) except +
        RunCore(const RunCore&) except +
        PathStatus advance(double stop, int64_t most_steps) except +
        PathStatus close_boxes(const int64_t* items, int64_t count, const double* change) except +
        int64_t n_free()
        double t()
        PathStatus status()
        const vector[double]& beta()
        const vector[Place]& places()
        const vector[Place]& first_places()
        double theta(int g)
        double theta_low(int g)
        double theta_high(int g)
        double output(int64_t k)
        const vector[Breakpoint]& breakpoints()
        const vector[PlaceChange]& events()
        const vector[SignChange]& sign_changes()
        int64_t steps()
        int64_t corrections()
        int64_t restarts()
        int64_t refactorings()
        double drift()
        double residual()


cdef extern from "kfu/parametric_tableau.h" namespace "kfu" nogil:
    cdef cppclass TableauCore "kfu::ParametricTableau":
        TableauCore(const RunCore&, double) except +
        cbool is_there()
        int64_t n_bounded()
        void project(int64_t first, int64_t last) except +
        void make_totals() except +
        void make_columns(const int64_t* variables, int64_t first, int64_t last) except +


cdef extern from "kfu/parametric_closing.h" namespace "kfu" nogil:
    cdef cppclass ClosingCore "kfu::ParametricClosing":
        ClosingCore(const TableauCore&) except +
        cbool close(const int64_t* items, int64_t count, const double* change) except +
        double output()
        double theta(int g)
        int64_t steps()


cdef dict STATUS = {
    <int>PathStatus.running: "running", <int>PathStatus.done: "done",
    <int>PathStatus.no_bound: "hard_margin", <int>PathStatus.infeasible: "infeasible",
    <int>PathStatus.indefinite: "indefinite", <int>PathStatus.stuck: "stuck",
}


cdef vector[double] doubles(object values):
    cdef const double[::1] view = np.ascontiguousarray(values, dtype=np.float64)
    cdef vector[double] out
    out.resize(view.shape[0])
    if view.shape[0]:
        memcpy(out.data(), &view[0], view.shape[0] * sizeof(double))
    return out


cdef vector[signed char] signs(object values):
    cdef const signed char[::1] view = np.ascontiguousarray(values, dtype=np.int8)
    cdef vector[signed char] out
    out.resize(view.shape[0])
    if view.shape[0]:
        memcpy(out.data(), &view[0], view.shape[0])
    return out


cdef void fill_moving(Moving& moving, object value, object rate) except *:
    if value is not None:
        moving.value = doubles(value)
    if rate is not None and np.any(rate):
        moving.rate = doubles(rate)


cdef class KernelRows:
    """Rows of K in float64 for the paths over the rows `points` of X; see kernel_rows.h."""

    cdef shared_ptr[KernelRowsCore] core
    cdef list keepalive

    def __cinit__(self, object X, object kernel, object points, object watched, double n_bytes,
                  int threads=1, str simd="best"):
        self.keepalive = []
        cdef DataView data = view_of(X, self.keepalive)
        cdef Kernel described = kernel_of(kernel, self.keepalive)
        cdef Simd level = simd_of(simd)
        cdef DataView other
        cdef DataView* pointer = NULL
        if watched is not None:
            other = view_of(watched, self.keepalive)
            pointer = &other
        cdef const int64_t[::1] view = np.ascontiguousarray(points, dtype=np.int64)
        cdef vector[int64_t] rows
        rows.resize(view.shape[0])
        if view.shape[0]:
            memcpy(rows.data(), &view[0], view.shape[0] * sizeof(int64_t))
        cdef shared_ptr[KernelStoreCore] store
        with nogil:
            store = make_shared[KernelStoreCore](data, described, threads, level)
            self.core = make_shared[KernelRowsCore](store, rows, pointer, n_bytes)
            self.core.get().fill()

    @property
    def is_full(self):
        """Whether all rows are kept: then several threads only read them."""
        return bool(self.core.get().is_full())

    @property
    def evaluations(self):
        return self.core.get().evaluations()


cdef class ParametricRun:
    """The solution of one parametric problem, followed as t moves.

    `arrays` holds linear, lower, upper, kink, each with its _rate (or None), ridge, group,
    has_equality, total, total_rate, points; `options` threads, stop_without_bound, records, labels,
    watched_labels.
    """

    cdef unique_ptr[RunCore] run
    cdef KernelRows rows

    def __cinit__(self, KernelRows rows=None, dict arrays=None, object beta=None, double t=0.0,
                  dict options=None):
        if rows is None:
            return
        self.rows = rows
        cdef ProblemCore problem
        fill_moving(problem.linear, arrays["linear"], arrays["linear_rate"])
        fill_moving(problem.lower, arrays["lower"], arrays["lower_rate"])
        fill_moving(problem.upper, arrays["upper"], arrays["upper_rate"])
        fill_moving(problem.kink, arrays["kink"], arrays["kink_rate"])
        if arrays["ridge"] is not None:
            problem.ridge = doubles(arrays["ridge"])
        cdef const signed char[::1] groups
        if arrays["group"] is not None:
            groups = np.ascontiguousarray(arrays["group"], dtype=np.int8)
            problem.group.resize(groups.shape[0])
            memcpy(problem.group.data(), &groups[0], groups.shape[0])
        problem.has_equality = arrays["has_equality"]
        for g, (total, rate) in enumerate(zip(arrays["total"], arrays["total_rate"])):
            problem.total[g] = total
            problem.total_rate[g] = rate
        cdef SettingsCore settings
        settings.threads = options["threads"]
        settings.stop_without_bound = options["stop_without_bound"]
        settings.records = options["records"]
        if options["labels"] is not None:
            settings.labels = signs(options["labels"])
        if options["watched_labels"] is not None:
            settings.watched_labels = signs(options["watched_labels"])
        cdef vector[double] start = doubles(beta)
        cdef Lapack lapack = kfu_lapack(<void*>dtrsv, <void*>drot, <void*>dtrsm, <void*>dgemv,
                                        <void*>dgemm, <void*>dpotrf)
        with nogil:
            self.run.reset(new RunCore(rows.core, problem, start, t, settings, lapack))

    def advance(self, double stop, int64_t most_steps):
        """Follow the path towards `stop` for so many breakpoints; returns the status by name."""
        cdef PathStatus status
        with nogil:
            status = self.run.get().advance(stop, most_steps)
        return STATUS[<int>status]

    @property
    def status(self):
        return STATUS[<int>self.run.get().status()]

    @property
    def t(self):
        return self.run.get().t()

    def counters(self):
        cdef RunCore* run = self.run.get()
        return {"steps": run.steps(), "corrections": run.corrections(),
                "restarts": run.restarts(), "refactorings": run.refactorings(),
                "drift": run.drift(), "residual": run.residual(),
                "kernel_evaluations": self.rows.evaluations}

    def beta(self):
        cdef const vector[double]* values = &self.run.get().beta()
        out = np.empty(values.size())
        cdef double[::1] view = out
        if values.size():
            memcpy(&view[0], values.data(), values.size() * sizeof(double))
        return out

    def theta(self):
        """θ of either group, and the ends of their intervals: (2,), (2,), (2,)."""
        cdef RunCore* run = self.run.get()
        return (np.array([run.theta(0), run.theta(1)]),
                np.array([run.theta_low(0), run.theta_low(1)]),
                np.array([run.theta_high(0), run.theta_high(1)]))

    def outputs(self):
        """(K + ridge)β of the variables, then Kβ of the watched points."""
        cdef int64_t k, n = self.rows.core.get().n_variables() + self.rows.core.get().n_watched()
        out = np.empty(n)
        cdef double[::1] view = out
        for k in range(n):
            view[k] = self.run.get().output(k)
        return out

    def places(self):
        return copy_places(self.run.get().places())

    def first_places(self):
        return copy_places(self.run.get().first_places())

    def n_free(self):
        return self.run.get().n_free()

    def n_breakpoints(self):
        return self.run.get().breakpoints().size()

    def breakpoints(self, int64_t first=0):
        """Columns of the breakpoints from `first` on, as a dict of arrays."""
        cdef const vector[Breakpoint]* found = &self.run.get().breakpoints()
        cdef int64_t k, n = found.size() - first
        reals = np.empty((5, n))
        counts = np.empty((6, n), dtype=np.int64)
        cdef double[:, ::1] r = reals
        cdef int64_t[:, ::1] c = counts
        cdef const Breakpoint* b
        for k in range(n):
            b = &dereference(found)[first + k]
            r[0, k] = b.t
            r[1, k] = b.theta[0]
            r[2, k] = b.theta[1]
            r[3, k] = b.objective
            r[4, k] = b.kkt
            c[0, k] = b.n_free
            c[1, k] = b.n_bound
            c[2, k] = b.n_null
            c[3, k] = b.errors[0]
            c[4, k] = b.errors[1]
            c[5, k] = b.end_of_events
        return {"t": reals[0], "theta": reals[1:3].T.copy(), "objective": reals[3],
                "kkt": reals[4], "n_free": counts[0], "n_bound": counts[1], "n_null": counts[2],
                "train_errors": counts[3], "watch_errors": counts[4], "event_end": counts[5]}

    def events(self, int64_t first=0):
        """(items, new places) of the events from `first` on."""
        cdef const vector[PlaceChange]* found = &self.run.get().events()
        cdef int64_t k, n = found.size() - first
        items = np.empty(n, dtype=np.int64)
        places = np.empty(n, dtype=np.int8)
        cdef int64_t[::1] i = items
        cdef signed char[::1] p = places
        for k in range(n):
            i[k] = dereference(found)[first + k].item
            p[k] = <signed char>dereference(found)[first + k].place
        return items, places

    def sign_changes(self, int64_t first=0):
        """(t, row, set, change) of the changes of sign from `first` on."""
        cdef const vector[SignChange]* found = &self.run.get().sign_changes()
        cdef int64_t k, n = found.size() - first
        at = np.empty(n)
        rows = np.empty(n, dtype=np.int64)
        sets = np.empty(n, dtype=np.int8)
        changes = np.empty(n, dtype=np.int8)
        cdef double[::1] a = at
        cdef int64_t[::1] r = rows
        cdef signed char[::1] s = sets
        cdef signed char[::1] d = changes
        for k in range(n):
            a[k] = dereference(found)[first + k].t
            r[k] = dereference(found)[first + k].row
            s[k] = dereference(found)[first + k].set
            d[k] = dereference(found)[first + k].change
        return at, rows, sets, changes


cdef class Tableau:
    """What leaves rows out of the solution of a run, which is exact and stays as it is; see
    parametric_tableau.h. Columns are kept in `n_bytes`.

    Made by project() for all parts of [0, n_bounded), make_totals(), and make_columns() for all
    parts of the list of variables; parts may be made by several threads. `is_there` is False where
    there is none, and rows are left out by paths of their own.
    """

    cdef unique_ptr[TableauCore] tableau
    cdef ParametricRun run

    def __cinit__(self, ParametricRun run, double n_bytes):
        self.run = run
        with nogil:
            self.tableau.reset(new TableauCore(dereference(run.run), n_bytes))

    @property
    def is_there(self):
        return bool(self.tableau.get().is_there())

    @property
    def n_bounded(self):
        return self.tableau.get().n_bounded()

    def project(self, int64_t first, int64_t last):
        with nogil:
            self.tableau.get().project(first, last)

    def make_totals(self):
        with nogil:
            self.tableau.get().make_totals()

    def make_columns(self, const int64_t[::1] variables, int64_t first, int64_t last):
        with nogil:
            self.tableau.get().make_columns(&variables[0], first, last)

    def outputs_without(self, const int64_t[:, ::1] items, const double[:, ::1] changes,
                        double[::1] outputs, double[:, ::1] thetas, int64_t[::1] steps):
        """For each row of `items` (variables that are left out together): the output K_p·β of the
        first, and θ of either group, when their boxes are closed and the totals change by `changes`.
        steps[k] is the number of stretches on the way by the tableau, −1 where the way was a path of
        its own and −2 where none was found."""
        cdef int64_t k
        cdef int g
        cdef cbool is_there = self.tableau.get().is_there()
        cdef unique_ptr[ClosingCore] closing
        cdef unique_ptr[RunCore] copy
        with nogil:
            closing.reset(new ClosingCore(dereference(self.tableau)))
            for k in range(items.shape[0]):
                if is_there and closing.get().close(&items[k, 0], items.shape[1], &changes[k, 0]):
                    steps[k] = closing.get().steps()
                    outputs[k] = closing.get().output()
                    for g in range(2):
                        thetas[k, g] = closing.get().theta(g)
                    continue
                copy.reset(new RunCore(dereference(self.run.run)))
                steps[k] = -1
                if copy.get().close_boxes(&items[k, 0], items.shape[1],
                                          &changes[k, 0]) != PathStatus.running:
                    steps[k] = -2
                outputs[k] = copy.get().output(items[k, 0])
                for g in range(2):
                    thetas[k, g] = copy.get().theta(g)


cdef object copy_places(const vector[Place]& places):
    out = np.empty(places.size(), dtype=np.int8)
    cdef signed char[::1] view = out
    cdef size_t k
    for k in range(places.size()):
        view[k] = <signed char>places[k]
    return out
