// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/Exception.h>

#include <new>
#include <string>

#include "framework/base/error.h"
#include "framework/base/reason.h"

namespace phalanx {

/// Calls `read` and returns its result. A LibTorch error or a failed allocation means that the sample cannot be read,
/// just like damaged data, and is rethrown as the DataError "NAME: why". DataErrors of `read` pass unchanged.
template <class Read>
auto read_sample(const std::string& name, const Read& read) {
  try {
    return read();
  } catch (const c10::Error& error) {
    throw DataError(name + ": " + reason(error));
  } catch (const std::bad_alloc& error) {
    throw DataError(name + ": " + reason(error));
  }
}

}  // namespace phalanx
