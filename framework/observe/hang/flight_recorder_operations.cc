// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/hang/flight_recorder_operations.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "framework/base/printable.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

constexpr std::size_t kKeptOperations = 1000;  // of each rank, the last ones
constexpr std::size_t kShownTensors = 3;       // of an operation

// Returns "[64, 10] Float, [10] Float and 5 more of 700 elements".
std::string tensors_text(const DumpValue& sizes, const DumpValue& dtypes) {
  std::vector<std::string> shown;
  std::int64_t hidden_elements = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const DumpValue shape = sizes[i];
    std::vector<std::string> numbers;
    std::int64_t elements = 1;
    for (std::size_t j = 0; j < shape.size(); ++j) {
      const std::int64_t size = shape[j].integer();
      if (size < 0 || __builtin_mul_overflow(elements, size, &elements)) shape.refuse(" is not the shape of a tensor");
      if (i < kShownTensors) numbers.push_back(std::to_string(size));
    }
    if (i < kShownTensors) {
      shown.push_back("[" + join(numbers, ", ") + "]" + (i < dtypes.size() ? " " + shortened(dtypes[i].text()) : ""));
    } else if (__builtin_add_overflow(hidden_elements, elements, &hidden_elements)) {
      sizes.refuse(" has too many elements");
    }
  }
  std::string text = join(shown, ", ");
  if (sizes.size() > kShownTensors) {
    text += " and " + std::to_string(sizes.size() - kShownTensors) + " more of " + std::to_string(hidden_elements) +
            " elements";
  }
  return text;
}

// Describes what must be the same on all ranks: the operation and its tensors, except those that differ by rank.
std::string call_of(const std::string& op, const DumpValue& entry) {
  const bool any_sizes = op.starts_with("all_to_all") || op.starts_with("alltoall");
  const auto tensors = [&](const char* sizes, const char* dtypes) {
    return any_sizes ? "" : tensors_text(entry.at(sizes), entry.at(dtypes));
  };
  const std::string from = op == "scatter" ? "" : tensors("input_sizes", "input_dtypes");
  std::string to = op == "gather" ? "" : tensors("output_sizes", "output_dtypes");
  if (to == from) to.clear();
  return op + (from.empty() ? "" : " of " + from) + (to.empty() ? "" : " to " + to);
}

// Returns the file and line of the innermost frame that is not PyTorch's own.
std::string place_of(const DumpValue& entry) {
  const auto frames = entry.find("frames");
  if (!frames) return "";
  for (std::size_t i = 0; i < frames->size(); ++i) {
    const DumpValue frame = (*frames)[i];
    const std::string file = frame.at("filename").text();
    const bool named = !file.empty() && !file.starts_with("?") && !file.starts_with("<");
    if (!named || file.starts_with("torch/") || file.find("-packages/torch/") != file.npos) continue;
    return printable(file) + ":" + std::to_string(frame.at("line").integer());
  }
  return "";
}

// Reads the ranks of "send 1->2" or "recv 2<-1", which are ranks of the group. Returns the other one.
std::optional<int> peer_in(const std::string& op, const std::string& rest) {
  const std::string arrow = op == "send" ? "->" : "<-";
  const auto at = rest.find(arrow);
  if (at == rest.npos) return std::nullopt;
  int peer = -1;
  const char* const end = rest.data() + rest.size();
  const auto read = std::from_chars(rest.data() + at + arrow.size(), end, peer);
  if (read.ec != std::errc() || read.ptr != end || peer < 0) return std::nullopt;
  return peer;
}

bool is_done(const DumpValue& entry, const std::string& backend) {
  const std::string state = entry.at("state").text();
  if (state != "scheduled" && state != "started" && state != "completed") {
    entry.at("state").refuse(" is " + shortened(state) + ", not scheduled, started or completed");
  }
  // Gloo has no events that tell when an operation has started or is completed; it retires those that are completed.
  const auto retired = entry.find("retired");
  return state == "completed" || (backend == "gloo" && retired && retired->integer() != 0);
}

void read_times(const DumpValue& entry, bool done, PicturedOperation& operation) {
  constexpr double kNanosecond = 1e-9;
  const auto time = [&](const char* key) {
    const auto value = entry.find(key);
    return value ? value->seconds(kNanosecond) : 0;
  };
  operation.launched = entry.at("time_created_ns").seconds(kNanosecond);
  operation.started = time("time_discovered_started_ns");
  operation.finished = time("time_discovered_completed_ns");
  if (const auto duration = entry.find("duration_ms"); duration && operation.finished > 0) {
    operation.started = operation.finished - duration->number() * 1e-3;
  }
  if (operation.started <= 0 && done) operation.started = operation.launched;
}

