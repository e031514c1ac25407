#pragma once

#include "models/model.h"

namespace phalanx {

/// Whether such a model has embeddings on parameter servers, by the traits of what its fields choose; nothing is made.
bool wants_servers(Models::Choice model);

}  // namespace phalanx
