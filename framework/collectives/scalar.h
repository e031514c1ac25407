// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <concepts>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "framework/collectives/send_recv.h"
#include "framework/comm/communicator.h"

/// Collectives of one value of a C type: bool, every kind of char and integer, float and double. They block, and all
/// ranks must call them with the same type. Errors are the same as in the operations on tensors.
///
///   const double loss = all_reduce(*world, local_loss, Reduction::kMean);
///   const std::vector<std::size_t> sizes = all_gather(*world, samples.size());
///
/// Results are exactly as with the C type: sums and products of integers wrap, and unsigned integers compare as
/// unsigned. The mean of integers is their 64-bit sum divided by P, rounded toward zero. For bool, the sum is the
/// logical or and the product the logical and. These throw std::invalid_argument: bit operations on float and double,
/// the mean of bools, and custom reductions of unsigned values of 16 bits or more, since tensors have no such dtype.
namespace phalanx {

template <class T>
concept Scalar = std::is_same_v<T, bool> || std::is_same_v<T, float> || std::is_same_v<T, double> ||
                 (std::integral<T> && sizeof(T) <= 8 && !std::is_same_v<T, wchar_t> && !std::is_same_v<T, char8_t> &&
                  !std::is_same_v<T, char16_t> && !std::is_same_v<T, char32_t>);

namespace scalar {

template <class T>
constexpr c10::ScalarType dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return c10::kBool;
  if constexpr (std::is_same_v<T, float>) return c10::kFloat;
  if constexpr (std::is_same_v<T, double>) return c10::kDouble;
  if constexpr (std::is_same_v<T, std::uint8_t>) return c10::kByte;
  if constexpr (std::is_same_v<T, std::int8_t>) return c10::kChar;
  if constexpr (std::is_same_v<T, std::int16_t>) return c10::kShort;
  if constexpr (std::is_same_v<T, std::int32_t>) return c10::kInt;
  return c10::kLong;
}

// The integer type in which a T travels. Tensors have no unsigned dtypes of 16 bits or more: unsigned values of 16 and
// 32 bits travel in signed integers of twice the size, with the same values, order and sums. Unsigned values of 64 bits
// travel as they are.
template <class T>
constexpr auto carrier_of() {
  if constexpr (!std::integral<T> || std::is_same_v<T, bool>) {
    return T();
  } else if constexpr (sizeof(T) == 1) {
    return std::conditional_t<std::is_signed_v<T>, std::int8_t, std::uint8_t>();
  } else {
    constexpr auto bytes = std::is_unsigned_v<T> ? 2 * sizeof(T) : sizeof(T);
    return std::conditional_t<bytes == 2, std::int16_t, std::conditional_t<bytes == 4, std::int32_t, std::int64_t>>();
  }
}
template <class T>
using Carrier = decltype(carrier_of<T>());

template <class C>
at::Tensor tensor_of(C carried) {
  at::Tensor tensor = at::empty({1}, dtype_of<C>());
  *tensor.mutable_data_ptr<C>() = carried;
  return tensor;
}

template <class C>
C value_of(const at::Tensor& tensor) {
  return *tensor.const_data_ptr<C>();
}

// Reduces the values of all ranks with `reduction`. `operation` performs the reduction of a tensor of one carrier.
template <class T, class Operation>
T reduced(T value, const Reduction& reduction, int ranks, const Operation& operation) {
  // With the highest bit flipped, signed comparison orders the values as unsigned.
  Carrier<T> flip{};
  if constexpr (std::integral<T> && !std::is_same_v<T, bool>) {
    if (reduction.kind() == Reduction::kMean) {  // computed here: the sum may need more bits, or an unsigned division
      using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
      return static_cast<T>(reduced<Wide>(value, Reduction::kSum, ranks, operation) / static_cast<Wide>(ranks));
    }
    if constexpr (std::is_unsigned_v<T> && sizeof(T) > 1) {
      if (reduction.kind() == Reduction::Kind::kCustom) {
        throw std::invalid_argument(reduction.name() +
                                    " is a custom reduction, which needs a dtype of tensors; there is " +
                                    "no unsigned dtype of 16 bits or more: reduce a signed scalar");
      }
    }
    const bool compares = reduction.kind() == Reduction::kMin || reduction.kind() == Reduction::kMax;
    if (std::is_unsigned_v<T> && sizeof(T) == 8 && compares) flip = std::numeric_limits<Carrier<T>>::min();
  }
  const auto flipped = [&](Carrier<T> carried) {
    if constexpr (std::integral<T>) return static_cast<Carrier<T>>(carried ^ flip);
    return carried;
  };
  const at::Tensor tensor = tensor_of(flipped(static_cast<Carrier<T>>(value)));
  operation(tensor, reduction);
  return static_cast<T>(flipped(value_of<Carrier<T>>(tensor)));
}

}  // namespace scalar

/// Returns the values of all ranks, combined.
template <Scalar T>
T all_reduce(Communicator& group, T value, Reduction op = Reduction::kSum) {
  return scalar::reduced(value, op, group.size(), [&](const at::Tensor& tensor, const Reduction& reduction) {
    group.all_reduce(tensor, reduction).wait();
  });
}

/// Returns the values of all ranks, combined, on the root. Other ranks get their own value back.
template <Scalar T>
T reduce(Communicator& group, T value, Reduction op, int root) {
  const T result = scalar::reduced(value, op, group.size(), [&](const at::Tensor& tensor, const Reduction& reduction) {
    group.reduce(tensor, reduction, root).wait();
  });
  return group.rank() == root ? result : value;
}

/// Returns the root's value.
template <Scalar T>
T broadcast(Communicator& group, T value, int root) {
  const at::Tensor tensor = scalar::tensor_of(static_cast<scalar::Carrier<T>>(value));
  group.broadcast(tensor, root).wait();
  return static_cast<T>(scalar::value_of<scalar::Carrier<T>>(tensor));
}

/// Sends `value` to rank `to` and returns the value that arrives from rank `from`.
template <Scalar T>
T send_recv(Communicator& group, T value, int to, int from, int tag = 0) {
  const at::Tensor tensor = scalar::tensor_of(static_cast<scalar::Carrier<T>>(value));
  phalanx::send_recv(group, tensor, to, from, tag).wait();
  return static_cast<T>(scalar::value_of<scalar::Carrier<T>>(tensor));
}

/// Returns the values of all ranks, in order of rank.
template <Scalar T>
std::vector<T> all_gather(Communicator& group, T value) {
  using C = scalar::Carrier<T>;
  const at::Tensor all = at::empty({group.size()}, scalar::dtype_of<C>());
  group.all_gather(all, scalar::tensor_of(static_cast<C>(value)), {}).wait();
  const C* values = all.const_data_ptr<C>();
  std::vector<T> result;
  for (int rank = 0; rank < group.size(); ++rank) result.push_back(static_cast<T>(values[rank]));
  return result;
}

}  // namespace phalanx
