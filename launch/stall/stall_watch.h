// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "framework/comm/communicator.h"
#include "framework/comm/operations/flight_recorder.h"
#include "framework/comm/store/store.h"
#include "launch/stall/stall.h"

namespace phalanx {

/// Tells the console when the ranks of a world wait for one of them. In each stall, one of the waiting ranks prints a
/// line, and another one when it continues.
///
/// A separate thread examines the flight recorder of this rank from time to time, so operations do not become slower. A
/// rank whose operation makes no progress writes a note for the others to the log folder (stall.h). After
/// `warn_after`, one of them prints for whom they wait (stall.h). A rank that hangs or was stopped writes no note,
/// whatever the reason.
class StallWatch {
 public:
  struct Options {
    std::string log_folder{};                     // log folder of the run, the same for all ranks
    Seconds warn_after{20};                       // must be positive
    std::function<void(std::string_view)> print;  // prints a line on the console; called in the watch's thread
  };

  /// `world` must outlive this object. Not collective.
  StallWatch(const Communicator& world, Options options);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

 private:
  // A running operation, with values that change if it makes progress.
  struct Running {
    FlightRecorder::Record oldest;
    std::uint64_t newest_running = 0, newest_launched = 0;
    bool same_as(const Running& other) const;
  };

  void watch(const std::stop_token& stop);
  void check_progress();
  void report_if_due();
  void finish_wait();
  std::optional<Running> running() const;

  const Communicator& world_;
  Options options_;
  Seconds interval_;
  std::optional<Running> wait_;   // the wait that is going on
  std::optional<WaitNote> note_;  // its note, once it has lasted for a while
  double since_ = 0;
  bool warned_ = false;  // notes cannot be written to the folder
  std::jthread thread_;  // last, because it uses the other members
};

}  // namespace phalanx
