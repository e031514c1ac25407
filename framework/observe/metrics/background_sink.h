// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "framework/comm/store/store.h"
#include "framework/observe/metrics/metrics_record.h"

namespace phalanx {

/// Passes records on to another sink, in a separate thread, so that a slow disk does not delay the caller. A sink that
/// fails is asked to try again every kPause. add() and flush() must be called by one thread.
class BackgroundSink final : public MetricsSink {
 public:
  explicit BackgroundSink(std::unique_ptr<MetricsSink> sink);

  /// Waits a moment for the thread, but not for a disk that hangs: the thread then ends on its own.
  ~BackgroundSink() override;
  BackgroundSink(const BackgroundSink&) = delete;
  BackgroundSink& operator=(const BackgroundSink&) = delete;

  /// Does not block. Throws the DataError with which the sink failed last, unless it has succeeded since, although the
  /// record is kept; and throws DataError if kMostWaiting records are waiting, and drops the record.
  void add(const MetricsRecord& record) override;

  /// Waits until the sink has taken everything, at most for `limit`. Throws the DataError with which it fails, or one
  /// that says that it hangs.
  void flush(Seconds limit);

  static constexpr Seconds kPause{0.25};
  static constexpr std::size_t kMostWaiting = 1 << 16;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace phalanx
