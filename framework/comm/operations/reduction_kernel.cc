// SPDX-License-Identifier: Apache-2.0
// The loops over elements of Reduction::combine and finish.
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "framework/comm/operations/reduction.h"

// One binary serves all x86 machines: the compiler emits the hot loops for several instruction sets, and the loader
// picks one. Sanitizers cannot run code before they are set up, which is when the loader picks.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(PHALANX_SANITIZED)
#define PHALANX_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PHALANX_VECTOR_CLONES
#endif

namespace phalanx {
namespace {

using Kind = Reduction::Kind;

template <class T>
constexpr bool kNarrowFloat = std::is_same_v<T, c10::Half> || std::is_same_v<T, c10::BFloat16>;

// The type in which elements of T are combined.
template <class T>
using Wide = std::conditional_t<kNarrowFloat<T>, float, T>;

template <class T, class Combine>
[[gnu::always_inline]] inline void each(T* result, const T* first, const T* second, std::int64_t count,
                                        const Combine& combine) {
#pragma GCC ivdep  // the result may be one of the others
  for (std::int64_t i = 0; i < count; ++i) {
    result[i] = static_cast<T>(combine(static_cast<Wide<T>>(first[i]), static_cast<Wide<T>>(second[i])));
  }
}

template <class T>
[[gnu::always_inline]] inline void combine_all(T* result, const T* first, const T* second, std::int64_t count,
                                               Kind kind) {
  using W = Wide<T>;
  switch (kind) {
    case Kind::kSum:
    case Kind::kMean:
      return each(result, first, second, count, [](W a, W b) { return a + b; });
    case Kind::kProduct:
      return each(result, first, second, count, [](W a, W b) { return a * b; });
    case Kind::kMin:
      return each(result, first, second, count, [](W a, W b) { return b < a ? b : a; });
    case Kind::kMax:
      return each(result, first, second, count, [](W a, W b) { return a < b ? b : a; });
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    switch (kind) {
      case Kind::kBitAnd:
        return each(result, first, second, count, [](W a, W b) { return a & b; });
      case Kind::kBitOr:
        return each(result, first, second, count, [](W a, W b) { return a | b; });
      case Kind::kBitXor:
        return each(result, first, second, count, [](W a, W b) { return a ^ b; });
      default:
        break;
    }
  }
}

template <class T>
[[gnu::always_inline]] inline void divide_all(T* result, std::int64_t count, Wide<T> divisor) {
  for (std::int64_t i = 0; i < count; ++i) result[i] = static_cast<T>(static_cast<Wide<T>>(result[i]) / divisor);
}

#define PHALANX_DEFINE_KERNELS(T, name)                                                                     \
  PHALANX_VECTOR_CLONES void combine_##name(T* result, const T* first, const T* second, std::int64_t count, \
                                            Kind kind) {                                                    \
    combine_all<T>(result, first, second, count, kind);                                                     \
  }                                                                                                         \
  PHALANX_VECTOR_CLONES void divide_##name(T* result, std::int64_t count, Wide<T> divisor) {                \
    divide_all<T>(result, count, divisor);                                                                  \
  }                                                                                                         \
  void combine_run(T* result, const T* first, const T* second, std::int64_t count, Kind kind) {             \
    combine_##name(result, first, second, count, kind);                                                     \
  }                                                                                                         \
  void divide_run(T* result, std::int64_t count, Wide<T> divisor) { divide_##name(result, count, divisor); }

PHALANX_DEFINE_KERNELS(std::uint8_t, uint8)
PHALANX_DEFINE_KERNELS(std::int8_t, int8)
PHALANX_DEFINE_KERNELS(std::int16_t, int16)
PHALANX_DEFINE_KERNELS(std::int32_t, int32)
PHALANX_DEFINE_KERNELS(std::int64_t, int64)
PHALANX_DEFINE_KERNELS(c10::Half, float16)
PHALANX_DEFINE_KERNELS(c10::BFloat16, bfloat16)
PHALANX_DEFINE_KERNELS(float, float32)
PHALANX_DEFINE_KERNELS(double, float64)
PHALANX_DEFINE_KERNELS(bool, bool)
#undef PHALANX_DEFINE_KERNELS

// Calls body(T()) for the C++ type of dtype.
template <class Body>
void dispatch(c10::ScalarType dtype, const Body& body) {
  switch (dtype) {
    case c10::kByte:
      return body(std::uint8_t());
    case c10::kChar:
      return body(std::int8_t());
    case c10::kShort:
      return body(std::int16_t());
    case c10::kInt:
      return body(std::int32_t());
    case c10::kLong:
      return body(std::int64_t());
    case c10::kHalf:
      return body(c10::Half());
    case c10::kBFloat16:
      return body(c10::BFloat16());
    case c10::kFloat:
      return body(float());
    case c10::kDouble:
      return body(double());
    case c10::kBool:
      return body(bool());
    default:
      throw std::invalid_argument(std::string("no reduction of ") + c10::toString(dtype));
  }
}

}  // namespace

void Reduction::combine(c10::ScalarType dtype, void* result, const void* first, const void* second,
                        std::int64_t count) const {
  if (custom_) {
    if (result != first) std::memcpy(result, first, static_cast<std::size_t>(count) * c10::elementSize(dtype));
    return custom_->combine(result, second, static_cast<std::size_t>(count));
  }
  dispatch(dtype, [&]<class T>(T) {
    combine_run(static_cast<T*>(result), static_cast<const T*>(first), static_cast<const T*>(second), count, kind_);
  });
}

void Reduction::finish(c10::ScalarType dtype, void* result, std::int64_t count, int ranks) const {
  if (kind_ != kMean) return;
  dispatch(dtype, [&]<class T>(T) { divide_run(static_cast<T*>(result), count, static_cast<Wide<T>>(ranks)); });
}

}  // namespace phalanx
