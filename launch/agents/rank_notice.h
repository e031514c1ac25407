// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace phalanx {

/// A message by which an agent tells the launcher that a process of its host has ended, if lost ranks are replaced.
struct RankNotice {
  int number = 0;     // of the process in the job
  bool lost = false;  // the others go on without it, and another process may take its place
  int status = 0;     // ExitStatus, if it is not lost
};

/// Returns a notice as it appears among what an agent and its ranks write to standard output: like a beat
/// (beat_text()), a line after a zero byte.
std::string to_text(const RankNotice& notice);

/// Reads such a line, without the zero byte and its end (BeatReader::Result::lines). Returns nothing if it is no
/// notice.
std::optional<RankNotice> parse_rank_notice(std::string_view line);

}  // namespace phalanx
