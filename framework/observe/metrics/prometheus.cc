// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/metrics/prometheus.h"

#include <utility>

#include "framework/base/error.h"
#include "framework/base/job_secret.h"

namespace phalanx {

PrometheusEndpoint::PrometheusEndpoint(const Address& address, Exposition run) : exposition_(std::move(run)) {
  try {
    server_ = std::make_unique<HttpServer>(
        address.host, address.port, [this](const HttpRequest& request) { return answer(request); }, job_secret());
  } catch (const ConfigError& error) {
    throw ConfigError(std::string("watch.prometheus: ") + error.what());
  }
}

HttpResponse PrometheusEndpoint::answer(const HttpRequest& request) {
  if (request.path != "/metrics") return {.status = 404, .body = "404 Not Found\n"};
  const std::lock_guard lock(mutex_);
  return {.content_type = kExpositionType, .body = to_text(exposition_)};
}

void PrometheusEndpoint::add(const MetricsRecord& record) {
  const std::lock_guard lock(mutex_);
  exposition_.add(record);
}

}  // namespace phalanx
