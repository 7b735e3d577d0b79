// A kernel compiled to channels and steps.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kfu/points.h"

namespace kfu {
namespace {

/// Σ of what the panel code adds up → statistic (Channel::factor).
double factor_of(Statistic statistic, bool is_sparse) {
  switch (statistic) {
    case Statistic::sqdist:
      return 2.0;
    case Statistic::l1:
      return is_sparse ? 2.0 : 0.0;
    case Statistic::chi2:
      return is_sparse ? 4.0 : 0.0;
    default:
      return 0.0;
  }
}

// Blocks of rows are summed by any thread, and their sums in order: threads do not change a bit.
template <class S>
std::vector<double> mean_of(const S* values, const DataView& data, int threads) {
  constexpr Index kMostBlocks = 16, kLeastRows = 1024, kParallelValues = 200000;
  const Index rows = std::max(kLeastRows, (data.n + kMostBlocks - 1) / kMostBlocks);
  const Index n_blocks = (data.n + rows - 1) / rows;
  std::vector<double> sums(static_cast<std::size_t>(n_blocks * data.d), 0.0);
#pragma omp parallel for num_threads(threads) \
    schedule(static) if (data.n * data.d > kParallelValues)
  for (Index b = 0; b < n_blocks; ++b) {
    double* sum = sums.data() + b * data.d;
    for (Index i = b * rows; i < std::min(data.n, (b + 1) * rows); ++i) {
      const S* row = values + i * data.ld;
      for (Index k = 0; k < data.d; ++k) sum[k] += static_cast<double>(row[k]);
    }
  }
  std::vector<double> mean(static_cast<std::size_t>(data.d), 0.0);
  for (Index b = 0; b < n_blocks; ++b)
    for (Index k = 0; k < data.d; ++k) mean[k] += sums[b * data.d + k];
  for (double& m : mean) {
    m /= static_cast<double>(std::max<Index>(data.n, 1));
    if (!std::isfinite(m)) m = 0.0;
  }
  return mean;
}

std::vector<double> mean_of(const DataView& data, int threads) {
  return data.is_double ? mean_of(static_cast<const double*>(data.values), data, threads)
                        : mean_of(static_cast<const float*>(data.values), data, threads);
}

/// Drops the features with factor 0 (dense data).
void select_features(ChannelSpec& spec) {
  if (spec.scale.empty()) return;
  const auto zeros = std::count(spec.scale.begin(), spec.scale.end(), 0.0);
  if (zeros == 0) return;
  std::vector<double> mean, scale;
  for (std::size_t k = 0; k < spec.scale.size(); ++k) {
    if (spec.scale[k] == 0.0) continue;
    spec.kept.push_back(static_cast<std::int32_t>(k));
    scale.push_back(spec.scale[k]);
    if (!spec.mean.empty()) mean.push_back(spec.mean[k]);
  }
  spec.depth = static_cast<Index>(spec.kept.size());
  spec.scale = std::move(scale);
  spec.mean = std::move(mean);
}

}  // namespace

template <class T>
Plan<T> Program<T>::plan() const {
  Plan<T> plan;
  plan.channels = channels.data();
  plan.n_channels = static_cast<int>(channels.size());
  plan.leaves = leaves.data();
  plan.terms = terms.data();
  plan.n_terms = static_cast<int>(terms.size());
  plan.is_sparse = is_sparse;
  plan.width = is_sparse ? sparse_width<T> : dense_width;
  return plan;
}

template <class T>
Index Program<T>::total_depth() const {
  Index depth = 0;
  for (const Channel<T>& channel : channels) depth += channel.depth;
  return depth;
}

template <class T>
Program<T> make_program(const Kernel& kernel, const DataView& data, int threads) {
  Program<T> program;
  program.is_sparse = data.is_csr;
  std::vector<const Leaf*> origin;  // the leaf each channel was made for
  for (const Term& term : kernel.terms) {
    TermStep<T> step;
    step.weight = static_cast<T>(term.weight);
    step.first = static_cast<int>(program.leaves.size());
    for (const Leaf& leaf : term.leaves) {
      const Statistic statistic = kernel_info(leaf.kind).statistic;
      std::size_t c = 0;
      while (c < origin.size() &&
             (program.specs[c].statistic != statistic || origin[c]->scale != leaf.scale)) {
        ++c;
      }
      if (c == origin.size()) {
        ChannelSpec spec{statistic, factor_of(statistic, data.is_csr), data.d, {}, {}, leaf.scale};
        if (statistic == Statistic::sqdist && !data.is_csr) spec.mean = mean_of(data, threads);
        if (!data.is_csr) select_features(spec);
        program.channels.push_back({statistic, static_cast<T>(spec.factor), spec.depth});
        program.specs.push_back(std::move(spec));
        origin.push_back(&leaf);
      }
      program.leaves.push_back(
          {static_cast<int>(c), leaf.kind, leaf.form,
           static_cast<T>(std::min(leaf.gamma, double{std::numeric_limits<T>::max()})),
           static_cast<T>(leaf.coef0), leaf.degree, program.channels[c].factor});
    }
    step.last = static_cast<int>(program.leaves.size());
    program.terms.push_back(step);
  }
  return program;
}

template struct Program<float>;
template struct Program<double>;
template Program<float> make_program<float>(const Kernel&, const DataView&, int);
template Program<double> make_program<double>(const Kernel&, const DataView&, int);

}  // namespace kfu
