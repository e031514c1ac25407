// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "framework/base/state_dict.h"
#include "framework/partition/flat_parameters.h"

namespace phalanx {

/// Appends to `all` the state that a strategy keeps for a bucket and that is the same on all ranks that have the
/// bucket. `values` has a number for each element of the bucket, or [1], one number for all of them. Each entry is
/// named after a parameter of the bucket, "<prefix><parameter>", so it can be found again in other buckets and on other
/// ranks of a pipeline. The tensors are views.
inline void append_by_parameter(StateDict& all, const std::string& prefix, const at::Tensor& values,
                                const std::vector<Segment>& segments) {
  const bool of_elements = segments.empty() || values.numel() >= segments.back().end();
  for (const auto& segment : segments) {
    const at::Tensor own = of_elements ? values.narrow(0, segment.begin, segment.count) : values;
    all.push_back({prefix + segment.name, own, true});
  }
}

}  // namespace phalanx
