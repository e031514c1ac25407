#include "engine/watch/metrics_log.h"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "framework/base/error.h"

namespace phalanx {

MetricsLog::MetricsLog(const std::string& path) : path_(path), file_(path, std::ios::app) {
  if (!file_) throw DataError(path + ": cannot be opened: " + std::strerror(errno));
}

void MetricsLog::add(const Measurement& measurement) {
  nlohmann::ordered_json line{{"step", measurement.step}, {"epoch", measurement.epoch}, {"split", measurement.split}};
  for (const auto& [name, value] : measurement.readings) line[name] = value;
  line["samples_per_second"] = measurement.samples_per_second;
  line["seconds"] = measurement.seconds;
  file_ << line << '\n' << std::flush;
  if (!file_) throw DataError(path_ + ": cannot be written: " + std::strerror(errno));
}

}  // namespace phalanx
