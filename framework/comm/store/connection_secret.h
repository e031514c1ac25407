// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/comm/store/store.h"

namespace phalanx {

/// Returns a secret by which the ranks of a job recognize each other when they connect: the job's (job_secret()), or if
/// it has none, a random text that rank 0 leaves in the store under `key`. Whoever can read the store of a job without
/// a secret knows it, too.
///
/// Collective. Throws what job_secret() and Store::get() throw.
std::string connection_secret(Store& store, const std::string& key, int rank);

}  // namespace phalanx
