// SPDX-License-Identifier: Apache-2.0
// Tests the initial values of runs for which `init` names a file, and frozen parameters.
#include <ATen/TensorOperators.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <string>

#include "engine/checkpoint/folder.h"
#include "engine/testing/run.h"
#include "framework/base/storage/weights_file.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using testing::Changes;
using ::testing::Each;
using testing::final_weights;
using testing::Finished;
using ::testing::HasSubstr;
using testing::new_folder;
using testing::new_path;
using testing::relative_difference;
using testing::run_tiny;

using ByName = std::map<std::string, at::Tensor>;

ByName tensors_in(const std::string& file) {
  const NamedTensors all = load_weights(file);
  return {all.begin(), all.end()};
}

// Returns the path of the weights of a run with three hidden layers: fc1 to fc4.
const std::string& pretrained() {
  static const std::string file = [] {
    const auto run = run_tiny(1, new_folder(), {"model.hidden=[16, 16, 16]", "seed=11"});
    EXPECT_THAT(run.errors, Each(""));
    return run.folder.weights();
  }();
  return file;
}

Finished run_initialized(int ranks, const Changes& changes) {
  Changes all{"model.hidden=[16, 16, 16]", "init.from=" + pretrained()};
  all.insert(all.end(), changes.begin(), changes.end());
  return run_tiny(ranks, new_folder(), all);
}

std::string error_of(const Changes& changes) {
  Changes all{"train.max_steps=1"};
  all.insert(all.end(), changes.begin(), changes.end());
  return run_initialized(1, all).errors.at(0);
}

std::string first_name() { return load_weights(pretrained()).front().first; }
std::string layer_of(const std::string& name) { return name.substr(0, name.rfind('.')); }

std::string written(const NamedTensors& tensors, const std::string& extension = ".safetensors") {
  const std::string path = new_path() + extension;
  save_weights(path, tensors);
  return path;
}

TEST(InitialWeights, ARunStartsWithThemInAnyFormatOnAnyMesh) {
  // One step with a learning rate of nearly zero.
  const Changes still{"train.max_steps=1", "optimizer.lr=1e-20", "optimizer.momentum=0"};
  const std::string torch = written(load_weights(pretrained()), ".pt");
  const at::Tensor expected =
      final_weights(Finished{.folder = RunFolder(std::filesystem::path(pretrained()).parent_path()),
                             .results = {},
                             .weights = {},
                             .errors = {},
                             .began_after = {}});
  for (const Changes& mesh :
       {Changes{"init.from=" + torch}, Changes{"strategy=sharded"}, Changes{"strategy={name: sharded, stage: 3}"},
        Changes{"mesh.pipe=2", "pipeline.micro_batches=2"},
        Changes{"mesh.tensor=2", "plan=[{layers: " + layer_of(first_name()) + ", style: column_gathered}]"}}) {
    Changes changes = still;
    changes.insert(changes.end(), mesh.begin(), mesh.end());
    const auto finished = run_initialized(2, changes);
    ASSERT_THAT(finished.errors, Each("")) << mesh[0];
    EXPECT_TRUE(at::equal(final_weights(finished), expected)) << mesh[0];
  }
}

TEST(InitialWeights, FrozenParametersStayAndTheOthersAreTrainedTheSameWithAnyStrategy) {
  const std::string layer = layer_of(first_name());
  const std::string freeze = "init.freeze=^" + layer + "\\.";
  const ByName before = tensors_in(pretrained());
  const auto one = run_initialized(1, {freeze});
  ASSERT_THAT(one.errors, Each(""));
  for (const auto& [name, tensor] : tensors_in(one.folder.weights())) {
    EXPECT_EQ(at::equal(tensor, before.at(name)), layer_of(name) == layer) << name;
  }
  for (const Changes& how :
       {Changes{"strategy=all_reduce"}, Changes{"strategy=overlapped"}, Changes{"strategy=sharded"},
        Changes{"strategy={name: sharded, stage: 2}"}, Changes{"strategy={name: sharded, stage: 3}"},
        Changes{"mesh.pipe=2", "pipeline.micro_batches=2", "pipeline.cut=[fc3]"}, Changes{"train.data_parallel=2"},
        Changes{"train.accumulate=2"},
        Changes{"mesh.tensor=2", "plan=[{layers: " + layer + ", style: column_gathered}]"}}) {
    Changes changes{freeze};
    changes.insert(changes.end(), how.begin(), how.end());
    const auto two = run_initialized(2, changes);
    ASSERT_THAT(two.errors, Each("")) << how[0];
    EXPECT_LT(relative_difference(final_weights(two), final_weights(one)), 1e-5) << how[0];
  }
}

