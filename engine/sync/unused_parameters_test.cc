#include "engine/sync/unused_parameters.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "framework/parallel/padding_rows.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class UnusedOfTwoRanks {
 public:
  explicit UnusedOfTwoRanks(const CommunicatorPtr& group)
      : unused_({{group, group, FlatParameters(NamedTensors{{"a", a_}, {"b", b_}, {"c", c_}}, *group, 1)}},
                [](const std::string& name) { return name == "c"; }) {}

  void use_a() { a_.sum().backward(); }
  void use_b() { b_.sum().backward(); }
  const std::set<std::string>& agreed() {
    unused_.agree();
    return unused_.names();
  }

 private:
  at::Tensor a_ = at::ones({3}).requires_grad_(), b_ = at::ones({3}).requires_grad_(),
             c_ = at::ones({3}).requires_grad_();
  UnusedParameters unused_;
};

void on_two_ranks(const std::function<void(UnusedOfTwoRanks&, int rank)>& body) {
  testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& group) {
    UnusedOfTwoRanks unused(group);
    body(unused, group->rank());
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

TEST(UnusedParameters, HadNoneInAnyPartOfAStep) {
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

TEST(UnusedParameters, OfAStepWithoutHooksAreThoseOfTheOneBefore) {
  on_two_ranks([](UnusedOfTwoRanks& unused, int) {
    unused.use_a();
    EXPECT_THAT(unused.agreed(), ElementsAre("b"));
    EXPECT_THAT(unused.agreed(), ElementsAre("b"));
  });
}

}  // namespace
}  // namespace phalanx
