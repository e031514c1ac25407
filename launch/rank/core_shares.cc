// SPDX-License-Identifier: Apache-2.0
#include "launch/rank/core_shares.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "framework/base/cores.h"
#include "framework/base/error.h"
#include "framework/base/parts.h"

namespace phalanx {
namespace {

using Threads = std::vector<int>;

// Returns the first hardware thread of a core, which identifies the core: 0 for "0,4" or "0-1".
int first_sibling(int thread, const std::string& system) {
  std::ifstream file(system + "/devices/system/cpu/cpu" + std::to_string(thread) + "/topology/thread_siblings_list");
  int first = thread;
  return file >> first ? first : thread;
}

Threads threads_of(const std::vector<PhysicalCore>& cores) {
  Threads threads;
  for (const auto& core : cores) std::ranges::copy(core.threads, std::back_inserter(threads));
  return threads;
}

}  // namespace

std::vector<PhysicalCore> physical_cores(const Threads& threads, const std::string& system) {
  std::map<std::pair<int, int>, Threads> cores;  // keyed by node and first sibling
  for (const int thread : threads) cores[{numa_node(thread, system), first_sibling(thread, system)}].push_back(thread);
  std::vector<PhysicalCore> list;
  for (auto& [key, siblings] : cores) list.push_back({.node = key.first, .threads = std::move(siblings)});
  return list;
}

Threads own_cores(const std::vector<PhysicalCore>& cores, int rank, int ranks) {
  if (ranks <= std::ssize(cores)) return threads_of(part_of(cores, rank, ranks));
  const Threads threads = threads_of(cores);
  if (ranks <= std::ssize(threads)) return part_of(threads, rank, ranks);
  throw ConfigError("there are too few cores for " + std::to_string(ranks) + " ranks (" +
                    std::to_string(threads.size()) + ")");
}

Threads own_nodes(const std::vector<PhysicalCore>& cores, int rank, int ranks) {
  std::vector<int> nodes;
  for (const auto& core : cores) {
    if (nodes.empty() || nodes.back() != core.node) nodes.push_back(core.node);
  }
  const auto count = static_cast<int>(nodes.size());
  // If there are more ranks than nodes, neighboring ranks share a node.
  const auto mine = ranks < count ? part_of(nodes, rank, ranks) : part_of(nodes, rank * count / ranks, count);
  std::vector<PhysicalCore> there;
  std::ranges::copy_if(cores, std::back_inserter(there),
                       [&](const PhysicalCore& core) { return std::ranges::count(mine, core.node) > 0; });
  return threads_of(there);
}

std::string describe_cores(Threads threads) {
  std::ranges::sort(threads);
  std::string text;
  for (std::size_t first = 0, next = 0; first < threads.size(); first = next) {
    while (++next < threads.size() && threads[next] == threads[next - 1] + 1) {
    }
    text += (text.empty() ? "" : ",") + std::to_string(threads[first]);
    if (next - first > 1) text += "-" + std::to_string(threads[next - 1]);
  }
  return text;
}

}  // namespace phalanx
