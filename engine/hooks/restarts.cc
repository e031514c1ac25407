// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/restarts.h"

#include <stdlib.h>

#include <sstream>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

constexpr const char* kRestarts = "PHALANX_RESTARTS";  // "COUNT SECONDS [RANK ...]"

}  // namespace

void set_restarts(const Restarts& restarts) {
  std::string text = format_text("%lld %.3f", static_cast<long long>(restarts.count), restarts.lost_seconds);
  for (const int rank : restarts.wrong_ranks) text += " " + std::to_string(rank);
  ::setenv(kRestarts, text.c_str(), 1);
}

Restarts restarts_of_job() {
  const auto text = environment(kRestarts);
  Restarts restarts;
  if (!text || text->empty()) return restarts;
  std::istringstream words(*text);
  if (words >> restarts.count >> restarts.lost_seconds) {
    for (int rank = 0; words >> rank;) restarts.wrong_ranks.push_back(rank);
    if (words.eof()) return restarts;
  }
  throw ConfigError(std::string("environment: ") + kRestarts + " is \"" + *text +
                    "\", not a count, seconds and ranks; launchers of Phalanx set it, so unset it");
}

}  // namespace phalanx
