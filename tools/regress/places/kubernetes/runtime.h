// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::regress {

/// The text of runtime.yaml: the runtimes that TrainJobs refer to.
extern const char* const kRuntimes;

}  // namespace phalanx::regress
