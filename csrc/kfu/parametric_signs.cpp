// Where outputs change their sign along a stretch of the path.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "kfu/parametric_run.h"

namespace kfu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace

// An end of θ's interval (`up`: the high one) is the smallest or largest of lines, one for each row
// that may move so: their values now, at the end of the stretch, and their rates.
bool ParametricRun::line_of_end(Index i, int g, bool up, double* value, double* slope) const {
  if (fixed_[i] || group(i) != g || place_[i] == (up ? Place::upper : Place::lower)) return false;
  const double off = offset(i, up), kink = rate(kink_rate_, i);
  *value = F_[i] + off;
  *slope = F_rate_[i] + ((up ? off >= 0.0 : off > 0.0) ? kink : -kink);
  return true;
}

// How far before its end the last stretch, of this length, bends the θ of a group without free
// variables, which is the middle of its interval: where another row becomes one of the ends.
void ParametricRun::find_bends(int g, bool up, double length, std::vector<double>& back) const {
  const double sign = up ? -1.0 : 1.0;  // the largest of sign · lines
  double value = 0.0, slope = 0.0, best = -kInf, best_slope = -kInf;
  for (Index i = 0; i < n_; ++i) {
    if (!line_of_end(i, g, up, &value, &slope)) continue;
    const double first = sign * (value - length * slope);
    if (first < best || (first == best && sign * slope <= best_slope)) continue;
    best = first;
    best_slope = sign * slope;
  }
  for (double s = 0.0; best > -kInf;) {
    double next = length, next_slope = -kInf;
    for (Index i = 0; i < n_; ++i) {
      if (!line_of_end(i, g, up, &value, &slope) || !(sign * slope > best_slope)) continue;
      const double own = sign * (value - length * slope);
      const double at = std::max(s, (best - own) / (sign * slope - best_slope));
      if (at > next || (at == next && sign * slope <= next_slope)) continue;
      next = at;
      next_slope = sign * slope;
    }
    if (!(next < length)) return;
    best += next * (best_slope - next_slope);
    best_slope = next_slope;
    s = next;
    if (s > 0.0) back.push_back(length - s);
  }
}

// The threshold of f so far before the end of the last stretch.
double ParametricRun::threshold(double back) const {
  if (!problem_.has_equality) return 0.0;
  const int groups = problem_.n_groups();
  double sum = 0.0;
  for (int g = 0; g < groups; ++g) {
    if (back == 0.0 || n_free_of_[g] > 0) {
      sum += theta_[g] - back * theta_rate_[g];
      continue;
    }
    double ends[2] = {-kInf, kInf}, value = 0.0, slope = 0.0;
    for (Index i = 0; i < n_; ++i) {
      if (line_of_end(i, g, false, &value, &slope))
        ends[0] = std::max(ends[0], value - back * slope);
      if (line_of_end(i, g, true, &value, &slope))
        ends[1] = std::min(ends[1], value - back * slope);
    }
    const bool has_low = ends[0] > -kInf, has_high = ends[1] < kInf;
    if (has_low && has_high)
      sum += 0.5 * (ends[0] + ends[1]);
    else
      sum += has_low ? ends[0] : has_high ? ends[1] : theta_[g];
  }
  return sum / groups;
}

// Which signs of f = (output − θ)/scale are wrong now; a sign that changed did so where f was zero.
// f is linear on the stretch, or between the bends of θ where no variable is free; there θ jumped
// at the beginning, too.
void ParametricRun::count_signs(double before_t, double length) {
  if (settings_.labels.empty() && settings_.watched_labels.empty()) return;
  std::vector<double> back;  // ends of the pieces, from the end of the stretch, falling
  if (length > 0.0 && problem_.has_equality) {
    for (int g = 0; g < problem_.n_groups(); ++g) {
      if (n_free_of_[g] > 0) continue;
      back.push_back(length);
      find_bends(g, false, length, back);
      find_bends(g, true, length, back);
    }
    std::sort(back.begin(), back.end(), std::greater<double>());
  }
  back.push_back(0.0);
  double from = length, before = threshold(length);
  for (double to : back) {
    const double here = threshold(to);
    const double slope = from > to ? (here - before) / (from - to) : 0.0;
    count_signs_of_piece(before_t, length, from, to, here, slope);
    from = to;
    before = here;
  }
}

void ParametricRun::count_signs_of_piece(double before_t, double length, double from, double to,
                                         double threshold, double threshold_rate) {
  const std::vector<signed char>* labels[2] = {&settings_.labels, &settings_.watched_labels};
  const bool is_first = wrong_.empty();
  if (is_first) {
    wrong_.assign(static_cast<std::size_t>(length_), 0);
    for (int set = 0; set < 2; ++set) n_wrong_[set] = labels[set]->empty() ? -1 : 0;
  }
  const auto rate_of_output = [&](Index k) {
    if (is_first) return 0.0;
    return F_rate_[k] - (k < n_ ? rate(linear_rate_, k) : 0.0);
  };
  for (int set = 0; set < 2; ++set) {
    const Index first = set == 0 ? 0 : n_, count = static_cast<Index>(labels[set]->size());
    const signed char* label = labels[set]->data();
    for (Index row = 0; row < count; ++row) {
      const Index k = first + row;
      double q = (set == 0 ? F_[k] - linear_[k] : F_[k]) - threshold;
      if (to > 0.0) q -= to * rate_of_output(k);
      const signed char is_wrong = (q > 0.0) != (label[row] > 0);  // as prediction has it
      if (is_wrong == wrong_[k] || label[row] == 0) continue;
      const int change = is_wrong - wrong_[k];
      wrong_[k] = is_wrong;
      n_wrong_[set] += change;
      if (is_first) continue;
      const double r = rate_of_output(k) - threshold_rate;
      const double way = r != 0.0 ? std::max(q / r, 0.0) : 0.0;
      const double back = way < from - to ? to + way : from;
      const double at = back == length ? before_t : t_ - t_direction_ * back;
      sign_changes_.push_back({at, row, set, change});
    }
  }
}

}  // namespace kfu
