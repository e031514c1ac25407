// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "framework/base/descriptor.h"

namespace phalanx {

/// A key-value store that all ranks reach, with which they exchange data before they can communicate.
///
/// Thread-safe. Calls that wait do so up to the store's timeout and then throw CommError::kTimeout with the key.
class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  virtual std::string get(const std::string& key) = 0;                        // waits until the key is set
  virtual std::int64_t add(const std::string& key, std::int64_t amount) = 0;  // returns the sum so far; starts at 0
};
using StorePtr = std::shared_ptr<Store>;

using Seconds = std::chrono::duration<double>;

/// Returns a store for threads of this process (c10d::HashStore).
StorePtr make_hash_store(Seconds timeout);

/// Returns a store for processes that see the same file system (c10d::FileStore). The last of `ranks` to leave removes
/// the file. A wait for a key calls `check`, if there is one, every few milliseconds; it may throw to end the wait.
StorePtr make_file_store(const std::string& path, int ranks, Seconds timeout, std::function<void()> check = {});

/// The host of a TCP store.
enum class StoreHost {
  kThisProcess,
  kPeer,   // another rank of the job, with the same make_tcp_store()
  kAgent,  // a launcher that uses c10d's TCPStore, such as torchrun's agent
};

/// A TCP store at host:port, and this process's place among its users.
struct TcpStoreOptions {
  std::string host;
  int port = 0;
  StoreHost hosted_by = StoreHost::kPeer;
  int ranks = 1;
  Seconds timeout{600};
  std::optional<std::string> secret{};
  int rank = 0;           // of this process; different for each of the `ranks`
  Descriptor listener{};  // an open socket that listens at `port`, for kThisProcess; otherwise one is opened
};

/// Returns a store for processes that reach host:port. If this process hosts the store, the store lives as long as the
/// returned object, and listens at `host` only (listen_for_store()); a port in use is a CommError that names it. All
/// `ranks` of the job call this, and the process that hosts the store waits for the others. If some of them do not
/// come, it throws a CommError::kTimeout that names them. Two processes with the same rank get a CommError::kSystem.
///
/// Without a secret, the store is c10d's TCPStore, wire-compatible with PyTorch's: anyone who reaches the port can read
/// and write it. With a secret, which all ranks must have, a store that a rank hosts is a StoreServer: it serves only
/// clients that know the secret, and a rank with another secret gets a CommError::kSystem at once. A launcher's store
/// admits everyone. There, with a secret, a rank gets an error when it reads a value that others have written (Seal).
/// Throws ConfigError for a secret of fewer than kMinSecretBytes bytes.
StorePtr make_tcp_store(TcpStoreOptions options);

/// Returns a store that puts a unique prefix before every key, so that several users of one store do not collide.
StorePtr make_prefix_store(const std::string& prefix, StorePtr store);

/// Waits until all of `ranks` have arrived at `name`. Each name can be used once.
void store_barrier(Store& store, const std::string& name, int ranks);

}  // namespace phalanx
