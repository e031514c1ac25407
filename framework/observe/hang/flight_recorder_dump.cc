// SPDX-License-Identifier: Apache-2.0
// The format is defined in torch/csrc/distributed/c10d/FlightRecorder.hpp, version 2.
#include "framework/observe/hang/flight_recorder_dump.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/printable.h"
#include "framework/base/storage/unpickler.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

constexpr std::int64_t kMaxFileBytes = 256 << 20;
constexpr std::int64_t kMaxRanks = 1 << 20;
constexpr std::size_t kKeptOperations = 1000;  // of each rank, the last ones
constexpr std::size_t kShownTensors = 3;       // of an operation
constexpr std::size_t kShownRanks = 8;         // of a group
constexpr std::size_t kShownBytes = 200;       // of a name

// Values of a pickle may occur in it many times, so reads of them are counted.
constexpr std::uint64_t kFreeReads = 1 << 20;
constexpr std::uint64_t kMaxReads = 64;  // times the bytes of the pickle

// A value of a dump, which is checked when it is read. Errors name the file and the place in it.
class Value {
 public:
  struct Document {
    std::string source;
    std::uint64_t reads_left;
    Unpickled unpickled;
  };

  explicit Value(Document& document) : Value(document, "the dump", document.unpickled.root) {}

  [[noreturn]] void refuse(const std::string& why) const { throw DataError(document_->source + ": " + path_ + why); }

  std::optional<Value> find(std::string_view key) const {
    const auto& items = of_kind(PickleNode::kDict, "a dictionary").items;
    read(items.size());
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      if (items[i]->kind != PickleNode::kText || items[i]->text != key) continue;
      if (items[i + 1]->kind == PickleNode::kNone) return std::nullopt;
      return Value(*document_, path_ + ": " + std::string(key), items[i + 1]);
    }
    return std::nullopt;
  }

  Value at(std::string_view key) const {
    if (auto value = find(key)) return *std::move(value);
    refuse(" has no " + std::string(key) + "; is this a dump of PyTorch's flight recorder?");
  }

  // Returns the values of a dictionary, whatever their keys.
  std::vector<Value> values() const {
    const auto& items = of_kind(PickleNode::kDict, "a dictionary").items;
    read(items.size());
    std::vector<Value> values;
    for (std::size_t i = 1; i < items.size(); i += 2) {
      values.push_back(Value(*document_, path_ + "[" + std::to_string(i / 2) + "]", items[i]));
    }
    return values;
  }

  std::size_t size() const { return of_kind(PickleNode::kList, "a list").items.size(); }
  Value operator[](std::size_t index) const {
    if (index >= size()) refuse(" has no item " + std::to_string(index));
    read(1);
    return {*document_, path_ + "[" + std::to_string(index) + "]", node_->items[index]};
  }

  std::string text() const {
    const auto& text = of_kind(PickleNode::kText, "a text").text;
    read(text.size());
    return text;
  }
  std::int64_t integer() const { return of_kind(PickleNode::kInt, "an integer").integer; }
  double seconds(double unit) const { return static_cast<double>(integer()) * unit; }
  double number() const {
    if (node_->kind == PickleNode::kInt) return static_cast<double>(node_->integer);
    const double number = of_kind(PickleNode::kFloat, "a number").number;
    if (!std::isfinite(number)) refuse(" is not finite");
    return number;
  }

 private:
  Value(Document& document, std::string path, const PickleNode* node)
      : document_(&document), path_(std::move(path)), node_(node) {}

  const PickleNode& of_kind(PickleNode::Kind kind, const char* name) const {
    if (node_->kind != kind) refuse(std::string(" is not ") + name);
    return *node_;
  }
  void read(std::uint64_t amount) const {
    if (amount > document_->reads_left) refuse(" repeats its values more often than a dump does");
    document_->reads_left -= amount;
  }

  Document* document_;
  std::string path_;
  const PickleNode* node_;
};

std::string shortened(std::string text) {
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes) + "...";
  return printable(text);
}

std::string ranks_text(const std::vector<int>& ranks) {
  const auto shown = std::min(ranks.size(), kShownRanks), more = ranks.size() - shown;
  std::vector<std::string> words;
  for (std::size_t i = 0; i < shown; ++i) words.push_back(std::to_string(ranks[i]));
  return (ranks.size() == 1 ? "rank " : "ranks ") + join(words, ", ") +
         (more > 0 ? " and " + std::to_string(more) + " more" : "");
}

