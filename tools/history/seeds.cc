// SPDX-License-Identifier: Apache-2.0
#include "tools/history/seeds.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/quantile.h"

namespace phalanx::history {
namespace {

constexpr std::string_view kSeed = "-seed=";  // as regress names the cases of a matrix

// Returns the name without its seed, or an empty string if it has none.
std::string without_seed(const std::string& name) {
  const auto begin = name.find(kSeed);
  if (begin == std::string::npos) return "";
  const auto end = std::min(name.find('-', begin + kSeed.size()), name.size());
  return name.substr(0, begin) + name.substr(end);
}

bool is_learned(const MetricName& metric) { return metric.split != "run" && metric.split != "case"; }

// Series of different seeds, which have the same hardware.
using Group = std::vector<const Series*>;

Series mean_of(const std::string& name, const Group& group) {
  Series mean = *group.front();
  mean.case_name = name + " over " + std::to_string(group.size()) + " seeds";
  mean.nights.clear();
  for (const Night& night : group.front()->nights) {
    Night all = night;
    double sum = 0;
    std::size_t found = 0;
    for (const Series* one : group) {
      const auto same = std::ranges::find(one->nights, night.session, &Night::session);
      if (same == one->nights.end()) continue;
      sum += median(same->values);
      ++found;
    }
    if (found < group.size()) continue;
    all.values = {sum / static_cast<double>(found)};
    mean.nights.push_back(std::move(all));
  }
  return mean;
}

}  // namespace

std::vector<Series> average_over_seeds(std::vector<Series> all) {
  std::map<std::pair<std::string, std::string>, Group> groups;  // by name without seed and metric
  const auto key_of = [](const Series& one) { return std::pair(without_seed(one.case_name), to_text(one.metric)); };
  const auto may_be_averaged = [&](const Series& one) {
    return is_learned(one.metric) && !without_seed(one.case_name).empty();
  };
  for (const auto& one : all) {
    if (!may_be_averaged(one)) continue;
    Group& group = groups[key_of(one)];
    if (group.empty() || (group.front()->hardware == one.hardware && group.front()->cores == one.cores)) {
      group.push_back(&one);
    }
  }
  std::vector<Series> result;
  for (const auto& one : all) {
    const auto group = may_be_averaged(one) ? groups.find(key_of(one)) : groups.end();
    if (group == groups.end() || group->second.size() == 1 ||
        std::ranges::find(group->second, &one) == group->second.end()) {
      result.push_back(one);
    } else if (group->second.front() == &one) {
      result.push_back(mean_of(group->first.first, group->second));
    }
  }
  return result;
}

}  // namespace phalanx::history
