#include "engine/experiment/evaluation.h"

#include <utility>

#include "datasets/prefetching_loader.h"
#include "datasets/subset.h"

namespace phalanx {

std::unique_ptr<Loader> make_split_loader(const std::shared_ptr<const Dataset>& split, std::int64_t global_batch,
                                          const ExperimentConfig& config, bool shuffle, const Communicator& group,
                                          std::shared_ptr<const std::vector<std::int64_t>> shares) {
  const bool invariant = config.determinism == "world_size_invariant";
  auto loader = make_loader(split, {.samples = split->size(),
                                    .global_batch = global_batch,
                                    .seed = config.seed,
                                    .shuffle = shuffle,
                                    .rank = group.rank(),
                                    .size = group.size(),
                                    .parts = invariant ? static_cast<int>(config.train.virtual_shards) : 0,
                                    .shares = std::move(shares)});
  const auto prefetch = config.loader.prefetch;
  return prefetch == 0 ? std::move(loader)
                       : make_prefetching(std::move(loader), prefetch, static_cast<int>(config.loader.threads));
}

Splits with_held_out(const Splits& splits, const ExperimentConfig& config) {
  const double share = config.evaluate.validation;
  return share > 0 ? hold_out(splits, share, config.seed) : splits;
}

Evaluation::Evaluation(const ExperimentConfig& config, const Splits& splits, const std::function<void(Batch&)>& prepare,
                       Step& step, const Mesh& mesh)
    : evaluator_(step), mesh_(mesh), meters_(config.evaluate.meters) {
  const auto add = [&](const char* name, const std::shared_ptr<const Dataset>& split) {
    if (!split) return;
    loaders_[name] = make_split_loader(split, config.evaluate.global_batch_size, config, false, *mesh_.samples());
    samples_[name] = split->size();
  };
  add("validation", splits.validation);
  add("test", splits.test);
  evaluator_.on(Event::kSample, [prepare](State& state) { prepare(state.batch); });
  evaluator_.on(Event::kForwardCriterion, [this](State& state) { meters_.add(state.batch, state.result); });
}

Readings Evaluation::run(const std::string& split, const State& state) {
  evaluator_.run(*loaders_.at(split), {.epoch = state.epoch, .step = state.step});
  return meters_.take(*mesh_.control(kBatchAxes));
}

}  // namespace phalanx
