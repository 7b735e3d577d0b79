#include "kfu/kernels.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace kfu {
namespace {

template <class V>
struct Parameters;

template <class... Kernels>
struct TypeList {
  static constexpr int size = sizeof...(Kernels);
  static const LeafInfo& info(int kind) {
    static constexpr const LeafInfo* table[] = {&Kernels::info...};
    return *table[kind];
  }
};

#include "kfu/kernel_list.inc"

}  // namespace

int kernel_count() { return KernelList::size; }

const LeafInfo& kernel_info(int kind) { return KernelList::info(kind); }

int kernel_kind(const char* name) {
  for (int kind = 0; kind < kernel_count(); ++kind) {
    if (std::strcmp(kernel_info(kind).name, name) == 0) return kind;
  }
  return -1;
}

bool is_lookup(const Kernel& kernel) {
  return kernel.terms.size() == 1 && kernel.terms[0].leaves.size() == 1 &&
         kernel_info(kernel.terms[0].leaves[0].kind).statistic == Statistic::lookup;
}

bool is_plain_linear(const Kernel& kernel) {
  if (kernel.terms.size() != 1 || kernel.terms[0].leaves.size() != 1) return false;
  const Leaf& leaf = kernel.terms[0].leaves[0];
  return kernel.terms[0].weight == 1.0 && leaf.form == Form::value && leaf.scale.empty() &&
         leaf.gamma == 1.0 && std::strcmp(kernel_info(leaf.kind).name, "linear") == 0;
}

bool is_within_unit(const Kernel& kernel) {
  double weights = 0.0;
  for (const Term& term : kernel.terms) {
    weights += term.weight;
    if (!(term.weight >= 0.0)) return false;
    for (const Leaf& leaf : term.leaves)
      if (leaf.form != Form::value || !kernel_info(leaf.kind).is_within_unit) return false;
  }
  return weights <= 1.0;
}

double value_cost(const DataView& data, const Kernel& kernel) {
  if (is_lookup(kernel)) return 1.0;
  if (!data.is_csr) return static_cast<double>(data.d);
  return 2.0 * static_cast<double>(data.indptr[data.n]) /
         static_cast<double>(std::max<Index>(data.n, 1));
}

void check_kernel(const Kernel& kernel, Index d) {
  if (kernel.terms.empty()) throw std::invalid_argument("a kernel needs at least one term");
  std::size_t n_leaves = 0;
  for (const Term& term : kernel.terms) {
    if (term.leaves.empty()) throw std::invalid_argument("a kernel term needs at least one leaf");
    for (const Leaf& leaf : term.leaves) {
      ++n_leaves;
      if (leaf.kind < 0 || leaf.kind >= kernel_count()) {
        throw std::invalid_argument("unknown kernel");
      }
      if (leaf.degree < 0) throw std::invalid_argument("degree must not be negative");
      if (!leaf.scale.empty() && static_cast<Index>(leaf.scale.size()) != d) {
        throw std::invalid_argument("the kernel scales " + std::to_string(leaf.scale.size()) +
                                    " features, the data have " + std::to_string(d));
      }
      const bool lookup = kernel_info(leaf.kind).statistic == Statistic::lookup;
      if (lookup && (kernel.terms.size() > 1 || term.leaves.size() > 1)) {
        throw std::invalid_argument("a precomputed kernel cannot be combined with others");
      }
    }
  }
  if (n_leaves > 64) throw std::invalid_argument("a kernel may have at most 64 leaves");
}

}  // namespace kfu
