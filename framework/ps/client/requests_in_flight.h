// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <string>

#include "framework/ps/client/request.h"

namespace phalanx::ps {

/// The requests of a client that one server has not answered yet. Not thread-safe.
class RequestsInFlight {
 public:
  /// Assigns an id to the request and adds it. If the requests have failed, finishes it with their error instead and
  /// returns false.
  bool add(const RequestPtr& request);

  /// Removes and returns the request with this id. Throws ConnectionError if there is no such request.
  RequestPtr remove(std::uint64_t id);

  bool empty() const { return requests_.empty(); }
  std::size_t size() const { return requests_.size(); }

  /// Calls `visit` with each request, in the order in which they were made.
  void for_each(const std::function<void(Request& request)>& visit) const;

  /// Returns the memory into which a reply that has begun to arrive is received. Throws ConnectionError if its values
  /// were not requested.
  at::Tensor memory_for(const Message& begun) const;

  /// Never frees the requests whose tensors the server may access. A server that wakes up after the client has given up
  /// on it would write into their memory, which must therefore never be reused.
  void keep_shared_memory() const;

  /// Finishes all requests with errors, and those that are added later. `error_of` makes an error that begins with the
  /// given text, which is "WHAT: " for a request that is in flight and empty for later ones.
  void fail(const std::function<std::exception_ptr(const std::string& beginning)>& error_of);
  bool failed() const { return failure_ != nullptr; }

 private:
  std::map<std::uint64_t, RequestPtr> requests_;  // keyed by id
  std::uint64_t next_id_ = 1;
  std::exception_ptr failure_{};
};

}  // namespace phalanx::ps
