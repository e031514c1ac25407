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

/// The rule by which a reduction combines the ranks' elements. A small value type; copies of a user's reduction share
/// its function.
///
/// All ranks of an operation get bitwise the same result. The algorithm chooses the bracketing, but it combines
/// elements in rank order unless the reduction is commutative and the algorithm documents that it makes use of that.
class Reduction {
 public:
  enum class Kind : std::uint8_t {
    kSum,
    kMean,  // the sum divided by the number of ranks; integers are rounded toward zero; not for bool
    kProduct,
    kMin,  // NaN against a number: unspecified which wins, but the same on all ranks
    kMax,
    kBitAnd,  // the bit operations are for integers and bool
    kBitOr,
    kBitXor,
    kCustom,
  };
  static constexpr Kind kSum = Kind::kSum, kMean = Kind::kMean, kProduct = Kind::kProduct, kMin = Kind::kMin,
                        kMax = Kind::kMax, kBitAnd = Kind::kBitAnd, kBitOr = Kind::kBitOr, kBitXor = Kind::kBitXor;

  Reduction(Kind kind = Kind::kSum) : kind_(kind) {}  // NOLINT: Reduction::kSum is a Reduction

  /// Returns a reduction that the user defines, for tensors of dtype T. `combine(result, next)` replaces each result[i]
  /// by result[i] . next[i], where . is associative and result comes from lower ranks than next. Both spans have the
  /// same length and contain any run of the tensor. It is called by several threads at once.
  ///
  ///   auto larger = Reduction::custom<float>("larger_magnitude", [](std::span<float> result, auto next) { ... });
  ///
  /// `commutative`: a . b equals b . a, so algorithms may combine in another order. `name` is for messages; ranks that
  /// use different names get a mismatch.
  template <class T>
  static Reduction custom(std::string name, std::function<void(std::span<T> result, std::span<const T> next)> combine,
                          bool commutative = false);

  Kind kind() const { return kind_; }
  std::string name() const;  // "sum", ...; the name of a user's reduction
  bool commutative() const { return !custom_ || custom_->commutative; }

  bool operator==(const Reduction& other) const { return kind_ == other.kind_ && custom_ == other.custom_; }

  /// Returns true if this reduction supports elements of `dtype`.
  bool takes(c10::ScalarType dtype) const;

  /// Computes result[i] = first[i] . second[i]. A mean only adds; finish() divides. float16 and bfloat16 are combined
  /// in float32 and rounded. For bool, the sum is the logical or and the product is the logical and. The result may be
  /// the first run or, except for a user's reduction, the second; runs must not overlap otherwise.
  void combine(c10::ScalarType dtype, void* result, const void* first, const void* second, std::int64_t count) const;

  /// Computes result[i] = result[i] . source[i].
  void combine(c10::ScalarType dtype, void* result, const void* source, std::int64_t count) const {
    combine(dtype, result, result, source, count);
  }

  /// Completes a reduction over `ranks`: divides a mean. Has no effect on other reductions.
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
