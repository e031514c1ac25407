// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/client/client.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/first_error.h"
#include "framework/comm/operations/copied_result.h"
#include "framework/comm/operations/part_layout.h"
#include "framework/ps/client/links.h"
#include "framework/ps/client/socket_link.h"
#include "framework/ps/shards/shard_host.h"

namespace phalanx::ps {
namespace {

// The requests to all shards, combined.
class Pending final : public Work::State {
 public:
  struct Part {
    std::shared_ptr<Link> link;
    RequestPtr request;
  };

  explicit Pending(std::vector<Part> parts) : parts_(std::move(parts)) {}

  void wait() override {
    FirstError first;
    for (const auto& part : parts_) first.of([&] { part.link->wait(part.request); });
    first.rethrow();
  }

  bool done() const override {
    return std::ranges::all_of(parts_, [](const Part& part) { return part.link->done(part.request); });
  }

 private:
  std::vector<Part> parts_;
};

const char* name_of(Verb verb) {
  switch (verb) {
    case Verb::kPush:
      return "push to";
    case Verb::kPull:
      return "pull from";
    case Verb::kReadState:
      return "reading of the state of";
    case Verb::kWriteState:
      return "writing of the state of";
    case Verb::kReadRows:
      return "reading of the rows of";
    case Verb::kWriteRows:
      return "writing of rows of";
    default:
      return "exchange with";
  }
}

// Sends a request to each server, made by `make`, and returns the replies.
template <class Make>
std::vector<Message> ask_all(const std::vector<std::shared_ptr<Link>>& links, const std::string& what,
                             const Make& make) {
  std::vector<RequestPtr> requests;
  for (std::size_t i = 0; i < links.size(); ++i) {
    requests.push_back(std::make_shared<Request>());
    requests.back()->message = make(i);
    requests.back()->what = what;
    links[i]->send(requests.back());
  }
  std::vector<Message> replies;
  for (std::size_t i = 0; i < links.size(); ++i) {
    links[i]->wait(requests[i]);
    replies.push_back(std::move(requests[i]->reply));
  }
  return replies;
}

}  // namespace

Header Client::request_of(Verb verb, const PushOptions& options, std::int64_t clock) {
  return {.verb = verb,
          .rule = static_cast<std::uint16_t>(options.rule),
          .flags = static_cast<std::uint8_t>(options.tick ? kTick : 0),
          .clock = clock,
          .scale = options.scale};
}

// Shared, because requests in flight may outlive the table.
struct Table::Shared {
  std::mutex mutex;
  std::vector<std::int64_t> versions;  // for each shard: version at the last read, plus this client's own updates since
  std::vector<std::int64_t> staleness_seen = std::vector<std::int64_t>(kStalenessBins);
};

const std::vector<std::int64_t>& Table::staleness_seen() const { return shared_->staleness_seen; }

Client::Client(ClientOptions options) : options_(std::move(options)) {
  const auto& servers = options_.servers;
  if (options_.replicas < 1 || options_.replicas > static_cast<int>(servers.size())) {
    throw ConfigError("replicas: " + std::to_string(options_.replicas) +
                      " of each part of the tables need as many "
                      "parameter servers; there are " +
                      std::to_string(servers.size()));
  }
  if (options_.replicas > 2) throw ConfigError("replicas: more than 2 of each part are not supported");
  if (options_.replicas > 1) options_.retry = std::max(options_.retry, options_.timeout);
  for (std::size_t i = 0; i < servers.size(); ++i) {
    std::vector<std::vector<std::string>> members;
    for (int k = 0; k < options_.replicas; ++k) members.push_back(servers[(i + k) % servers.size()]);
    const LinkOptions link{.members = std::move(members),
                           .job = options_.job,
                           .number = options_.number,
                           .secret = options_.secret,
                           .timeout = options_.timeout,
                           .retry = options_.retry,
                           .failover = options_.failover,
                           .part = i,
                           .checksums = options_.checksums,
                           .leaves = options_.leaves,
                           .come_back = options_.come_back};
    links_.push_back(options_.links ? options_.links->connect(link) : std::make_shared<SocketLink>(link));
  }
}

Client::~Client() = default;

bool Client::has_lost_server() const {
  return std::ranges::any_of(links_, [](const auto& link) { return link->is_lost(); });
}

void Client::leave() {
  for (const auto& link : links_) link->leave();
}

Table Client::create(const TableSpec& spec) {
  const auto replies = ask_all(links_, "creation of table \"" + spec.name + "\"", [&](std::size_t i) {
    CreateRequest request{
        .table = spec, .shard = static_cast<std::int64_t>(i), .shards = static_cast<std::int64_t>(links_.size())};
    return Message{.header = {.verb = Verb::kCreate}, .text = config::dump(request)};
  });
  Table table;
  table.spec_ = spec;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    table.numbers_.push_back(replies[i].header.table);
    links_[i]->register_table(table.numbers_.back(), spec.name);
  }
  table.shared_ = std::make_shared<Table::Shared>();
  table.shared_->versions.resize(links_.size());
  return table;
}

