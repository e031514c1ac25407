// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/Exception.h>

#include <new>
#include <string>

#include "framework/base/error.h"
#include "framework/base/reason.h"

namespace phalanx {

/// Calls `read` and returns its result. An error of LibTorch or a lack of memory means that the sample cannot be read,
/// just like damaged data: it becomes the DataError "NAME: why". Other DataErrors pass.
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
