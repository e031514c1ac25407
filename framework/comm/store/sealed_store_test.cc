// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <future>

#include "framework/base/error.h"
#include "framework/comm/store/store.h"
#include "framework/comm/testing/store.h"
#include "framework/testing/ports.h"

namespace phalanx {
namespace {

using testing::comm_error_of;
using testing::free_port;
using testing::keep_notes;
using testing::kLong;
using testing::kSecret;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A store that torchrun's agent hosts. It admits everyone.
class SealedStore : public ::testing::Test {
 protected:
  StorePtr join() const { return make_tcp_store({"127.0.0.1", port_, StoreHost::kAgent, 2, kLong, kSecret}); }

  const int port_ = free_port();
  const StorePtr agent_ = make_tcp_store({"127.0.0.1", port_, StoreHost::kThisProcess, 1, kLong});
};

TEST_F(SealedStore, StoresValues) {
  const auto one = join(), other = join();
  keep_notes(*one, *other);
  constexpr int kRounds = 50;
  const auto count = [](Store& store) {
    for (int i = 0; i < kRounds; ++i) store.add("rounds", 1);
  };
  auto counting = std::async(std::launch::async, [&] { count(*other); });
  count(*one);
  counting.get();
  EXPECT_EQ(one->add("rounds", 0), 2 * kRounds);
}

TEST_F(SealedStore, AValueWrittenWithoutTheSecretIsRefused) {
  const auto store = join();
  store->set("address", "10.0.0.1");
  store->set("other", "10.0.0.2");
  const auto refused = [&](const char* key) {
    const auto error = comm_error_of([&] { store->get(key); });
    EXPECT_EQ(error.kind(), CommError::Kind::kSystem);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(key), HasSubstr("PHALANX_JOB_SECRET"), Not(HasSubstr(kSecret))));
  };
  agent_->set("sealed/new", "x");
  refused("new");
  agent_->set("sealed/address", agent_->get("sealed/other"));  // sealed, for another key
  refused("address");
  EXPECT_EQ(store->add("count", 1), 1);
  agent_->set("sealed/count", "9");
  EXPECT_THROW(store->add("count", 1), CommError);
}

}  // namespace
}  // namespace phalanx