Work Client::launch(Table& table, at::Tensor tensor, const Header& request, const ElementRanges& unused) {
  const TableSpec& spec = table.spec_;
  if (spec.dim > 0) throw std::invalid_argument("table \"" + spec.name + "\" is sparse: use SparseTable");
  if (tensor.numel() != spec.elements || tensor.scalar_type() != dtype_of(spec.dtype) || !tensor.is_contiguous()) {
    throw std::invalid_argument("table \"" + spec.name + "\" has " + std::to_string(spec.elements) + " elements of " +
                                spec.dtype + "; the tensor does not");
  }
  if (tensor.is_cpu()) return launch_sharded(table, spec, tensor, request, unused);
  const at::Tensor host =
      request.verb == Verb::kPull ? at::empty(tensor.sizes(), tensor.options().device(at::kCPU)) : tensor.to(at::kCPU);
  Work work = launch_sharded(table, spec, host, request, unused);
  if (request.verb == Verb::kPush) return work;
  return with_result_copied(std::move(work), host, std::move(tensor));
}

Work Client::launch_sharded(Table& table, const TableSpec& spec, const at::Tensor& tensor, const Header& request,
                            const ElementRanges& unused) {
  const int shards = static_cast<int>(links_.size());
  std::vector<Part> parts;
  for (int shard = 0; shard < shards; ++shard) {
    const std::int64_t begin = begin_of_shard(spec, shard, shards), count = elements_of_shard(spec, shard, shards);
    const at::Tensor part = elements_of(tensor, begin, count);
    const Transfer transfer = dense_transfer(request.verb, part.nbytes(), tensor.scalar_type());
    parts.push_back({.server = static_cast<std::size_t>(shard),
                     .tensor = part,
                     .transfer = transfer,
                     .rows = request.rows,
                     .text = to_text(ranges_within(unused, begin, count))});
  }
  return launch(table, std::move(parts), request);
}

Work Client::launch(Table& table, std::vector<Part> asked, const Header& request) {
  std::vector<Pending::Part> parts;
  for (auto& one : asked) {
    const std::size_t server = one.server;
    auto part = std::make_shared<Request>();
    part->message = {.header = request, .text = std::move(one.text)};
    part->message.header.table = table.numbers_[server];
    part->message.header.rows = one.rows;
    part->tensor = std::move(one.tensor);
    part->transfer = one.transfer;
    if (one.done) part->done = std::move(one.done);
    part->what = std::string(name_of(request.verb)) + " table \"" + table.spec_.name + "\"";
    {
      const std::lock_guard lock(table.shared_->mutex);
      part->message.header.version = table.shared_->versions[server];
      if (request.verb == Verb::kPush || request.verb == Verb::kExchange) ++table.shared_->versions[server];
    }
    if (request.verb == Verb::kPull || request.verb == Verb::kExchange) {
      part->done = [shared = table.shared_, server, counts = parts.empty()](const Header& reply) {
        const std::lock_guard lock(shared->mutex);
        shared->versions[server] = reply.version;
        if (counts) ++shared->staleness_seen[std::clamp<std::int64_t>(reply.waited_for, 0, kStalenessBins - 1)];
      };
    }
    links_[server]->send(part);
    parts.push_back({links_[server], std::move(part)});
  }
  return Work(std::make_shared<Pending>(std::move(parts)));
}

Work Client::push(Table& table, at::Tensor update, const PushOptions& options) {
  const Header request = request_of(Verb::kPush, options, table.clock_);
  if (options.tick) ++table.clock_;
  return launch(table, std::move(update), request, options.unused);
}

Work Client::pull(Table& table, at::Tensor values) {
  return launch(table, std::move(values), {.verb = Verb::kPull, .clock = table.clock_});
}

Work Client::exchange(Table& table, at::Tensor update_and_values, const PushOptions& options) {
  const Header request = request_of(Verb::kExchange, options, table.clock_);
  if (options.tick) ++table.clock_;
  return launch(table, std::move(update_and_values), request, options.unused);
}

Work Client::read_state(Table& table, std::size_t number, at::Tensor values) {
  return launch_state(table, number, values, Verb::kReadState);
}

Work Client::write_state(Table& table, std::size_t number, at::Tensor values) {
  return launch_state(table, number, values, Verb::kWriteState);
}

Work Client::launch_state(Table& table, std::size_t number, const at::Tensor& values, Verb verb) {
  if (!values.is_contiguous() || !values.is_cpu() || values.dim() != 1) {
    throw std::invalid_argument("the state of table \"" + table.spec_.name + "\" is read and written as one dense row");
  }
  TableSpec sharded_as = table.spec_;
  sharded_as.elements = values.numel();
  return launch_sharded(table, sharded_as, values, {.verb = verb, .rows = static_cast<std::uint32_t>(number)});
}

void Client::free(Table& table) {
  ask_all(links_, "freeing of table \"" + table.spec_.name + "\"",
          [&](std::size_t i) { return Message{.header = {.verb = Verb::kFree, .table = table.numbers_[i]}}; });
  for (std::size_t i = 0; i < links_.size(); ++i) links_[i]->unregister_table(table.numbers_[i]);
}

void Client::clear() {
  ask_all(links_, "removal of all tables", [](std::size_t) { return Message{.header = {.verb = Verb::kClear}}; });
  for (const auto& link : links_) link->unregister_tables();
}

std::int64_t Client::lost_updates() const {
  std::int64_t lost = 0;
  for (const auto& link : links_) lost += link->lost_updates();
  return lost;
}

std::vector<std::string> Client::status() {
  std::vector<std::string> all;
  for (auto& reply : ask_all(links_, "request for the status",
                             [](std::size_t) { return Message{.header = {.verb = Verb::kStatus}}; })) {
    all.push_back(std::move(reply.text));
  }
  return all;
}

}  // namespace phalanx::ps
