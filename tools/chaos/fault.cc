// SPDX-License-Identifier: Apache-2.0
#include "tools/chaos/fault.h"

#include <algorithm>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "launch/exit_status.h"

namespace phalanx::chaos {
namespace {

constexpr double kPatience = 20;  // longest time that a rank waits for this process
constexpr double kDay = 86400;
constexpr int kKilled = 128 + 9;

std::vector<Fault> by_ranks() {
  const auto ends = [](const char* name, const char* kind, std::vector<int> statuses) {
    return Fault{.name = name, .planned = kind, .statuses = std::move(statuses)};
  };
  Fault stop{.name = "stop", .planned = "stop", .statuses = {kFailed, kRankDied}};
  stop.needs_processes = stop.needs_peer = true;
  Fault leave = ends("leave_early", "leave", {kFailed, kRankDied});
  leave.needs_processes = leave.needs_peer = true;
  leave.is_replaced = false;
  Fault kill = ends("kill", "kill", {kRankDied}), crash = ends("crash", "crash", {kRankDied});
  kill.ends_process = crash.ends_process = true;
  std::vector<Fault> all{std::move(kill), std::move(crash), std::move(stop), std::move(leave)};
  for (const char* name : {"bad_alloc", "exception_in_hook", "exception_in_loader", "exception_in_model"}) {
    all.push_back(ends(name, name, {kFailed}));
    all.back().before_step = std::string(name) == "exception_in_loader" || std::string(name) == "exception_in_model";
  }
  Fault newcomer = ends("kill_newcomer", "kill", {kRankDied});
  newcomer.expected = Expected::kGoesOn;
  newcomer.hits_newcomer = newcomer.needs_processes = newcomer.needs_peer = true;
  all.push_back(std::move(newcomer));
  for (auto& fault : all) fault.loses_rank = true;
  all.push_back(ends("mismatch", "mismatch", {kFailed}));
  all.back().needs_peer = true;
  all.push_back(
      {.name = "slow_rank", .planned = "slow", .expected = Expected::kGoesOn, .seconds = 0.03, .is_shown = false});
  for (const auto& [name, seconds] : {std::pair("clock_forward", kDay), std::pair("clock_back", -kDay)}) {
    all.push_back(
        {.name = name, .planned = "clock_jump", .expected = Expected::kGoesOn, .seconds = seconds, .is_shown = false});
  }
  return all;
}

// Returns the faults in which a rank flips a bit. The run checks in every step, so that no checkpoint has the bit.
std::vector<Fault> flips() {
  std::vector<Fault> all;
  for (const char* name : {"flip_parameter", "flip_optimizer", "flip_buffer"}) {
    Fault fault{.name = name, .planned = name, .statuses = {kFailed}, .settings = {"replica_check.every_steps=1"}};
    fault.needs_tensors = fault.names_next_step = true;
    all.push_back(std::move(fault));
  }
  all.push_back({.name = "flip_message",
                 .planned = "flip_message",
                 .statuses = {kFailed},
                 .settings = {"framework.checksums=true"}});
  for (auto& fault : all) fault.needs_peer = true;
  // A wrong gradient makes some models diverge, and others go on.
  all.push_back({.name = "flip_gradient",
                 .planned = "flip_gradient",
                 .expected = Expected::kGoesOn,
                 .statuses = {kFailed},
                 .settings = {"watch.gradient_norms.every_steps=1"},
                 .keeps_results = false});
  all.push_back({.name = "flip_checkpoint",
                 .planned = "flip_checkpoint",
                 .expected = Expected::kGoesOn,
                 .settings = {"framework.checksums=true"},
                 .at_checkpoint = true});
  for (auto& fault : all) fault.names_rank = true;
  return all;
}

Fault by_driver(const char* name, Expected expected, std::vector<int> statuses) {
  return {.name = name,
          .planned = "pause",
          .caused_by = CausedBy::kDriver,
          .expected = expected,
          .statuses = std::move(statuses),
          .seconds = kPatience};
}

std::vector<Fault> by_this_process() {
  Fault stop = by_driver("stop_and_continue", Expected::kGoesOn, {});
  stop.planned = "stop";
  stop.is_shown = false;
  Fault launcher = by_driver("kill_launcher", Expected::kEnds, {kKilled});
  launcher.is_shown = false;
  Fault disk = by_driver("disk_full", Expected::kGoesOn, {});
  disk.needs_mounts = true;
  Fault sigterm = by_driver("sigterm_in_checkpoint", Expected::kEnds, {kInterrupted});
  sigterm.at_checkpoint = true;
  std::vector<Fault> all{std::move(stop), std::move(launcher), std::move(disk), std::move(sigterm),
                         by_driver("double_ctrl_c", Expected::kEnds, {kInterrupted})};
  for (const char* name : {"checkpoint_torn", "checkpoint_truncated", "checkpoint_flipped"}) {
    all.push_back({.name = name, .planned = "kill", .caused_by = CausedBy::kBetween, .statuses = {kRankDied}});
  }
  all.push_back({.name = "shm_full",
                 .caused_by = CausedBy::kBefore,
                 .expected = Expected::kGoesOn,
                 .needs_mounts = true,
                 .is_shown = false});
  all.push_back({.name = "port_in_use",
                 .caused_by = CausedBy::kBefore,
                 .expected = Expected::kRefused,
                 .statuses = {kFailed},
                 .needs_processes = true,
                 .needs_peer = true});
  for (auto* name : {"network_cut", "network_flapping", "network_slow"}) {
    const bool cut = std::string(name) == "network_cut";
    Fault fault = by_driver(name, cut ? Expected::kEnds : Expected::kGoesOn, {kFailed, kRankDied});
    fault.needs_hosts = fault.needs_processes = fault.needs_peer = true;
    fault.is_shown = cut;
    all.push_back(std::move(fault));
  }
  return all;
}

}  // namespace

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all = [] {
    std::vector<Fault> joined = by_ranks();
    for (auto& fault : flips()) joined.push_back(std::move(fault));
    for (auto& fault : by_this_process()) joined.push_back(std::move(fault));
    return joined;
  }();
  return all;
}

const Fault& fault_named(std::string_view name) {
  const auto found = std::ranges::find(faults(), name, &Fault::name);
  if (found != faults().end()) return *found;
  std::vector<std::string> names;
  for (const auto& fault : faults()) names.push_back(fault.name);
  const std::string near = nearest(name, names);
  throw ConfigError("there is no fault \"" + std::string(name) + "\"" +
                    (near.empty() ? "" : " (did you mean \"" + near + "\"?)") + "; the faults are " +
                    join(names, ", "));
}

}  // namespace phalanx::chaos
