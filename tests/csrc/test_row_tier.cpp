// The rectangular tier: what its budget holds, which rows give way, and rows that are cut anew.
#include "kfu/row_tier.h"

#include <vector>

#include "check.h"

namespace {

using namespace kfu;

constexpr Index kVariables = 1000, kColumns = 640;
constexpr double kRowBytes = kColumns * sizeof(float);

const std::vector<char> all_free(kVariables, 1);

KeptRow<float> insert(RowTier<float>& tier, Index variable, Index columns, bool may_grow = true) {
  return tier.insert(variable, columns, all_free, Displace::settled_only, may_grow);
}

/// Writes the whole row, so that one that is too short, or shared, shows.
void fill(RowTier<float>& tier, Index variable) {
  const KeptRow<float> row = tier.find(variable);
  for (Index c = 0; c < tier.room(variable); ++c) row.floating[c] = static_cast<float>(variable);
}

bool is_whole(RowTier<float>& tier, Index variable) {
  const KeptRow<float> row = tier.find(variable);
  for (Index c = 0; c < tier.room(variable); ++c)
    if (row.floating[c] != static_cast<float>(variable)) return false;
  return true;
}

void budget_counts_the_columns_of_a_row() {
  RowTier<float> tier(kVariables, 10.0 * kRowBytes, 1);
  CHECK(tier.has_room(10, kColumns) && !tier.has_room(11, kColumns));
  for (Index v = 0; v < 10; ++v) CHECK(insert(tier, v, kColumns));
  CHECK(!tier.has_room(1, kColumns) && !insert(tier, 10, kColumns));

  RowTier<float> shorter(kVariables, 10.0 * kRowBytes, 1);
  Index count = 0;
  while (insert(shorter, count, kColumns / 4)) ++count;
  CHECK(count == 40);
  CHECK(static_cast<double>(shorter.bytes()) == 10.0 * kRowBytes);
  for (Index v = 0; v < count; ++v) fill(shorter, v);
  for (Index v = 0; v < count; ++v) CHECK(is_whole(shorter, v));

  RowTier<float> none(kVariables, 0.5 * kRowBytes, 1);
  CHECK(!none.has_room(1, kColumns) && !insert(none, 0, kColumns) && none.count() == 0);
  RowTier<float> few(3, 100.0 * kRowBytes, 1);  // no more rows than variables
  for (Index v = 0; v < 3; ++v) CHECK(few.insert(v, kColumns, {1, 1, 1}, Displace::settled_only));
  CHECK(static_cast<double>(few.bytes()) == 3.0 * kRowBytes);
}

void fresh_memory_needs_leave() {
  RowTier<float> tier(kVariables, 10.0 * kRowBytes, 1);
  CHECK(!insert(tier, 0, kColumns, false));
  CHECK(insert(tier, 0, kColumns));
  std::vector<char> is_free = all_free;
  is_free[0] = 0;
  tier.offer_settled(is_free);  // a row that gives way is not fresh memory
  CHECK(tier.insert(1, kColumns, is_free, Displace::settled_only, false));
  CHECK(!tier.find(0) && tier.find(1) && tier.count() == 1);
}

void short_rows_do_not_serve_long_ones() {
  for (const Displace policy : {Displace::settled_only, Displace::any}) {
    RowTier<float> tier(kVariables, 1.5 * kRowBytes, 1);
    std::vector<char> is_free = all_free;
    CHECK(tier.insert(0, kColumns / 2, is_free, policy));
    CHECK(tier.room(0) < kColumns);
    is_free[0] = 0;
    tier.offer_settled(is_free);
    // What is left of the budget has gone to the slab of short rows.
    CHECK(!tier.insert(1, kColumns, is_free, policy));
    CHECK(tier.find(0));
    tier.offer_settled(is_free);
    CHECK(tier.insert(1, kColumns / 2, is_free, policy));
    CHECK(tier.find(1) && !tier.find(0));
  }
}

void memory_may_be_given_up() {
  RowTier<float> tier(kVariables, 10.0 * kRowBytes, 1);
  CHECK(tier.give_up(static_cast<Index>(8.0 * kRowBytes)));
  CHECK(insert(tier, 0, kColumns) && insert(tier, 1, kColumns) && !insert(tier, 2, kColumns));
  CHECK(!tier.give_up(1));
}

void recut_rows_are_more_and_do_not_overlap() {
  RowTier<float> tier(kVariables, 10.0 * kRowBytes, 2);
  for (Index v = 0; v < 10; ++v) insert(tier, v, kColumns);
  tier.recut(kColumns / 8);
  CHECK(tier.count() == 0 && !tier.find(3) && tier.bytes() == 0);
  CHECK(tier.has_room(80, kColumns / 8) && !tier.has_room(1, kColumns));
  for (Index v = 0; v < 80; ++v) CHECK(insert(tier, v, kColumns / 8));
  CHECK(!insert(tier, 80, kColumns / 8));
  tier.populate();
  for (Index v = 0; v < 80; ++v) fill(tier, v);
  for (Index v = 0; v < 80; ++v) CHECK(is_whole(tier, v));
}

}  // namespace

int main() {
  budget_counts_the_columns_of_a_row();
  fresh_memory_needs_leave();
  short_rows_do_not_serve_long_ones();
  memory_may_be_given_up();
  recut_rows_are_more_and_do_not_overlap();
  return kfu_test::report("row tier");
}
