// Save on P ranks, load on Q, however they share the update.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpointer.h"
#include "engine/checkpoint/choose.h"
#include "engine/checkpoint/random_part.h"
#include "engine/checkpoint/restore.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/random.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

enum class Sharing { kReplicas, kShards };

struct Root {
  Optimizers::Choice optimizer{"sgd"};
  template <class V>
  void visit(V& v) {
    v("optimizer", optimizer, "under test");
  }
};

// A model of three parameters and a buffer, with an optimizer, on one rank.
struct Rank {
  explicit Rank(Communicator& world, Sharing sharing = Sharing::kReplicas, std::int64_t width = 3,
                const std::string& optimizer_yaml = "{name: sgd, momentum: 0.9}")
      : weight(at::zeros({5, width})), bias(at::zeros({7})), scalar(at::zeros({})), buffer(at::zeros({2})) {
    Root root;
    config::load_text(root, "optimizer: " + optimizer_yaml, "test.yaml");
    flat = std::make_unique<FlatParameters>(
        FlatParameters::Named{{"a.weight", weight}, {"a.bias", bias}, {"scale", scalar}}, world, 48);
    optimizer = root.optimizer.make({});
    for (const auto& bucket : flat->buckets()) {
      const auto size = bucket.values.numel();
      const auto begin = sharing == Sharing::kShards ? size * world.rank() / world.size() : 0;
      const auto end = sharing == Sharing::kShards ? size * (world.rank() + 1) / world.size() : size;
      state.slices.push_back(part(whole(bucket), begin, end - begin));
    }
    optimizer->attach(state.slices);
    state.parameters = flat.get();
    state.optimizer = optimizer.get();
    state.buffers = {{"running", buffer}};
  }

  // Values that depend on parameter and element alone: the same however they are cut.
  void fill(float shift) {
    weight.copy_(at::arange(weight.numel(), at::kFloat).view(weight.sizes()) + shift);
    bias.copy_(at::arange(7, at::kFloat) * 2 + shift);
    scalar.fill_(-shift);
    buffer.fill_(shift / 2);
    for (auto& remembered : optimizer->state()) {
      for (const auto& segment : state.slices[remembered.slice].segments) {
        const float first = 100 * static_cast<float>(segment.name.size()) + shift;
        remembered.values.narrow(0, segment.begin, segment.count)
            .copy_(at::arange(segment.count, at::kFloat) + static_cast<float>(segment.offset) + first);
      }
    }
  }

  at::Tensor weight, bias, scalar, buffer;
  std::unique_ptr<FlatParameters> flat;
  std::unique_ptr<Optimizer> optimizer;
  RunState state;
};

// As many ranks as there were go on with their own replicas.
void restore_own(const Checkpoint& checkpoint, Rank& rank, const Communicator& world) {
  restore(checkpoint, rank.state, checkpoint.manifest.ranks == world.size() ? world.rank() : 0);
}

class Checkpoints : public ::testing::Test {
 protected:
  Checkpoints() { fs::remove_all(folder_.path()); }

  static Manifest at_step(std::int64_t step) {
    return {.position = {step, 1, 2}, .updates = step, .identity = {{"seed", "1"}}};
  }

