// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

/// Parsers of input from outside, as functions of bytes. The fuzzers (libfuzzer.cc) call them with inputs that they
/// make up, and the default tests (replay_test.cc) with the inputs in testdata/.
namespace phalanx::fuzz {

using Random = std::minstd_rand;

/// Changes a few bytes of a text: LLVMFuzzerMutate() in a fuzzer, mutate_bytes() in a test.
using MutateBytes = std::function<std::string(std::string text)>;

/// Changes an input but keeps its lengths and checksums right, so that the parser gets beyond them.
using Mutate = std::string (*)(const std::string& input, const MutateBytes& mutate, Random& random);

/// A parser. `parse` reads the whole input, and everything that callers of the parser would read from it. It returns if
/// the input is well-formed, and otherwise throws an Error; anything else that it throws is a bug, as is a crash.
struct Target {
  std::string name;  // also of its folder in testdata/
  void (*parse)(std::string_view input);
  Mutate mutate = nullptr;  // null: changes of single bytes are enough
};

/// Adds a target. Returns true.
bool add_target(const Target& target);

/// Returns all targets of this program.
const std::vector<Target>& targets();

/// Returns true if the target takes the input, and false if it throws an Error. Passes other exceptions on.
bool accepts(const Target& target, std::string_view input);

/// Changes, inserts or removes a few bytes.
std::string mutate_bytes(std::string text, Random& random);

}  // namespace phalanx::fuzz
