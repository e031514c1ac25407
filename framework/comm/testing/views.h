// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/comm/membership/view.h"

namespace phalanx::testing {

/// Returns view 7, whose members have the ids from 0 on.
inline View view_of(int members) {
  View view{.number = 7};
  for (int id = 0; id < members; ++id) view.members.push_back({.id = id});
  return view;
}

}  // namespace phalanx::testing
