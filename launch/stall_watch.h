// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "framework/comm/communicator.h"
#include "framework/comm/flight_recorder.h"
#include "framework/comm/store.h"
#include "launch/stall.h"

namespace phalanx {

/// Tells the console when the ranks of a world wait for one of them: once in each stall, by one of those that wait, and
/// again when it goes on.
///
/// A thread of its own looks at the flight recorder of this rank now and then, so operations cost what they did. A rank
/// whose operation makes no progress leaves a note for the others in the log folder (wait_note.h); after `warn_after`
/// one of them tells for whom they wait (stall.h). A rank that hangs or was stopped leaves none, whatever the reason.
class StallWatch {
 public:
  struct Options {
    std::string log_folder{};                    // of the run, the same for all ranks
    Seconds warn_after{20};                      // above 0
    std::function<void(std::string_view)> tell;  // a line, to the console; in the watch's thread
  };

  /// `world` must outlive it. Not collective.
  StallWatch(const Communicator& world, Options options);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

 private:
  // An operation that runs, and what would change if it made progress.
  struct Running {
    FlightRecorder::Record oldest;
    std::uint64_t newest_running = 0, newest_launched = 0;
    bool same_as(const Running& other) const;
  };

  void watch(const std::stop_token& stop);
  void look();
  void tell_if_ripe();
  void end_wait();
  std::optional<Running> running() const;

  const Communicator& world_;
  Options options_;
  Seconds interval_;
  std::optional<Running> wait_;   // that lasts
  std::optional<WaitNote> note_;  // of it, once it has lasted a while
  double since_ = 0;
  bool trouble_ = false;  // the folder takes no notes
  std::jthread thread_;   // last: it uses the rest
};

}  // namespace phalanx
