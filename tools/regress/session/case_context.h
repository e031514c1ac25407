// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/history/database.h"
#include "tools/regress/place.h"

namespace phalanx::regress {

/// The database, the place and the settings that all cases of a session use.
struct CaseContext {
  history::Database& database;
  Place& place;
  history::Environment environment;  // of the runs
  std::int64_t session = 0;
  std::string out{};      // absolute path of the output folder
  std::string program{};  // phalanx, whose commands are train and chaos
  bool keep = false;      // keep weights and checkpoints of cases that have passed
};

}  // namespace phalanx::regress
