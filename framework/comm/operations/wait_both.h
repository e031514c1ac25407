// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/comm/operations/work.h"

namespace phalanx {

/// Waits for both halves of an exchange, also if the first one fails: destroyed by its exception, the Work of the other
/// half would leave the group. Then throws the error of the first one, and logs that of the second one.
void wait_both(Work& first, Work& second);

}  // namespace phalanx
