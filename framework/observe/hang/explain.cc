// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/hang/explain.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "framework/base/text.h"

namespace phalanx {
namespace {

using Process = RankPicture::Process;
using Ranks = std::vector<int>;

constexpr std::size_t kMaxNamed = 8;

std::string listed(std::vector<std::string> words, const std::string& separator = ", ") {
  if (words.size() <= kMaxNamed) return join(words, separator);
  const auto more = words.size() - kMaxNamed;
  words.resize(kMaxNamed);
  return join(words, separator) + " and " + std::to_string(more) + " more";
}

std::string named(const Ranks& ranks) {
  std::vector<std::string> numbers;
  for (const int rank : ranks) numbers.push_back(std::to_string(rank));
  return (ranks.size() == 1 ? "rank " : "ranks ") + listed(std::move(numbers));
}

std::string seconds(double time) { return format_text("%.0f s", std::floor(std::max(0.0, time))); }

std::string described(const PicturedOperation& operation) {
  const std::string& detail =
      operation.what.empty() && operation.op != operation.call ? operation.call : operation.what;
  return operation.name() + (detail.empty() ? "" : " (" + detail + ")");
}

std::string phrase(const std::string& activity) {
  static const std::map<std::string, std::string> kPhrases{{"forward", "in forward"},
                                                           {"backward", "in backward"},
                                                           {"update", "in the update"},
                                                           {"evaluation", "in an evaluation"},
                                                           {"hooks", "in hooks"}};
  const auto found = kPhrases.find(activity);
  return found == kPhrases.end() ? activity : found->second;
}

// Returns " of step 12" or " after step 12", if the activity belongs to a step.
std::string time_of(const RankPicture& rank) {
  static const std::set<std::string> kBetweenSteps{"hooks", "evaluation", "saving a checkpoint"};
  static const std::set<std::string> kWithin{"loading data", "forward", "backward", "update"};
  if (kBetweenSteps.contains(rank.activity)) return " after step " + std::to_string(rank.step);
  return kWithin.contains(rank.activity) ? " of step " + std::to_string(rank.step + 1) : "";
}

// The ranks of a job, divided into those that wait in an operation and the others.
class Scene {
 public:
  Scene(const JobPicture& job, double least_wait) : job_(job) {
    for (const auto& rank : job.ranks) {
      const auto* operation = current_operation(rank);
      const bool alive = rank.state == Process::kRuns || (rank.state == Process::kUnknown && operation != nullptr);
      if (alive && operation != nullptr && waited(rank) >= least_wait) waiting_.push_back(&rank);
    }
    for (int rank = 0; rank < job.size; ++rank) {
      if (std::ranges::find(waiting_, rank, &RankPicture::rank) == waiting_.end()) others_.push_back(rank);
    }
  }

  Standing standing() const {
    Standing ranks;
    for (const auto* rank : waiting_) ranks.waiting.push_back(rank->rank);
    if (const auto* first = first_with_awaited()) ranks.awaited = awaited_by(*first);
    return ranks;
  }

  std::string sentence() const {
    if (waiting_.empty()) return nobody_waits();
    if (others_.empty()) return all_wait();
    return some_wait();
  }

 private:
  double waited(const RankPicture& rank) const {
    const double since = rank.waiting_since > 0 ? rank.waiting_since : current_operation(rank)->started;
    return since > 0 ? job_.taken - since : 0;
  }

  double longest_wait() const {
    double longest = 0;
    for (const auto* rank : waiting_) longest = std::max(longest, waited(*rank));
    return longest;
  }

  bool waits(int rank) const { return std::ranges::find(waiting_, rank, &RankPicture::rank) != waiting_.end(); }

  // Returns the rank in the job of the peer of a message.
  int peer_of(const PicturedOperation& message) const {
    const auto members = job_.groups.find(message.group);
    const auto index = static_cast<std::size_t>(message.peer);
    const bool known = members != job_.groups.end() && message.peer >= 0 && index < members->second.size();
    return known ? members->second[index] : message.peer;
  }