// Reads "[0, 1, 2]".
std::vector<int> ranks_in(const Value& value) {
  const std::string text = value.text();
  std::vector<int> ranks;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto take = [&](char wanted) { return at < end && *at == wanted && (++at, true); };
  bool good = take('[');
  while (good && !take(']')) {
    int rank = -1;
    const auto read = std::from_chars(at, end, rank);
    good = read.ec == std::errc() && rank >= 0 && rank < kMaxRanks;
    at = read.ptr;
    ranks.push_back(rank);
    if (take(',')) take(' ');
  }
  std::ranges::sort(ranks);
  if (!good || at != end || std::ranges::adjacent_find(ranks) != ranks.end()) value.refuse(" is not a list of ranks");
  return ranks;
}

struct Group {
  std::string name, description;
  std::vector<int> ranks;  // ascending; empty: unknown
  bool is_world() const { return description == "default_pg"; }
};

// The process groups of a job. Groups of different ranks may have the same name on different ranks.
class Groups {
 public:
  // Adds the groups of which one rank is a member.
  void add(const FlightRecorderDump& dump, const Value& content) {
    auto& groups = by_rank_[dump.rank];
    const auto config = content.find("pg_config");
    if (!config) return;
    for (const auto& entry : config->values()) {
      const Group group{.name = entry.at("name").text(),
                        .description = entry.at("desc").text(),
                        .ranks = ranks_in(entry.at("ranks"))};
      if (!group.ranks.empty()) size_ = std::max(size_, group.ranks.back() + 1);
      if (group.name.empty()) continue;  // Gloo's groups, all under one key, have no names yet when they are recorded
      if (group.is_world()) check_world(dump, group);
      groups[group.name] = group;
      auto& known = ranks_[group.name];
      if (std::ranges::find(known, group.ranks) == known.end()) known.push_back(group.ranks);
    }
  }

  // Returns the number of ranks of the job that is known so far.
  int size() const { return size_; }

  // Returns the group that a rank calls by this name. It does not move.
  const Group& find(int rank, const std::string& name, const std::string& description) {
    return by_rank_[rank].try_emplace(name, Group{.name = name, .description = description, .ranks = {}}).first->second;
  }

  // Returns the name that the whole job has for a group of find(): "world", "mesh_tp group 3" or "group 3". All groups
  // must have been added.
  const std::string& label(const Group& group) {
    auto& label = labels_[&group];
    if (label.empty()) label = make_label(group);
    return label;
  }

 private:
  std::string make_label(const Group& group) const {
    if (group.is_world()) return "world";
    const bool described = !group.description.empty() && group.description != "undefined";
    const std::string name = "group " + shortened(group.name);
    std::string label = (described ? shortened(group.description) + " " : "") + name;
    const auto same = ranks_.find(group.name);
    const auto other = [&](const auto& ranks) { return ranks != group.ranks; };
    if (same != ranks_.end() && std::ranges::any_of(same->second, other)) label += " of " + ranks_text(group.ranks);
    return label;
  }
  void check_world(const FlightRecorderDump& dump, const Group& group) {
    if (world_from_.empty()) {
      world_ = group;
      world_from_ = dump.source;
    } else if (world_.ranks != group.ranks) {
      throw DataError(dump.source + ": its job has " + std::to_string(group.ranks.size()) + " ranks, but the one of " +
                      world_from_ + " has " + std::to_string(world_.ranks.size()) + "; give the dumps of one job only");
    }
  }

  int size_ = 0;
  Group world_{};
  std::string world_from_{};
  std::map<int, std::map<std::string, Group>> by_rank_{};
  std::map<std::string, std::vector<std::vector<int>>> ranks_{};  // by name, what different ranks say
  std::map<const Group*, std::string> labels_{};                  // of groups in by_rank_
};

