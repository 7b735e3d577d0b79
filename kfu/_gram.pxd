# C-level interface of the Gram: what other extension modules cimport.
from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector

ctypedef int64_t Index


cdef extern from "kfu/types.h" namespace "kfu" nogil:
    cdef cppclass DataView:
        Index n
        Index d
        const void* values
        cbool is_double
        cbool is_csr
        Index ld
        const int64_t* indptr
        const int32_t* indices

    cdef enum class Simd:
        baseline
        avx2
        avx512
        best


cdef extern from "kfu/kernels.h" namespace "kfu" nogil:
    cdef enum class Form:
        value
        slope
        d_gamma
        d_coef0

    cdef cppclass LeafInfo:
        const char* name
        const char* formula
        cbool has_gamma
        cbool is_per_feature
        cbool has_coef0
        cbool has_degree
        cbool needs_non_negative
        cbool is_psd
        cbool is_internal

    cdef cppclass Leaf:
        int kind
        Form form
        double gamma
        double coef0
        int degree
        vector[double] scale

    cdef cppclass Term:
        double weight
        vector[Leaf] leaves

    cdef cppclass Kernel:
        vector[Term] terms

    int kernel_count()
    const LeafInfo& kernel_info(int kind)
    int kernel_kind(const char* name)


cdef extern from "kfu/gram.h" namespace "kfu" nogil:
    cdef cppclass ColumnSet:
        Index size()
        void assign(Index first, const Index* points, Index count) except +
        void assign_slots(const Index* slots, const Index* points, Index count) except +
        void truncate(Index size)

    cdef cppclass ValueError_ "kfu::ValueError":
        cbool is_known
        double constant
        vector[double] by_point

    double sum_error(double error, double weighed, double total)

    cdef cppclass KeepRows[T]:
        KeepRows()

    cdef cppclass CGram "kfu::Gram"[T]:
        Index size()
        Simd simd()
        const char* layout()
        void diagonal(double* out) except +
        ValueError_ value_error() except +
        ValueError_ value_error_of(const ColumnSet& columns) except +
        unique_ptr[ColumnSet] make_columns(Index capacity) except +
        unique_ptr[ColumnSet] make_columns_of(const DataView& other) except +
        void rows(const Index* points, Index n_rows, const ColumnSet& columns, Index first,
                  Index last, T** out) except +
        void accumulate(const Index* points, const double* coef, Index n_rows, Index n_outputs,
                        const ColumnSet& columns, Index first, Index last, double* sums,
                        Index ld_sums, const KeepRows[T]& keep) except +

    unique_ptr[CGram[T]] make_gram[T](const DataView& data, const Kernel& kernel, int threads,
                                      Simd simd) except +


# A borrowed view of X; the arrays it points into are appended to `keepalive`.
cdef DataView view_of(object X, list keepalive) except *

# The C++ form of a resolved KernelSpec.
cdef Kernel kernel_of(object spec, list keepalive) except *

# The instruction set called `name` ("best", "baseline", "avx2", "avx512").
cdef Simd simd_of(str name) except *
