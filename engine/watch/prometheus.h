// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "engine/watch/config.h"
#include "engine/watch/exposition.h"
#include "engine/watch/text_endpoint.h"

namespace phalanx {

/// Serves GET /metrics to Prometheus during its lifetime; see TextEndpoint.
class PrometheusEndpoint final : public MetricsSink {
 public:
  /// Listens at the config's address and port; port 0 selects any free port. Throws ConfigError if that is not
  /// possible.
  PrometheusEndpoint(const PrometheusConfig& config, std::string run, int ranks);

  void add(const MetricsRecord& record) override;

  int port() const { return endpoint_->port(); }

 private:
  std::string text();

  std::mutex mutex_;
  Exposition exposition_;                   // guarded by mutex_
  std::unique_ptr<TextEndpoint> endpoint_;  // destroyed first, since its thread uses the members above
};

}  // namespace phalanx
