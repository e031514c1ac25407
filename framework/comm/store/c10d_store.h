// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/exception.h>

#include <cstdint>
#include <functional>
#include <string>
#include <system_error>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/comm/store/seal.h"
#include "framework/comm/store/store.h"

namespace phalanx {

/// A c10d store with our deadlines and errors. Its own waits are not used: the file store counts whole seconds, and the
/// TCP store holds the connection, so that other threads of the process cannot use it.
class C10dStore : public Store {
 public:
  /// `check` is called while a call waits for a key, and may throw. Null: nothing ends such a wait before `timeout`.
  C10dStore(std::string name, c10::intrusive_ptr<c10d::Store> store, Seconds timeout, std::function<void()> check = {})
      : name_(std::move(name)), store_(std::move(store)), timeout_(timeout), check_(std::move(check)) {}

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;

 protected:
  std::vector<std::uint8_t> get_bytes(const std::string& key);
  c10d::Store& store() { return *store_; }

  std::string describe(const char* operation, const std::string& key) const {
    return std::string(operation) + " \"" + key + "\" of " + name_;
  }

  template <class Call>
  std::invoke_result_t<Call> guarded(const char* operation, const std::string& key, const Call& call) {
    try {
      return call();
    } catch (const c10::DistNetworkError& error) {
      throw CommError(CommError::Kind::kPeerLost,
                      describe(operation, key) + ": the connection is lost (" + error.what_without_backtrace() + ")");
    } catch (const c10::Error& error) {
      throw CommError(CommError::Kind::kSystem, describe(operation, key) + ": " + error.what_without_backtrace());
    } catch (const std::system_error& error) {
      throw CommError(CommError::Kind::kSystem, describe(operation, key) + ": " + error.what());
    }
  }

 private:
  std::string name_;
  c10::intrusive_ptr<c10d::Store> store_;
  Seconds timeout_;
  std::function<void()> check_;
};

/// A store whose values are sealed. A sum is a value too: a rank replaces it only if it has not changed since the rank
/// read it. A random text after each sum shows the rank that the new value is its own. Keys have a prefix, so that
/// ranks without the secret do not read them.
class SealedStore final : public C10dStore {
 public:
  SealedStore(std::string name, c10::intrusive_ptr<c10d::Store> store, Seconds timeout, Seal seal)
      : C10dStore(std::move(name), std::move(store), timeout), seal_(std::move(seal)) {}

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;

 private:
  Seal seal_;
};

}  // namespace phalanx
