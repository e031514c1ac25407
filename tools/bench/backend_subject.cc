// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "framework/collectives/algorithm.h"
#include "framework/comm/operations/arguments.h"
#include "tools/bench/subject.h"
#include "tools/bench/timed.h"

namespace phalanx::bench {
namespace {

/// The tensors of a case, and its operations.
class BackendBench {
 public:
  BackendBench(CommunicatorPtr world, const Case& what, c10::Device device) : world_(std::move(world)) {
    const Sizes sizes = sizes_of(what, world_->size());
    const auto kind = at::device(device).dtype(at::kFloat);
    const auto tensor = [&](std::int64_t elements) {
      return what.memory == "registered" ? world_->allocate({elements}, kind) : at::zeros({elements}, kind);
    };
    const Op op = find_operation(what.op).op;
    const bool many_to_part = op == Op::kReduceScatter || op == Op::kScatter;
    const bool part_to_many = op == Op::kAllGather || op == Op::kGather;
    output_ = tensor(many_to_part ? sizes.part : sizes.whole);
    if (many_to_part || op == Op::kAllToAll) input_ = tensor(sizes.whole);
    if (part_to_many) input_ = tensor(sizes.part);
  }

  Operation operation(Op op) const {
    switch (op) {
      case Op::kBroadcast:
        return checked_broadcast(*world_, output_, kRoot);
      case Op::kReduce:
        return checked_reduce(*world_, output_, Reduction::kSum, kRoot);
      case Op::kAllReduce:
        return checked_all_reduce(*world_, output_, Reduction::kSum);
      case Op::kReduceScatter:
        return checked_reduce_scatter(*world_, output_, input_, Reduction::kSum, {});
      case Op::kAllGather:
        return checked_all_gather(*world_, output_, input_, {});
      case Op::kGather:
        return checked_gather(*world_, output_, input_, kRoot, {});
      case Op::kScatter:
        return checked_scatter(*world_, output_, input_, kRoot, {});
      case Op::kAllToAll:
        return checked_all_to_all(*world_, output_, input_, {}, {});
      case Op::kBarrier:
        return {.call = {.op = op}};
      default:
        throw std::logic_error("not a collective: " + std::string(to_string(op)));
    }
  }

  // Launches the operation as the functions of Communicator do, checks included.
  Work launch(Op op) const { return world_->launch(operation(op)); }

  // Ranks 2k and 2k + 1 are partners. If the number of ranks is odd, the last one has no partner.
  void round_trip() const {
    const int rank = world_->rank(), partner = rank ^ 1;
    if (partner >= world_->size()) return;
    if (rank < partner) world_->send(output_, partner).wait();
    world_->recv(output_, partner).wait();
    if (rank > partner) world_->send(output_, partner).wait();
  }

  const CommunicatorPtr& world() const { return world_; }

 private:
  CommunicatorPtr world_;
  at::Tensor output_, input_;
};

Measure measured(const BackendBench& bench, const Case& what) {
  if (what.op == "send_recv") return timed_round_trips([bench] { bench.round_trip(); });
  if (what.op == "launch") {
    const auto work = std::make_shared<Work>();
    return timed_launches([bench, work] { *work = bench.launch(Op::kAllReduce); }, [work] { work->synchronize(); });
  }
  const Op op = find_operation(what.op).op;
  if (what.algorithm == "native") return timed([bench, op] { bench.launch(op).synchronize(); });
  const Algorithm& algorithm = Algorithms::global().find(op, what.algorithm);
  return timed([world = bench.world(), &algorithm, operation = bench.operation(op)] {
    launch(world, algorithm, operation).wait();
  });
}

class BackendSubject final : public Subject {
 public:
  BackendSubject(const std::string& name, CommunicatorPtr world, std::vector<std::string> algorithms,
                 c10::Device device)
      : name_(name), world_(std::move(world)), algorithms_(std::move(algorithms)), device_(device) {}

  std::string name() const override { return name_; }
  int size() const override { return world_->size(); }

  std::vector<std::string> algorithms(const std::string& op) const override {
    std::vector<std::string> all;
    for (const auto& name : algorithms_) {
      if (name != "all") all.push_back(name);
      if (name != "all") continue;
      all.emplace_back("native");
      for (const auto* algorithm : Algorithms::global().of(find_operation(op).op)) all.push_back(algorithm->name);
    }
    return all;
  }

  std::string absent(const Case& what) const override {
    if (what.op == "send_recv" && size() < 2) return "needs two ranks";
    if (what.algorithm == "native") return "";
    const auto all = Algorithms::global().of(find_operation(what.op).op);
    const auto found = std::ranges::find(all, what.algorithm, &Algorithm::name);
    if (found == all.end()) return "there is no such algorithm for this operation";
    if ((*found)->only_private_memory && what.memory != "private") return "differs from native in private memory only";
    const BackendBench bench(world_, {.op = what.op, .bytes = what.bytes}, device_);
    const bool possible = suits(**found, *world_, bench.operation((*found)->op));
    return possible ? "" : "the algorithm does not suit this group or size";
  }

  std::unique_ptr<Trial> prepare(const Case& what) override {
    const BackendBench bench(world_, what, device_);
    return make_trial([world = world_] { world->barrier().wait(); }, measured(bench, what));
  }

 private:
  std::string name_;
  CommunicatorPtr world_;
  std::vector<std::string> algorithms_;
  c10::Device device_;
};

}  // namespace

std::unique_ptr<Subject> make_backend_subject(const std::string& name, CommunicatorPtr world,
                                              std::vector<std::string> algorithms, c10::Device device) {
  return std::make_unique<BackendSubject>(name, std::move(world), std::move(algorithms), device);
}

}  // namespace phalanx::bench
