// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <string>

namespace phalanx::exported {

/// Returns true if a program from a file may call an operator. Only operators of `aten` that compute from their
/// arguments may be called; operators that read or write files, change a tensor's storage or layout in place, or skip
/// checks may not, nor may operators of other libraries. `name` is the dispatcher's: "aten::add".
bool may_be_called(const std::string& name);

/// Throws std::runtime_error for a string that is none of those that the argument of an operator takes in models, and
/// for an argument that the operator writes its result into (`out`).
void check_argument(const c10::Argument& formal, const c10::IValue& constant);

}  // namespace phalanx::exported
