// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace phalanx {

/// The inputs of the random numbers of a forward pass, apart from their purpose.
struct RandomKey {
  std::uint64_t step = 0;      // different for each step: mix(seed, step)
  std::int64_t first_row = 0;  // number in the global batch of the first row that is computed

  // [] int64 on the device that computes, with the bits of `step`. The device reads it there, so a captured graph that
  // is replayed in another step draws the numbers of that step. Undefined: `step` itself is used.
  at::Tensor step_on_device{};
};

/// While one exists, the thread that made it computes rows whose random numbers are a function of only (step, layer,
/// row of the global batch, place in the row). They are counter-based (Salmon et al. 2011, Parallel Random Numbers: As
/// Easy as 1, 2, 3). So they do not depend on the number of ranks and threads, the rank that has a row, the number of
/// parts that a batch is divided into, the recomputation of activations, or the step at which a run was resumed.
class RandomRows {
 public:
  explicit RandomRows(std::optional<RandomKey> key);
  ~RandomRows();
  RandomRows(const RandomRows&) = delete;
  RandomRows& operator=(const RandomRows&) = delete;

  /// Returns the key of this thread's innermost RandomRows, or nothing outside of any.
  static std::optional<RandomKey> current();

 private:
  std::optional<RandomKey> before_;
};

/// Returns factors for dropout of a tensor [n, ...] of the shape of `like`, whose first row is the key's: 0 with
/// probability `rate` (0 <= rate < 1), else 1 / (1 - rate). Layers with different numbers draw independently. The
/// result is the same on every device, and a device computes it without the host.
at::Tensor dropout_factors(const at::Tensor& like, double rate, std::uint64_t layer, const RandomKey& key);

/// A part of a tensor [n, groups, ...]: the same range of elements of some consecutive groups. With attention weights
/// [n, heads, queries, keys], it is a block of queries of some of the heads.
struct GroupsPart {
  std::int64_t group_elements = 0;  // of a whole group
  std::int64_t first_group = 0;
  std::int64_t first_element = 0;  // within each group
};

/// The random numbers of a layer with dropout in one forward pass, which a layer that computes in parts draws again in
/// backward.
struct DropoutNumbers {
  double rate = 0;  // 0 <= rate < 1
  std::uint64_t layer = 0;
  RandomKey key{};
  std::int64_t first_group = 0;  // of a tensor [n, groups, ...] of which this rank has some consecutive groups
};

/// Returns a part of the factors for such a tensor, with the bits that it has in the whole result, without computing
/// the rest. `like` [n, groups, ...] has the shape of the part.
at::Tensor dropout_factors(const at::Tensor& like, const GroupsPart& part, double rate, std::uint64_t layer,
                           const RandomKey& key);

}  // namespace phalanx
