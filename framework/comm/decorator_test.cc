#include "framework/comm/decorator.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace phalanx {
namespace {

// Writes down what it is asked for.
class Scribe final : public Communicator {
 public:
  int rank() const override { return 2; }
  int size() const override { return 5; }
  const std::string& name() const override { return name_; }

  Work broadcast(at::Tensor t, int root) override { return note("broadcast", t, root); }
  Work reduce(at::Tensor t, Reduction op, int root) override { return note("reduce", t, op.name(), root); }
  Work all_reduce(at::Tensor t, Reduction op) override { return note("all_reduce", t, op.name()); }
  Work reduce_scatter(at::Tensor out, at::Tensor in, Reduction op, Counts counts) override {
    return note("reduce_scatter", out, in, op.name(), counts);
  }
  Work all_gather(at::Tensor out, at::Tensor in, Counts counts) override { return note("all_gather", out, in, counts); }
  Work gather(at::Tensor out, at::Tensor in, int root, Counts counts) override {
    return note("gather", out, in, root, counts);
  }
  Work scatter(at::Tensor out, at::Tensor in, int root, Counts counts) override {
    return note("scatter", out, in, root, counts);
  }
  Work all_to_all(at::Tensor out, at::Tensor in, Counts out_counts, Counts in_counts) override {
    return note("all_to_all", out, in, out_counts, in_counts);
  }
  Work send(at::Tensor t, int peer, int tag) override { return note("send", t, peer, tag); }
  Work recv(at::Tensor t, int peer, int tag) override { return note("recv", t, peer, tag); }
  Work barrier(std::optional<Seconds> timeout) override {
    return note("barrier", timeout.value_or(Seconds(0)).count());
  }
  Work run(const Call& call, std::function<void()> body) override {
    body();
    return note("run", describe(call));
  }
  CommunicatorPtr split(int color, int key) override {
    note("split", color, key).wait();
    return color < 0 ? nullptr : std::make_shared<Scribe>();
  }
  at::Tensor allocate(at::IntArrayRef sizes, at::TensorOptions options) override {
    note("allocate", sizes).wait();
    return at::zeros(sizes, options);
  }
  bool shares_memory() const override { return true; }
  at::Tensor allocate_shared(at::IntArrayRef sizes, at::TensorOptions options) override {
    note("allocate_shared", sizes).wait();
    return at::zeros(sizes, options);
  }
  const FlightRecorder& recorder() const override { return recorder_; }

  std::string asked() { return std::exchange(asked_, ""); }

 private:
  template <class... Arguments>
  Work note(const char* operation, const Arguments&... arguments) {
    std::ostringstream text;
    text << operation;
    (write(text << ' ', arguments), ...);
    asked_ = text.str();
    return Work();
  }
  template <class T>
  static void write(std::ostream& text, const T& value) {
    text << value;
  }
  static void write(std::ostream& text, const at::Tensor& tensor) { text << '<' << tensor.numel() << '>'; }

  std::string name_ = "scribe", asked_;
  FlightRecorder recorder_;
};

class Plain final : public Decorator {
 public:
  using Decorator::Decorator;
  using Decorator::inner;

 private:
  CommunicatorPtr wrap(CommunicatorPtr child) override { return std::make_shared<Plain>(std::move(child)); }
};

class Decorated : public ::testing::Test {
 protected:
  std::shared_ptr<Scribe> scribe_ = std::make_shared<Scribe>();
  const CommunicatorPtr group_ = std::make_shared<Plain>(scribe_);
  at::Tensor one_ = at::zeros({1}), two_ = at::zeros({2});
};

TEST_F(Decorated, HasThePlaceOfTheInnerOne) {
  EXPECT_EQ(group_->rank(), 2);
  EXPECT_EQ(group_->size(), 5);
  EXPECT_EQ(group_->name(), "scribe");
  EXPECT_TRUE(group_->shares_memory());
  EXPECT_EQ(&group_->recorder(), &scribe_->recorder());
}

TEST_F(Decorated, PassesEveryOperationOnWithItsArguments) {
  const auto asked = [&](Work work) {
    work.wait();
    return scribe_->asked();
  };
  EXPECT_EQ(asked(group_->broadcast(one_, 3)), "broadcast <1> 3");
  EXPECT_EQ(asked(group_->reduce(one_, Reduction::kMin, 4)), "reduce <1> min 4");
  EXPECT_EQ(asked(group_->all_reduce(one_, Reduction::kMax)), "all_reduce <1> max");
  EXPECT_EQ(asked(group_->reduce_scatter(one_, two_, Reduction::kSum, {7})), "reduce_scatter <1> <2> sum [7]");
  EXPECT_EQ(asked(group_->all_gather(two_, one_, {8, 9})), "all_gather <2> <1> [8, 9]");
  EXPECT_EQ(asked(group_->gather(two_, one_, 3, {8})), "gather <2> <1> 3 [8]");
  EXPECT_EQ(asked(group_->scatter(one_, two_, 3, {8})), "scatter <1> <2> 3 [8]");
  EXPECT_EQ(asked(group_->all_to_all(one_, two_, {5}, {6})), "all_to_all <1> <2> [5] [6]");
  EXPECT_EQ(asked(group_->send(one_, 3, 11)), "send <1> 3 11");
  EXPECT_EQ(asked(group_->recv(one_, 4, 12)), "recv <1> 4 12");
  EXPECT_EQ(asked(group_->barrier(Seconds(2))), "barrier 2");
  EXPECT_EQ(asked(group_->barrier()), "barrier 0");
}

TEST_F(Decorated, PassesBodiesOn) {
  bool ran = false;
  group_->run({.op = Op::kCustom}, [&] { ran = true; }).wait();
  EXPECT_TRUE(ran);
  EXPECT_EQ(scribe_->asked(), "run custom operation");
}

TEST_F(Decorated, AllocatesFromTheInnerOne) {
  EXPECT_EQ(group_->allocate({3, 2}, at::kDouble).numel(), 6);
  EXPECT_EQ(scribe_->asked(), "allocate [3, 2]");
  EXPECT_EQ(group_->allocate_shared({5}, at::kDouble).numel(), 5);
  EXPECT_EQ(scribe_->asked(), "allocate_shared [5]");
}

TEST_F(Decorated, DecoratesItsGroups) {
  const auto child = group_->split(1, 7);
  EXPECT_EQ(scribe_->asked(), "split 1 7");
  const auto decorated = std::dynamic_pointer_cast<Plain>(child);
  ASSERT_NE(decorated, nullptr);
  EXPECT_NE(decorated->inner(), scribe_);
  EXPECT_EQ(group_->split(-1, 0), nullptr) << "no group, nothing to decorate";
}

}  // namespace
}  // namespace phalanx
