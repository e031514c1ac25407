// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "framework/comm/communicator.h"
#include "framework/comm/operations/flight_recorder.h"
#include "framework/comm/store/store.h"
#include "framework/observe/hang/rank_page.h"
#include "launch/stall/call_names.h"
#include "launch/stall/own_picture.h"
#include "launch/stall/slow_rank_watch.h"
#include "launch/stall/stall.h"

namespace phalanx {

/// Tells the console when the ranks of a world wait for one of them. In each stall, one of the waiting ranks prints a
/// line, and another one when it continues.
///
/// A separate thread examines the flight recorder of this rank from time to time, so operations do not become slower. A
/// rank whose operation makes no progress writes a note for the others to the log folder (stall.h). After
/// `warn_after`, one of them collects what is known of all ranks (framework/observe/hang), prints the sentence that
/// explains it, and writes both to kHangFile in the log folder. A rank that hangs or was stopped writes no note,
/// whatever the reason. If no rank waits in an operation, but rank 0 waits for a batch or for parameter servers for
/// that long, it prints the sentence. If the others regularly wait for the same rank, rank 0 says so (SlowRankWatch).
///
/// The thread also shows the last operations of this rank to other processes, on its page.
class StallWatch {
 public:
  struct Options {
    std::string log_folder{};                     // log folder of the run, the same for all ranks
    Seconds warn_after{20};                       // must be positive
    std::function<void(std::string_view)> print;  // prints a line on the console; called in the watch's thread
    Seconds timeout{0};                           // after which operations fail; 0: not known
    std::string dataset{};                        // its name
    RankPage* page = nullptr;                     // page of this rank, which must outlive this object; null: none
    std::shared_ptr<const CallNames> names{};     // names what operations move; may be null

    /// Called with the sentence that explains a wait, before the operation fails, and with "" if it continues. If the
    /// destructor is called because of an exception, it is called at the latest there. Calls do not overlap.
    std::function<void(const std::string&)> explained = [](const std::string&) {};
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
  void report_standing();
  void report_slow_rank();
  void show_others();
  void finish_wait();
  bool has_failed(std::uint64_t number) const;
  void explain_once();
  std::string explain_now() const;
  void take_picture();
  std::optional<Running> running() const;

  const Communicator& world_;
  Options options_;
  Seconds interval_;
  std::optional<Running> wait_;   // the wait that is going on
  std::optional<WaitNote> note_;  // its note, once it has lasted for a while
  double since_ = 0;
  OwnPicture own_;
  SlowRankWatch slow_;      // used by rank 0
  RankPicture picture_;     // of this rank, at the last look
  bool explained_ = false;  // the wait that is going on
  bool told_ = false;       // the console knows that this rank stands
  bool shown_ = false;      // the picture of this rank is in the log folder, since it stands
  bool warned_ = false;     // notes cannot be written to the folder
  std::jthread thread_;     // last, because it uses the other members
};

}  // namespace phalanx
