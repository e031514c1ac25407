// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "phalanx/world.h"

namespace phalanx {

struct LaunchOptions {
  std::string backend = "auto";                                  // as in InitOptions; auto is shm
  std::chrono::milliseconds timeout = std::chrono::minutes(10);  // as in InitOptions
};

/// Runs `body` on `ranks` ranks of this host, each of which is a process forked from this one, and blocks until all
/// have ended. For tests, and for programs that are one process otherwise. Memory that `body` changes is the child's
/// own; results are returned through files or pipes. Ranks write to this process's standard output and error. They end
/// with _exit(), so destructors of globals do not run in them.
///
/// Must be called while this process has one thread: before LibTorch has computed anything large enough for its
/// threads. Throws std::logic_error otherwise. Each rank computes with as many threads as its share of the cores has.
///
/// If ranks fail, the first cause is thrown as an Error in this process: "rank 1 of 2: " and the message of the
/// exception that left `body`, or how the process died. The other ranks are ended.
void launch(int ranks, const std::function<void(World& world)>& body, const LaunchOptions& options = {});

}  // namespace phalanx
