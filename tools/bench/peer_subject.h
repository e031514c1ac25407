// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/bench/line_socket.h"
#include "tools/bench/subject.h"

namespace phalanx::bench {

/// A library that a process next to each rank measures. The process sleeps until the rank sends a command, so that it
/// takes turns with everything else. The commands, one per line:
///
///     prepare ID OP WHOLE PART MEMORY   allocates buffers of so many float32, as on all ranks       answer: "ok"
///     run ID REPEATS                    synchronizes all ranks, runs the operation REPEATS times    answer: the
///                                                                                     microseconds of one operation
///     drop ID                           frees the buffers                                           answer: "ok"
///
/// The process ends when the connection is closed.
class PeerSubject : public Subject {
 public:
  /// `lines` leads to the process, which is ready.
  PeerSubject(std::string name, int size, std::shared_ptr<LineSocket> lines, Seconds timeout);

  std::string name() const override { return name_; }
  int size() const override { return size_; }
  std::vector<std::string> algorithms(const std::string&) const override { return {"native"}; }
  std::string absent(const Case& what) const override;
  std::unique_ptr<Trial> prepare(const Case& what) override;

 private:
  std::string name_;
  int size_;
  std::shared_ptr<LineSocket> lines_;
  Seconds timeout_;
  int prepared_ = 0;
};

}  // namespace phalanx::bench
