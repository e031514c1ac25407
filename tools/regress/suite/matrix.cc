// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/suite/matrix.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "framework/base/text.h"

namespace phalanx::regress {
namespace {

constexpr std::size_t kLongestName = 150;

// An axis whose name differs from the config key that it sets.
struct NamedAxis {
  const char* axis;
  const char* key;    // of configs
  const char* label;  // in names of cases
};

constexpr std::array<NamedAxis, 6> kNamed{{{"ranks", "launch.ranks", "ranks"},
                                           {kHosts, "", "hosts"},
                                           {"backends", "backend", "backend"},
                                           {"strategies", "strategy", "strategy"},
                                           {"meshes", "mesh", "mesh"},
                                           {"seeds", "seed", "seed"}}};

const NamedAxis* find_named(const std::string& axis) {
  const auto* found = std::ranges::find(kNamed, axis, &NamedAxis::axis);
  return found == kNamed.end() ? nullptr : found;
}

std::vector<std::string> in_order(const Axes& axes) {
  std::vector<std::string> order;
  for (const auto& named : kNamed) {
    if (axes.contains(named.axis)) order.emplace_back(named.axis);
  }
  for (const auto& [axis, values] : axes) {
    if (find_named(axis) == nullptr) order.push_back(axis);
  }
  return order;
}

bool matches(const ExclusionConfig& exclusion, const Combination& combination) {
  return std::ranges::all_of(exclusion.when, [&](const auto& condition) {
    const auto found = std::ranges::find(combination, condition.first, &Coordinate::axis);
    return found != combination.end() && std::ranges::count(condition.second.values, found->value) > 0;
  });
}

// Turns YAML into a word: "{name: sharded, stage: 3}" becomes "sharded.stage3".
std::string word_of(std::string yaml) {
  for (const char* name : {"{name: ", "name: "}) {
    if (const auto begin = yaml.find(name); begin != yaml.npos) yaml.erase(begin, std::string(name).size());
  }
  std::string word;
  for (std::size_t i = 0; i < yaml.size(); ++i) {
    const char c = yaml[i];
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-' || c == '+') {
      word += c;
    } else if (c == ',') {
      word += '.';
    } else if (c == '/') {
      word += '_';
    }
  }
  return word.empty() ? "none" : word;
}

// FNV-1a
std::string hash_of(const std::string& text) {
  std::uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return format_text("%08x", hash);
}

}  // namespace

std::string key_of_axis(const std::string& axis) {
  const NamedAxis* named = find_named(axis);
  return named ? named->key : axis;
}

std::vector<Combination> combinations(const Axes& axes, const std::vector<ExclusionConfig>& exclusions) {
  std::vector<Combination> all{{}};
  for (const auto& axis : in_order(axes)) {
    std::vector<Combination> longer;
    for (const auto& combination : all) {
      for (const auto& value : axes.at(axis).values) {
        longer.push_back(combination);
        longer.back().push_back({axis, value});
      }
    }
    all = std::move(longer);
  }
  std::erase_if(all, [&](const Combination& combination) {
    return std::ranges::any_of(exclusions, [&](const auto& exclusion) { return matches(exclusion, combination); });
  });
  return all;
}

std::vector<std::string> overrides_of(const Combination& combination) {
  std::vector<std::string> overrides;
  for (const auto& [axis, value] : combination) {
    if (const auto key = key_of_axis(axis); !key.empty()) overrides.push_back(key + "=" + value);
  }
  return overrides;
}

std::string name_of_case(const std::string& config_path, const std::string& label, const Combination& combination) {
  std::string name = std::filesystem::path(config_path).stem();
  if (!label.empty()) name += "-" + word_of(label);
  for (const auto& [axis, value] : combination) {
    const NamedAxis* named = find_named(axis);
    name += "-" + std::string(named ? named->label : axis) + "=" + word_of(value);
  }
  if (name.size() <= kLongestName) return name;
  const std::string hash = hash_of(name);
  return name.substr(0, kLongestName - hash.size() - 1) + "-" + hash;
}

}  // namespace phalanx::regress
