#pragma once

#include <functional>

namespace phalanx {

/// What main() of a program does around its work: goes to the folder where `bazel run` was called, calls `program` and
/// returns its result as the exit status. An exception is told on standard error; the status is then kUsage
/// (ConfigError) or kFailed.
///
///   int main(int argc, char** argv) {
///     return phalanx::run_main([&] { return phalanx::run(argc, argv); });
///   }
///
/// Ranks that a launcher started fail alike before they know each other. The first one tells at once, the others a
/// second later: most launchers end them before.
int run_main(const std::function<int()>& program);

}  // namespace phalanx
