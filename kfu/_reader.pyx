# distutils: language = c++
"""Thin border over the text readers and writers of csrc (text_*.h): views in, arrays out.

What is wrong with a text comes back as a ``Fault`` (numbers only); kfu.io turns it into a
message. Every call that reads or writes text releases the interpreter lock.
"""

from typing import NamedTuple

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t
from libcpp.string cimport string
from libcpp.vector cimport vector

cnp.import_array()


ctypedef fused Real:
    float
    double

ctypedef fused Integer:
    int32_t
    int64_t


class Fault(NamedTuple):
    """What the parser met: see ``enum class Fault`` in csrc/kfu/text_blocks.h."""

    kind: int
    line: int
    offset: int
    length: int
    index: int
    previous: int


class Summary(NamedTuple):
    """What a text contains, or the fault that ended the parsing."""

    fault: object
    n_rows: int
    n_entries: int
    max_index: int
    has_zero_index: bool
    has_string_labels: bool
    has_cost: bool
    has_qid: bool
    fits: bool


cdef object fault_of(const CError& error):
    cdef int kind = <int>error.fault
    if kind == 0:
        return None
    return Fault(kind, error.line, error.offset, error.length, error.index, error.previous)


cdef object summary_of(const CSummary& s):
    return Summary(
        fault_of(s.error), s.n_rows, s.n_entries, s.max_index, bool(s.has_zero_index),
        bool(s.has_string_labels), bool(s.has_cost), bool(s.has_qid), bool(s.fits),
    )


cdef class RowColumns:
    """The per-row arrays of a text with at most ``capacity`` rows."""

    cdef public object label, label_offset, label_length, weight, qid
    cdef RowArrays arrays

    def __init__(self, int64_t capacity):
        self.label = np.empty(capacity, np.float64)
        self.label_offset = np.empty(capacity, np.int64)
        self.label_length = np.empty(capacity, np.int32)
        self.weight = np.empty(capacity, np.float64)
        self.qid = np.empty(capacity, np.int64)
        self.arrays.label = <double*>cnp.PyArray_DATA(self.label)
        self.arrays.label_offset = <int64_t*>cnp.PyArray_DATA(self.label_offset)
        self.arrays.label_length = <int32_t*>cnp.PyArray_DATA(self.label_length)
        self.arrays.weight = <double*>cnp.PyArray_DATA(self.weight)
        self.arrays.qid = <int64_t*>cnp.PyArray_DATA(self.qid)


cdef class Text:
    """A buffer cut into line-aligned blocks, with its lines and separators counted."""

    cdef const unsigned char[::1] view
    cdef const char* data
    cdef size_t size
    cdef CBlocks blocks
    cdef int threads

    def __init__(self, const unsigned char[::1] buffer, str separator, size_t block_bytes,
                 int threads):
        cdef char mark = <char>ord(separator)
        self.view = buffer
        self.size = buffer.shape[0]
        self.data = <const char*>&buffer[0] if self.size else NULL
        self.threads = threads
        with nogil:
            self.blocks = c_split_blocks(self.data, self.size, mark, block_bytes, threads)

    @property
    def lines(self):
        return self.blocks.lines

    @property
    def separators(self):
        return self.blocks.separators

    def estimate(self, size_t sample_bytes):
        """(largest index, index 0 present) as lines from both ends suggest."""
        cdef CEstimate e = c_estimate_indices(self.data, self.size, sample_bytes)
        return e.max_index, bool(e.has_zero_index)

    cdef SvmlightOptions options(self, int base, int64_t n_features):
        cdef SvmlightOptions options
        options.base = <IndexBase>base
        options.n_features = n_features
        options.threads = self.threads
        return options

    def parse_csr(self, int base, int64_t n_features, dtype, index_dtype):
        """Summary, RowColumns, indptr, indices and values; base 0: automatic, 1: zero, 2: one."""
        rows = RowColumns(self.blocks.lines)
        indptr = np.empty(self.blocks.lines + 1, np.int64)
        indices = np.empty(self.blocks.separators, index_dtype)
        values = np.empty(self.blocks.separators, dtype)
        summary = fill_csr(self, base, n_features, rows, indptr, indices, values)
        return summary, rows, indptr, indices, values

    def parse_dense(self, int base, int64_t n_features, dtype, int64_t width, bint zero_based):
        """Summary, RowColumns and a lines x width array; zero_based is the guess for base 0."""
        rows = RowColumns(self.blocks.lines)
        values = np.zeros((self.blocks.lines, width), dtype)
        summary = fill_dense(self, base, n_features, rows, values, zero_based)
        return summary, rows, values

    def parse_table(self, str delimiter, int64_t n_fields, int64_t label_field,
                    int64_t skip_lines, dtype):
        """Fault or None, number of rows, string labels present, RowColumns and the values."""
        rows = RowColumns(self.blocks.lines if label_field >= 0 else 0)
        values = np.empty((self.blocks.lines, n_fields - (label_field >= 0)), dtype)
        cdef TableOptions options
        options.delimiter = <char>ord(delimiter)
        options.n_fields = n_fields
        options.label_field = label_field
        options.skip_lines = skip_lines
        options.threads = self.threads
        return (*fill_table(self, options, rows, values.reshape(-1)), rows, values)

    def intern_labels(self, RowColumns rows, int64_t n_rows):
        """Code of the label token of each row, and for each code the first row that has it."""
        code = np.empty(n_rows, np.int64)
        cdef int64_t* codes = <int64_t*>cnp.PyArray_DATA(code)
        cdef vector[int64_t] first
        with nogil:
            c_intern_labels(self.data, rows.arrays.label_offset, rows.arrays.label_length, n_rows,
                            codes, &first)
        return code, [first[i] for i in range(first.size())]