TEST(InitialWeights, EachRankOfAPipelineNeedsSomethingToTrain) {
  const auto finished = run_initialized(2, {"init.freeze=^fc[12]", "mesh.pipe=2", "pipeline.cut=[fc3]"});
  EXPECT_THAT(finished.errors, Each(HasSubstr("the stages of rank 0 of the pipeline have no parameters to train")));
}

TEST(InitialWeights, FrozenParametersAreSavedAndACheckpointTakesPrecedenceOverTheFile) {
  const std::string layer = layer_of(first_name());
  for (const Changes& how : {Changes{"strategy=sharded"},
                             Changes{"mesh.tensor=2", "plan=[{layers: " + layer + ", style: column_gathered}]"}}) {
    Changes changes{"model.hidden=[16, 16, 16]", "init.freeze=^" + layer + "\\.", "checkpoint.every_steps=3"};
    changes.insert(changes.end(), how.begin(), how.end());
    Changes begun = changes;
    begun.push_back("init.from=" + pretrained());
    const auto whole = run_tiny(2, new_folder(), begun);
    ASSERT_THAT(whole.errors, Each("")) << how[0];
    // The file of init.from does not even exist.
    Changes resumed = changes;
    resumed.insert(resumed.end(), {"init.from=" + new_path() + ".pt",
                                   "checkpoint.resume=" + CheckpointFolder(whole.folder.checkpoints()).final_path(9)});
    const auto again = run_tiny(2, new_folder(), resumed);
    ASSERT_THAT(again.errors, Each("")) << how[0];
    EXPECT_EQ(again.began_after, (std::vector<std::int64_t>{9, 9}));
    EXPECT_TRUE(at::equal(final_weights(again), final_weights(whole))) << how[0];
  }
}

TEST(InitialWeights, ConvertsFloatingPointNumbersAndRenames) {
  NamedTensors wide;
  for (const auto& [name, tensor] : load_weights(pretrained()))
    wide.emplace_back("net." + name, tensor.to(at::kDouble));
  const std::string file = written(wide, ".pt");
  const std::string frozen = "init.freeze=" + first_name();
  const auto finished = run_initialized(1, {"init.from=" + file, "init.rename=[{match: '^net\\.', with: ''}]", frozen});
  ASSERT_THAT(finished.errors, Each(""));
  EXPECT_TRUE(
      at::equal(tensors_in(finished.folder.weights()).at(first_name()), tensors_in(pretrained()).at(first_name())));
}

// The file has the names that DistributedDataParallel around torch.compile gives, and a tied weight under a second
// name.
TEST(InitialWeights, LoadsWeightsOfPyTorchWithWrappersAndTiedWeights) {
  NamedTensors wrapped;
  const NamedTensors all = load_weights(pretrained());
  for (const auto& [name, tensor] : all) wrapped.emplace_back("module._orig_mod." + name, tensor);
  wrapped.emplace_back("module._orig_mod.lm_head.weight", all.front().second.clone());
  const std::string frozen = "init.freeze=" + first_name();
  const auto finished = run_initialized(1, {"init.from=" + written(wrapped), frozen});
  ASSERT_THAT(finished.errors, Each(""));
  EXPECT_TRUE(at::equal(tensors_in(finished.folder.weights()).at(first_name()), all.front().second));
  wrapped.back().second.view(-1)[0] += 1;
  EXPECT_THAT(error_of({"init.from=" + written(wrapped)}), HasSubstr("1 unexpected (lm_head.weight)"));
}