  void save(int ranks, Sharing sharing, std::int64_t step, float shift = 0.5f) {
    testing::run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
      Rank rank(*world, sharing);
      rank.fill(shift);
      Checkpointer checkpointer(folder_, {}, world, rank.state);
      checkpointer.save(at_step(step), true);
      rank.fill(99);  // training goes on
      checkpointer.settle();
      EXPECT_EQ(checkpointer.failure(), "");
      EXPECT_EQ(checkpointer.written(), 1);
    });
  }

  Choice choose_here(const std::string& resume, Rank& rank, Communicator& world, const std::string& seed = "1") {
    return choose(resume, folder_, {{"seed", seed}}, rank.state, world);
  }

  void expect_loads(int ranks, Sharing sharing, float shift = 0.5f) {
    testing::run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
      Rank rank(*world, sharing), expected(*world, sharing);
      expected.fill(shift);
      const auto choice = choose_here("auto", rank, *world);
      ASSERT_TRUE(choice.checkpoint);
      restore_own(*choice.checkpoint, rank, *world);
      EXPECT_TRUE(at::equal(rank.weight, expected.weight));
      EXPECT_TRUE(at::equal(rank.bias, expected.bias));
      EXPECT_TRUE(at::equal(rank.scalar, expected.scalar));
      const auto state = rank.optimizer->state(), wanted = expected.optimizer->state();
      for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(at::equal(state[i].values, wanted[i].values));
      EXPECT_EQ(rank.optimizer->updates(), choice.checkpoint->manifest.updates);
    });
  }

  // What a run of one rank is told.
  std::string refusal(const std::string& resume, std::int64_t width = 3, const std::string& seed = "1",
                      const std::string& optimizer = "{name: sgd, momentum: 0.9}") {
    std::string message;
    testing::run_ranks("inproc", 1, [&](const CommunicatorPtr& world) {
      Rank rank(*world, Sharing::kReplicas, width, optimizer);
      try {
        choose_here(resume, rank, *world, seed);
      } catch (const DataError& error) {
        message = error.what();
      }
    });
    return message;
  }

  const CheckpointFolder folder_{::testing::TempDir() + "/run/checkpoints"};
};

TEST_F(Checkpoints, SavedOnAnyNumberOfRanksTheyLoadOnAnyOther) {
  for (const auto saved : {Sharing::kReplicas, Sharing::kShards}) {
    for (const int savers : {1, 2, 3, 4, 7}) {
      fs::remove_all(folder_.path());
      save(savers, saved, 10);
      for (const auto loaded : {Sharing::kReplicas, Sharing::kShards}) {
        for (const int loaders : {1, 2, 4, 5}) expect_loads(loaders, loaded);
      }
    }
  }
}

TEST_F(Checkpoints, EveryElementIsWrittenOnce) {
  for (const auto sharing : {Sharing::kReplicas, Sharing::kShards}) {
    fs::remove_all(folder_.path());
    save(3, sharing, 1);
    std::int64_t weights = 0, momentum = 0;
    for (const auto& entry : fs::directory_iterator(folder_.final_path(1))) {
      if (entry.path().extension() != ".safetensors") continue;
      for (const auto& [name, tensor] : load_safetensors(entry.path())) {
        (name.starts_with("optimizer/momentum/") ? momentum : weights) += tensor.numel();
      }
    }
    EXPECT_EQ(weights, 15 + 7 + 1 + 2);
    EXPECT_EQ(momentum, 15 + 7 + 1);
  }
}

TEST_F(Checkpoints, WeightsHaveTheirNamesAndShapes) {
  save(1, Sharing::kReplicas, 1);
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const auto& [name, tensor] : load_safetensors(folder_.final_path(1) + "/weights-00001-of-00001.safetensors")) {
    shapes[name] = tensor.sizes().vec();
  }
  EXPECT_THAT(shapes, ::testing::ElementsAre(::testing::Pair("a.bias", std::vector<std::int64_t>{7}),
                                             ::testing::Pair("a.weight", std::vector<std::int64_t>{5, 3}),
                                             ::testing::Pair("running", std::vector<std::int64_t>{2}),
                                             ::testing::Pair("scale", std::vector<std::int64_t>{})));
}

TEST_F(Checkpoints, AreWrittenWhileTrainingGoesOn) {
  testing::run_ranks("inproc", 3, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    Checkpointer checkpointer(folder_, {.keep_last = 100}, world, rank.state);
    for (std::int64_t step = 1; step <= 60; ++step) {
      rank.fill(static_cast<float>(step));
      checkpointer.advance();
      if (step % 20 == 0) checkpointer.save(at_step(step), true);
    }
    checkpointer.settle();
    EXPECT_EQ(checkpointer.written(), 3);
    EXPECT_EQ(checkpointer.failed(), 0);
  });
  expect_loads(2, Sharing::kReplicas, 60);
}

