// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/diagnosis.h"

namespace phalanx::doctor {

/// What in a diagnosis will cost time or trouble, a sentence each, with what to do.
std::vector<std::string> notes_on(const Diagnosis& found);

}  // namespace phalanx::doctor