// The file has weights of 20 classes for a model of 10, similar to positions of a longer context.
TEST(InitialWeights, TruncatedParametersTakeTheFirstRows) {
  NamedTensors longer = load_weights(pretrained());
  for (auto& [name, tensor] : longer) {
    if (name.starts_with("fc4")) tensor = at::concat({tensor, tensor + 1});
  }
  const std::string from = "init.from=" + written(longer);
  EXPECT_THAT(error_of({from}), HasSubstr("init.truncate to take only the first positions"));
  EXPECT_THAT(error_of({from, "init.truncate=fc5"}), HasSubstr("init.truncate: \"fc5\" matches no parameter"));
  EXPECT_THAT(error_of({from, "init.truncate='('"}), HasSubstr("init.truncate: \"(\" is not a regular expression"));
  const auto finished = run_initialized(1, {from, "init.truncate=^fc4", "init.freeze=fc4"});
  ASSERT_THAT(finished.errors, Each(""));
  for (const char* name : {"fc4.weight", "fc4.bias"}) {
    EXPECT_TRUE(at::equal(tensors_in(finished.folder.weights()).at(name), tensors_in(pretrained()).at(name))) << name;
  }
}

TEST(InitialWeights, StrictNamesWhatDoesNotFitAndNotStrictLoadsTheRest) {
  NamedTensors changed = load_weights(pretrained());
  const std::string gone = changed.back().first, kept = changed.front().first;
  changed.pop_back();
  changed.back().second = at::zeros({3, 4});
  const std::string other = changed.back().first;
  changed.emplace_back("head.weight", at::zeros({2}));
  const std::string from = "init.from=" + written(changed);
  EXPECT_THAT(
      error_of({from}),
      AllOf(HasSubstr("init.from: "), HasSubstr("1 missing (" + gone + ")"), HasSubstr("1 unexpected (head.weight)"),
            HasSubstr("1 of another shape or type (" + other + ": Float [3, 4] in the file, Float ["),
            HasSubstr("set init.strict: false")));
  const auto finished = run_initialized(1, {from, "init.strict=false", "init.freeze=" + kept});
  ASSERT_THAT(finished.errors, Each(""));
  EXPECT_TRUE(at::equal(tensors_in(finished.folder.weights()).at(kept), changed.front().second));
}

TEST(InitialWeights, SaysWhatIsWrong) {
  EXPECT_THAT(error_of({"init.from=nowhere.pt"}), HasSubstr("init.from: nowhere.pt: no such file"));
  EXPECT_THAT(error_of({"init.freeze=backbone"}), HasSubstr("init.freeze: \"backbone\" matches no parameter"));
  EXPECT_THAT(error_of({"parameter_groups=[{match: bias, weight_decay_factor: 0}, {match: baised}]"}),
              HasSubstr("parameter_groups[1].match: \"baised\" matches no parameter of the model; the first one is "));
  EXPECT_THAT(error_of({"init.freeze=.*"}), HasSubstr("matches all parameters"));
  EXPECT_THAT(error_of({"init.freeze='('"}), HasSubstr("is not a regular expression"));
  EXPECT_THAT(error_of({"init.rename=[{match: '[', with: x}]"}), HasSubstr("init.rename: \"[\" is not a regular"));
  EXPECT_THAT(error_of({"init.rename=[{match: '.*', with: x}]"}), HasSubstr("would be called "));
  EXPECT_THAT(error_of({"init.strict=false", "init.from=" + written({{"else", at::full({1}, 1, at::kFloat)}})}),
              HasSubstr("fits the model"));
}

const std::string kLora = "lora={layers: ['fc[23]'], rank: 4, alpha: 8}";

TEST(Lora, InitiallyComputesTheModelWithoutAdapters) {
  const Changes still{"train.max_steps=1", "optimizer.lr=1e-30", "optimizer.momentum=0"};
  Changes adapted = still;
  adapted.push_back(kLora);
  const auto alone = run_initialized(1, still), with = run_initialized(1, adapted);
  ASSERT_THAT(with.errors, Each(""));
  EXPECT_EQ(alone.results[0].test, with.results[0].test);
}

