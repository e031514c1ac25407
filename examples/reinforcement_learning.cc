// SPDX-License-Identifier: Apache-2.0
// Ranks play episodes of a game and train one policy. Episodes have different lengths, so the ranks finish different
// numbers of them; join() lets ranks that are done take part in the steps of the others.
// Two ranks: torchrun --nproc-per-node 2 --no-python reinforcement_learning
#include <phalanx/phalanx.h>
#include <torch/torch.h>

#include <cstdint>
#include <iostream>
#include <utility>
#include <vector>

namespace nn = torch::nn;

constexpr int kGoal = 8, kStart = 3;  // a corridor from 0, where the player loses, to the goal

struct Episode {
  torch::Tensor loss;  // its gradient is the REINFORCE estimate
  int moves = 0;
  bool won = false;
};

Episode play(nn::Sequential& policy) {
  Episode episode;
  std::vector<torch::Tensor> chosen;
  int place = kStart;
  for (; place > 0 && place < kGoal; ++episode.moves) {
    const torch::Tensor state = torch::one_hot(torch::tensor(place), kGoal).to(torch::kFloat);
    const torch::Tensor scores = policy->forward(state).log_softmax(0);  // log-probabilities of going left and right
    const auto move = scores.exp().multinomial(1).item<std::int64_t>();
    chosen.push_back(scores[move]);
    place += move == 1 ? 1 : -1;
  }
  episode.won = place == kGoal;
  episode.loss = (episode.won ? -1 : 1) * torch::stack(chosen).mean();
  return episode;
}

int main() {
  phalanx::World world = phalanx::init();
  nn::Sequential policy(nn::Linear(kGoal, 2));
  phalanx::DistributedDataParallel ddp(policy, world, {.uneven_inputs = true});
  torch::optim::SGD optimizer(policy->parameters(), 0.5);
  torch::manual_seed(10 + world.rank());
  for (int round = 1; round <= 5; ++round) {
    torch::Tensor played = torch::zeros({2}, torch::kLong);   // episodes, and episodes won
    for (int moves = 0; moves < 300 + 200 * world.rank();) {  // a budget of moves, not of episodes
      const Episode episode = play(policy);
      moves += episode.moves;
      played += torch::tensor({1, episode.won ? 1 : 0});
      optimizer.zero_grad();
      episode.loss.backward();
      optimizer.step();
    }
    ddp.join();
    world.communicator().all_reduce(played, phalanx::Reduction::kSum).wait();
    const auto [episodes, won] = std::pair(played[0].item<std::int64_t>(), played[1].item<std::int64_t>());
    if (world.rank() == 0) std::cout << "round " << round << ": won " << won << " of " << episodes << std::endl;
  }
}
