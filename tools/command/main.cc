// SPDX-License-Identifier: Apache-2.0
// main() of the program phalanx, and of programs with a single command.
#include "launch/program.h"
#include "tools/command/command.h"

int main(int argc, char** argv) {
  return phalanx::run_main([&] { return phalanx::run_command({argv, argv + argc}); });
}