TEST_F(Checkpoints, PartsOfRanksComeBackToThem) {
  const auto part = [](double& value, bool every_rank) {
    return Part{.name = every_rank ? "own" : "common",
                .save =
                    [&value] {
                      return NamedTensors{{"value", at::full({1}, value, at::kDouble)}};
                    },
                .load =
                    [&value](const SavedRanks& saved) {
                      value = 0;
                      for (int rank = 0; rank < saved.ranks; ++rank) {
                        for (const auto& [name, tensor] : saved.of(rank)) value = 10 * value + tensor.item<double>();
                      }
                    },
                .every_rank = every_rank};
  };
  const auto run = [&](int ranks, bool load, double expected_own, double expected_common) {
    testing::run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
      Rank rank(*world);
      double own = 1 + world->rank(), common = 5;
      rank.state.parts = {part(own, true), part(common, false)};
      if (load) {
        restore_own(read_checkpoint(folder_.final_path(1)), rank, *world);
        EXPECT_EQ(own, expected_own);
        EXPECT_EQ(common, expected_common);
      } else {
        Checkpointer checkpointer(folder_, {}, world, rank.state);
        checkpointer.save(at_step(1), true);
        checkpointer.settle();
      }
    });
  };
  run(3, false, 0, 0);
  run(2, true, 123, 5);  // rank 0 alone has saved what is common
}

TEST_F(Checkpoints, ReplicasThatDifferComeBackToTheirRanks) {
  const auto shift = [](int rank) { return static_cast<float>(1 + rank); };
  testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    rank.fill(shift(world->rank()));
    Checkpointer checkpointer(folder_, {}, world, rank.state);
    checkpointer.save(at_step(1), /*replicas_equal=*/false);
    checkpointer.settle();
  });
  for (const int ranks : {2, 3}) {
    testing::run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
      Rank rank(*world), expected(*world);
      restore_own(read_checkpoint(folder_.final_path(1)), rank, *world);
      expected.fill(shift(ranks == 2 ? world->rank() : 0));
      EXPECT_TRUE(at::equal(rank.weight, expected.weight));
      EXPECT_TRUE(at::equal(rank.optimizer->state().at(0).values, expected.optimizer->state().at(0).values));
    });
  }
}

TEST_F(Checkpoints, RandomNumbersGoOn) {
  at::Tensor expected;
  testing::run_ranks("inproc", 1, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    rank.state.parts = {random_part(0)};
    at::randn({100});
    Checkpointer checkpointer(folder_, {}, world, rank.state);
    checkpointer.save(at_step(1), true);
    expected = at::randn({100});
    checkpointer.settle();
    at::randn({77});
    restore(read_checkpoint(folder_.final_path(1)), rank.state, 0);
    EXPECT_TRUE(at::equal(at::randn({100}), expected));
  });
}

TEST_F(Checkpoints, AutoBeginsWhereThereIsNone) {
  testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    EXPECT_FALSE(choose_here("auto", rank, *world).checkpoint);
    EXPECT_FALSE(choose_here("none", rank, *world).checkpoint);
  });
}

TEST_F(Checkpoints, AutoTakesThePreviousOneAndSaysWhy) {
  save(2, Sharing::kReplicas, 10, 1);
  save(2, Sharing::kReplicas, 20, 2);
  const std::string file = folder_.final_path(20) + "/" + state_file(1, 2);
  write_atomically(file, read_file(file).substr(0, 50));
  testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    const auto choice = choose_here("auto", rank, *world);
    ASSERT_TRUE(choice.checkpoint);
    EXPECT_EQ(choice.checkpoint->manifest.position, (Position{10, 1, 2}));
    if (world->rank() == 0) {
      EXPECT_THAT(choice.refused, ::testing::ElementsAre(HasSubstr("has 50 bytes")));
    }
  });
}

TEST_F(Checkpoints, ADamagedOneIsRefusedByNameAndThePreviousOneIsOffered) {
  save(1, Sharing::kReplicas, 10);
  save(1, Sharing::kReplicas, 20);
  const std::string file = folder_.final_path(20) + "/" + weights_file(0, 1);
  std::string text = read_file(file);
  text[text.size() / 2] ^= 4;
  write_atomically(file, text);
  EXPECT_THAT(refusal(folder_.final_path(20) + "/"),
              AllOf(HasSubstr(file + ": is damaged"), HasSubstr("--resume " + folder_.final_path(10))));
}

