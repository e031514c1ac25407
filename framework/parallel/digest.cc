// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/digest.h"

#include <cstring>
#include <stdexcept>

namespace phalanx {

std::uint64_t digest(const at::Tensor& anywhere) {
  if (!anywhere.is_contiguous()) throw std::invalid_argument("digest: needs a contiguous tensor");
  const at::Tensor tensor = anywhere.to(at::kCPU);
  const auto* bytes = static_cast<const std::byte*>(tensor.const_data_ptr());
  const std::size_t size = tensor.nbytes(), words = size / sizeof(std::uint32_t);
  constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;  // odd, and far from any simple ratio of 2^64
  std::uint64_t sum = size * 0xbf58476d1ce4e5b9;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes + i * sizeof(word), sizeof(word));
    sum += word * (((i + 1) * kStep) | 1);
  }
  std::uint32_t last = 0;
  if (const auto rest = size % sizeof(last); rest > 0) std::memcpy(&last, bytes + words * sizeof(last), rest);
  return sum + last * (((words + 1) * kStep) | 1);
}

}  // namespace phalanx
