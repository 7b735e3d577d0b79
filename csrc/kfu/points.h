// A data set seen through the channels of a kernel.
//
// A channel is what one statistic needs of a point: its features, multiplied by the channel's
// factors, rounded to T. Dense data of a translation-invariant kernel are centred first (float64
// mean of the data set the kernel was made for), because ‖x−z‖² is formed as ‖x‖² + ‖z‖² − 2⟨x,z⟩,
// whose rounding error is proportional to the norms. The norms are the sums that the panel code
// would compute for a point with itself, so the distance of equal points is exactly 0.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kfu/buffer.h"
#include "kfu/kernels.h"
#include "kfu/panel.h"
#include "kfu/sparse_copy.h"
#include "kfu/types.h"

namespace kfu {

/// How a channel derives from the features of the data.
struct ChannelSpec {
  Statistic statistic = Statistic::dot;
  double factor = 0.0;  ///< Channel::factor
  Index depth = 0;
  std::vector<std::int32_t> kept;  ///< dense: the features in use, empty = all
  std::vector<double> mean;        ///< by kept feature, empty = not centred
  std::vector<double> scale;       ///< dense: by kept feature; CSR: by feature; empty = 1
};

/// The channels of a kernel, without duplicates, and the steps that combine them.
template <class T>
struct Program {
  std::vector<ChannelSpec> specs;
  std::vector<Channel<T>> channels;
  std::vector<LeafStep<T>> leaves;
  std::vector<TermStep<T>> terms;
  bool is_sparse = false;

  Plan<T> plan() const;
  Index total_depth() const;
};

/// `data` gives the layout and, for dense data, the means.
template <class T>
Program<T> make_program(const Kernel& kernel, const DataView& data, int threads);

template <class T>
class Points {
 public:
  /// Borrows the data and the specs.
  Points(const DataView& data, const std::vector<ChannelSpec>& specs, const PanelOps<T>& ops,
         int threads);
  /// Owns the data.
  Points(std::unique_ptr<SparseCopy> data, const std::vector<ChannelSpec>& specs,
         const PanelOps<T>& ops, int threads);

  Index size() const { return data_.n; }
  Index n_features() const { return data_.d; }
  Index max_count() const { return max_count_; }     ///< CSR: entries of the longest point
  double mean_count() const { return mean_count_; }  ///< CSR: entries per point

  /// Dense: writes the depth values of a point to to[0], to[stride], ...
  void pack(Index channel, Index point, T* to, Index stride) const;
  /// Dense: asks for the memory of a point that is packed soon: points come in no order, and each
  /// is a few lines that nothing foresees.
  void fetch(Index point) const;
  /// CSR: the entries of a point.
  SparseRow<T> sparse(Index channel, Index point) const;
  /// Where the channel's factor is not 0.
  T norm(Index channel, Index point) const { return norms_[channel][point]; }
  /// The sum of a point with itself. `work` has room for a point.
  T self_sum(Index channel, Index point, T* work) const;
  /// By point, r such that |s − ‖x − z‖²| ≤ r_x + r_z for the s of the channel, to first order; the
  /// channel's statistic is the squared distance. See the definition for the proof.
  std::vector<double> rounding(Index channel) const;

 private:
  /// CSR values of a channel as T; own memory unless the data can be borrowed.
  struct Entries {
    Buffer<T> owned_values;
    std::vector<std::int32_t> owned_indices;
    std::vector<Index> owned_indptr;
    const T* values = nullptr;
    const std::int32_t* indices = nullptr;
    const Index* indptr = nullptr;
  };

  void make_entries(const ChannelSpec& spec, Entries& entries) const;
  double rounding_of(Index channel, Index point, std::vector<double>& work) const;
  void make_norms(Index channel);

  std::unique_ptr<SparseCopy> owned_;
  DataView data_;
  const std::vector<ChannelSpec>& specs_;
  const PanelOps<T>& ops_;
  int threads_;
  Index max_count_ = 0;
  double mean_count_ = 0.0;
  std::vector<Entries> entries_;
  std::vector<Buffer<T>> norms_;
};

extern template class Points<float>;
extern template class Points<double>;

}  // namespace kfu
