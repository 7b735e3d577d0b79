#include "kfu/working_set.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kfu {

namespace {

bool may_increase(const WorkingSetView& v, Index k) { return v.up_mask[k] < HUGE_VAL; }
bool may_decrease(const WorkingSetView& v, Index k) { return v.low_mask[k] > -HUGE_VAL; }
bool is_free(const WorkingSetView& v, Index k) {
  return is_unbounded(v.beta[k], v.lower[k], v.upper[k], v.kink[k]);
}
double up_F(const WorkingSetView& v, Index k) { return v.F[k] + v.up_mask[k]; }
double low_F(const WorkingSetView& v, Index k) { return v.F[k] + v.low_mask[k]; }

/// The thresholds of the groups.
struct Thresholds {
  double of[kMostGroups];
};

Thresholds thresholds(const WorkingSetView& v) {
  Thresholds theta{};
  for (int g = 0; g < v.n_groups; ++g) theta.of[g] = v.ends.threshold(g, v.has_equality);
  return theta;
}

// Infinite for a box of one point: nothing to violate.
double satisfaction(const WorkingSetView& v, Index k, const Thresholds& thetas) {
  const double theta = thetas.of[static_cast<int>(v.group[k])];
  return std::min(up_F(v, k) - theta, theta - low_F(v, k));
}

// A value that somewhat more than `wanted` of the satisfactions are below, judged by a sample; or
// `enough`, if that is less. Ordering some hundreds of 50,000 then costs little more than looking
// at them all once.
double cut_for(const WorkingSetView& v, Index wanted, double enough) {
  constexpr Index kSample = 1024;
  const Index count = v.last - v.first;
  if (count < 4 * kSample) return enough;
  std::vector<double> sample(static_cast<std::size_t>(kSample));
  for (Index k = 0; k < kSample; ++k) sample[k] = v.satisfaction[v.first + k * count / kSample];
  const Index rank = wanted * kSample / count, more = rank + rank / 4 + 32;
  if (more >= kSample) return enough;
  std::nth_element(sample.begin(), sample.begin() + more, sample.end());
  return std::min(sample[more], enough);
}

// The places outside the chunk that violate by more than a part of the tolerance, the worst first,
// at most `room` of them. `work` keeps its memory from call to call.
std::vector<Index> worst_outside(const WorkingSetView& v, Index room, std::vector<Index>& work) {
  struct Candidate {
    double satisfaction;
    Index place;
    bool operator<(const Candidate& other) const {
      return satisfaction < other.satisfaction ||
             (satisfaction == other.satisfaction && place < other.place);
    }
  };
  const double enough = -0.25 * v.tolerance;
  // Those of the chunk are mostly unbounded, and would be candidates.
  double cut = cut_for(v, room + static_cast<Index>(v.chunk.size()), enough);
  std::vector<Candidate> found;
  if (static_cast<Index>(work.size()) < v.n_active) work.resize(v.n_active);
  Index* places = work.data();
  for (;;) {
    Index count = 0;
    for (Index k = v.first; k < v.last; ++k) {  // no branch: which violate cannot be foreseen
      places[count] = k;
      count += v.satisfaction[k] < cut;
    }
    found.clear();
    for (Index c = 0; c < count; ++c)
      if (v.slot_of[places[c]] < 0) found.push_back({v.satisfaction[places[c]], places[c]});
    if (static_cast<Index>(found.size()) >= room || cut == enough) break;
    cut = enough;
  }
  if (static_cast<Index>(found.size()) > room) {
    std::nth_element(found.begin(), found.begin() + room, found.end());
    found.resize(static_cast<std::size_t>(room));
  }
  std::sort(found.begin(), found.end());
  std::vector<Index> worst;
  for (const Candidate& each : found) worst.push_back(each.place);
  return worst;
}

int worst_group(const WorkingSetView& v) {
  return v.n_groups > 1 && pair_gap(v.ends.of[1]) > pair_gap(v.ends.of[0]) ? 1 : 0;
}

// Whether k belongs to a maximal violating pair that must not leave the chunk: of every group where
// the chunk holds them all, else of the worst group alone.
bool is_an_end(const WorkingSetView& v, Index k) {
  const bool holds_all = v.capacity >= 2 * v.n_groups;
  for (int g = 0; g < v.n_groups; ++g)
    if ((holds_all || g == worst_group(v)) && (k == v.ends.of[g].up || k == v.ends.of[g].low))
      return true;
  return false;
}

// The smallest `count` of `keys` by (value, place), in that order.
template <class Value>
void keep_smallest(std::vector<Index>& keys, Index count, Value value) {
  std::vector<std::pair<double, Index>> ranked;
  ranked.reserve(keys.size());
  for (const Index k : keys) ranked.emplace_back(value(k), k);
  if (static_cast<Index>(ranked.size()) > count) {
    std::nth_element(ranked.begin(), ranked.begin() + count, ranked.end());
    ranked.resize(static_cast<std::size_t>(count));
  }
  std::sort(ranked.begin(), ranked.end());
  keys.clear();
  for (const auto& entry : ranked) keys.push_back(entry.second);
}

// Evenly spaced members of both directions: what an untrained problem knows of itself is nothing.
std::vector<Index> first_chunk(const WorkingSetView& v) {
  std::vector<Index> up, down, chosen;
  const Thresholds thetas = thresholds(v);
  for (Index k = 0; k < v.n_active; ++k) {
    const double theta = thetas.of[static_cast<int>(v.group[k])];
    if (may_increase(v, k) && up_F(v, k) < theta)
      up.push_back(k);
    else if (may_decrease(v, k) && low_F(v, k) > theta)
      down.push_back(k);
  }
  const Index half = v.capacity / 2;
  Index n_up = std::min<Index>(half, static_cast<Index>(up.size()));
  const Index n_down = std::min<Index>(v.capacity - n_up, static_cast<Index>(down.size()));
  n_up = std::min<Index>(v.capacity - n_down, static_cast<Index>(up.size()));
  for (Index k = 0; k < n_up; ++k) chosen.push_back(up[k * static_cast<Index>(up.size()) / n_up]);
  for (Index k = 0; k < n_down; ++k)
    chosen.push_back(down[k * static_cast<Index>(down.size()) / n_down]);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

// Puts the members of the maximal violating pairs that are outside the chunk at the head of `add`,
// those of the worst group first, where no later cut can reach them.
void lead_with_pair(const WorkingSetView& v, std::vector<Index>& add) {
  for (int turn = v.n_groups; turn-- > 0;) {
    const Extremes& ends = v.ends.of[turn == 0 ? worst_group(v) : 1 - worst_group(v)];
    for (const Index k : {ends.up, ends.low}) {
      if (k < 0 || v.slot_of[k] >= 0) continue;
      add.erase(std::remove(add.begin(), add.end(), k), add.end());
      add.insert(add.begin(), k);
    }
  }
}

// Slots to give up so that `wanted` places find room: bounded variables before unbounded ones,
// among the bounded the most satisfied first, among the unbounded those longest in the chunk; the
// maximal violating pair never. satisfied(k) is how much place k of the chunk is.
template <class Satisfied>
std::vector<Index> evict_most_satisfied(const WorkingSetView& v, Index wanted,
                                        Satisfied satisfied) {
  const Index missing = wanted - (v.capacity - static_cast<Index>(v.chunk.size()));
  std::vector<Index> bounded, unbounded;
  if (missing <= 0) return bounded;
  for (Index s = 0; s < static_cast<Index>(v.chunk.size()); ++s)
    if (!is_an_end(v, v.chunk[s])) (is_free(v, v.chunk[s]) ? unbounded : bounded).push_back(s);
  keep_smallest(bounded, missing, [&](Index s) { return -satisfied(v.chunk[s]); });
  keep_smallest(unbounded, missing - static_cast<Index>(bounded.size()),
                [&](Index s) { return static_cast<double>(v.entered[s]); });
  bounded.insert(bounded.end(), unbounded.begin(), unbounded.end());
  return bounded;
}

// Makes k a member of the ranked `keys`, in place of the last when it is missing: groups whose gaps
// are equal, and duplicates, can crowd the end of the worst group out.
void require_member(std::vector<Index>& keys, Index k) {
  if (k < 0 || keys.empty() || std::find(keys.begin(), keys.end(), k) != keys.end()) return;
  keys.back() = k;
}

// Replaces the whole chunk by `wanted`, keeping the slots of those already in it.
WorkingSetEdit replace_chunk(const WorkingSetView& v, const std::vector<Index>& wanted) {
  WorkingSetEdit edit;
  std::vector<char> stays(v.chunk.size(), 0);
  for (const Index k : wanted) {
    if (v.slot_of[k] >= 0)
      stays[v.slot_of[k]] = 1;
    else
      edit.add.push_back(k);
  }
  for (Index s = 0; s < static_cast<Index>(v.chunk.size()); ++s)
    if (!stays[s]) edit.evict.push_back(s);
  const Index room = v.capacity - static_cast<Index>(v.chunk.size());
  const Index needed = std::max<Index>(0, static_cast<Index>(edit.add.size()) - room);
  edit.evict.resize(std::min(edit.evict.size(), static_cast<std::size_t>(needed)));
  return edit;
}

}  // namespace

Index WorkingSetSelector::default_chunk(Index n) const {
  switch (rule_) {
    case WorkingSetRule::svmfu:
      return std::min<Index>(n, 1024);
    case WorkingSetRule::svmlight:
      return std::min<Index>(n, 10);
    case WorkingSetRule::osuna:
      return std::min<Index>(n, 1000);
    case WorkingSetRule::keerthi:
      return 2;
  }
  return 2;
}

WorkingSetEdit WorkingSetSelector::select(const WorkingSetView& view) {
  switch (rule_) {
    case WorkingSetRule::svmfu:
      return svmfu(view);
    case WorkingSetRule::svmlight:
      return svmlight(view);
    case WorkingSetRule::osuna:
      return osuna(view);
    case WorkingSetRule::keerthi:
      return keerthi(view);
  }
  return {};
}

WorkingSetEdit WorkingSetSelector::svmfu(const WorkingSetView& v) {
  WorkingSetEdit edit;
  if (v.chunk.empty()) {
    edit.add = first_chunk(v);
    lead_with_pair(v, edit.add);
    if (static_cast<Index>(edit.add.size()) > v.capacity) edit.add.resize(v.capacity);
    return edit;
  }
  const Index empty = v.capacity - static_cast<Index>(v.chunk.size());
  const Index room = std::max({empty, v.capacity * 35 / 100, Index(2)});
  edit.add = worst_outside(v, room, candidates_);
  lead_with_pair(v, edit.add);
  if (static_cast<Index>(edit.add.size()) > v.capacity) edit.add.resize(v.capacity);
  edit.evict = evict_most_satisfied(v, static_cast<Index>(edit.add.size()),
                                    [&](Index k) { return v.satisfaction[k]; });
  edit.add.resize(std::min(edit.add.size(), edit.evict.size() + static_cast<std::size_t>(empty)));
  return edit;
}

WorkingSetEdit WorkingSetSelector::svmlight(const WorkingSetView& v) {
  std::vector<Index> up, down;
  for (Index k = 0; k < v.n_active; ++k) {
    if (may_increase(v, k)) up.push_back(k);
    if (may_decrease(v, k)) down.push_back(k);
  }
  const Thresholds theta = thresholds(v);  // makes the groups comparable
  keep_smallest(up, v.capacity / 2,
                [&](Index k) { return up_F(v, k) - theta.of[static_cast<int>(v.group[k])]; });
  keep_smallest(down, v.capacity - v.capacity / 2,
                [&](Index k) { return theta.of[static_cast<int>(v.group[k])] - low_F(v, k); });
  if (v.n_groups > 1) {
    const Extremes& ends = v.ends.of[worst_group(v)];
    require_member(up, ends.up);
    require_member(down, ends.low);
  }
  up.insert(up.end(), down.begin(), down.end());
  std::sort(up.begin(), up.end());
  up.erase(std::unique(up.begin(), up.end()), up.end());
  return replace_chunk(v, up);
}

WorkingSetEdit WorkingSetSelector::osuna(const WorkingSetView& v) {
  WorkingSetEdit edit;
  if (v.chunk.empty()) {
    edit.add = first_chunk(v);
    lead_with_pair(v, edit.add);
    if (static_cast<Index>(edit.add.size()) > v.capacity) edit.add.resize(v.capacity);
    return edit;
  }
  const Thresholds theta = thresholds(v);
  const Index new_limit = std::max<Index>(1, v.capacity / 10);
  for (Index looked = 0; looked < v.n_active && static_cast<Index>(edit.add.size()) < new_limit;
       ++looked) {
    cursor_ = cursor_ + 1 < v.n_active ? cursor_ + 1 : 0;
    if (v.slot_of[cursor_] < 0 && satisfaction(v, cursor_, theta) < -0.25 * v.tolerance)
      edit.add.push_back(cursor_);
  }
  lead_with_pair(v, edit.add);
  const Index empty = v.capacity - static_cast<Index>(v.chunk.size());
  edit.evict = evict_most_satisfied(v, static_cast<Index>(edit.add.size()),
                                    [&](Index k) { return satisfaction(v, k, theta); });
  edit.add.resize(std::min(edit.add.size(), edit.evict.size() + static_cast<std::size_t>(empty)));
  return edit;
}

WorkingSetEdit WorkingSetSelector::keerthi(const WorkingSetView& v) {
  std::vector<Index> pair;
  const Extremes& ends = v.ends.of[worst_group(v)];
  for (const Index k : {ends.up, ends.low})
    if (k >= 0) pair.push_back(k);
  std::sort(pair.begin(), pair.end());
  pair.erase(std::unique(pair.begin(), pair.end()), pair.end());
  return replace_chunk(v, pair);
}

}  // namespace kfu
