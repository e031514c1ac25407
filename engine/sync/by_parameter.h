// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "framework/base/state_dict.h"
#include "framework/parallel/flat_parameters.h"

namespace phalanx {

/// Appends to `all` what a strategy remembers alike on all ranks that have a bucket: `values`, a number for each of its
/// elements, or one for all of them, [1]. It is named by the parameters in the bucket, "<prefix><parameter>": so it is
/// found again in other buckets, and on other ranks of a pipeline. The tensors are views.
inline void append_by_parameter(StateDict& all, const std::string& prefix, const at::Tensor& values,
                                const std::vector<Segment>& segments) {
  const bool of_elements = segments.empty() || values.numel() >= segments.back().end();
  for (const auto& segment : segments) {
    const at::Tensor own = of_elements ? values.narrow(0, segment.begin, segment.count) : values;
    all.push_back({prefix + segment.name, own, true});
  }
}

}  // namespace phalanx
