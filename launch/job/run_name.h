// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// "runs/<name>-<YYYYmmdd-HHMMSS>", with "-2", "-3", ... where that exists already.
std::string choose_run_dir(const std::string& name);

/// The newest folder of that form, by its name, in which checkpoints were begun; empty: there is none.
std::string newest_run_dir(const std::string& name);

}  // namespace phalanx
