// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/descriptor.h"

namespace phalanx {

/// The part of a run in which a rank is. An activity lasts until the next one begins.
enum class Activity : std::uint32_t {
  kStarting,    // reads the dataset, builds the model
  kLoading,     // waits for a batch
  kForward,     // output and loss
  kBackward,    // gradients
  kUpdate,      // waits for the other ranks' gradients or for servers, and updates the parameters
  kHooks,       // meters, logs, votes
  kEvaluation,  // measures the model
  kCheckpoint,  // copies the state for a checkpoint, or waits for the checkpoint before
  kServing,     // serves parameters
  kEnding,      // writes the results
};

/// Returns "loading data", "forward", "saving a checkpoint" and so on.
std::string_view to_string(Activity activity);

/// A page of memory in which a rank publishes its activity. Another process of the same user can read it, even if the
/// rank is stopped or hangs. The page is an anonymous file in memory (memfd), which other processes find among the open
/// files of the rank's process, and which is gone with that process.
///
/// Threads: enter() and set_step() are called by one thread, and publish() by one, possibly another. The other
/// functions may be called by any thread.
class RankPage {
 public:
  static constexpr std::size_t kMaxText = 256 * 1024;
  struct Layout;  // the format of the file, known only to rank_page.cc

  /// Creates the page of rank `rank` of `size`, which belongs to the calling thread. `folder` is the log folder of the
  /// run, where pages of other ranks are announced (collect.h). Throws Error if the system refuses the memory.
  RankPage(int rank, int size, const std::string& folder);
  ~RankPage();
  RankPage(const RankPage&) = delete;
  RankPage& operator=(const RankPage&) = delete;

  /// Begins an activity: three stores and a reading of the clock, about 30 ns.
  void enter(Activity activity) noexcept;

  /// Sets the number of completed steps.
  void set_step(std::int64_t step) noexcept;

  /// Replaces the text, which is cut off after kMaxText bytes. A reader never sees a part of one text and a part of the
  /// next.
  void publish(std::string_view text) noexcept;

  int descriptor() const { return file_.get(); }
  Activity activity() const noexcept;
  std::int64_t step() const noexcept;

  /// Returns in which system call this thread sleeps, if it does (process_state.h). If it waits for a batch that
  /// another thread reads, also returns for which files the threads of the process wait.
  std::string blocked_in() const;
  std::int64_t activity_since_ns() const noexcept;  // when it began, as in PageContents
  double activity_seconds() const noexcept;         // since it began

 private:
  Descriptor file_;
  Layout* page_;
};

/// The contents of a page. Times are of CLOCK_MONOTONIC, in nanoseconds, which all processes of a host share.
struct PageContents {
  int rank = 0, size = 0;
  pid_t process = 0, thread = 0;  // of the rank
  std::string folder{};
  Activity activity = Activity::kStarting;
  std::int64_t activity_since_ns = 0;
  std::int64_t step = 0;
  std::string text{};  // as published last; empty: nothing, or it was being replaced for too long
};

/// Returns the contents of the page that process `process` has open as `descriptor`. Returns nothing if there is no
/// such process or no such page, or if the system does not let this user read it.
std::optional<PageContents> read_page(pid_t process, int descriptor);

/// Returns the pages of a process, in order of rank: several if its ranks are threads.
std::vector<PageContents> pages_of(pid_t process);

}  // namespace phalanx
