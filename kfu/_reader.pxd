# What kfu/_reader.pyx uses of csrc/kfu/text_*.h, in the order of the headers.

from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector


cdef extern from "kfu/text_blocks.h" namespace "kfu::text" nogil:
    cdef cppclass CBlocks "kfu::text::Blocks":
        int64_t lines
        int64_t separators

    cdef cppclass CFault "kfu::text::Fault":
        pass

    cdef cppclass CError "kfu::text::Error":
        CFault fault
        int64_t line
        int64_t offset
        int64_t length
        int64_t index
        int64_t previous

    CBlocks c_split_blocks "kfu::text::split_blocks"(
        const char* data, size_t size, char separator, size_t block_bytes, int threads
    ) except +
    int64_t c_end_of_line "kfu::text::end_of_line"(const char* data, size_t size, int64_t n)
    void c_intern_labels "kfu::text::intern_labels"(
        const char* data, const int64_t* offset, const int32_t* length, int64_t n_rows,
        int64_t* code_out, vector[int64_t]* first_row_out
    ) except +


cdef extern from "kfu/text_reader.h" namespace "kfu::text" nogil:
    cdef cppclass IndexBase:
        pass

    cdef cppclass SvmlightOptions:
        IndexBase base
        int64_t n_features
        int threads

    cdef cppclass RowArrays:
        double* label
        int64_t* label_offset
        int32_t* label_length
        double* weight
        int64_t* qid

    cdef cppclass CsrArrays[Value, Index]:
        int64_t* indptr
        Index* indices
        Value* values

    cdef cppclass DenseArray[Value]:
        Value* values
        int64_t width
        cbool zero_based

    cdef cppclass CSummary "kfu::text::Summary":
        CError error
        int64_t n_rows
        int64_t n_entries
        int64_t max_index
        cbool has_zero_index
        cbool has_string_labels
        cbool has_cost
        cbool has_qid
        cbool fits

    cdef cppclass CEstimate "kfu::text::Estimate":
        int64_t max_index
        cbool has_zero_index

    CSummary c_parse_svmlight "kfu::text::parse_svmlight"[Out](
        const char* data, const CBlocks& blocks, const SvmlightOptions& options,
        const RowArrays& rows, const Out& out
    ) except +
    CEstimate c_estimate_indices "kfu::text::estimate_indices"(
        const char* data, size_t size, size_t sample_bytes
    )


cdef extern from "kfu/text_table.h" namespace "kfu::text" nogil:
    cdef cppclass TableOptions:
        char delimiter
        int64_t n_fields
        int64_t label_field
        int64_t skip_lines
        int threads

    cdef cppclass CTableSummary "kfu::text::TableSummary":
        CError error
        int64_t n_rows
        cbool has_string_labels

    CTableSummary c_parse_table "kfu::text::parse_table"[Value](
        const char* data, const CBlocks& blocks, const TableOptions& options,
        const RowArrays& rows, Value* values_out
    ) except +


cdef extern from "kfu/text_writer.h" namespace "kfu::text" nogil:
    cdef cppclass RowHeads:
        const double* label
        const char* label_text
        const int64_t* label_start
        const int64_t* label_code
        const int64_t* qid
        const double* weight

    cdef cppclass CsrRows[Value, Index]:
        const Index* indptr
        const Index* indices
        const Value* values

    cdef cppclass DenseRows[Value]:
        const Value* values
        int64_t width

    cdef cppclass IndexStyle:
        int64_t base
        int64_t first_zero
        int64_t last_zero

    void c_format_svmlight "kfu::text::format_svmlight"[Rows](
        const RowHeads& heads, const Rows& rows, int64_t begin, int64_t end,
        const IndexStyle& style, string* out
    ) except +
    void c_format_table "kfu::text::format_table"[Rows](
        const RowHeads& heads, const Rows& rows, int64_t begin, int64_t end,
        char delimiter, string* out
    ) except +
