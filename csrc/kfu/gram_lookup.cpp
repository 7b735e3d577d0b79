// A kernel matrix given by the user.
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "kfu/gram_kinds.h"
#include "kfu/panel.h"

namespace kfu {
namespace {

/// Slots referring to rows of a given matrix.
class LookupColumns final : public ColumnSet {
 public:
  explicit LookupColumns(const DataView& matrix) : matrix_(matrix) {}

  Index size() const override { return static_cast<Index>(rows_.size()); }

  void assign(Index first, const Index* points, Index count) override {
    if (first + count > size()) rows_.resize(static_cast<std::size_t>(first + count), 0);
    std::copy(points, points + count, rows_.begin() + first);
  }

  void assign_slots(const Index* slots, const Index* points, Index count) override {
    for (Index k = 0; k < count; ++k) rows_[static_cast<std::size_t>(slots[k])] = points[k];
  }

  void truncate(Index size) override {
    rows_.resize(static_cast<std::size_t>(std::min(size, this->size())));
  }

  /// The element of the slot's row that belongs to row point r.
  double value(Index slot, Index r) const {
    const Index row = rows_[static_cast<std::size_t>(slot)];
    if (!matrix_.is_csr) return element(row * matrix_.ld + r);
    const std::int32_t* begin = matrix_.indices + matrix_.indptr[row];
    const std::int32_t* end = matrix_.indices + matrix_.indptr[row + 1];
    const std::int32_t* at = std::lower_bound(begin, end, r);
    return at != end && *at == r ? element(at - matrix_.indices) : 0.0;
  }

 private:
  double element(Index k) const {
    return matrix_.is_double ? static_cast<const double*>(matrix_.values)[k]
                             : static_cast<const float*>(matrix_.values)[k];
  }

  DataView matrix_;
  std::vector<Index> rows_;
};

template <class T>
class LookupGram final : public Gram<T> {
 public:
  LookupGram(const DataView& data, double weight, Simd simd)
      : data_(data), weight_(weight), simd_(panel_ops<T>(simd).simd) {}

  Index size() const override { return data_.d; }
  Simd simd() const override { return simd_; }
  const char* layout() const override { return "precomputed"; }

  bool is_within_unit() const override { return false; }
  Index panel_width() const override { return 1; }

  ValueError value_error() const override { return {}; }
  ValueError value_error_of(const ColumnSet&) const override { return {}; }

  void diagonal(double* out) const override {
    if (data_.n != data_.d) {
      throw std::invalid_argument("the diagonal needs a square precomputed kernel matrix");
    }
    LookupColumns columns(data_);
    for (Index i = 0; i < data_.n; ++i) {
      columns.assign(0, &i, 1);
      out[i] = value(columns, 0, i);
    }
  }

  std::unique_ptr<ColumnSet> make_columns(Index) const override {
    return std::make_unique<LookupColumns>(data_);
  }

  std::unique_ptr<ColumnSet> make_columns_of(const DataView& other) const override {
    if (other.d != data_.d) {
      throw std::invalid_argument("a precomputed kernel needs one column per training point");
    }
    auto columns = std::make_unique<LookupColumns>(other);
    std::vector<Index> all(static_cast<std::size_t>(other.n));
    for (Index i = 0; i < other.n; ++i) all[static_cast<std::size_t>(i)] = i;
    columns->assign(0, all.data(), other.n);
    return columns;
  }

  void rows(const Index* points, Index n_rows, const ColumnSet& columns, Index first, Index last,
            T* const* out) const override {
    const auto& set = static_cast<const LookupColumns&>(columns);
    for (Index c = first; c < last; ++c) {
      for (Index r = 0; r < n_rows; ++r) out[r][c - first] = value(set, c, points[r]);
    }
  }

  void accumulate(const Index* points, const double* coef, Index n_rows, Index n_outputs,
                  const ColumnSet& columns, Index first, Index last, double* sums, Index ld_sums,
                  const KeepRows<T>& keep) const override {
    const auto& set = static_cast<const LookupColumns&>(columns);
    for (Index c = first; c < last; ++c) {
      for (Index r = 0; r < n_rows; ++r) {
        const T k = value(set, c, points[r]);
        if (keep.rows && keep.rows[r].floating) keep.rows[r].floating[c] = k;
        for (Index m = 0; m < n_outputs; ++m) {
          sums[m * ld_sums + c] += coef[r * n_outputs + m] * part_of(k, keep.part);
        }
      }
    }
  }

  void accumulate_both(const Index* points, const double* coef, Index n_rows,
                       const ColumnSet& columns, Index first, Index last, const double* column_coef,
                       double* sums, double* row_sums, Part part) const override {
    const auto& set = static_cast<const LookupColumns&>(columns);
    for (Index c = first; c < last; ++c) {
      for (Index r = 0; r < n_rows; ++r) {
        const double k = part_of(value(set, c, points[r]), part);
        sums[c] += coef[r] * k;
        row_sums[r] += column_coef[c] * k;
      }
    }
  }

 private:
  static double part_of(T value, Part part) {
    const auto whole = static_cast<double>(value);
    if (part == Part::whole) return whole;
    return whole - kCoarseUnit * coarse_units(static_cast<float>(value));
  }

  T value(const LookupColumns& columns, Index slot, Index point) const {
    return static_cast<T>(weight_ * columns.value(slot, point));
  }

  DataView data_;
  double weight_;
  Simd simd_;
};

}  // namespace

template <class T>
std::unique_ptr<Gram<T>> make_lookup_gram(const DataView& data, double weight, Simd simd) {
  return std::make_unique<LookupGram<T>>(data, weight, simd);
}

template std::unique_ptr<Gram<float>> make_lookup_gram<float>(const DataView&, double, Simd);
template std::unique_ptr<Gram<double>> make_lookup_gram<double>(const DataView&, double, Simd);

}  // namespace kfu
