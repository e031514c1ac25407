// SPDX-License-Identifier: Apache-2.0
#include "framework/base/job_secret.h"

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/secret_file.h"

namespace phalanx {

std::optional<std::string> job_secret() {
  const auto secret = environment("PHALANX_JOB_SECRET"), file = environment("PHALANX_JOB_SECRET_FILE");
  if (secret && file) throw ConfigError("PHALANX_JOB_SECRET and PHALANX_JOB_SECRET_FILE are both set; unset one");
  if (file) return read_secret(*file);
  if (secret && secret->size() < kMinSecretBytes) {
    throw ConfigError("the job's secret (PHALANX_JOB_SECRET) needs at least " + std::to_string(kMinSecretBytes) +
                      " characters; openssl rand -hex 32 makes one");
  }
  return secret;
}

}  // namespace phalanx
