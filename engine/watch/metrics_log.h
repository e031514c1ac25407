#pragma once

#include <fstream>
#include <string>

#include "engine/meters/meters.h"

namespace phalanx {

/// One line of metrics.jsonl.
struct Measurement {
  std::int64_t step = 0;   // updates done
  std::int64_t epoch = 0;  // from 0
  std::string split;       // "train", "validation" or "test"
  Readings readings;       // "loss" first
  double samples_per_second = 0;
  double seconds = 0;  // since training began
};

/// metrics.jsonl: one JSON object per line, on disk as soon as it is added, so that a run can be followed and nothing
/// is lost with a crash.
class MetricsLog {
 public:
  explicit MetricsLog(const std::string& path);  // throws DataError
  void add(const Measurement& measurement);      // throws DataError

 private:
  std::string path_;
  std::ofstream file_;
};

}  // namespace phalanx
