#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <string>

namespace phalanx::exported {

/// Whether a program from a file may call an operator: one of `aten` that only computes from its arguments. Those that
/// read or write files, change a tensor's storage or layout in place, or skip checks may not be called, nor may those
/// of other libraries. `name` is that of the dispatcher, "aten::add".
bool may_be_called(const std::string& name);

/// Throws std::runtime_error for a string that is none of those that the argument of an operator takes in models, and for
/// an argument that the operator writes its result into (`out`).
void check_argument(const c10::Argument& formal, const c10::IValue& constant);

}  // namespace phalanx::exported
