// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/store/connection_secret.h"

#include <utility>

#include "framework/base/error.h"
#include "framework/base/job_secret.h"
#include "framework/base/keyed_hash.h"

namespace phalanx {

std::string connection_secret(Store& store, const std::string& key, int rank) {
  if (auto secret = job_secret()) return *std::move(secret);
  if (rank == 0) store.set(key, random_text());
  try {
    return store.get(key);
  } catch (const CommError& error) {
    if (error.kind() != CommError::Kind::kTimeout) throw;
    throw CommError(error.kind(), std::string("rank 0 did not connect: ") + error.what());
  }
}

}  // namespace phalanx
