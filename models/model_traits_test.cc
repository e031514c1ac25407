// SPDX-License-Identifier: Apache-2.0
#include "models/model_traits.h"

#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>

#include <memory>
#include <stdexcept>

#include "framework/base/config/no_fields.h"
#include "models/chain_network.h"
#include "models/context_parallel.h"
#include "models/expert_parallel.h"
#include "models/generative.h"
#include "models/mixture_of_experts.h"
#include "models/model.h"
#include "models/tensor_parallel.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Implements what every model must.
class Minimal : public Model {
 public:
  Tensors outputs(const Tensors& inputs) override { return inputs; }
  void train(bool) override {}
  NamedTensors named_parameters() const override { return {}; }
  NamedTensors named_buffers() const override { return {}; }
};

class Doubling final : public RecomputableChain, public ContextParallel {
 public:
  Doubling() {
    add_block("twice", {}, [](const at::Tensor& x) { return 2 * x; });
  }
  void enable_context_parallel(const CommunicatorPtr&) override {}
};

template <class M>
std::shared_ptr<M> make_without_fields(const NoFields&, const ModelSpec&) {
  return std::make_shared<M>();
}

const bool model_traits_test_registered =
    Models::global().add<NoFields>("minimal", "nothing optional", make_without_fields<Minimal>) &&
    Models::global().add<NoFields>("doubling", "a chain of one block", make_without_fields<Doubling>);

TEST(ModelTraits, FollowFromTheClassThatAFactoryReturns) {
  ASSERT_TRUE(model_traits_test_registered);
  EXPECT_EQ(Models::Choice("minimal").traits(), ModelTraits());
  EXPECT_EQ(Models::Choice("doubling").traits(),
            (ModelTraits{.activation_checkpointing = true, .block_chain = true, .context_parallel = true}));
  EXPECT_THAT(Models::Choice("doubling").traits().names(),
              ElementsAre("activation_checkpointing", "block_chain", "context_parallel"));
}

TEST(ModelTraits, AreListedWithTheNamesOfTheModels) {
  EXPECT_EQ(models_with(&ModelTraits::block_chain), "doubling");
  EXPECT_EQ(models_with(&ModelTraits::generative), "");
}

TEST(As, GivesOnlyTheInterfacesThatAModelImplements) {
  Minimal minimal;
  EXPECT_EQ(as<BlockChain>(minimal), nullptr);
  EXPECT_EQ(as<TensorParallel>(minimal), nullptr);
  Doubling doubling;
  const Model& model = doubling;
  EXPECT_EQ(as<BlockChain>(model), &doubling);
  EXPECT_NE(as<TensorParallel>(model), nullptr) << "as every network";
  EXPECT_EQ(as<Generative>(model), nullptr);
}

TEST(ChainNetwork, MustHaveBlocks) {
  class Empty final : public ChainNetwork {};
  EXPECT_THAT([] { std::make_shared<Empty>()->forward({}); },
              ThrowsMessage<std::logic_error>(HasSubstr("a ChainNetwork must have blocks")));
}

TEST(Network, MustComputeSomething) {
  class Empty final : public Network {};
  EXPECT_THAT([] { std::make_shared<Empty>()->outputs({at::Tensor()}); },
              ThrowsMessage<std::logic_error>(HasSubstr("must override forward() or outputs()")));
}

// Otherwise, its experts would balance the tokens of one rank instead of the tokens of the global batch.
TEST(Network, MustImplementExpertParallelIfItHasExperts) {
  class Undeclared : public Network {
   public:
    Undeclared() {
      register_module("mlp", std::make_shared<MixtureOfExperts>(MixtureOfExperts::Options{.width = 2, .hidden = 2}));
    }
  };
  class Declared final : public Undeclared, public ExpertParallel {
   public:
    Placements partition_experts(const CommunicatorPtr&, const CommunicatorPtr&) override { return {}; }
    std::string counts_over_batch() const override { return ""; }
  };
  EXPECT_NO_THROW(std::make_shared<Undeclared>()->eval());
  EXPECT_THAT([] { std::make_shared<Undeclared>()->train(); },
              ThrowsMessage<std::logic_error>(HasSubstr("the layer mlp has experts")));
  EXPECT_NO_THROW(std::make_shared<Declared>()->train());
}

}  // namespace
}  // namespace phalanx
