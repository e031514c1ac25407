#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "engine/watch/config.h"
#include "engine/watch/exposition.h"

namespace phalanx {

/// Serves GET /metrics to Prometheus while it lives, in a thread of its own.
class PrometheusEndpoint final : public MeasurementSink {
 public:
  /// Listens at the config's address and port, where 0 takes any that is free. Throws ConfigError where it cannot.
  PrometheusEndpoint(const PrometheusConfig& config, std::string run, int ranks);
  ~PrometheusEndpoint() override;

  void add(const Measurement& measurement) override;

  int port() const { return port_; }

 private:
  class Server;

  std::mutex mutex_;
  Exposition exposition_;  // guarded by mutex_
  std::unique_ptr<Server> server_;
  int port_ = 0;
};

}  // namespace phalanx
