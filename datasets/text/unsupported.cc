// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/unsupported.h"

#include "framework/base/error.h"

namespace phalanx {

void refuse_unsupported(const JsonValue& part, const std::string& what) {
  try {
    part.refuse(what + " is not supported; use another tokenizer");
  } catch (const DataError& error) {
    throw ConfigError(error.what());
  }
}

}  // namespace phalanx