  // Returns the ranks for which this one waits. In a group whose members are unknown, returns only ranks that have used
  // it.
  Ranks awaited_by(const RankPicture& rank) const {
    const auto& operation = *current_operation(rank);
    const auto known = job_.groups.find(operation.group);
    if (operation.is_message() && (operation.group == "world" || known != job_.groups.end())) {
      const int peer = peer_of(operation);
      return waits(peer) ? Ranks{} : Ranks{peer};
    }
    Ranks members;
    if (known != job_.groups.end()) {
      std::ranges::set_intersection(others_, known->second, std::back_inserter(members));
      return members;
    }
    for (const int other : others_) {
      const auto* picture = job_.find(other);
      const auto in_group = [&](const auto& record) { return record.group == operation.group; };
      if (picture != nullptr && std::ranges::any_of(picture->operations, in_group)) members.push_back(other);
    }
    return members.empty() || operation.group == "world" ? others_ : members;
  }

  // Returns the ranks that wait in the same operation as `first`.
  Ranks with(const RankPicture& first) const {
    Ranks ranks;
    for (const auto* rank : waiting_) {
      if (current_operation(*rank)->name() == current_operation(first)->name()) ranks.push_back(rank->rank);
    }
    return ranks;
  }

  std::string beginning(const Ranks& ranks, const RankPicture& first) const {
    return named(ranks) + (ranks.size() == 1 ? " has waited " : " have waited ") + seconds(waited(first)) + " in " +
           described(*current_operation(first));
  }

  // Returns the first rank that waits for one that does not wait itself.
  const RankPicture* first_with_awaited() const {
    const auto found = std::ranges::find_if(waiting_, [&](const auto* rank) { return !awaited_by(*rank).empty(); });
    return others_.empty() || found == waiting_.end() ? nullptr : *found;
  }

  std::string some_wait() const {
    if (const auto* rank = first_with_awaited()) {
      const Ranks awaited = awaited_by(*rank);
      const Ranks together = current_operation(*rank)->is_message() ? Ranks{rank->rank} : with(*rank);
      return beginning(together, *rank) + " for " + named(awaited) +
             (awaited.size() == 1 ? ", which has not come: " : ", which have not come: ") + doing(awaited) +
             out_of_action(awaited) + slowness(awaited);
    }
    return beginning(with(*waiting_.front()), *waiting_.front()) +
           ", and every rank for which it waits waits itself: " + each_in();
  }

  // Names the other ranks that do nothing any more, such as a server for which the awaited rank waits.
  std::string out_of_action(const Ranks& awaited) const {
    std::string text;
    for (const int rank : others_) {
      const auto* picture = job_.find(rank);
      const bool known = picture != nullptr && std::ranges::find(awaited, rank) == awaited.end();
      const bool out = known && (picture->state == Process::kStopped || picture->state == Process::kGone);
      if (out) text += "; rank " + std::to_string(rank) + ": " + doing(picture);
    }
    return text;
  }

  std::string slowness(const Ranks& awaited) const {
    const auto slow = slow_rank(job_);
    if (!slow || std::ranges::find(awaited, *slow) == awaited.end()) return "";
    return "; rank " + std::to_string(*slow) + " is slow: the others waited for it in earlier operations too";
  }

  std::string doing(const Ranks& ranks) const {
    std::vector<std::string> texts;
    for (const int rank : ranks) {
      texts.push_back((ranks.size() == 1 ? "" : "rank " + std::to_string(rank) + ": ") + doing(job_.find(rank)));
    }
    return listed(std::move(texts), "; ");
  }

  std::string doing(const RankPicture* rank) const {
    if (job_.only_operations) return last_operation(rank);
    if (rank == nullptr) return "nothing is known of it: it has ended, or its host does not share the run folder";
    const std::string process = "its process " + std::to_string(rank->process) + " on " + rank->host;
    const std::string where = phrase(rank->activity) + time_of(*rank);
    if (rank->state == Process::kGone) return process + " is gone";
    if (rank->state == Process::kStopped) return process + " is stopped (SIGSTOP), " + where;
    if (rank->activity.empty()) return process + " has not said what it does";
    std::string text = "it has been " + where + " for " + seconds(job_.taken - rank->activity_since);
    std::vector<std::string> details;
    if (rank->activity == "loading data" && !rank->dataset.empty()) details.push_back("dataset " + rank->dataset);
    if (!rank->blocked_in.empty()) details.push_back("blocked in " + rank->blocked_in);
    details.push_back("process " + std::to_string(rank->process) + " on " + rank->host);
    return text + " (" + join(details, ", ") + ")";
  }

