// SPDX-License-Identifier: Apache-2.0
#include "engine/watch/tensorboard.h"

#include <vector>

namespace phalanx {

void TensorBoard::add(const MetricsRecord& record) {
  if (!file_) file_.emplace(folder_, after_ + 1);
  std::vector<TaggedValue> values;
  const auto tag = [&](const std::string& name) { return record.split + "/" + name; };
  for (const auto& [name, value] : record.metrics) values.push_back({tag(name), value});
  values.push_back({tag("samples_per_second"), record.samples_per_second});
  if (record.learning_rate) values.push_back({tag("learning_rate"), *record.learning_rate});
  for (int i = 0; record.times && i < kPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    values.push_back({"step_ms/" + std::string(to_string(phase)), 1e3 * record.times->phase(phase).mean});
  }
  file_->add(record.step, values);
}

}  // namespace phalanx
