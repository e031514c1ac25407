#include "framework/backends/direct/reduce_kernel.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

// One binary for all x86 machines: the compiler emits the hot loops for several instruction sets and the loader picks.
// Sanitizers cannot run code before they are set up, which is when the loader picks.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(PHALANX_SANITIZED)
#define PHALANX_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PHALANX_VECTOR_CLONES
#endif

namespace phalanx::direct {
namespace {

constexpr std::int64_t kBlockBytes =
    8 << 10;  // results of a block stay in the first-level cache until they are written

template <class T>
[[gnu::always_inline]] inline void accumulate(T* __restrict result, const T* __restrict source, std::int64_t count,
                                              Reduction op) {
  switch (op) {
    case Reduction::kSum:
    case Reduction::kMean:
      for (std::int64_t i = 0; i < count; ++i) result[i] += source[i];
      return;
    case Reduction::kMin:
      for (std::int64_t i = 0; i < count; ++i) result[i] = source[i] < result[i] ? source[i] : result[i];
      return;
    case Reduction::kMax:
      for (std::int64_t i = 0; i < count; ++i) result[i] = result[i] < source[i] ? source[i] : result[i];
      return;
  }
}

template <class T>
[[gnu::always_inline]] inline void divide(T* result, std::int64_t count, T divisor) {
  for (std::int64_t i = 0; i < count; ++i) result[i] /= divisor;
}

#define PHALANX_DEFINE_KERNELS(T)                                                                           \
  PHALANX_VECTOR_CLONES void accumulate_##T(T* result, const T* source, std::int64_t count, Reduction op) { \
    accumulate<T>(result, source, count, op);                                                               \
  }                                                                                                         \
  PHALANX_VECTOR_CLONES void divide_##T(T* result, std::int64_t count, T divisor) {                         \
    divide<T>(result, count, divisor);                                                                      \
  }                                                                                                         \
  void combine(T* result, const T* source, std::int64_t count, Reduction op) {                              \
    accumulate_##T(result, source, count, op);                                                              \
  }                                                                                                         \
  void scale_down(T* result, std::int64_t count, T divisor) { divide_##T(result, count, divisor); }

using std::int64_t;
PHALANX_DEFINE_KERNELS(float)
PHALANX_DEFINE_KERNELS(double)
PHALANX_DEFINE_KERNELS(int64_t)
#undef PHALANX_DEFINE_KERNELS

template <class T>
void reduce_blocks(Reduction op, std::span<std::byte* const> targets, std::span<const std::byte* const> sources,
                   std::int64_t count) {
  constexpr std::int64_t kBlock = kBlockBytes / sizeof(T);
  alignas(64) T result[kBlock];
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t n = std::min(kBlock, count - begin);
    const auto offset = begin * sizeof(T), bytes = n * sizeof(T);
    std::memcpy(result, sources[0] + offset, bytes);
    for (auto* source : sources.subspan(1)) combine(result, reinterpret_cast<const T*>(source + offset), n, op);
    if (op == Reduction::kMean) scale_down(result, n, static_cast<T>(sources.size()));
    for (auto* target : targets) std::memcpy(target + offset, result, bytes);
  }
}

}  // namespace

void reduce(c10::ScalarType dtype, Reduction op, std::span<std::byte* const> targets,
            std::span<const std::byte* const> sources, std::int64_t count) {
  switch (dtype) {
    case c10::kFloat:
      return reduce_blocks<float>(op, targets, sources, count);
    case c10::kDouble:
      return reduce_blocks<double>(op, targets, sources, count);
    case c10::kLong:
      return reduce_blocks<std::int64_t>(op, targets, sources, count);
    default:
      throw std::invalid_argument(std::string("reduce: no kernel for ") + c10::toString(dtype));
  }
}

}  // namespace phalanx::direct