TEST_F(Checkpoints, WithoutAWholeOneNothingBeginsByItself) {
  save(1, Sharing::kReplicas, 10);
  fs::remove(folder_.final_path(10) + "/" + weights_file(0, 1));
  EXPECT_THAT(refusal("auto"), AllOf(HasSubstr("none of the checkpoints"), HasSubstr("is missing")));
  EXPECT_THAT(refusal(folder_.final_path(10)), HasSubstr("there is no other whole one"));
}

TEST_F(Checkpoints, ThoseOfOtherRunsAreRefused) {
  save(2, Sharing::kReplicas, 10);
  EXPECT_THAT(refusal("auto"), IsEmpty());
  EXPECT_THAT(refusal("auto", 4), HasSubstr("another model: a.weight has shape [5, 3] there and [5, 4] here"));
  EXPECT_THAT(refusal("auto", 3, "2"), HasSubstr("another run: its seed is 1, here it is 2"));
  EXPECT_THAT(refusal("auto", 3, "1", "{name: sgd}"), HasSubstr("another optimizer: it has momentum"));
}

TEST_F(Checkpoints, EveryRankIsTold) {
  save(2, Sharing::kReplicas, 10);
  testing::run_ranks("inproc", 3, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    EXPECT_THAT([&] { choose_here("auto", rank, *world, "7"); }, ThrowsMessage<DataError>(HasSubstr("here it is 7")));
    EXPECT_THAT([&] { choose_here("/absent", rank, *world); }, ThrowsMessage<DataError>(HasSubstr("/absent")));
  });
}

// Files beyond a limit fail like those on a full disk.
class FullDisk : public Checkpoints {
 protected:
  void limit(rlim_t bytes) {
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FullDisk() { previous_ = ::signal(SIGXFSZ, SIG_IGN); }
  ~FullDisk() override {
    limit(RLIM_INFINITY);
    ::signal(SIGXFSZ, previous_);
  }

 private:
  void (*previous_)(int);
};

TEST_F(FullDisk, ACheckpointIsGivenUpOnAllRanksAndTheNextOneSucceeds) {
  save(2, Sharing::kReplicas, 1, 1);
  testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    rank.fill(2);
    Checkpointer checkpointer(folder_, {}, world, rank.state);
    if (world->rank() == 0) limit(60);
    world->barrier().wait();
    checkpointer.save(at_step(2), true);
    checkpointer.settle();
    EXPECT_THAT(checkpointer.failure(), HasSubstr("File too large"));
    EXPECT_EQ(checkpointer.failed(), 1);
    world->barrier().wait();
    if (world->rank() == 0) {
      EXPECT_FALSE(fs::exists(folder_.temporary_path(2))) << "nothing of it is left";
      EXPECT_EQ(folder_.newest_good([](const std::string&) {}).path, folder_.final_path(1));
      limit(RLIM_INFINITY);
    }
    world->barrier().wait();
    checkpointer.save(at_step(3), true);
    checkpointer.settle();
    EXPECT_EQ(checkpointer.failure(), "");
  });
  expect_loads(2, Sharing::kReplicas, 2);
}

TEST_F(FullDisk, AManifestThatCannotBeWrittenIsAFailureOnAllRanks) {
  testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    Checkpointer checkpointer(folder_, {}, world, rank.state);
    Manifest manifest = at_step(2);
    manifest.provenance = {{"command", std::string(5000, 'x')}};
    if (world->rank() == 0) limit(4000);
    world->barrier().wait();
    checkpointer.save(manifest, true);
    checkpointer.settle();
    EXPECT_NE(checkpointer.failure(), "");
    EXPECT_EQ(checkpointer.written(), 0);
  });
  EXPECT_EQ(folder_.newest_good([](const std::string&) {}).path, "");
}

}  // namespace
}  // namespace phalanx
