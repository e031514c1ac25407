// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/unused_parameters.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>

#include <set>
#include <string>
#include <thread>

#include "framework/parallel/padding_rows.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Model {
  at::Tensor a = at::ones({3}).requires_grad_(), b = at::ones({3}).requires_grad_(), c = at::ones({3}).requires_grad_();

  FlatParameters flat(Communicator& memory) const {
    return FlatParameters(NamedTensors{{"a", a}, {"b", b}, {"c", c}}, memory, 1);
  }
};

class UnusedOfTwoRanks {
 public:
  explicit UnusedOfTwoRanks(const CommunicatorPtr& group)
      : group_(group), unused_({{group, group, model_.flat(*group)}}, [](const auto& name) { return name == "c"; }) {}

  void use_a() { model_.a.sum().backward(); }
  void use_b() { model_.b.sum().backward(); }
  void look_at(const Model& replica) { unused_.look_at(replica.flat(*group_)); }
  void keep_recorded() { unused_.keep_recorded(); }
  void skip_step() { unused_.skip_step(); }
  bool all_used_here() const { return unused_.all_used_here(); }
  const std::set<std::string>& agreed() { return agreed_with(group_); }
  const std::set<std::string>& found_alone() { return agreed_with(nullptr); }

 private:
  const std::set<std::string>& agreed_with(const CommunicatorPtr& combined) {
    unused_.agree({combined});
    return unused_.names();
  }

  CommunicatorPtr group_;
  Model model_;
  UnusedParameters unused_;
};

void on_two_ranks(const std::function<void(UnusedOfTwoRanks&, int rank)>& body) {
  testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& group) {
    UnusedOfTwoRanks unused(group);
    body(unused, group->rank());
  });
}

TEST(UnusedParameters, ARankThatSkipsAStepUsesNone) {
  on_two_ranks([](UnusedOfTwoRanks& unused, int rank) {
    unused.use_a();
    unused.use_b();
    EXPECT_THAT(unused.agreed(), IsEmpty());
    if (rank == 0) {
      unused.use_a();
    } else {
      unused.skip_step();
    }
    EXPECT_THAT(unused.agreed(), ElementsAre("b"));
  });
}

TEST(UnusedParameters, HadNoGradientOnAnyRank) {
  on_two_ranks([](UnusedOfTwoRanks& unused, int rank) {
    rank == 0 ? unused.use_a() : unused.use_b();
    EXPECT_THAT(unused.agreed(), IsEmpty());
    unused.use_a();
    EXPECT_THAT(unused.agreed(), ElementsAre("b")) << "c always counts as used";
    unused.use_b();
    EXPECT_THAT(unused.agreed(), ElementsAre("a")) << "each step by itself";
  });
}

TEST(UnusedParameters, ARankKnowsWhetherItHasUsedAllInTheLastStep) {
  on_two_ranks([](UnusedOfTwoRanks& unused, int rank) {
    rank == 0 ? unused.use_a() : unused.use_b();
    EXPECT_THAT(unused.agreed(), IsEmpty());
    EXPECT_FALSE(unused.all_used_here());
    unused.use_a();
    unused.use_b();
    EXPECT_THAT(unused.agreed(), IsEmpty());
    EXPECT_TRUE(unused.all_used_here());
  });
}

TEST(UnusedParameters, HadNoGradientInAnyPartOfAStep) {
  on_two_ranks([](UnusedOfTwoRanks& unused, int) {
    unused.use_a();
    unused.use_b();
    unused.use_a();
    EXPECT_THAT(unused.agreed(), IsEmpty());
  });
}

TEST(UnusedParameters, AreNotUsedByPaddingAlone) {
  on_two_ranks([](UnusedOfTwoRanks& unused, int rank) {
    const PaddingRows padding(rank == 0);
    rank == 0 ? unused.use_a() : unused.use_b();
    EXPECT_THAT(unused.agreed(), ElementsAre("a"));
  });
}

TEST(UnusedParameters, AreFoundPerRankIfGradientsAreNotReduced) {
  on_two_ranks([](UnusedOfTwoRanks& unused, int rank) {
    rank == 0 ? unused.use_a() : unused.use_b();
    EXPECT_THAT(unused.found_alone(), ElementsAre(rank == 0 ? "b" : "a"));
    for (int step = 0; step < rank; ++step) {  // no other rank takes part
      unused.use_a();
      EXPECT_THAT(unused.found_alone(), ElementsAre("b"));
    }
  });
}

TEST(UnusedParameters, AreUsedByAnyReplicaOfARank) {
  on_two_ranks([](UnusedOfTwoRanks& unused, int) {
    const Model other, third;
    unused.look_at(other);
    unused.look_at(third);
    unused.use_a();
    EXPECT_THAT(unused.found_alone(), ElementsAre("b"));
    std::thread([&] { other.a.sum().backward(); }).join();
    EXPECT_THAT(unused.found_alone(), ElementsAre("b"));
    unused.use_a();
    std::thread([&] { third.b.sum().backward(); }).join();
    EXPECT_THAT(unused.found_alone(), IsEmpty());
    std::thread([&] {
      const PaddingRows padding(true);
      third.b.sum().backward();
    }).join();
    unused.use_a();
    EXPECT_THAT(unused.found_alone(), ElementsAre("b"));
  });
}

TEST(UnusedParameters, OfAReplayAreTheOnesOfTheRecordedStep) {
  on_two_ranks([](UnusedOfTwoRanks& unused, int rank) {
    unused.use_a();
    unused.use_b();
    unused.keep_recorded();
    EXPECT_THAT(unused.agreed(), IsEmpty());
    unused.use_a();
    EXPECT_THAT(unused.agreed(), ElementsAre("b")) << "a step that is launched between replays";
    EXPECT_FALSE(unused.all_used_here());
    EXPECT_THAT(unused.agreed(), IsEmpty());
    EXPECT_TRUE(unused.all_used_here());
    unused.use_a();
    if (rank == 0) unused.keep_recorded();
    EXPECT_THAT(unused.agreed(), ElementsAre("b"));
    EXPECT_THAT(unused.agreed(), IsEmpty()) << "rank 1 replays its first recording";
  });
}

TEST(UnusedParameters, KeepThePreviousStepsResultIfNoHookRan) {
  on_two_ranks([](UnusedOfTwoRanks& unused, int) {
    unused.use_a();
    EXPECT_THAT(unused.agreed(), ElementsAre("b"));
    EXPECT_THAT(unused.agreed(), ElementsAre("b"));
  });
}

}  // namespace
}  // namespace phalanx
