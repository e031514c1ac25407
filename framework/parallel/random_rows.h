// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace phalanx {

/// What the random numbers of a forward depend on besides what they are for.
struct RandomKey {
  std::uint64_t step = 0;      // a seed of its own for each step: mix(seed, step)
  std::int64_t first_row = 0;  // number in the global batch of the first row of what is computed

  // [] int64 on the device that computes, with the bits of `step`, which are read there: a graph of a device that is
  // replayed in another step draws that step's numbers. Undefined: `step` itself.
  at::Tensor step_on_device{};
};

/// While one lives, the thread that made it computes with rows whose random numbers are a function of (step, layer, row
/// of the global batch, place in the row) alone (counter-based: Salmon et al. 2011, Parallel Random Numbers: As Easy as
/// 1, 2, 3). So they do not depend on how many ranks and threads there are, which of them has a row, in how many parts
/// a batch is taken, whether activations are computed again, or where a run was resumed.
class RandomRows {
 public:
  explicit RandomRows(std::optional<RandomKey> key);
  ~RandomRows();
  RandomRows(const RandomRows&) = delete;
  RandomRows& operator=(const RandomRows&) = delete;

  /// Of this thread's innermost one; none where there is no such scope.
  static std::optional<RandomKey> current();

 private:
  std::optional<RandomKey> before_;
};

/// Factors for dropout of a tensor [n, ...] like `like`, whose first row is the key's: 0 with probability `rate`
/// (0 <= rate < 1), else 1 / (1 - rate). Layers with other numbers draw independently. The same on every device, where
/// they are computed without the host.
at::Tensor dropout_factors(const at::Tensor& like, double rate, std::uint64_t layer, const RandomKey& key);

}  // namespace phalanx
