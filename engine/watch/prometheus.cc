// SPDX-License-Identifier: Apache-2.0
#include "engine/watch/prometheus.h"

#include <utility>

#include "framework/base/error.h"

namespace phalanx {

PrometheusEndpoint::PrometheusEndpoint(const PrometheusConfig& config, std::string run, int ranks)
    : exposition_{.run = std::move(run), .ranks = ranks} {
  try {
    endpoint_ =
        std::make_unique<TextEndpoint>(config.address, static_cast<int>(config.port),
                                       TextEndpoint::Page{.path = "/metrics",
                                                          .content_type = "text/plain; version=0.0.4; charset=utf-8",
                                                          .text = [this] { return text(); }});
  } catch (const ConfigError& error) {
    throw ConfigError(std::string("watch.prometheus: ") + error.what());
  }
}

std::string PrometheusEndpoint::text() {
  const std::lock_guard lock(mutex_);
  return to_text(exposition_);
}

void PrometheusEndpoint::add(const MetricsRecord& record) {
  const std::lock_guard lock(mutex_);
  exposition_.last[record.split] = record;
}

}  // namespace phalanx
