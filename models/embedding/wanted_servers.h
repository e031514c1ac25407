// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/model.h"

namespace phalanx {

/// Returns true if such a model has embeddings on parameter servers, by the traits of what its fields choose. Makes no
/// model.
bool wants_servers(Models::Choice model);

}  // namespace phalanx
