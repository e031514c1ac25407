// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace phalanx {

/// How a run of float32 numbers is written in fewer bytes, block by block, each with a scale of its own. A pure
/// function of its input; any number of threads.
class BlockCode {
 public:
  explicit BlockCode(std::int64_t block) : block_(block) {}
  virtual ~BlockCode() = default;

  std::int64_t block() const { return block_; }  // elements that share a scale; the last block of a run may be shorter

  /// Of the code of a run of `elements`: that of its blocks.
  std::int64_t bytes(std::int64_t elements) const {
    return elements / block_ * block_bytes(block_) + (elements % block_ > 0 ? block_bytes(elements % block_) : 0);
  }

  /// Writes the code, bytes(values.size()) long, and leaves in `values` what it does not hold: value minus decoded
  /// value, 0 throughout a block with a number that is not finite.
  void encode(std::span<float> values, std::uint8_t* code) const;

  /// values[i] += factor * decoded[i]; a block with a number that was not finite decodes to NaN.
  void add(const std::uint8_t* code, float factor, std::span<float> values) const;

 private:
  virtual std::int64_t block_bytes(std::int64_t elements) const = 0;
  virtual void encode_block(std::span<float> values, std::uint8_t* code) const = 0;
  virtual void add_block(const std::uint8_t* code, float factor, std::span<float> values) const = 0;

  std::int64_t block_;
};

}  // namespace phalanx