DumpedOperation recorded_in(const DumpValue& entry, DumpGroups& groups, int rank) {
  const auto process_group = entry.at("process_group");
  const std::string full_name = entry.at("profiling_name").text();  // "nccl:all_reduce", "nccl:send 1->2"
  const auto colon = full_name.find(':');
  const std::string backend = full_name.substr(0, colon == full_name.npos ? 0 : colon);
  const std::string name = full_name.substr(colon == full_name.npos ? 0 : colon + 1);
  const std::string op = name.substr(0, name.find(' '));
  DumpedOperation recorded{.operation = {},
                           .group = &groups.find(rank, process_group[0].text(), process_group[1].text()),
                           .message = entry.at("is_p2p").integer() != 0,
                           .ends_coalescing = op == "coalesced"};
  const auto& ranks = recorded.group->ranks;
  if (!ranks.empty() && !std::ranges::binary_search(ranks, rank)) {
    process_group.refuse(" is " + groups.label(*recorded.group) + " of " + ranks_text(ranks) + ", not of rank " +
                         std::to_string(rank) + "; does the name of the file end with its rank?");
  }
  auto& operation = recorded.operation;
  operation.number = static_cast<std::uint64_t>(entry.at("record_id").integer());
  const auto sequence = entry.at(recorded.message ? "p2p_seq_id" : "collective_seq_id").integer();
  operation.sequence = static_cast<std::uint64_t>(std::max<std::int64_t>(sequence, 0));
  operation.group = groups.label(*recorded.group);
  operation.op = shortened(op);
  operation.place = place_of(entry);
  if (op == "send" || op == "recv") {
    const auto peer = peer_in(op, name.substr(std::min(name.size(), op.size())));
    if (peer && (ranks.empty() || static_cast<std::size_t>(*peer) < ranks.size())) {
      operation.peer = *peer;
      operation.call = op + (op == "send" ? "(to " : "(from ") +
                       std::to_string(ranks.empty() ? *peer : ranks[static_cast<std::size_t>(*peer)]) + ")";
    } else {
      operation.op = "messages";  // the peer is unknown
    }
  }
  if (operation.call.empty()) operation.call = call_of(operation.op, entry);
  recorded.done = is_done(entry, backend);
  operation.state = recorded.done ? "done" : "launched";
  read_times(entry, recorded.done, operation);
  return recorded;
}

// Adds an entry to the operation whose sequence number it shares, because they were issued together.
void coalesce(DumpedOperation& to, DumpedOperation&& next) {
  auto& operation = to.operation;
  if (next.ends_coalescing) {  // has the state of all
    operation.state = next.operation.state;
    operation.started = next.operation.started;
    operation.finished = next.operation.finished;
    to.done = next.done;
  } else {
    if (operation.call.size() < kShownBytes) operation.call += ", " + next.operation.call;
    to.done = to.done && next.done;
    if (!to.done) operation.state = "launched";
    operation.finished = to.done ? std::max(operation.finished, next.operation.finished) : 0;
  }
  operation.op = to.message ? "messages" : "coalesced";
  operation.peer = -1;
}

}  // namespace

std::deque<DumpedOperation> operations_in(const DumpValue& content, DumpGroups& groups, int rank) {
  std::deque<DumpedOperation> operations;
  const auto entries = content.find("entries");  // absent: the rank has recorded none
  if (!entries) return operations;
  for (std::size_t i = 0; i < entries->size(); ++i) {
    auto next = recorded_in((*entries)[i], groups, rank);
    const bool same = !operations.empty() && operations.back().group == next.group &&
                      operations.back().message == next.message &&
                      operations.back().operation.sequence == next.operation.sequence;
    if (same) {
      coalesce(operations.back(), std::move(next));
    } else {
      operations.push_back(std::move(next));
    }
    if (operations.size() > kKeptOperations) operations.pop_front();
  }
  return operations;
}

void start_oldest(std::deque<DumpedOperation>& operations) {
  std::map<std::pair<std::string, bool>, bool> started;
  for (auto& one : operations) {
    if (one.done || std::exchange(started[{one.operation.group, one.message}], true)) continue;
    one.operation.state = "running";
    if (one.operation.started <= 0) one.operation.started = one.operation.launched;
  }
}

}  // namespace phalanx
