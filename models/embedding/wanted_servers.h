// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/model.h"

namespace phalanx {

/// Returns true if the model has embeddings on parameter servers, according to the traits of its config. Does not
/// create the model.
bool wants_servers(Models::Choice model);

}  // namespace phalanx
