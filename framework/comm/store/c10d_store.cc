// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/store/c10d_store.h"

#include "framework/base/keyed_hash.h"
#include "framework/comm/store/polling.h"

namespace phalanx {
namespace {

std::string place_of(const std::string& key) { return "sealed/" + key; }

}  // namespace

void C10dStore::set(const std::string& key, const std::string& value) {
  guarded("set", key, [&] { store_->set(key, std::vector<std::uint8_t>(value.begin(), value.end())); });
}

std::string C10dStore::get(const std::string& key) {
  const auto value = get_bytes(key);
  return std::string(value.begin(), value.end());
}

std::int64_t C10dStore::add(const std::string& key, std::int64_t amount) {
  return guarded("add", key, [&] { return store_->add(key, amount); });
}

std::vector<std::uint8_t> C10dStore::get_bytes(const std::string& key) {
  const auto there = [&] {
    if (guarded("get", key, [&] { return store_->check({key}); })) return true;
    if (check_) check_();
    return false;
  };
  if (!poll_until(there, timeout_)) {
    throw CommError(CommError::Kind::kTimeout,
                    describe("get", key) + ": waited " + in_seconds(timeout_) + ", but no rank has set it");
  }
  return guarded("get", key, [&] { return store_->get(key); });
}

void SealedStore::set(const std::string& key, const std::string& value) {
  const std::string place = place_of(key);
  guarded("set", key, [&] { store().set(place, seal_.sealed(place, value)); });
}

std::string SealedStore::get(const std::string& key) {
  const std::string place = place_of(key);
  return seal_.opened(place, get_bytes(place));
}

std::int64_t SealedStore::add(const std::string& key, std::int64_t amount) {
  const std::string place = place_of(key);
  Seal::Bytes seen;
  while (true) {
    const std::int64_t sum = (seen.empty() ? 0 : std::stoll(seal_.opened(place, seen))) + amount;
    const auto wanted = seal_.sealed(place, std::to_string(sum) + " " + random_text());
    const auto now = guarded("add", key, [&] { return store().compareSet(place, seen, wanted); });
    if (now == wanted) return sum;
    seen = now;
  }
}

}  // namespace phalanx