  // Describes the last operation of a rank of which only the operations are known.
  std::string last_operation(const RankPicture* rank) const {
    if (rank == nullptr) return "there is no dump of it";
    if (rank->operations.empty()) return "it has called no operation";
    const auto& last = rank->operations.back();
    const bool done = last.state == "done";
    const double since = done && last.finished > 0 ? last.finished : last.launched;
    return std::string(done ? "it has completed " : "it has called ") + described(last) +
           (last.place.empty() ? "" : ", issued at " + last.place + ",") + " and called nothing since, for " +
           seconds(job_.taken - since);
  }

  std::string each_in() const {
    std::vector<std::string> texts;
    for (const auto* rank : waiting_) {
      texts.push_back("rank " + std::to_string(rank->rank) + " in " + described(*current_operation(*rank)));
    }
    return listed(std::move(texts));
  }

  std::string all_wait() const {
    const auto& first = *waiting_.front();
    if (const auto difference = first_difference(job_)) return different(*difference);
    for (const auto* rank : waiting_) {
      if (current_operation(*rank)->op == "recv") return message(*rank);
    }
    if (with(first).size() == waiting_.size()) {
      return "all ranks have been in " + described(*current_operation(first)) + " for " + seconds(longest_wait()) +
             ", and none is missing: a message between them was lost, or their connection is slow";
    }
    return "all ranks wait for each other, for " + seconds(longest_wait()) + ": " + each_in();
  }

  std::string different(const Difference& difference) const {
    std::vector<std::string> texts;
    for (const auto& request : difference.requests) {
      const auto& operation = request.operation;
      std::vector<std::string> details;
      if (!operation.what.empty()) details.push_back(operation.what);
      if (!operation.place.empty()) details.push_back("issued at " + operation.place);
      texts.push_back(operation.call + (details.empty() ? "" : " (" + join(details, ", ") + ")") + " on " +
                      named(request.ranks));
    }
    return "all ranks have waited for each other for " + seconds(longest_wait()) +
           ", because they differ in operation #" + std::to_string(difference.sequence) + " of " + difference.group +
           ": " + listed(std::move(texts), ", but ");
  }

  // Says whether the message for which a rank waits was sent.
  std::string message(const RankPicture& receiver) const {
    const auto& recv = *current_operation(receiver);
    const auto matches = [&](const PicturedOperation& operation, const char* op, int peer) {
      return operation.op == op && operation.group == recv.group && operation.tag == recv.tag && operation.peer == peer;
    };
    const int peer = peer_of(recv);
    std::string text = beginning({receiver.rank}, receiver) + " for a message from rank " + std::to_string(peer);
    const auto* sender = job_.find(peer);
    if (sender == nullptr) return text;
    const auto sent = std::ranges::count_if(sender->operations, [&](const auto& operation) {
      return matches(operation, "send", operation.peer) && peer_of(operation) == receiver.rank;
    });
    const auto received = std::ranges::count_if(receiver.operations, [&](const auto& operation) {
      return matches(operation, "recv", recv.peer) && operation.state == "done";
    });
    text += sent > received ? ", which has sent it: the message was lost" : ", which has not sent it";
    return text + "; " + each_in();
  }

  std::string nobody_waits() const {
    std::vector<std::string> texts;
    Ranks unknown;
    for (int rank = 0; rank < job_.size; ++rank) {
      const auto* picture = job_.find(rank);
      if (picture == nullptr) {
        unknown.push_back(rank);
      } else {
        texts.push_back("rank " + std::to_string(rank) + ": " + doing(picture));
      }
    }
    std::string text = "no rank waits for another: " + listed(std::move(texts), "; ");
    if (!unknown.empty()) text += "; nothing is known of " + named(unknown);
    const auto slow = slow_rank(job_);
    return slow ? text + "; rank " + std::to_string(*slow) + " is slow: the others regularly wait for it" : text;
  }

