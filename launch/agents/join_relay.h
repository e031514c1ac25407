// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "framework/base/descriptor.h"

namespace phalanx {

/// The exit status of a relay whose connection has ended before the agent has said how it ends. It is that of ssh.
inline constexpr int kConnectionBroke = 255;

/// Passes on what the launcher and an agent that has joined tell each other, as ssh does for other agents, until both
/// directions have ended or the connection fails. Runs in a process of its own, a child of the launcher. `answer` is
/// sent to the other host first. Returns the exit status that the agent has said at last (status_text()), or
/// kConnectionBroke.
int relay(const Descriptor& launcher, const Descriptor& host, const std::string& answer);

/// Returns what an agent says at last of its exit status, as it appears among its output: like a beat, a line after a
/// zero byte.
std::string status_text(int status);

/// Reads such a line, without the zero byte and its end (BeatReader::Result::lines). Returns nothing if it is another
/// one.
std::optional<int> parse_status(std::string_view line);

}  // namespace phalanx
