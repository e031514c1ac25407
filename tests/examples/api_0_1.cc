// SPDX-License-Identifier: Apache-2.0
// Uses everything that the API of version 0.1 promises to programs (docs/cpp.md), on two ranks. It must go on compiling
// and running unchanged with all later versions until one that CHANGELOG.md lists as incompatible; additions go into a
// file of the version that makes them.
#include <phalanx/phalanx.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

namespace nn = torch::nn;
using phalanx::Axis;
using phalanx::Reduction;

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw phalanx::Error(std::string("not true: ") + what);
}

nn::Sequential make_model() { return nn::Sequential(nn::Linear(4, 8), nn::BatchNorm1d(8), nn::Linear(8, 1)); }

void backward(nn::Sequential& model) { model->forward(torch::randn({8, 4})).pow(2).mean().backward(); }

void use_world(phalanx::World& world) {
  require(world.size() == 2 && world.local_size() == 2 && world.local_rank() == world.rank(), "two ranks of one host");
  require(world.host() == 0 && world.hosts() == 1 && world.device().is_cpu(), "one host, and the CPU");
  phalanx::Communicator& ranks = world.communicator();
  torch::Tensor sum = torch::full({1}, ranks.rank() + 1.0F);
  phalanx::Work work = ranks.all_reduce(sum, Reduction::kSum);
  work.wait();
  require(sum.item<float>() == 3, "the sum of all ranks");
  const phalanx::CommunicatorPtr alone = world.group(/*color=*/world.rank(), /*key=*/0);
  require(alone->size() == 1, "a group of one rank");
  require(phalanx::World(alone).size() == 1, "a world of a group");
  const phalanx::Mesh mesh = world.mesh({{Axis::kData, 2}});
  require(mesh.group({Axis::kData})->size() == 2, "an axis of two ranks");
  require(world.shared_communicator()->size() == 2, "the communicator of the world");
  world.barrier();
}

void use_gradients(phalanx::World& world) {
  nn::Sequential model = make_model();
  phalanx::DistributedDataParallelOptions options;
  options.strategy = "auto";
  options.compression = "none";
  options.bucket_bytes = 1 << 20;
  options.find_unused_parameters = true;
  options.broadcast_buffers = true;
  options.uneven_inputs = true;
  options.divide_by_all_ranks = true;
  phalanx::DistributedDataParallel ddp(model, world, options);
  require(!ddp.strategy().empty(), "a strategy");
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < 2 + world.rank(); ++step) {
    optimizer.zero_grad();
    {
      const phalanx::NoSync scope = ddp.no_sync();
      backward(model);
    }
    backward(model);
    optimizer.step();
    ddp.after_step();
  }
  const int root = ddp.join();
  require(root == 1, "the rank with most steps");
  phalanx::broadcast_optimizer_state(optimizer, world, root);
  ddp.finish();
}

void use_files(phalanx::World& world, const std::string& folder) {
  nn::Sequential model = make_model();
  phalanx::DistributedDataParallel ddp(model, world, {.strategy = "local_sgd", .strategy_options = {{"every", "2"}}});
  torch::optim::Adam optimizer(model->parameters());
  backward(model);
  optimizer.step();
  ddp.after_step();
  phalanx::save(model, folder + "/model.pt", world);
  phalanx::save(optimizer, folder + "/adam.pt", world);
  phalanx::load(model, folder + "/model.pt", world);
  phalanx::load(optimizer, folder + "/adam.pt", world);
}

void use_shards(phalanx::World& world, const std::string& folder) {
  nn::Sequential model = make_model();
  phalanx::DistributedDataParallel ddp(model, world, {.strategy = "sharded"});
  phalanx::FusedOptimizer optimizer(ddp, "adamw", {.keys = {{"lr", "0.01"}}, .clip_norm = 1, .clip_value = 1});
  backward(model);
  optimizer.step();
  require(optimizer.gradient_norm() > 0 && optimizer.steps() == 1, "one step");
  optimizer.set_learning_rate(2 * optimizer.learning_rate());
  optimizer.zero_grad();
  phalanx::save(optimizer, folder + "/fused", world);
  phalanx::load(optimizer, folder + "/fused", world);
}

void use_data(phalanx::World& world) {
  phalanx::DistributedSampler sampler(10, world, {.seed = 1, .shuffle = false, .drop_last = true});
  sampler.set_epoch(3);
  require(sampler.epoch() == 3 && sampler.next(2)->size() == 2, "the first batch of epoch 3");
  sampler.reset();
  require(sampler.epoch() == 4, "the next epoch");
}

void use_servers(phalanx::World& world) {
  phalanx::ParameterServers servers(world, {.servers = 1, .timeout = std::chrono::seconds(30)});
  phalanx::ps::Table table = servers.client().create({.name = "w", .elements = 3, .rules = {"{name: add, factor: 1}"}});
  servers.client().push(table, torch::ones({3}), {.rule = 0}).wait();
  world.barrier();
  torch::Tensor values = torch::zeros({3});
  servers.client().pull(table, values).wait();
  require(values[2].item<float>() == 2, "the updates of both ranks");
  world.barrier();
}

void use_errors() {
  try {
    phalanx::init({.init_method = "nowhere"});
  } catch (const phalanx::ConfigError& error) {
    require(std::string(error.what()).find("nowhere") != std::string::npos, "an error that names the mistake");
    return;
  }
  throw phalanx::Error("an unknown init method must be refused");
}

}  // namespace

int main(int, char** argv) {
  const std::string folder = argv[1];
  const auto run = [&](phalanx::World& world) {
    use_world(world);
    use_gradients(world);
    use_files(world, folder);
    use_shards(world, folder);
    use_data(world);
    use_servers(world);
    use_errors();
    if (world.rank() == 0) std::cout << "version " << phalanx::library_version() << std::endl;
  };
  phalanx::launch(2, run, {.backend = "auto", .timeout = std::chrono::minutes(1)});
}
