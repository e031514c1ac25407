// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/store/store.h"

#include <chrono>
#include <system_error>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <utility>

#include "framework/comm/store/c10d_store.h"
#include "framework/comm/store/file_claim.h"

namespace phalanx {
namespace {

class PrefixStore final : public Store {
 public:
  PrefixStore(std::string prefix, StorePtr store) : prefix_(std::move(prefix) + "/"), store_(std::move(store)) {}

  void set(const std::string& key, const std::string& value) override { store_->set(prefix_ + key, value); }
  std::string get(const std::string& key) override { return store_->get(prefix_ + key); }
  std::int64_t add(const std::string& key, std::int64_t amount) override { return store_->add(prefix_ + key, amount); }

 private:
  std::string prefix_;
  StorePtr store_;
};

// Members are destroyed in reverse order: the claim outlives the store, whose destructor still uses the file.
struct ClaimedStore {
  FileClaim claim;
  C10dStore store;
};

// The time for which c10d waits for a file that does not exist. The claim has created it, so somebody has removed it.
constexpr std::chrono::seconds kReappears{1};

}  // namespace

StorePtr make_hash_store(Seconds timeout) {
  return std::make_shared<C10dStore>("the store of this process", c10::make_intrusive<c10d::HashStore>(), timeout);
}

StorePtr make_file_store(const std::string& path, int ranks, Seconds timeout, std::function<void()> check) {
  FileClaim claim(path, timeout);
  try {
    auto file = c10::make_intrusive<c10d::FileStore>(path, ranks);
    file->setTimeout(kReappears);
    C10dStore store("file store " + path, std::move(file), timeout, std::move(check));
    const auto both = std::make_shared<ClaimedStore>(std::move(claim), std::move(store));
    return StorePtr(both, &both->store);
  } catch (const std::system_error& error) {
    refuse_file(path, error.what());
  }
}

StorePtr make_prefix_store(const std::string& prefix, StorePtr store) {
  return std::make_shared<PrefixStore>(prefix, std::move(store));
}

void store_barrier(Store& store, const std::string& name, int ranks) {
  // Ranks wait for a separate key instead of polling the count, so that all but the last one only wait.
  if (store.add(name + "/arrived", 1) == ranks) store.set(name + "/complete", "");
  store.get(name + "/complete");
}

}  // namespace phalanx
