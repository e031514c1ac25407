// SPDX-License-Identifier: Apache-2.0
// Shows a running job in a terminal: top runs/first, top http://node7:9400/metrics

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "framework/base/console.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/observe/metrics/progress.h"
#include "launch/exit_status.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/live/job_state.h"
#include "tools/top/frame.h"
#include "tools/top/terminal.h"

namespace phalanx {
namespace {

constexpr const char* kRuns = "runs";
constexpr Screen kPlainScreen{.columns = 100, .rows = 0, .colors = false};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool is_address(const std::string& source) { return source.find("://") != std::string::npos; }

JobState read_state(const std::string& source) {
  return is_address(source) ? fetch_job_state(source) : read_job_state(source);
}

// Returns the run that was measured last.
std::string newest_run() {
  const auto runs = find_live_runs(kRuns);
  if (runs.empty()) {
    throw ConfigError(
        "no run is training in the folder runs/; name a run folder, or the address at which a run serves "
        "its metrics (watch.prometheus)");
  }
  return runs.front();
}

Screen screen_of_terminal() {
  const auto size = terminal_size();
  Screen screen{.columns = kPlainScreen.columns, .rows = 24, .colors = wants_colors()};
  if (size) std::tie(screen.columns, screen.rows) = *size;
  return screen;
}

void print_once(const std::string& source) {
  Screen screen = kPlainScreen;
  if (const auto size = terminal_size()) screen.columns = size->first;
  for (const auto& line : draw_frame(read_state(source), screen, seconds_now())) standard_output().write(line + "\n");
}

// Shows frames until the user ends it or the job has ended. Returns the last state.
std::optional<JobState> follow(const std::string& source, std::chrono::milliseconds interval) {
  JobState state = read_state(source);  // an error before the first frame ends the program
  const Terminal terminal;
  for (auto event = Terminal::Event::kResized; event != Terminal::Event::kQuit; event = terminal.wait(interval)) {
    if (event == Terminal::Event::kTime) {
      try {
        state = read_state(source);
      } catch (const Error& error) {
        state.notes = {std::string(error.what()) + "; trying again"};
      }
    }
    terminal.show(draw_frame(state, screen_of_terminal(), seconds_now()));
    if (state.phase != JobPhase::kTraining) return state;
  }
  return std::nullopt;
}

int run(const Arguments& arguments) {
  bool once = false;
  double interval = 1;
  Flags flags(arguments, {"", "runs/first", "http://node7:9400/metrics --interval 5", "runs/first --once"},
              "RUN is a run folder, of any launcher, or the address at which a run serves its metrics\n"
              "(watch.prometheus in its config). Without it, the run in runs/ that was measured last is\n"
              "shown. The key q ends it.");
  flags.add("once", &once, "print one frame, without control characters");
  flags.add("interval", &interval, "seconds between frames");
  const auto words = flags.parse(arguments.words);
  if (words.size() > 1) throw ConfigError("one run at a time: " + join(words, " "));
  if (!(interval >= 0.05 && interval <= 3600)) throw ConfigError("--interval: must be from 0.05 to 3600 seconds");
  const std::string source = words.empty() ? newest_run() : words.front();
  if (once || ::isatty(STDOUT_FILENO) == 0) {
    print_once(source);
    return kDone;
  }
  const auto last = follow(source, std::chrono::milliseconds(static_cast<std::int64_t>(interval * 1000)));
  if (!last) return kDone;
  for (const auto& line : draw_frame(*last, {.columns = screen_of_terminal().columns}, seconds_now())) {
    standard_output().write(line + "\n");
  }
  return kDone;
}

const bool top_registered =
    register_command({"top", "shows a running job in the terminal", CommandGroup::kModels, run});

}  // namespace
}  // namespace phalanx
