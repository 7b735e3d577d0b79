// Uninitialised, cache-line aligned memory for trivially copyable values.
//
// Large buffers do not ask for huge pages: on a virtual machine that returns free memory to its
// host these are always the ones that have to come back from it, at 4 s a gigabyte (measured)
// against 0.7 s for pages of 4 KiB.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "kfu/types.h"

namespace kfu {

template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable<T>::value, "a Buffer holds plain values");

 public:
  Buffer() = default;
  explicit Buffer(Index size) { resize(size); }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  Index size() const { return size_; }
  T& operator[](Index k) { return data_.get()[k]; }
  const T& operator[](Index k) const { return data_.get()[k]; }

  /// Keeps the common prefix; what is new is uninitialised. Capacity never shrinks.
  void resize(Index size) {
    if (size > capacity_) {
      const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(T);
      std::unique_ptr<T, Free> grown(
          static_cast<T*>(::operator new(bytes, std::align_val_t(alignment))));
      if (size_ > 0) std::memcpy(grown.get(), data(), static_cast<std::size_t>(size_) * sizeof(T));
      data_ = std::move(grown);
      capacity_ = size;
    }
    size_ = size;
  }

 private:
  static constexpr std::size_t alignment = 64;
  struct Free {
    void operator()(T* p) const { ::operator delete(p, std::align_val_t(alignment)); }
  };
  std::unique_ptr<T, Free> data_;
  Index size_ = 0;
  Index capacity_ = 0;
};

}  // namespace kfu
