// SPDX-License-Identifier: Apache-2.0
#include "framework/base/config/suggest.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "framework/base/config/keys.h"
#include "framework/base/text.h"

namespace phalanx::config {
namespace {

// Names that PyTorch, Lightning, Hugging Face and DeepSpeed use.
constexpr std::array kSynonyms = {
    std::pair{"learning_rate", "lr"},
    std::pair{"wd", "weight_decay"},
    std::pair{"num_gpus", "ranks"},
    std::pair{"nproc_per_node", "ranks"},
    std::pair{"world_size", "ranks"},
    std::pair{"gradient_accumulation_steps", "accumulate"},
    std::pair{"max_grad_norm", "clip_norm"},
    std::pair{"gradient_clip_val", "clip_norm"},
    std::pair{"float32", "fp32"},
    std::pair{"float16", "fp16"},
    std::pair{"half", "fp16"},
    std::pair{"bfloat16", "bf16"},
    std::pair{"gpu", "cuda"},
    std::pair{"ddp", "all_reduce"},
    std::pair{"fsdp", "sharded"},
    std::pair{"zero", "sharded"},
};

std::string normalized(std::string word) {
  for (char& c : word) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return word;
}

}  // namespace

std::string suggest(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string wanted = normalized(word);
  for (const auto& [synonym, ours] : kSynonyms) {
    if (wanted == synonym && std::ranges::count(candidates, ours) > 0) return ours;
  }
  return nearest(word, candidates);
}

std::string suggest_path(const std::string& key, const std::vector<std::string>& paths) {
  if (std::ranges::count(paths, key) > 0) return key;
  std::vector<std::string> last_keys;
  for (const auto& path : paths) last_keys.push_back(last_key(path));
  const std::string meant = std::ranges::count(last_keys, key) > 0 ? key : suggest(key, last_keys);
  const std::string* best = nullptr;
  const auto depth = [](const std::string& path) { return std::ranges::count(path, '.'); };
  for (const auto& path : paths) {
    if (last_key(path) == meant && (!best || depth(path) < depth(*best))) best = &path;
  }
  return best ? *best : "";
}

}  // namespace phalanx::config
