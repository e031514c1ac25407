// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/metrics/metrics_log.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/base/error.h"
#include "framework/comm/launch/host_lease.h"
#include "framework/observe/times/step_times_json.h"

namespace phalanx {

void MetricsLog::add(const MetricsRecord& record) {
  end_without_lease();  // others may write this file by now
  nlohmann::ordered_json line{{"step", record.step}, {"epoch", record.epoch}, {"split", record.split}};
  for (const auto& [name, value] : record.metrics) line[name] = value;
  line["samples_per_second"] = record.samples_per_second;
  line["seconds"] = record.seconds;
  if (record.learning_rate) line["learning_rate"] = *record.learning_rate;
  if (record.times) line["step_ms"] = means_to_json(*record.times);
  file_.add(line.dump() + '\n');
}

void MetricsLog::retry() {
  end_without_lease();
  file_.add("");
}

void cut_metrics(const std::string& path, std::int64_t bytes) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return;
  std::string kept(static_cast<std::size_t>(bytes), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(kept.data(), bytes);
  kept.resize(static_cast<std::size_t>(file.gcount()));
  kept.resize(kept.find_last_of('\n') + 1);  // 0 if there is no line
  std::filesystem::resize_file(path, kept.size(), error);
  if (error) throw DataError(path + ": cannot be truncated: " + error.message());
}

}  // namespace phalanx
