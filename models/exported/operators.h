// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <string>

namespace phalanx::exported {

/// Returns true if a program from a file may call an operator. Allowed are operators of `aten` that compute from their
/// arguments. Not allowed are operators that read or write files, change a tensor's storage or layout in place, or skip
/// checks, and operators of other libraries. `name` is the dispatcher's name: "aten::add".
bool may_be_called(const std::string& name);

/// Throws std::runtime_error for a string that is not an allowed value of the argument, and for an argument into which
/// the operator writes its result (`out`).
void check_argument(const c10::Argument& formal, const c10::IValue& constant);

}  // namespace phalanx::exported
