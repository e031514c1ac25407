// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "framework/comm/operations/flight_recorder.h"
#include "framework/observe/hang/picture.h"
#include "launch/stall/call_names.h"

namespace phalanx {

/// Makes the picture that a rank shows of itself, from its flight recorder. Not thread-safe.
class OwnPicture {
 public:
  static constexpr std::size_t kOperations = 64;  // the most that a picture has

  /// `names` may be null.
  OwnPicture(int rank, std::string dataset, std::shared_ptr<const CallNames> names)
      : rank_(rank), dataset_(std::move(dataset)), names_(std::move(names)) {}

  /// Returns the picture with the last of `records`, which are all that the recorder has. The recorder counts time from
  /// its own start; with each call, this object learns more exactly when that was. `waiting_since` is a time of
  /// failure_time(), or 0.
  RankPicture take(const std::vector<FlightRecorder::Record>& records, double waiting_since);

 private:
  int rank_;
  std::string dataset_;
  std::shared_ptr<const CallNames> names_;
  double recorder_start_ = std::numeric_limits<double>::infinity();  // an upper bound, in seconds since the epoch
};

}  // namespace phalanx