def fill_csr(Text text, int base, int64_t n_features, RowColumns rows, int64_t[::1] indptr,
             Integer[::1] indices, Real[::1] values):
    cdef SvmlightOptions options = text.options(base, n_features)
    cdef CsrArrays[Real, Integer] out
    cdef CSummary summary
    out.indptr = &indptr[0]
    out.indices = &indices[0] if indices.shape[0] else NULL
    out.values = &values[0] if values.shape[0] else NULL
    with nogil:
        summary = c_parse_svmlight(text.data, text.blocks, options, rows.arrays, out)
    return summary_of(summary)


def fill_dense(Text text, int base, int64_t n_features, RowColumns rows, Real[:, ::1] values,
               bint zero_based):
    cdef SvmlightOptions options = text.options(base, n_features)
    cdef DenseArray[Real] out
    cdef CSummary summary
    out.values = &values[0, 0] if values.shape[0] and values.shape[1] else NULL
    out.width = values.shape[1]
    out.zero_based = zero_based
    with nogil:
        summary = c_parse_svmlight(text.data, text.blocks, options, rows.arrays, out)
    return summary_of(summary)


cdef fill_table(Text text, const TableOptions& options, RowColumns rows, values):
    cdef CTableSummary summary
    cdef double* doubles = NULL
    cdef float* floats = NULL
    if values.dtype == np.float64:
        doubles = <double*>cnp.PyArray_DATA(values)
        with nogil:
            summary = c_parse_table[double](text.data, text.blocks, options, rows.arrays, doubles)
    else:
        floats = <float*>cnp.PyArray_DATA(values)
        with nogil:
            summary = c_parse_table[float](text.data, text.blocks, options, rows.arrays, floats)
    return fault_of(summary.error), summary.n_rows, bool(summary.has_string_labels)


def end_of_line(const unsigned char[::1] buffer, int64_t n):
    """Offset behind the n-th line feed, or -1 when the buffer has fewer."""
    if buffer.shape[0] == 0:
        return -1
    return c_end_of_line(<const char*>&buffer[0], buffer.shape[0], n)


cdef class Heads:
    """Label, qid and weight of every row, for the writers. The arrays must outlive the calls.

    label: float64 array, or None with texts (list of bytes) and code (int64 array).
    """

    cdef RowHeads heads
    cdef list kept
    cdef bytes text

    def __init__(self, label, texts, code, qid, weight):
        self.kept = []
        if label is not None:
            self.heads.label = <const double*>self.keep(label, np.float64)
        elif code is not None:
            self.text = b"".join(texts)
            start = np.concatenate([[0], np.cumsum([len(t) for t in texts])])
            self.heads.label_text = self.text
            self.heads.label_start = <const int64_t*>self.keep(start, np.int64)
            self.heads.label_code = <const int64_t*>self.keep(code, np.int64)
        if qid is not None:
            self.heads.qid = <const int64_t*>self.keep(qid, np.int64)
        if weight is not None:
            self.heads.weight = <const double*>self.keep(weight, np.float64)

    cdef void* keep(self, values, dtype) except *:
        array = np.ascontiguousarray(values, dtype)
        self.kept.append(array)
        return cnp.PyArray_DATA(array)


def format_csr(Heads heads, const Integer[::1] indptr, const Integer[::1] indices,
               const Real[::1] values, int64_t begin, int64_t end, style):
    """Lines of rows [begin, end); style: (base, column of a first zero or -1, of a last one)."""
    cdef CsrRows[Real, Integer] rows
    cdef IndexStyle c_style
    cdef string out
    rows.indptr = &indptr[0]
    rows.indices = &indices[0] if indices.shape[0] else NULL
    rows.values = &values[0] if values.shape[0] else NULL
    c_style.base, c_style.first_zero, c_style.last_zero = style
    with nogil:
        c_format_svmlight(heads.heads, rows, begin, end, c_style, &out)
    return <bytes>out


def format_dense(Heads heads, const Real[:, ::1] values, int64_t begin, int64_t end, style):
    """As format_csr, of full rows."""
    cdef DenseRows[Real] rows
    cdef IndexStyle c_style
    cdef string out
    rows.values = &values[0, 0] if values.shape[0] and values.shape[1] else NULL
    rows.width = values.shape[1]
    c_style.base, c_style.first_zero, c_style.last_zero = style
    with nogil:
        c_format_svmlight(heads.heads, rows, begin, end, c_style, &out)
    return <bytes>out


def format_table(Heads heads, const Real[:, ::1] values, int64_t begin, int64_t end,
                 str delimiter):
    """Lines of a delimited table: label, qid, weight, features."""
    cdef DenseRows[Real] rows
    cdef string out
    cdef char mark = <char>ord(delimiter)
    rows.values = &values[0, 0] if values.shape[0] and values.shape[1] else NULL
    rows.width = values.shape[1]
    with nogil:
        c_format_table(heads.heads, rows, begin, end, mark, &out)
    return <bytes>out
