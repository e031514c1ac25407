// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "framework/observe/metrics/exposition.h"
#include "framework/observe/metrics/text_endpoint.h"

namespace phalanx {

/// Serves GET /metrics to Prometheus during its lifetime; see TextEndpoint.
class PrometheusEndpoint final : public MetricsSink {
 public:
  /// A name or a number of an interface of this host, and a port; port 0 selects any free port.
  struct Address {
    std::string host = "127.0.0.1";
    int port = 0;
  };

  /// Listens at `address`. Throws ConfigError, for watch.prometheus, if that is not possible. `run`, `ranks`: name and
  /// size of the run, which are served too.
  PrometheusEndpoint(const Address& address, std::string run, int ranks);

  void add(const MetricsRecord& record) override;

  int port() const { return endpoint_->port(); }

 private:
  std::string text();

  std::mutex mutex_;
  Exposition exposition_;                   // guarded by mutex_
  std::unique_ptr<TextEndpoint> endpoint_;  // destroyed first, since its thread uses the members above
};

}  // namespace phalanx
