// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/client/requests_in_flight.h"

#include <utility>

namespace phalanx::ps {

bool RequestsInFlight::add(const RequestPtr& request) {
  if (failure_) {
    request->error = failure_;
    request->finished = true;
    return false;
  }
  request->message.header.id = next_id_++;
  requests_.emplace(request->message.header.id, request);
  return true;
}

RequestPtr RequestsInFlight::remove(std::uint64_t id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) throw ConnectionError("the server answered a request that was not made");
  RequestPtr request = std::move(found->second);
  requests_.erase(found);
  return request;
}

void RequestsInFlight::for_each(const std::function<void(Request& request)>& visit) const {
  for (const auto& [id, request] : requests_) visit(*request);
}

at::Tensor RequestsInFlight::memory_for(const Message& begun) const {
  const auto found = requests_.find(begun.header.id);
  if (found == requests_.end() || begun.header.payload_bytes != found->second->transfer.returned) {
    throw ConnectionError("the server sent values that were not requested");
  }
  const Transfer& transfer = found->second->transfer;
  return byte_range(found->second->tensor, transfer.returned_at, transfer.returned);
}

void RequestsInFlight::keep_shared_memory() const {
  for (const auto& [id, request] : requests_) {
    if (request->message.header.in_memory()) new RequestPtr(request);
  }
}

void RequestsInFlight::fail(const std::function<std::exception_ptr(const std::string& beginning)>& error_of) {
  failure_ = error_of("");
  for (const auto& [id, request] : requests_) {
    request->error = error_of(request->what + ": ");
    request->finished = true;
  }
  requests_.clear();
}

}  // namespace phalanx::ps
