// SPDX-License-Identifier: Apache-2.0
#include "framework/base/batch.h"

#include <algorithm>

namespace phalanx {

double Batch::weight() const {
  if (!row_weights.defined()) return static_cast<double>(valid);
  return row_weights.narrow(0, 0, valid).sum().item<double>();
}

Batch rows_of(const Batch& batch, std::int64_t begin, std::int64_t end) {
  Batch part = batch;
  for (auto& input : part.inputs) input = input.narrow(0, begin, end - begin);
  for (auto& target : part.targets) target = target.narrow(0, begin, end - begin);
  if (part.row_weights.defined()) part.row_weights = part.row_weights.narrow(0, begin, end - begin);
  part.first_row += begin;
  part.valid = std::clamp<std::int64_t>(batch.valid - begin, 0, end - begin);
  return part;
}

}  // namespace phalanx