TEST(Lora, TrainsOnlyTheAdaptersWithTheSameResultOnOneAndTwoRanks) {
  const auto one = run_initialized(1, {kLora});
  ASSERT_THAT(one.errors, Each(""));
  const ByName before = tensors_in(pretrained()), after = tensors_in(one.folder.weights());
  EXPECT_EQ(after.size(), before.size() + 4);
  for (const auto& [name, tensor] : before) EXPECT_TRUE(at::equal(after.at(name), tensor)) << name;
  EXPECT_EQ(after.at("fc2.lora_A.weight").sizes(), (std::vector<std::int64_t>{4, 16}));
  EXPECT_GT(after.at("fc3.lora_B.weight").abs().max().item<float>(), 0);
  for (const Changes& how :
       {Changes{"strategy=all_reduce"}, Changes{"strategy={name: sharded, stage: 3}"}, Changes{"train.data_parallel=2"},
        Changes{"mesh.pipe=2", "pipeline.micro_batches=2", "pipeline.cut=[fc3]"}}) {
    Changes changes{kLora};
    changes.insert(changes.end(), how.begin(), how.end());
    const auto two = run_initialized(2, changes);
    ASSERT_THAT(two.errors, Each("")) << how[0];
    EXPECT_LT(relative_difference(final_weights(two), final_weights(one)), 1e-5) << how[0];
  }
}

TEST(Lora, TrainsAlsoTheParametersOfAlsoTrain) {
  const auto finished = run_initialized(1, {kLora, "lora.also_train=^fc4"});
  ASSERT_THAT(finished.errors, Each(""));
  const ByName after = tensors_in(finished.folder.weights());
  for (const auto& [name, tensor] : tensors_in(pretrained())) {
    EXPECT_EQ(at::equal(after.at(name), tensor), !name.starts_with("fc4")) << name;
  }
}

// Trains a model with experts, which the ranks of mesh.expert divide.
Finished run_experts(int ranks, const RunFolder& folder, const Changes& changes) {
  Changes all{"model={name: moe_gpt, layers: 2, heads: 2, width: 8, experts: 4}", "dataset=padded_tokens_under_test",
              "strategy=all_reduce", "checkpoint.every_steps=3"};
  all.insert(all.end(), changes.begin(), changes.end());
  return run_tiny(ranks, folder, all);
}

TEST(Frozen, ShardedExpertsStayFrozenAndTheOthersAreTrainedTheSame) {
  for (const Changes& frozen : {Changes{"init.freeze=\\.experts\\."}, Changes{"init.freeze=h\\.0\\..*\\.experts\\."},
                                Changes{"lora={layers: ['*attn.c_attn'], rank: 2}"},
                                Changes{"lora={layers: ['*.1.attn.c_proj'], rank: 2}", "lora.also_train=ln_f"},
                                Changes{"init.freeze=wte|wpe|\\.h\\."}}) {
    const auto one = run_experts(1, new_folder(), frozen);
    ASSERT_THAT(one.errors, Each("")) << frozen[0];
    for (const auto& [ranks, mesh] : {std::pair(2, "mesh.expert=2"), std::pair(4, "mesh={data: 2, expert: 2}")}) {
      Changes changes = frozen;
      changes.emplace_back(mesh);
      const auto several = run_experts(ranks, new_folder(), changes);
      ASSERT_THAT(several.errors, Each("")) << frozen[0] << ' ' << mesh;
      EXPECT_LT(relative_difference(final_weights(several), final_weights(one)), 1e-5) << frozen[0] << ' ' << mesh;
      changes.push_back("checkpoint.resume=" + CheckpointFolder(several.folder.checkpoints()).final_path(9));
      const auto again = run_experts(ranks, new_folder(), changes);
      ASSERT_THAT(again.errors, Each("")) << frozen[0] << ' ' << mesh;
      EXPECT_EQ(again.began_after.at(0), 9);
      EXPECT_TRUE(at::equal(final_weights(again), final_weights(several))) << frozen[0] << ' ' << mesh;
    }
  }
}

TEST(Lora, SaysWhatIsWrong) {
  EXPECT_THAT(error_of({"lora.layers=['attn*']"}), HasSubstr("lora.layers: \"attn*\" matches no linear layer"));
  EXPECT_THAT(error_of({"lora.layers=[fc1]", "lora.also_train=.*"}), HasSubstr("lora.also_train: "));
  EXPECT_THAT(error_of({"lora.layers=[fc1]", "lora.rank=9223372036854775807"}),
              AllOf(HasSubstr("cannot make the adapters: "), HasSubstr("rank: 9223372036854775807")));
  for (const auto& error : run_initialized(2, {kLora, "mesh.tensor=2"}).errors)
    EXPECT_THAT(error, HasSubstr("has an adapter of lora"));
}

}  // namespace
}  // namespace phalanx
