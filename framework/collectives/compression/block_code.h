// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace phalanx {

/// A code that stores a run of float32 numbers in fewer bytes, in blocks with one scale each. A pure function of its
/// input; thread-safe.
class BlockCode {
 public:
  explicit BlockCode(std::int64_t block) : block_(block) {}
  virtual ~BlockCode() = default;

  std::int64_t block() const { return block_; }  // elements that share a scale; the last block of a run may be shorter

  /// Returns the size in bytes of the code of `elements` elements.
  std::int64_t bytes(std::int64_t elements) const {
    return elements / block_ * block_bytes(block_) + (elements % block_ > 0 ? block_bytes(elements % block_) : 0);
  }

  /// Writes the code, of bytes(values.size()) bytes, and leaves the coding error in `values`: value minus decoded
  /// value. The error is set to 0 throughout a block that contains a number that is not finite.
  void encode(std::span<float> values, std::uint8_t* code) const;

  /// Performs values[i] += factor * decoded[i]. A block that contained a number that is not finite decodes to NaN.
  void add(const std::uint8_t* code, float factor, std::span<float> values) const;

 private:
  virtual std::int64_t block_bytes(std::int64_t elements) const = 0;
  virtual void encode_block(std::span<float> values, std::uint8_t* code) const = 0;
  virtual void add_block(const std::uint8_t* code, float factor, std::span<float> values) const = 0;

  std::int64_t block_;
};

}  // namespace phalanx
