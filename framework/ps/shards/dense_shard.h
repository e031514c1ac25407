// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/ps/rules/update_rule.h"
#include "framework/ps/shards/shard.h"

namespace phalanx::ps {

/// Consecutive elements of a dense table. A request always transfers all of them.
class DenseShard final : public Shard {
 public:
  /// Creates a shard of zeros. Throws ConfigError if a rule is unknown or does not support the dtype.
  DenseShard(const TableSpec& spec, int shard, int shards);

  Transfer transfer(const Header& request) const override;
  std::int64_t bytes() const override { return static_cast<std::int64_t>(values_.nbytes()); }
  StateDict state() override;

 private:
  void apply(const Push& push, std::int64_t staleness, const at::Tensor& update) override;
  at::Tensor read(const Pull& pull) override;

  at::Tensor values_;  // [elements of the shard]
  std::vector<std::unique_ptr<UpdateRule>> rules_;
};

}  // namespace phalanx::ps
