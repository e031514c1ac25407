// SPDX-License-Identifier: Apache-2.0
// ProcessGroupGloo is in LibTorch, and so is the Gloo that it calls. Only the headers are from the system's package,
// whose library is not called here.
#define USE_C10D_GLOO  // without it, ProcessGroupGloo.hpp is empty
#undef gloo  // may be a macro that gives the package's library another namespace, which LibTorch's does not have

#include "tools/bench_train/cpp/reducer_exchange.h"

#include <cstdlib>
#include <limits>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <tuple>

namespace phalanx::bench_train {
namespace {

using Gloo = c10d::ProcessGroupGloo;
using c10d::ProcessGroup;

c10::intrusive_ptr<ProcessGroup> connect_gloo(const LoopJob& job) {
  const auto store = c10::make_intrusive<c10d::FileStore>(job.store, job.size);
  const auto options = Gloo::Options::create();
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  options->devices = {interface ? Gloo::createDeviceForInterface(interface) : Gloo::createDefaultDevice()};
  auto group = c10::make_intrusive<ProcessGroup>(store, job.rank, job.size);
  group->setDefaultBackend(ProcessGroup::BackendType::GLOO);
  group->setBackend(c10::kCPU, ProcessGroup::BackendType::GLOO,
                    c10::make_intrusive<Gloo>(store, job.rank, job.size, options));
  return group;
}

// Begins with one bucket, which the Reducer divides after the first step, by the order in which gradients are ready.
std::unique_ptr<c10d::Reducer> make_reducer(const std::vector<at::Tensor>& parameters, bool views,
                                            const c10::intrusive_ptr<ProcessGroup>& group) {
  const std::vector<std::size_t> one_bucket{std::numeric_limits<std::int64_t>::max()};
  const std::vector<bool> sparse(parameters.size(), false);
  auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(parameters, one_bucket, sparse));
  return std::make_unique<c10d::Reducer>(parameters, std::move(buckets), group, sparse, c10d::kDefaultBucketBytesCap,
                                         /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/views,
                                         std::unordered_map<std::size_t, std::string>(), c10d::kDefaultFirstBucketBytes,
                                         /*skip_all_reduce_unused_params=*/false,
                                         /*use_python_reducer=*/false, std::vector<std::int64_t>());
}

class ReducerExchange final : public Exchange {
 public:
  ReducerExchange(const LoopJob& job, Network& network)
      : group_(connect_gloo(job)), reducer_(make_reducer(network.parameters(), job.has("views"), group_)) {}

  void before_forward() override {
    reducer_->prepare_for_forward();
    reducer_->rebuild_buckets();
  }
  void before_backward() override { reducer_->prepare_for_backward({}); }

  // Optimizer::zero_grad() detaches gradients in place, which views refuse.
  void zero_gradients(torch::optim::Optimizer& optimizer) override {
    for (auto& group : optimizer.param_groups()) {
      for (auto& parameter : group.params()) parameter.mutable_grad().reset();
    }
  }

 private:
  c10::intrusive_ptr<ProcessGroup> group_;
  std::unique_ptr<c10d::Reducer> reducer_;
};

}  // namespace

std::unique_ptr<Exchange> make_reducer_exchange(const LoopJob& job, Network& network) {
  return std::make_unique<ReducerExchange>(job, network);
}

}  // namespace phalanx::bench_train
