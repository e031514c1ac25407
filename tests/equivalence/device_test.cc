// SPDX-License-Identifier: Apache-2.0
// Compares training on devices with training in one process on the CPU: the same losses and the same weights with all
// strategies, meshes and models, and from each other's checkpoints. The device is the one that PHALANX_TEST_DEVICE
// names, such as cuda, or else the fake one, which fails whenever a tensor of a device is used like one of the
// CPU.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/base/environment.h"
#include "framework/base/reason.h"
#include "framework/comm/device_kind.h"
#include "framework/testing/backend_under_test.h"
#include "framework/testing/fake_device/memory.h"
#include "framework/testing/fake_device/streams.h"
#include "framework/testing/file_name.h"
#include "framework/testing/worlds.h"
#include "tests/equivalence/mesh_runs.h"
#include "tests/equivalence/training.h"

namespace phalanx {
namespace {

using testing::Changes;
using testing::file_name;
using testing::kBackend;
using testing::relative_difference;
using testing::run_ranks;
using testing::Streams;
using testing::train;
using testing::Trained;

std::string device() { return "device=" + environment("PHALANX_TEST_DEVICE").value_or("fake"); }

// Model, ranks, settings of both runs, settings of the run on devices.
using Case = std::tuple<std::string, int, Changes, Changes>;

class Device : public ::testing::TestWithParam<Case> {};

// Loads the device once, rather than in each forked process: loading the libraries of CUDA takes seconds.
class LoadedDevice final : public ::testing::Environment {
 public:
  void SetUp() override {
    const auto name = environment("PHALANX_TEST_DEVICE").value_or("fake");
    ASSERT_EQ(DeviceKinds::Choice(name).make()->missing(), "");
  }
};
const auto* const loaded = ::testing::AddGlobalTestEnvironment(new LoadedDevice);

TEST_P(Device, TrainsAsTheCpu) {
  auto [kind, ranks, both, own] = GetParam();
  own.insert(own.begin(), device());
  if (both.empty()) both.push_back("seed=1");
  testing::expect_equals_one_rank(kind, ranks, own, both);
}

INSTANTIATE_TEST_SUITE_P(Models, Device,
                         ::testing::Values(Case{"mlp", 1, {}, {}}, Case{"lenet", 1, {}, {}}, Case{"gpt", 1, {}, {}},
                                           Case{"llama", 1, {}, {}}, Case{"lstm", 1, {}, {}}, Case{"moe", 1, {}, {}},
                                           Case{"bert", 1, {}, {}}, Case{"transformer", 1, {}, {}},
                                           Case{"vit", 1, {}, {}}, Case{"vgg11_bn", 1, {}, {}}, Case{"vae", 1, {}, {}},
                                           Case{"dcgan", 1, {}, {}}, Case{"siamese", 1, {}, {}}));

// Models from files next to the test.
INSTANTIATE_TEST_SUITE_P(Programs, Device,
                         ::testing::Values(Case{"exported", 1, {}, {}}, Case{"torchscript", 1, {}, {}}));

INSTANTIATE_TEST_SUITE_P(Optimizers, Device,
                         ::testing::Values(Case{"mlp", 1, {"optimizer={name: sgd, lr: 0.01, momentum: 0.9}"}, {}},
                                           Case{"mlp", 1, {"optimizer={name: adagrad, lr: 0.01}"}, {}},
                                           Case{"mlp", 1, {"optimizer={name: rmsprop, lr: 0.001}"}, {}},
                                           Case{"mlp", 1, {"optimizer={name: lion, lr: 0.001}"}, {}},
                                           Case{"mlp", 1, {"optimizer={name: ftrl, lr: 0.01}"}, {}},
                                           Case{"mlp", 1, {"optimizer={name: lars, lr: 0.01}"}, {}},
                                           Case{"mlp", 1, {"optimizer={name: lamb, lr: 0.01}"}, {}},
                                           Case{"mlp", 1, {"optimizer={name: adafactor, lr: 0.01}"}, {}},
                                           Case{"mlp", 1, {"optimizer={name: muon, lr: 0.01}"}, {}}));

// Everything that is part of the update besides the optimizer, and everything that changes how a step is computed.
INSTANTIATE_TEST_SUITE_P(
    Steps, Device,
    ::testing::Values(
        Case{"gpt", 1, {"model.dropout=0.1"}, {"train.checkpoint_activations=2"}},
        Case{"gpt", 1, {"model.dropout=0.1"}, {"train.checkpoint_activations=2", "train.offload_activations=true"}},
        Case{"mlp", 1, {"train.clip_norm=0.1", "train.ema_decay=0.9"}, {"train.accumulate=3"}},
        Case{"mlp", 1, {"train.clip_value=0.001"}, {"loader.prefetch=2"}},
        Case{"lenet", 1, {"train.memory_format=channels_last"}, {"train.deterministic=true"}},
        Case{"lenet", 1, {"seed=2"}, {"loader.resident=true"}}, Case{"gpt", 1, {"seed=2"}, {"loader.resident=true"}},
        Case{"transformer", 1, {"seed=2"}, {"loader.resident=true"}}));

// The last batch of an epoch is smaller, and is computed without the graph.
INSTANTIATE_TEST_SUITE_P(
    Captured, Device,
    ::testing::Values(Case{"mlp", 1, {"train.global_batch_size=32"}, {"train.cuda_graph=true"}},
                      Case{"lenet", 1, {"train.clip_norm=0.1"}, {"train.cuda_graph=true", "loader.resident=true"}},
                      Case{"gpt", 1, {"model.dropout=0.1"}, {"train.cuda_graph=true"}},
                      Case{"vit", 1, {"model.dropout=0.1"}, {"train.cuda_graph=true"}},
                      Case{"mlp", 2, {"seed=3"}, {"train.cuda_graph=true", "strategy=all_reduce"}}));

// In fp32, the graph also contains the update. It computes the same bits then; on a real device, where LibTorch may
// choose other kernels for a graph, nearly the same.
TEST(DeviceGraphs, OfWholeStepsTrainAsWithoutGraphs) {
  const bool real = environment("PHALANX_TEST_DEVICE").has_value();
  run_ranks(kBackend, 1, [real](const CommunicatorPtr& world) {
    for (const auto& [kind, change] : {std::pair<std::string, std::string>("mlp", "schedule=cosine"),
                                       {"lenet", "train.clip_norm=0.1"},
                                       {"gpt", "model.dropout=0.1"}}) {
      const auto run = [&, kind = kind, change = change](const std::string& graphs) {
        const Changes changes{device(), "train.precision=fp32", change, "train.deterministic=true",
                              "train.cuda_graph=" + graphs};
        std::vector<std::int64_t> launches;
        auto trained = train(testing::config_of(kind, changes), world, file_name(kind + "_graphs_" + graphs), [&] {
          launches.push_back(Streams::global().launches());
          return false;
        });
        return std::pair(std::move(trained.weights), launches.at(15) - launches.at(14));
      };
      const auto [expected, of_step] = run("false");
      const auto [weights, of_replay] = run("true");
      EXPECT_LE(relative_difference(weights, expected), real ? 1e-5 : 0) << kind;
      if (!real) {
        EXPECT_LT(of_replay + 10, of_step) << kind << ": the graph replaces forward, backward and the update";
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, Device,
    ::testing::Values(Case{"mlp", 2, {"train.clip_norm=0.1"}, {"strategy=all_reduce"}},
                      Case{"mlp", 3, {"train.clip_norm=0.1"}, {"strategy=overlapped"}},
                      Case{"mlp", 2, {"train.clip_norm=0.1"}, {"strategy=sharded"}},
                      Case{"mlp", 2, {"train.clip_norm=0.1"}, {"strategy={sharded: {stage: 2}}"}},
                      Case{"gpt", 2, {"train.clip_norm=0.1"}, {"strategy={sharded: {stage: 3}}"}},
                      Case{"mlp", 2, {"train.gradients=mean"}, {"strategy=sync_ps"}},
                      Case{"mlp", 4, {}, {"strategy={intra: sharded, inter: all_reduce, ranks_per_group: 2}"}},
                      Case{"vgg11_bn", 2, {"train.sync_batch_norm=true"}, {"strategy=all_reduce"}}));

INSTANTIATE_TEST_SUITE_P(
    Meshes, Device,
    ::testing::Values(Case{"gpt", 2, {"train.clip_norm=0.1"}, {"mesh.tensor=2"}},
                      Case{"gpt", 2, {"seed=3"}, {"mesh.tensor=2", "mesh.sequence_parallel=true"}},
                      Case{"gpt", 2, {"seed=3"}, {"mesh.context=2"}}, Case{"gpt", 2, {"seed=3"}, {"mesh.pipe=2"}},
                      Case{"gpt", 2, {"seed=3"}, {"mesh.pipe=2", "pipeline={micro_batches: 4, schedule: zero_bubble}"}},
                      Case{"moe", 2, {"seed=3"}, {"mesh.expert=2"}}, Case{"lenet", 2, {"seed=3"}, {"mesh.tensor=2"}},
                      Case{"gpt", 4, {"optimizer={name: muon, lr: 0.01}"}, {"mesh.tensor=2", "strategy=sharded"}},
                      Case{"gpt", 4, {"seed=3"}, {"mesh.tensor=2", "strategy={sharded: {stage: 3}}"}}));

// The same on streams whose work is deferred for a random time, so that a missing wait changes the results.
class Deferred : public ::testing::TestWithParam<Case> {
 protected:
  ~Deferred() override { Streams::global().set_mode(Streams::Mode::kEager); }
};

TEST_P(Deferred, TrainsAsTheCpu) {
  if (environment("PHALANX_TEST_DEVICE")) GTEST_SKIP() << "the order of a real device is its own";
  auto [kind, ranks, both, own] = GetParam();
  own.insert(own.begin(), device());
  Streams::global().set_mode(Streams::Mode::kDeferred, 47);
  testing::expect_equals_one_rank(kind, ranks, own, both);
}

INSTANTIATE_TEST_SUITE_P(
    OfAllKinds, Deferred,
    ::testing::Values(Case{"mlp", 1, {"train.clip_norm=0.1", "train.ema_decay=0.9"}, {"loader.prefetch=2"}},
                      Case{"lenet", 1, {"seed=2"}, {"loader.resident=true"}}, Case{"gpt", 1, {"seed=2"}, {}},
                      Case{"gpt", 1, {"seed=3"}, {"train.checkpoint_activations=2", "train.offload_activations=true"}},
                      Case{"gpt", 1, {"model.dropout=0.1"}, {"train.cuda_graph=true"}},
                      Case{"mlp", 2, {"train.clip_norm=0.1"}, {"strategy=overlapped"}},
                      Case{"mlp", 2, {"train.clip_norm=0.1"}, {"strategy=sharded"}},
                      Case{"gpt", 2, {"seed=3"}, {"mesh.tensor=2"}}));

// Strategies that differ from one process: they must compute the same on devices as on as many CPUs. Asynchronous
// strategies run on one rank.
class DeviceStrategies : public ::testing::TestWithParam<std::pair<int, std::string>> {};

INSTANTIATE_TEST_SUITE_P(
    Exchanging, DeviceStrategies,
    ::testing::Values(std::pair(2, "{local_sgd: {every: 3}}"), std::pair(2, "{diloco: {every: 5, compression: int4}}"),
                      std::pair(2, "gossip"), std::pair(2, "{gossip: {compression: int8}}"),
                      std::pair(2, "{all_reduce: {compression: topk}}"),
                      std::pair(2, "{all_reduce: {compression: powersgd}}"),
                      std::pair(2, "{all_reduce: {compression: one_bit}}"), std::pair(1, "{downpour: {every: 2}}"),
                      std::pair(1, "{ssp: {staleness: 1}}"), std::pair(1, "dc_asgd"),
                      std::pair(1, "{easgd: {every: 2}}"),
                      std::pair(1, "{downpour: {every: 1, server_optimizer: {name: adam, lr: 0.001}}}")));

TEST_P(DeviceStrategies, ExchangeAsOnTheCpu) {
  const auto& [ranks, strategy] = GetParam();
  run_ranks(kBackend, ranks, [&](const CommunicatorPtr& world) {
    const Changes changes{"strategy=" + strategy, "train.precision=fp32"};  // the precision that compression needs
    const auto run = file_name("exchanging" + strategy);
    const Trained cpu = train(testing::config_of("mlp", changes), world, run + "_cpu");
    auto there = changes;
    there.push_back(device());
    const Trained devices = train(testing::config_of("mlp", there), world, run);
    // Values that differ in their last bits may be rounded to neighboring steps of a quantization.
    const auto quantized = [&](const char* name) { return strategy.find(name) != std::string::npos; };
    const double tolerance = quantized("int4") ? 2e-2 : quantized("int8") ? 1e-3 : 1e-5;
    EXPECT_LT(relative_difference(devices.weights, cpu.weights), tolerance);
  });
}

// Trains half of a run on the CPU and half on devices.
TEST(DeviceCheckpoints, ResumeOnTheCpuAndViceVersa) {
  run_ranks(kBackend, 2, [](const CommunicatorPtr& world) {
    const Changes common{"strategy=sharded", "train.ema_decay=0.9", "checkpoint.every_steps=10"};
    const auto run_on = [&](const Changes& more, const std::string& name) {
      auto changes = common;
      changes.insert(changes.end(), more.begin(), more.end());
      return train(testing::config_of("mlp", changes), world, name);
    };
    const Trained whole = run_on({}, "device_whole");
    for (const bool device_first : {true, false}) {
      const std::string name = device_first ? "device_first" : "device_second";
      const Changes first{device_first ? device() : "device=cpu", "train.max_steps=10"};
      const Changes second{device_first ? "device=cpu" : device(), "checkpoint.resume=auto"};
      run_on(first, name);
      EXPECT_LT(relative_difference(run_on(second, name).weights, whole.weights), testing::kRounding) << name;
    }
  });
}

// LibTorch lets GPUs round the factors of convolutions and recurrent layers to TF32 unless it is told not to.
TEST(DevicePrecision, Fp32IsNotRoundedToTf32) {
  run_ranks(kBackend, 1, [](const CommunicatorPtr& world) {
    for (const std::string kind : {"lenet", "lstm"}) {
      const auto weights = [&](const std::string& precision, const std::string& device) {
        const Changes changes{"train.precision=" + precision, device, "train.max_steps=5",
                              "optimizer={name: sgd, lr: 1}"};
        return train(testing::config_of(kind, changes), world, file_name(kind + precision + device)).weights;
      };
      const auto cpu = weights("fp32", "device=cpu");
      const double rounded = relative_difference(weights("tf32", device()), cpu);
      EXPECT_LT(relative_difference(weights("fp32", device()), cpu), rounded / 5) << kind;
    }
  });
}

TEST(DevicePrecision, Bf16AndFp16TrainOnTheDevice) {
  run_ranks(kBackend, 1, [](const CommunicatorPtr& world) {
    for (const std::string precision : {"bf16", "fp16"}) {
      const Changes changes{"train.precision=" + precision, "train.max_steps=60"};
      auto there = changes;
      there.push_back(device());
      const auto loss = [&](const Changes& all) {
        return train(testing::config_of("mlp", all), world, file_name(precision + all.back())).test.at(0).second;
      };
      EXPECT_NEAR(loss(there), loss(changes), 0.05) << precision;
    }
  });
}

// No line is written, no loss is checked and no epoch ends in these steps. With fp16, the scale is read in the 128th.
TEST(DeviceWaits, NoStepWaitsForTheDevice) {
  if (environment("PHALANX_TEST_DEVICE")) GTEST_SKIP() << "a real device does not count";
  run_ranks(kBackend, 1, [](const CommunicatorPtr& world) {
    for (const std::string precision : {"fp32", "bf16", "fp16"}) {
      const Changes changes{device(),
                            "train.precision=" + precision,
                            "dataset.train_samples=420",
                            "train.global_batch_size=3",
                            "train.max_steps=140",
                            "train.clip_norm=1",
                            "train.loss_scale.initial=1024",
                            "watch.every_steps=1000",
                            "watch.nan_guard.every_steps=1000"};
      std::vector<std::int64_t> waits;
      train(testing::config_of("mlp", changes), world, file_name("waits_" + precision), [&] {
        waits.push_back(Streams::global().host_waits());
        return false;
      });
      ASSERT_GE(waits.size(), 139u);
      EXPECT_GT(waits[0], 0) << precision;
      EXPECT_EQ(waits[137], waits[4]) << precision;
    }
  });
}

TEST(DeviceMemory, AFailedAllocationNamesItsSizes) {
  if (environment("PHALANX_TEST_DEVICE")) return;  // a real device has no limit that a test could reach
  run_ranks(kBackend, 1, [](const CommunicatorPtr& world) {
    testing::limit_fake_memory(200'000);
    std::string text = "there was enough";
    try {
      train(testing::config_of("lenet", {device()}), world, "little_memory");
    } catch (const std::exception& error) {
      text = reason(error);
    }
    EXPECT_EQ(text.find("CUDA out of memory. Tried to allocate "), 0u) << text;
    EXPECT_NE(text.find(" is free. Use smaller batches"), std::string::npos) << text;
  });
}

TEST(DeviceRefusals, NameSettingsThatCannotBeCombined) {
  const auto refused = [](const Changes& more, const char* part) {
    Changes changes{device()};
    changes.insert(changes.end(), more.begin(), more.end());
    testing::expect_refused(2, "mlp", changes, part);
  };
  refused({"strategy={sharded: {one_copy: true}}"}, "shares memory between ranks, on the CPU only");
  refused({"strategy=overlapped", "train.cuda_graph=true"}, "communicates within forward or backward");
  testing::expect_refused(1, "mlp", {"train.cuda_graph=true"}, "cannot record graphs");
  testing::expect_refused(1, "mlp", {"loader.resident=true"}, "computes on the CPU");
}

}  // namespace
}  // namespace phalanx