  const JobPicture& job_;
  std::vector<const RankPicture*> waiting_;
  Ranks others_;
};

using BySequence = std::map<std::uint64_t, const PicturedOperation*>;

// Returns each rank's operations of a group by their sequence numbers. Returns nothing if the operations of ranks
// cannot be compared: some are messages, or several groups have this name.
std::map<int, BySequence> comparable(const JobPicture& job, const std::string& group) {
  std::map<int, BySequence> ranks;
  for (const auto& rank : job.ranks) {
    for (const auto& operation : rank.operations) {
      if (operation.group != group) continue;
      if (!operation.is_collective() || !ranks[rank.rank].emplace(operation.sequence, &operation).second) return {};
    }
  }
  return ranks;
}

std::set<std::string> groups_of(const JobPicture& job) {
  std::set<std::string> groups;
  for (const auto& rank : job.ranks) {
    for (const auto& operation : rank.operations) groups.insert(operation.group);
  }
  return groups;
}

// Returns the first difference within a group.
std::optional<Difference> difference_in(const JobPicture& job, const std::string& group) {
  std::map<std::uint64_t, std::vector<Difference::Request>> requests;
  for (const auto& [rank, operations] : comparable(job, group)) {
    for (const auto& [sequence, operation] : operations) {
      auto& same = requests[sequence];
      const auto found = std::ranges::find_if(
          same, [&](const Difference::Request& request) { return request.operation.call == operation->call; });
      if (found == same.end()) {
        same.push_back({{rank}, *operation});
      } else {
        found->ranks.push_back(rank);
      }
    }
  }
  for (auto& [sequence, different] : requests) {
    if (different.size() > 1) return Difference{group, sequence, std::move(different)};
  }
  return std::nullopt;
}

}  // namespace

std::string explain(const JobPicture& picture, double least_wait) { return Scene(picture, least_wait).sentence(); }

Standing standing_ranks(const JobPicture& picture, double least_wait) { return Scene(picture, least_wait).standing(); }

const PicturedOperation* current_operation(const RankPicture& rank) {
  const auto runs = [](const auto& operation) { return operation.state == "running"; };
  const auto running = std::ranges::find_if(rank.operations, runs);
  if (running != rank.operations.end()) return &*running;
  if (rank.operations.empty() || rank.operations.back().state != "failed") return nullptr;
  return &rank.operations.back();
}

std::optional<Difference> first_difference(const JobPicture& picture) {
  for (const auto& group : groups_of(picture)) {
    if (auto difference = difference_in(picture, group)) return difference;
  }
  return std::nullopt;
}

std::optional<int> slow_rank(const JobPicture& picture, double least_share) {
  const auto ranks = comparable(picture, "world");
  if (ranks.size() < 2 || static_cast<int>(ranks.size()) < picture.size) return std::nullopt;
  std::map<int, double> waits;
  std::size_t operations = 0;
  double begin = 0, end = 0;
  for (const auto& [sequence, first] : ranks.begin()->second) {
    const auto done = [&, number = sequence](const auto& rank) {
      const auto found = rank.second.find(number);
      return found != rank.second.end() && found->second->finished > 0;
    };
    if (!std::ranges::all_of(ranks, done)) continue;
    for (const auto& [rank, all] : ranks) waits[rank] += all.at(sequence)->finished - all.at(sequence)->started;
    if (operations++ == 0) begin = first->started;
    end = first->finished;
  }
  if (operations < kLeastOperations) return std::nullopt;
  const auto least = std::ranges::min_element(waits, {}, &std::pair<const int, double>::second);
  double others = 0;
  for (const auto& [rank, wait] : waits) others += rank == least->first ? 0 : wait;
  others /= static_cast<double>(waits.size() - 1);
  const bool slow = least->second * 4 < others && others - least->second > least_share * (end - begin);
  return slow ? std::optional(least->first) : std::nullopt;
}

}  // namespace phalanx
