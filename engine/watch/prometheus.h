// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "engine/watch/config.h"
#include "engine/watch/exposition.h"
#include "engine/watch/text_endpoint.h"

namespace phalanx {

/// Serves GET /metrics to Prometheus while it lives; see TextEndpoint.
class PrometheusEndpoint final : public MeasurementSink {
 public:
  /// Listens at the config's address and port, where 0 takes any that is free. Throws ConfigError where it cannot.
  PrometheusEndpoint(const PrometheusConfig& config, std::string run, int ranks);

  void add(const Measurement& measurement) override;

  int port() const { return endpoint_->port(); }

 private:
  std::string text();

  std::mutex mutex_;
  Exposition exposition_;                   // guarded by mutex_
  std::unique_ptr<TextEndpoint> endpoint_;  // ends before what it serves
};

}  // namespace phalanx
