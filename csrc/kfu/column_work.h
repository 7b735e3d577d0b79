// Work on a range of columns that threads share, some of which come to it late.
//
// A stage is cut into tasks of whole columns. Tasks of one stage may run at the same time and in
// any order; a stage begins when the one before has ended. What is done to a column is therefore
// done in the order of the stages, whoever does it and whenever: results do not depend on threads.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "kfu/types.h"

namespace kfu {

/// Something to be done to columns, prepared so that doing it neither fails nor allocates.
class ColumnWork {
 public:
  virtual ~ColumnWork() = default;
  /// Columns of a task, for a stage of so many: tasks end at multiples of it.
  virtual Index width(Index n_columns) const = 0;
  /// Does columns [first, last) in the calling thread, which has a number below those provided for.
  virtual void run(Index first, Index last, int thread) = 0;
};

/// Stages over columns [first, last), done by those that call work().
class StagedColumns {
 public:
  StagedColumns(Index first, Index last) : first_(first), last_(last) {}

  Index first() const { return first_; }
  Index last() const { return last_; }

  /// One more stage, over the part of [first, last) that is in [begin, end). Before any work().
  void add(std::shared_ptr<ColumnWork> what, Index begin, Index end) {
    begin = std::max(begin, first_);
    end = std::min(end, last_);
    if (what == nullptr || begin >= end) return;
    const Index width = what->width(end - begin);
    stages_.push_back(std::make_unique<Stage>(std::move(what), begin, end, width));
  }

  /// Takes tasks until all are done, also those that others have begun; or until *stop, when it
  /// has done what it had begun.
  void work(int thread, const std::atomic<bool>* stop = nullptr) {
    const auto is_stopped = [stop] { return stop != nullptr && stop->load(); };
    for (const auto& stage : stages_) {
      while (!is_stopped() && stage->take(thread)) {
      }
      while (!stage->is_done()) {
        if (is_stopped()) return;
        pause();
      }
    }
  }

 private:
  struct Stage {
    Stage(std::shared_ptr<ColumnWork> of, Index from, Index to, Index of_task)
        : what(std::move(of)),
          begin(from),
          end(to),
          width(of_task),
          origin(from / of_task),
          count((to + of_task - 1) / of_task - origin) {}

    bool take(int thread) {
      const Index task = next.fetch_add(1, std::memory_order_relaxed);
      if (task >= count) return false;
      const Index at = (origin + task) * width;
      what->run(std::max(at, begin), std::min(at + width, end), thread);
      done.fetch_add(1, std::memory_order_release);
      return true;
    }
    bool is_done() const { return done.load(std::memory_order_acquire) >= count; }

    std::shared_ptr<ColumnWork> what;
    Index begin, end, width, origin, count;
    std::atomic<Index> next{0}, done{0};
  };

  static void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }

  Index first_, last_;
  std::vector<std::unique_ptr<Stage>> stages_;
};

/// All of it, by so many threads.
inline void run_by_all(StagedColumns& columns, int threads) {
#pragma omp parallel num_threads(threads) if (threads > 1)
  columns.work(omp_get_thread_num());
}

}  // namespace kfu
