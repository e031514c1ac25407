// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "engine/testing/run.h"

namespace phalanx {
namespace {

using testing::complaint;

TEST(Check, AnAverageThatNeverChangesIsRefused) {
  EXPECT_EQ(complaint("train: {ema_decay: 0.999}"), "");
  EXPECT_EQ(complaint("train: {ema_decay: 1}"),
            "config: train.ema_decay: must be below 1: at 1 the average never changes");
  EXPECT_EQ(
      complaint("train: {ema_decay: 0.9}, strategy: hogwild"),
      "config: train.ema_decay: cannot be combined with strategy hogwild, whose ranks would write averages into the"
      " shared parameters");
}

TEST(Check, LoaderThreadsNeedBatchesToReadAhead) {
  EXPECT_EQ(complaint("loader: {threads: 2, prefetch: 1}"), "");
  EXPECT_EQ(complaint("loader: {threads: 2}"),
            "config: loader.threads: need batches to read ahead, but loader.prefetch is 0; set it to the number of"
            " batches");
}

TEST(Check, OnlyActivationsOfSegmentsOnADeviceAreOffloaded) {
  EXPECT_EQ(complaint("train: {checkpoint_activations: 2, offload_activations: true}"), "");
  EXPECT_EQ(
      complaint("train: {offload_activations: true}"),
      "config: train.offload_activations: needs train.checkpoint_activations: it moves the inputs of its segments;"
      " set it to a number of segments");
  EXPECT_EQ(complaint("train: {checkpoint_activations: 2, offload_activations: true}, device: cpu"),
            "config: train.offload_activations: moves activations from a device to the host, but device is cpu; remove"
            " it");
}

TEST(Check, ALossScaleMustBeAbleToFall) {
  EXPECT_EQ(complaint("train: {loss_scale: {backoff: 0.25}}"), "");
  EXPECT_EQ(complaint("train: {loss_scale: {backoff: 1}}"),
            "config: train.loss_scale.backoff: must be above 0 and below 1");
}

TEST(Check, EarlyStoppingNeedsTestsDuringTraining) {
  const std::string early = "train: {early_stop: {metric: accuracy}}";
  EXPECT_EQ(complaint(early), "");
  EXPECT_EQ(complaint(early + ", evaluate: {every_epochs: 0, every_steps: 5}"), "");
  EXPECT_EQ(complaint(early + ", evaluate: {every_epochs: 0}"),
            "config: train.early_stop: needs tests during training: set evaluate.every_epochs or evaluate.every_steps");
}

TEST(Check, ARecordedStepCannotCommunicate) {
  EXPECT_EQ(complaint("device: cpu, train: {cuda_graph: true}"),
            "config: device: must be one that records graphs, such as cuda, with train.cuda_graph");
  EXPECT_EQ(
      complaint("train: {cuda_graph: true, accumulate: 2}"),
      "config: train.accumulate: must be 1, since the parts of a batch differ from each other, with train.cuda_graph");
  EXPECT_EQ(
      complaint("launch: {ranks: 2}, strategy: all_reduce, mesh: {tensor: 2}, train: {cuda_graph: true}"),
      "config: mesh: has an axis whose ranks communicate within the step: only data can be used with train.cuda_graph");
  EXPECT_EQ(complaint("launch: {ranks: 2}, strategy: all_reduce, train: {cuda_graph: true}"), "");
}

TEST(Check, ResidentSamplesAreNotGatheredAhead) {
  EXPECT_EQ(complaint("loader: {resident: true, prefetch: 2}"),
            "config: loader.prefetch: gathers batches on the CPU, and must be 0 with loader.resident");
}

}  // namespace
}  // namespace phalanx
