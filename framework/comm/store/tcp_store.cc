// SPDX-License-Identifier: Apache-2.0
// Stores that ranks reach over TCP: c10d's TCPStore, or a StoreServer if the job has a secret.
#include <c10/util/Exception.h>
#include <c10/util/Flags.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <future>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/log.h"
#include "framework/base/sockets.h"
#include "framework/comm/launch/host_network.h"
#include "framework/comm/store/c10d_store.h"
#include "framework/comm/store/joined_ranks.h"
#include "framework/comm/store/polling.h"
#include "framework/comm/store/seal.h"
#include "framework/comm/store/store.h"
#include "framework/comm/store/store_address.h"
#include "framework/comm/store/store_client.h"
#include "framework/comm/store/store_server.h"

C10_DECLARE_int(caffe2_log_level);

namespace phalanx {
namespace {

using C10dStorePtr = c10::intrusive_ptr<c10d::Store>;

// A store together with its server. The server is destroyed after the store.
struct HostedStore {
  std::unique_ptr<StoreServer> server;
  StorePtr store;
};

// Turns c10d's log off unless the user asks for it: it has a stack trace for each failed attempt, and our errors
// already name the problem.
void silence_c10d() {
  static const bool done = [] {
    constexpr int kFatal = 3;
    if (!environment("TORCH_CPP_LOG_LEVEL")) FLAGS_caffe2_log_level = kFatal;
    return true;
  }();
  (void)done;
}

[[noreturn]] void refuse_port(const std::string& name, int port) {
  throw CommError(CommError::Kind::kSystem,
                  name + ": address already in use: port " + std::to_string(port) +
                      " is taken on this host; end the process that listens there (ss -ltnp shows it) or " +
                      "choose another port (MASTER_PORT)");
}

// Throws: a process listens at the address, but it is not a c10d server.
[[noreturn]] void refuse_listener(const std::string& name, Seconds timeout, const std::string& why) {
  throw CommError(CommError::Kind::kTimeout,
                  name + ": waited " + in_seconds(timeout) +
                      ", but the process that listens there does not answer as a " + "store of PyTorch" + why +
                      "; check that the address (MASTER_ADDR, MASTER_PORT) is that of " +
                      "rank 0, and give this rank the job's secret (PHALANX_JOB_SECRET) if rank 0 has it");
}

bool accepts_connections(const std::string& host, int port) {
  try {
    return connect_to(with_port(host, port), 1).valid();
  } catch (const Error&) {
    return false;
  }
}

[[noreturn]] void explain_connection(const std::string& name, const TcpStoreOptions& options, const c10::Error& error) {
  const std::string why = error.what_without_backtrace();
  if (const auto no_address = why_unresolved(options.host); !no_address.empty()) {
    throw CommError(CommError::Kind::kSystem, unresolved(name, options.host, no_address));
  }
  if (options.hosted_by == StoreHost::kThisProcess) {
    throw CommError(CommError::Kind::kSystem, name + ": cannot serve: " + why);
  }
  if (accepts_connections(options.host, options.port)) refuse_listener(name, options.timeout, " (" + why + ")");
  throw CommError(CommError::Kind::kTimeout, unreachable(name, options.host, why));
}

// c10d waits without a deadline for the answer of the process that listens at the address. So a thread does that, and
// is abandoned if no answer comes.
C10dStorePtr open_c10d(const std::string& name, const std::string& host, const c10d::TCPStoreOptions& options,
                       Seconds timeout) {
  std::packaged_task<C10dStorePtr()> open(
      [=]() -> C10dStorePtr { return c10::make_intrusive<c10d::TCPStore>(host, options); });
  auto opened = open.get_future();
  std::thread opener(std::move(open));
  constexpr Seconds kGrace{5};  // c10d's own deadline for connecting passes first, and its error says more
  if (opened.wait_for(timeout + kGrace) == std::future_status::ready) {
    opener.join();
    return opened.get();
  }
  opener.detach();
  refuse_listener(name, timeout, "");
}

Descriptor listening_socket(const std::string& name, const std::string& host, int port) {
  Descriptor socket = listen_for_store(host, port);
  if (socket.valid()) return socket;
  if (errno == EADDRINUSE) refuse_port(name, port);
  log_info() << name << ": listens at all addresses of this host, since " << host << " is not the name of one of them";
  socket = listen_at_all_addresses(port);
  if (socket.valid()) return socket;
  if (errno == EADDRINUSE) refuse_port(name, port);
  throw CommError(CommError::Kind::kSystem, name + ": cannot listen: " + std::strerror(errno));
}

C10dStorePtr make_c10d(const std::string& name, TcpStoreOptions& wanted) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(wanted.port);
  options.isServer = wanted.hosted_by == StoreHost::kThisProcess;
  options.waitWorkers = false;
  options.timeout = std::chrono::seconds(std::max<std::int64_t>(1, std::llround(std::ceil(wanted.timeout.count()))));
  if (options.isServer) {
    // c10d closes its copy of the socket.
    options.masterListenFd = wanted.listener.duplicate().release();
    wanted.listener.close();
  }
  silence_c10d();
  try {
    return open_c10d(name, wanted.host, options, wanted.timeout);
  } catch (const c10::Error& error) {
    explain_connection(name, wanted, error);
  }
}

StorePtr make_store_client(const std::string& name, TcpStoreOptions& options) {
  auto hosted = std::make_shared<HostedStore>();
  if (options.hosted_by == StoreHost::kThisProcess) {
    hosted->server = std::make_unique<StoreServer>(name, std::move(options.listener), *options.secret);
  }
  hosted->store = connect_to_store(name, options.host, options.port, *options.secret, options.timeout);
  return {hosted, hosted->store.get()};
}

}  // namespace

StorePtr make_tcp_store(TcpStoreOptions options) {
  const std::string name = "TCP store " + with_port(options.host, options.port);
  options.host = store_host(options.host);
  if (options.secret && options.secret->size() < kMinSecretBytes) {
    throw ConfigError("the job's secret (PHALANX_JOB_SECRET) needs at least " + std::to_string(kMinSecretBytes) +
                      " characters; openssl rand -hex 32 makes one");
  }
  // A name may start to resolve later than its ranks start, as names of containers do. A warning shows a mistake at
  // once instead of after the timeout.
  if (const auto why = why_unresolved(options.host); !why.empty()) {
    log_warning() << unresolved(name, options.host, why) << ", or wait: it is tried for "
                  << in_seconds(options.timeout);
  }
  if (options.hosted_by == StoreHost::kThisProcess && !options.listener.valid()) {
    options.listener = listening_socket(name, options.host, options.port);
  }
  StorePtr store;
  if (!options.secret) {
    store = std::make_shared<C10dStore>(name, make_c10d(name, options), options.timeout);
  } else if (options.hosted_by == StoreHost::kAgent) {
    const Seal seal(*options.secret);
    store = std::make_shared<SealedStore>(name, make_c10d(name, options), options.timeout, seal);
  } else {
    store = make_store_client(name, options);
  }
  join_ranks(*store, {.store = name,
                      .rank = options.rank,
                      .ranks = options.ranks,
                      .waits = options.hosted_by == StoreHost::kThisProcess,
                      .unique = options.hosted_by != StoreHost::kAgent,
                      .note = options.secret ? " with this job's secret (PHALANX_JOB_SECRET)" : "",
                      .timeout = options.timeout});
  return store;
}

}  // namespace phalanx
