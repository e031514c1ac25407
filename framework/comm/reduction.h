// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace phalanx {

/// How a reduction combines the ranks' elements. A small value; copies of a user's reduction share its function.
///
/// All ranks of an operation get bitwise the same result. Elements are combined by an algorithm's own bracketing, but
/// always in the order of the ranks, except where an operation is commutative and the algorithm says that it makes use
/// of that.
class Reduction {
 public:
  enum class Kind : std::uint8_t {
    kSum,
    kMean,  // the sum divided by the number of ranks; integers: rounded toward zero; not for bool
    kProduct,
    kMin,  // which of a NaN and a number wins is unspecified, but the same on all ranks
    kMax,
    kBitAnd,  // the bit operations: integers and bool
    kBitOr,
    kBitXor,
    kCustom,
  };
  static constexpr Kind kSum = Kind::kSum, kMean = Kind::kMean, kProduct = Kind::kProduct, kMin = Kind::kMin,
                        kMax = Kind::kMax, kBitAnd = Kind::kBitAnd, kBitOr = Kind::kBitOr, kBitXor = Kind::kBitXor;

  Reduction(Kind kind = Kind::kSum) : kind_(kind) {}  // NOLINT: Reduction::kSum is a Reduction

  /// A reduction of the user's own, for tensors of dtype T. `combine(result, next)` replaces each result[i] by
  /// result[i] . next[i], where . is associative and result comes from lower ranks than next; both spans are equally
  /// long, and what they hold is any run of the tensor. It is called by several threads at once.
  ///
  ///   auto larger = Reduction::custom<float>("larger_magnitude", [](std::span<float> result, auto next) { ... });
  ///
  /// `commutative`: a . b equals b . a, so that algorithms may combine in another order. `name` is for messages, and
  /// ranks whose names differ mismatch.
  template <class T>
  static Reduction custom(std::string name, std::function<void(std::span<T> result, std::span<const T> next)> combine,
                          bool commutative = false);

  Kind kind() const { return kind_; }
  std::string name() const;  // "sum", ...; a user's own name
  bool commutative() const { return !custom_ || custom_->commutative; }

  bool operator==(const Reduction& other) const { return kind_ == other.kind_ && custom_ == other.custom_; }

  /// Whether there is such a reduction of elements of `dtype`.
  bool takes(c10::ScalarType dtype) const;

  /// result[i] = first[i] . second[i]. A mean only adds: finish() divides. float16 and bfloat16 are combined in
  /// float32 and rounded. bool: the sum is the or, the product the and. The result may be the first run or, except for
  /// a user's own reduction, the second; runs must not overlap otherwise.
  void combine(c10::ScalarType dtype, void* result, const void* first, const void* second, std::int64_t count) const;

  /// result[i] = result[i] . source[i].
  void combine(c10::ScalarType dtype, void* result, const void* source, std::int64_t count) const {
    combine(dtype, result, result, source, count);
  }

  /// Ends a reduction over `ranks`: divides a mean; nothing else has an end.
  void finish(c10::ScalarType dtype, void* result, std::int64_t count, int ranks) const;

 private:
  struct Custom {
    std::string name;
    c10::ScalarType dtype;
    bool commutative;
    std::function<void(void* result, const void* source, std::size_t count)> combine;
  };

  explicit Reduction(Custom custom)
      : kind_(Kind::kCustom), custom_(std::make_shared<const Custom>(std::move(custom))) {}

  Kind kind_;
  std::shared_ptr<const Custom> custom_;
};

std::string_view to_string(Reduction::Kind kind);

template <class T>
Reduction Reduction::custom(std::string name, std::function<void(std::span<T>, std::span<const T>)> combine,
                            bool commutative) {
  return Reduction(Custom{.name = std::move(name),
                          .dtype = c10::CppTypeToScalarType<T>::value,
                          .commutative = commutative,
                          .combine = [combine = std::move(combine)](void* result, const void* source, std::size_t n) {
                            combine({static_cast<T*>(result), n}, {static_cast<const T*>(source), n});
                          }});
}

}  // namespace phalanx
