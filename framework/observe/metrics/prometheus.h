// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "framework/base/http/http_server.h"
#include "framework/observe/metrics/exposition.h"

namespace phalanx {

/// Serves GET /metrics to Prometheus during its lifetime, in a job with a secret (job_secret()) only to clients that
/// know it; see HttpServer.
class PrometheusEndpoint final : public MetricsSink {
 public:
  /// A name or a number of an interface of this host, and a port; port 0 selects any free port.
  struct Address {
    std::string host = "127.0.0.1";
    int port = 0;
  };

  /// Listens at `address`. Throws ConfigError, for watch.prometheus, if that is not possible. `run` has the facts that
  /// do not change.
  PrometheusEndpoint(const Address& address, Exposition run);

  void add(const MetricsRecord& record) override;

  int port() const { return server_->port(); }

 private:
  HttpResponse answer(const HttpRequest& request);

  std::mutex mutex_;
  Exposition exposition_;               // guarded by mutex_
  std::unique_ptr<HttpServer> server_;  // destroyed first, since its thread uses the members above
};

}  // namespace phalanx
