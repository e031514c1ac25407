// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <vector>

#include "engine/hooks.h"
#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

constexpr std::array<std::string_view, kEvents> kNames{
    "on_start",    "on_start_epoch", "on_sample",    "on_forward", "on_forward_criterion", "on_backward_criterion",
    "on_backward", "on_update",      "on_end_epoch", "on_end"};

}  // namespace

std::string_view to_string(Event event) { return kNames[static_cast<int>(event)]; }

Event event_from_name(const std::string& name) {
  const auto found = std::ranges::find(kNames, name);
  if (found != kNames.end()) return static_cast<Event>(found - kNames.begin());
  const std::vector<std::string> names(kNames.begin(), kNames.end());
  const std::string near = nearest(name, names);
  throw ConfigError("unknown hook \"" + name + "\"" + (near.empty() ? "" : " (did you mean \"" + near + "\"?)") +
                    "; hooks are " + join(names, ", "));
}

}  // namespace phalanx
