// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/metrics/background_sink.h"

#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;

constexpr Seconds kLong{20};

MetricsRecord at_step(std::int64_t step) { return {.step = step, .split = "train", .metrics = {}}; }

// The state of the fake disk. Outlives the sink.
struct Disk {
  std::atomic<bool> full{false}, hangs{false};
  std::vector<std::int64_t> steps{};  // read it only after flush()
};

class FakeSink final : public MetricsSink {
 public:
  explicit FakeSink(std::shared_ptr<Disk> disk) : disk_(std::move(disk)) {}
  void add(const MetricsRecord& record) override {
    kept_.push_back(record.step);
    retry();
  }
  void retry() override {
    while (disk_->hangs) std::this_thread::yield();
    if (disk_->full) throw DataError("x: No space left on device");
    for (const auto step : kept_) disk_->steps.push_back(step);
    kept_.clear();
  }

 private:
  std::shared_ptr<Disk> disk_;
  std::vector<std::int64_t> kept_;
};

class Background : public ::testing::Test {
 protected:
  std::shared_ptr<Disk> disk_ = std::make_shared<Disk>();
  std::unique_ptr<BackgroundSink> sink_ = std::make_unique<BackgroundSink>(std::make_unique<FakeSink>(disk_));
};

TEST_F(Background, PassesRecordsOnInOrder) {
  for (int step = 1; step <= 3; ++step) sink_->add(at_step(step));
  sink_->flush(kLong);
  EXPECT_THAT(disk_->steps, ElementsAre(1, 2, 3));
}

TEST_F(Background, PassesEverythingOnBeforeItEnds) {
  for (int step = 1; step <= 3; ++step) sink_->add(at_step(step));
  sink_.reset();
  EXPECT_THAT(disk_->steps, ElementsAre(1, 2, 3));
}

TEST_F(Background, DoesNotWaitForADiskThatHangs) {
  disk_->hangs = true;
  sink_->add(at_step(1));
  sink_->add(at_step(2));
  EXPECT_THROW(sink_->flush(Seconds(0.01)), DataError);
  disk_->hangs = false;
  sink_->flush(kLong);
  EXPECT_THAT(disk_->steps, ElementsAre(1, 2));
}

TEST_F(Background, TriesAgainWithoutANewRecord) {
  disk_->full = true;
  sink_->add(at_step(1));
  EXPECT_THROW(sink_->flush(Seconds(0.05)), DataError);
  EXPECT_THROW(sink_->add(at_step(2)), DataError) << "it tells, but keeps the record";
  disk_->full = false;
  sink_->flush(kLong);
  EXPECT_THAT(disk_->steps, ElementsAre(1, 2));
  EXPECT_NO_THROW(sink_->add(at_step(3)));
}

TEST_F(Background, RefusesMoreThanTheMemoryThatItMayTake) {
  disk_->hangs = true;
  EXPECT_THROW(
      {
        for (std::size_t step = 0; step <= BackgroundSink::kMostWaiting + 1; ++step) sink_->add(at_step(1));
      },
      DataError);
  disk_->hangs = false;
}

}  // namespace
}  // namespace phalanx
