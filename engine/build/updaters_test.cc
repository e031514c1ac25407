// SPDX-License-Identifier: Apache-2.0
#include "engine/build/updaters.h"

#include <gmock/gmock.h>

#include <set>
#include <string>

#include "engine/build/whole_model.h"
#include "engine/testing/phases.h"
#include "models/trainable_parameters.h"

namespace phalanx {
namespace {

using testing::configured;
using ::testing::IsEmpty;
using testing::run_ranks;
using ::testing::SizeIs;

using Names = std::set<std::string>;

TEST(Updaters, AreAllRanksThatHoldAParameter) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto run = configured({"mesh.tensor=2"});
    const PartitionedModel part = run.part(run.mesh(world));
    const Updaters updaters(part, StrategyTraits{});
    for (const auto& [name, parameter] : trainable_parameters(*part.model)) EXPECT_TRUE(updaters.updates(name)) << name;
    EXPECT_THAT(updaters.of_first_tensor_rank(), IsEmpty());
    EXPECT_THAT(kept_elsewhere(part, updaters), IsEmpty());
  });
}

TEST(Updaters, AreOnlyTheFirstRankWithParameterServers) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto run = configured({"mesh.tensor=2"});
    const PartitionedModel part = run.part(run.mesh(world));
    const Updaters updaters(part, StrategyTraits{.parameter_servers = true});
    EXPECT_TRUE(updaters.updates("fc1.weight")) << "each rank has another part of it";
    EXPECT_EQ(updaters.updates("fc2.bias"), world->rank() == 0);
    EXPECT_THAT(updaters.of_first_tensor_rank(), SizeIs(1));
    EXPECT_EQ(kept_elsewhere(part, updaters), world->rank() == 0 ? Names() : Names{"fc2.bias"});
  });
}

TEST(Updaters, CountEachParameterOnceInTheNorm) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto run = configured({"mesh.tensor=2"});
    const PartitionedModel part = run.part(run.mesh(world));
    const Clip::Parts all = Updaters(part, StrategyTraits{}).parts_of_norm();
    EXPECT_EQ(all.count, 1u);
    EXPECT_EQ(all.share("fc1.weight"), 1);
    EXPECT_EQ(all.share("fc2.bias"), 0.5) << "both ranks update it";
    EXPECT_EQ(Updaters(part, StrategyTraits{.parameter_servers = true}).parts_of_norm().share("fc2.bias"), 1);
  });
}

}  // namespace
}  // namespace phalanx
