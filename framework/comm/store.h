#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace phalanx {

/// Where ranks leave notes for each other before they can talk: a key-value store that all of them reach.
///
/// Thread-safe. Everything that waits, waits up to the store's timeout and then throws CommError::kTimeout with the
/// key.
class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  virtual std::string get(const std::string& key) = 0;                        // waits until the key is set
  virtual std::int64_t add(const std::string& key, std::int64_t amount) = 0;  // the sum so far; starts at 0
};
using StorePtr = std::shared_ptr<Store>;

using Seconds = std::chrono::duration<double>;

/// For threads of this process (c10d::HashStore).
StorePtr make_hash_store(Seconds timeout);

/// For processes that see the same file system (c10d::FileStore). The file is removed by the last of `ranks` to leave.
StorePtr make_file_store(const std::string& path, int ranks, Seconds timeout);

/// For processes that reach host:port (c10d::TCPStore, wire-compatible with PyTorch's). `serve`: this process hosts it
/// and the store lives as long as the returned object; a port in use is a CommError that names it. It listens at `host`
/// only (listen_for_store()). With a secret, which all ranks need to have, whatever others write into it is an error of
/// the rank that reads it (Seal). Without one, it belongs to everybody who reaches the port.
StorePtr make_tcp_store(const std::string& host, int port, bool serve, int ranks, Seconds timeout,
                        const std::optional<std::string>& secret = {});

/// Passes a unique prefix before every key, so that several users of one store do not meet.
StorePtr make_prefix_store(const std::string& prefix, StorePtr store);

/// Waits until all of `ranks` have arrived at `name`. Each name serves once.
void store_barrier(Store& store, const std::string& name, int ranks);

}  // namespace phalanx