// Returns "[64, 10] Float, [10] Float and 5 more of 700 elements".
std::string tensors_text(const Value& sizes, const Value& dtypes) {
  std::vector<std::string> shown;
  std::int64_t hidden_elements = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Value shape = sizes[i];
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
std::string call_of(const std::string& op, const Value& entry) {
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
std::string place_of(const Value& entry) {
  const auto frames = entry.find("frames");
  if (!frames) return "";
  for (std::size_t i = 0; i < frames->size(); ++i) {
    const Value frame = (*frames)[i];
    const std::string file = frame.at("filename").text();
    const bool named = !file.empty() && !file.starts_with("?") && !file.starts_with("<");
    if (!named || file.starts_with("torch/") || file.find("-packages/torch/") != file.npos) continue;
    return printable(file) + ":" + std::to_string(frame.at("line").integer());
  }
  return "";
}

// An operation, and the group that its rank has named.
struct Recorded {
  PicturedOperation operation;
  const Group* group = nullptr;
  bool message = false;  // between two ranks
  bool done = false;
  bool ends_coalescing = false;  // the last entry of operations that were issued together, with their state
};

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

Recorded recorded_in(const Value& entry, Groups& groups, int rank) {
  const auto process_group = entry.at("process_group");
  const std::string full_name = entry.at("profiling_name").text();  // "nccl:all_reduce", "nccl:send 1->2"
  const auto colon = full_name.find(':');
  const std::string backend = full_name.substr(0, colon == full_name.npos ? 0 : colon);
  const std::string name = full_name.substr(colon == full_name.npos ? 0 : colon + 1);
  const std::string op = name.substr(0, name.find(' '));
  Recorded recorded{.operation = {},
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
  const std::string state = entry.at("state").text();
  if (state != "scheduled" && state != "started" && state != "completed") {
    entry.at("state").refuse(" is " + shortened(state) + ", not scheduled, started or completed");
  }
  // Gloo has no events that tell when an operation has started or is completed; it retires those that are completed.
  const auto retired = entry.find("retired");
  recorded.done = state == "completed" || (backend == "gloo" && retired && retired->integer() != 0);
  operation.state = recorded.done ? "done" : "launched";
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
  if (operation.started <= 0 && recorded.done) operation.started = operation.launched;
  return recorded;
}

// Adds an entry to the operation whose sequence number it shares, because they were issued together.
void coalesce(Recorded& to, Recorded&& next) {
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

std::deque<Recorded> operations_in(const Value& content, Groups& groups, int rank) {
  std::deque<Recorded> operations;
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

// Marks as running the oldest operation of each group that has not completed, for which the later ones wait.
void start_oldest(std::deque<Recorded>& operations) {
  std::map<std::pair<std::string, bool>, bool> started;
  for (auto& one : operations) {
    if (one.done || std::exchange(started[{one.operation.group, one.message}], true)) continue;
    one.operation.state = "running";
    if (one.operation.started <= 0) one.operation.started = one.operation.launched;
  }
}

Value::Document document_of(const FlightRecorderDump& dump) {
  return {.source = dump.source,
          .reads_left = kFreeReads + kMaxReads * dump.pickle.size(),
          .unpickled = unpickle_plain(dump.source, dump.pickle)};
}

void check_version(const Value& content) {
  const std::string version = content.at("version").text();
  if (!version.starts_with("2.")) {
    content.at("version").refuse(" is " + shortened(version) + "; only 2.x can be read");
  }
}

}  // namespace

FlightRecorderDump read_flight_recorder_dump(const std::string& path) {
  const auto digits = path.find_last_not_of("0123456789") + 1;
  FlightRecorderDump dump{.source = path};
  const char* const end = path.data() + path.size();
  const auto read = std::from_chars(path.data() + digits, end, dump.rank);
  if (read.ec != std::errc() || read.ptr != end || dump.rank >= kMaxRanks) {
    throw DataError(path + ": the name of a dump must end with the number of its rank, as in nccl_trace_rank_12");
  }
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
    if (status.st_size > kMaxFileBytes) throw DataError(path + ": is larger than " + format_bytes(kMaxFileBytes));
    dump.written = static_cast<double>(status.st_mtim.tv_sec) + static_cast<double>(status.st_mtim.tv_nsec) * 1e-9;
  }
  dump.pickle = read_file(path);
  return dump;
}

JobPicture picture_of_dumps(const std::vector<FlightRecorderDump>& dumps) {
  Groups groups;
  std::map<int, Value::Document> documents;  // by rank
  for (const auto& dump : dumps) {
    const auto [place, added] = documents.emplace(dump.rank, document_of(dump));
    if (!added) {
      throw DataError(dump.source + ": is a second dump of rank " + std::to_string(dump.rank) + ", besides " +
                      place->second.source);
    }
    const Value content(place->second);
    check_version(content);
    groups.add(dump, content);
  }
  JobPicture job{.size = groups.size(), .only_operations = true};
  for (auto& [rank, document] : documents) {
    auto operations = operations_in(Value(document), groups, rank);
    start_oldest(operations);
    RankPicture picture{.rank = rank};
    for (auto& one : operations) {
      if (!one.group->ranks.empty()) job.groups.try_emplace(one.operation.group, one.group->ranks);
      for (const double time : {one.operation.launched, one.operation.started, one.operation.finished}) {
        job.taken = std::max(job.taken, time);
      }
      picture.operations.push_back(std::move(one.operation));
    }
    job.ranks.push_back(std::move(picture));
    job.size = std::max(job.size, rank + 1);
  }
  for (const auto& dump : dumps) job.taken = std::max(job.taken, dump.written);
  for (auto& rank : job.ranks) rank.taken = job.taken;
  return job;
}

}  // namespace phalanx
