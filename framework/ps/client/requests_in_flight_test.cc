// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/client/requests_in_flight.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"

namespace phalanx::ps {
namespace {

RequestPtr request_named(const std::string& what) {
  auto request = std::make_shared<Request>();
  request->what = what;
  return request;
}

std::exception_ptr comm_error(const std::string& beginning) {
  return std::make_exception_ptr(CommError(CommError::Kind::kPeerLost, beginning + "gone"));
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& cause) {
    return cause.what();
  }
}

TEST(RequestsInFlight, GetAscendingIdsAndAreVisitedInTheirOrder) {
  RequestsInFlight requests;
  for (const auto* const what : {"a", "b", "c"}) EXPECT_TRUE(requests.add(request_named(what)));
  std::vector<std::string> visited;
  std::uint64_t last = 0;
  requests.for_each([&](Request& request) {
    EXPECT_GT(request.message.header.id, last);
    last = request.message.header.id;
    visited.push_back(request.what);
  });
  EXPECT_EQ(visited, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(RequestsInFlight, AreRemovedOnceByTheirIds) {
  RequestsInFlight requests;
  const auto request = request_named("push");
  requests.add(request);
  EXPECT_EQ(requests.remove(request->message.header.id), request);
  EXPECT_TRUE(requests.empty());
  EXPECT_THROW(requests.remove(request->message.header.id), ConnectionError);
}

TEST(RequestsInFlight, ReceiveRequestedValuesIntoTheirTensor) {
  RequestsInFlight requests;
  const auto request = request_named("pull");
  request->tensor = at::arange(6, at::kInt);
  request->transfer = {.returned = 8, .returned_at = 4, .dtype = at::kInt};
  requests.add(request);
  Message reply{.header = {.id = request->message.header.id, .payload_bytes = 8}};
  const at::Tensor memory = requests.memory_for(reply);
  EXPECT_EQ(memory.const_data_ptr(), request->tensor.const_data_ptr<int>() + 1);
  EXPECT_EQ(memory.nbytes(), 8U);

  reply.header.payload_bytes = 12;
  EXPECT_THROW(requests.memory_for(reply), ConnectionError);
  reply.header = {.id = request->message.header.id + 1, .payload_bytes = 8};
  EXPECT_THROW(requests.memory_for(reply), ConnectionError);
}

TEST(RequestsInFlight, FailWithTheirNamesAndFailLaterOnesAtOnce) {
  RequestsInFlight requests;
  const auto first = request_named("push"), later = request_named("pull");
  requests.add(first);
  requests.fail(comm_error);
  EXPECT_TRUE(requests.failed());
  EXPECT_TRUE(requests.empty());
  EXPECT_TRUE(first->finished);
  EXPECT_EQ(message_of(first->error), "push: gone");
  EXPECT_FALSE(requests.add(later));
  EXPECT_TRUE(later->finished);
  EXPECT_EQ(message_of(later->error), "gone");
}

}  // namespace
}  // namespace phalanx::ps
