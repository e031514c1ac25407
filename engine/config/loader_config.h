// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "datasets/sample_order.h"
#include "framework/base/config/visitor.h"

namespace phalanx {

/// Section `loader` of a config: how the samples of a batch are chosen and read.
struct LoaderConfig {
  bool shuffle = true;
  Samplers::Choice sampler{"auto"};
  std::string last_batch = "smaller";
  std::int64_t prefetch = 0;
  std::string prefetch_bytes = "1GB";
  std::int64_t threads = 0;
  bool resident = false;
  std::string on_error = "fail";
  std::int64_t max_errors = 100;
  std::string shares = "equal";
  double timeout = 600;

  template <class V>
  void visit(V& v) {
    v("shuffle", shuffle, "shuffle the training samples in every epoch");
    v("sampler", sampler, "order in which training samples are taken");
    v("last_batch", last_batch,
      "last samples of an epoch, if they fill no batch; smaller: a smaller batch, drop: leave them out, pad: fill the "
      "batch with the samples that the epoch began with",
      config::one_of({"smaller", "drop", "pad"}));
    v("prefetch", prefetch, "batches to gather ahead in a background thread; 0: gather each when it is needed",
      config::between(0, 1000));
    v("prefetch_bytes", prefetch_bytes,
      "memory that batches gathered ahead may take on a rank, such as 256MB; one batch is always allowed; 0: no limit");
    v("threads", threads, "threads that read the samples of a batch ahead, with prefetch; 0: as many as the rank has",
      config::between(0, 1024));
    v("resident", resident,
      "on a device: read all training samples into its memory once, and make batches and transform images there");
    v("on_error", on_error,
      "what happens if a sample cannot be read; fail: the run ends, skip: the next sample takes its place",
      config::one_of({"fail", "skip"}));
    v("max_errors", max_errors, "samples of a split that a rank may skip before the run fails", config::at_least(1));
    v("shares", shares,
      "how the ranks divide a batch; equal, a share for each rank, such as 2:1, or measured: by how fast they are");
    v("timeout", timeout,
      "seconds that a training step waits for a batch; then the run ends, and says what the loader was doing; 0: no "
      "limit",
      config::at_least(0));
  }
};

}  // namespace phalanx
