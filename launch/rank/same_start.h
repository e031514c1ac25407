// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "framework/base/error.h"
#include "framework/comm/communicator.h"
#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/store/store.h"

namespace phalanx {

/// Facts about the start of a rank that must be the same on all ranks of a job.
struct StartFacts {
  std::string host;                               // for messages; not compared
  std::map<std::string, std::string> versions{};  // of Phalanx and the libraries that ranks communicate with, by name
  std::string config{};                           // as YAML (config::dump()); empty: the ranks have none
};

/// Returns the versions of this program that ranks of a job must have in common: Phalanx and LibTorch.
std::map<std::string, std::string> program_versions();

/// Ranks were started with different programs or configs. All ranks get the same message.
class StartMismatch : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// Returns what differs between a rank and rank 0, with both values, or an empty text if nothing does.
std::string start_difference(int rank, const StartFacts& mine, const StartFacts& first);

/// Compares the facts of all ranks before they connect, since ranks with different versions may not be able to.
/// Collective. Throws StartMismatch on all ranks if they differ, and what the store throws.
void check_same_start(const StartFacts& mine, const RankInfo& rank_info, Store& store);

/// Does the same for ranks that have no store, after they have connected.
void check_same_start(const StartFacts& mine, Communicator& world);

}  // namespace phalanx
