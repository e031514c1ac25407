// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/restarts.h"

#include <stdlib.h>

#include <sstream>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

constexpr const char* kRestarts = "PHALANX_RESTARTS";  // "COUNT SECONDS"

}  // namespace

void set_restarts(const Restarts& restarts) {
  const std::string text = format_text("%lld %.3f", static_cast<long long>(restarts.count), restarts.lost_seconds);
  ::setenv(kRestarts, text.c_str(), 1);
}

Restarts restarts_of_job() {
  const auto text = environment(kRestarts);
  Restarts restarts;
  if (!text || text->empty()) return restarts;
  std::istringstream words(*text);
  if (words >> restarts.count >> restarts.lost_seconds && (words >> std::ws).eof()) return restarts;
  throw ConfigError(std::string("environment: ") + kRestarts + " is \"" + *text +
                    "\", not a count and seconds; launchers of Phalanx set it, so unset it");
}

}  // namespace phalanx
