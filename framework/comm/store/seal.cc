// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/store/seal.h"

#include <cstddef>
#include <string_view>

#include "framework/base/error.h"
#include "framework/base/keyed_hash.h"

namespace phalanx {
namespace {

constexpr std::size_t kHashBytes = 64;

std::string hash_of(const std::string& secret, const std::string& key, std::string_view value) {
  return keyed_hash(secret, {"store", key, value});
}

}  // namespace

Seal::Bytes Seal::sealed(const std::string& key, const std::string& value) const {
  const std::string text = hash_of(secret_, key, value) + value;
  return {text.begin(), text.end()};
}

std::string Seal::opened(const std::string& key, const Bytes& sealed) const {
  const std::string text(sealed.begin(), sealed.end());
  if (text.size() >= kHashBytes) {
    std::string value = text.substr(kHashBytes);
    if (equal_hashes(std::string_view(text).substr(0, kHashBytes), hash_of(secret_, key, value))) return value;
  }
  throw CommError(CommError::Kind::kSystem,
                  "\"" + key + "\" of the store was not written by a rank that knows the job's secret; another user " +
                      "has access to the store, or the ranks have different secrets (PHALANX_JOB_SECRET)");
}

}  // namespace phalanx
