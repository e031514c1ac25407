// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/shards/shard_host.h"

#include <c10/util/Exception.h>

#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/json.h"
#include "framework/base/text.h"

namespace phalanx::ps {
namespace {

Message reply_to(const Header& request, Status status = Status::kDone) {
  return {.header = {.verb = request.verb, .status = status, .id = request.id, .table = request.table}};
}

bool same(TableSpec a, TableSpec b) { return config::dump(a) == config::dump(b); }

}  // namespace

void ShardHost::handle(const ClientId& client, const Message& request, const Answer& answer) {
  try {
    execute(client, request, answer);
  } catch (const std::exception& error) {
    Message refusal = reply_to(request.header, Status::kRefused);
    refusal.text = error.what();
    answer(std::move(refusal), {});
  }
}

void ShardHost::execute(const ClientId& client, const Message& request, const Answer& answer) {
  const Header& header = request.header;
  Message reply = reply_to(header);
  switch (header.verb) {
    case Verb::kCreate:
      reply.header.table = create(client, request.text);
      break;
    case Verb::kPush: {
      Table& table = table_of(client, header.table);
      count(table, header);
      push(table, client, request);
      reply.header.version = table.values->version();
      break;
    }
    case Verb::kPull: {
      Table& table = table_of(client, header.table);
      count(table, header);
      return pull(table, client, request, answer);
    }
    case Verb::kExchange: {
      Table& table = table_of(client, header.table);
      count(table, header);
      push(table, client, request);
      return pull(table, client, request, answer);
    }
    case Verb::kReadState:
      return answer(std::move(reply), state_of(client, header));
    case Verb::kWriteState:
      write_state(client, request);
      break;
    case Verb::kReadRows: {
      const auto read = table_of(client, header.table).values->read_rows(header.clock, header.rows);
      reply.header.rows = static_cast<std::uint32_t>(read.count);
      reply.header.clock = read.next;
      reply.header.version = read.total;
      return answer(std::move(reply), read.records);
    }
    case Verb::kWriteRows:
      write_rows(client, request);
      break;
    case Verb::kFree:
      free(client, header);
      break;
    case Verb::kClear:
      clear(client, header);
      break;
    case Verb::kLeave:
      leave(client);
      break;
    case Verb::kVersion: {
      const Table& table = table_of(client, header.table);
      if (table.values->spec().name != request.text) {
        throw Error("table number " + std::to_string(header.table) + " is \"" + table.values->spec().name +
                    "\", not \"" + request.text + "\"");
      }
      reply.header.version = table.resumed_at;
      break;
    }
    case Verb::kStatus:
      reply.text = status();
      break;
    default:
      throw Error("request " + std::to_string(static_cast<int>(header.verb)) + " is unknown");
  }
  answer(std::move(reply), {});
}

ShardHost::Table& ShardHost::table_of(const ClientId& client, std::uint32_t number) {
  const auto found = tables_.find(number);
  if (found == tables_.end() || found->second.job != client.job) {
    throw Error("there is no table number " + std::to_string(number) + " of job \"" + client.job + "\"");
  }
  return found->second;
}

std::uint32_t ShardHost::create(const ClientId& client, const std::string& text) {
  CreateRequest request;
  config::load_text(request, text, "request");
  const std::pair key(client.job, request.table.name);
  if (const auto number = numbers_.find(key); number != numbers_.end()) {
    const Table& table = tables_.at(number->second);
    if (same(table.values->spec(), request.table) && table.shard == request.shard && table.shards == request.shards) {
      return number->second;
    }
    TableSpec spec = table.values->spec();
    throw Error("table \"" + request.table.name + "\" exists already and is different:\n" + config::dump(spec));
  }
  add(next_number_, {client.job, request.shard, request.shards, allocated(request)});
  ++changes_;
  return next_number_++;
}

// Checks that the shard exists and that there is memory for it before any is allocated.
std::unique_ptr<Shard> ShardHost::allocated(const CreateRequest& request) const {
  if (request.shard < 0 || request.shard >= request.shards || request.shards > std::numeric_limits<int>::max()) {
    throw Error("there is no shard " + std::to_string(request.shard) + ": there are " + std::to_string(request.shards) +
                " shards, numbered from 0");
  }
  const int shard = static_cast<int>(request.shard), shards = static_cast<int>(request.shards);
  const std::int64_t bytes = max_bytes_of_shard(request.table, shard, shards);
  if (bytes > limits_.memory_bytes - bytes_) {
    throw Error("table \"" + request.table.name + "\" needs " + format_bytes(bytes) + " here; " +
                format_bytes(limits_.memory_bytes - bytes_) + " of " + format_bytes(limits_.memory_bytes) +
                " are free");
  }
  return make_shard(request.table, shard, shards);
}

ShardHost::Table& ShardHost::add(std::uint32_t number, Table table) {
  numbers_.emplace(std::pair(table.job, table.values->spec().name), number);
  bytes_ += table.values->bytes();
  return tables_.emplace(number, std::move(table)).first->second;
}

void ShardHost::remove(Tables::iterator table) {
  bytes_ -= table->second.values->bytes();
  numbers_.erase({table->second.job, table->second.values->spec().name});
  tables_.erase(table);
}

bool ShardHost::has_come(const ClientId& client, const Header& request) const {
  const auto last = last_applied_.find(client);
  return last != last_applied_.end() && request.id <= last->second;
}

void ShardHost::free(const ClientId& client, const Header& request) {
  if (has_come(client, request)) return;
  const Shard& shard = *table_of(client, request.table).values;
  if (shard.waiting() > 0) throw Error("clients are waiting for table \"" + shard.spec().name + "\"");
  remove(tables_.find(request.table));
  last_applied_[client] = request.id;
  ++changes_;
}

Transfer ShardHost::transfer(const ClientId& client, const Header& request) {
  if (!pushes(request.verb) && !pulls(request.verb)) throw Error("only pushes and pulls have a payload");
  if (request.verb != Verb::kReadState && request.verb != Verb::kWriteState) {
    return table_of(client, request.table).values->transfer(request);
  }
  const at::Tensor one = state_of(client, request);
  return dense_transfer(request.verb, one.nbytes(), one.scalar_type());
}

at::Tensor ShardHost::state_of(const ClientId& client, const Header& request) {
  Shard& shard = *table_of(client, request.table).values;
  if (shard.spec().dim > 0) throw Error("table \"" + shard.spec().name + "\" is sparse: only servers keep its state");
  return shard.state_tensor(request.rows);
}

void ShardHost::write_state(const ClientId& client, const Message& request) {
  if (has_come(client, request.header)) return;
  const at::Tensor one = state_of(client, request.header);
  const at::Tensor& payload = request.payload;
  const std::int64_t elements = payload.defined() ? payload.numel() : 0;
  if (elements != one.numel() || (elements > 0 && payload.scalar_type() != one.scalar_type())) {
    throw Error("tensor " + std::to_string(request.header.rows) + " of a table's state has " +
                std::to_string(one.numel()) + " elements of " + c10::toString(one.scalar_type()) + " here, not " +
                std::to_string(elements));
  }
  if (elements > 0) one.copy_(payload.view(one.sizes()));
  last_applied_[client] = request.header.id;
  ++changes_;
}

void ShardHost::write_rows(const ClientId& client, const Message& request) {
  if (has_come(client, request.header)) return;
  table_of(client, request.header.table).values->write_rows(request.payload, request.header.rows);
  last_applied_[client] = request.header.id;
  ++changes_;
}

void ShardHost::clear(const ClientId& client, const Header& request) {
  if (has_come(client, request)) return;
  for (auto next = tables_.begin(); next != tables_.end();) {
    const auto one = next++;
    if (one->second.job == client.job) remove(one);
  }
  std::erase_if(last_applied_, [&](const auto& one) { return one.first.job == client.job; });
  last_applied_[client] = request.id;
  ++changes_;
}

void ShardHost::push(Table& table, const ClientId& client, const Message& request) {
  const Header& header = request.header;
  if (has_come(client, header)) return;
  table.values->push({.client = client.number,
                      .rule = header.rule,
                      .based_on = header.version,
                      .scale = header.scale,
                      .ticks = header.ticks(),
                      .clock = header.clock,
                      .rows = header.rows,
                      .unused = request.text},
                     request.payload);
  last_applied_[client] = header.id;
  ++changes_;
}

void ShardHost::pull(Table& table, const ClientId& client, const Message& request, Answer answer) {
  const Header& header = request.header;
  Shard& shard = *table.values;
  // If an exchange ticks, its read belongs to the client's next clock.
  const std::int64_t clock = header.clock + (header.verb == Verb::kExchange && header.ticks() ? 1 : 0);
  shard.pull(
      {.client = client.number,
       .clock = clock,
       .read_only = header.read_only(),
       .rows = header.rows,
       .payload = request.payload},
      [reply = reply_to(header), &shard, answer = std::move(answer)](std::int64_t behind, const at::Tensor& values) {
        Message message = reply;
        message.header.version = shard.version();
        message.header.waited_for = behind;
        answer(std::move(message), values);
      });
}

void ShardHost::count(Table& table, const Header& request) {
  const Transfer transfer = table.values->transfer(request);
  ++table.requests;
  table.bytes_received += static_cast<std::int64_t>(transfer.sent);
  table.bytes_sent += static_cast<std::int64_t>(transfer.returned);
}

void ShardHost::leave(const ClientId& client) {
  last_applied_.erase(client);
  stop_waiting_for(client);
}

void ShardHost::stop_waiting_for(const ClientId& client) {
  for (auto& [number, table] : tables_) {
    if (table.job == client.job) table.values->leave(client.number);
  }
  ++changes_;
}

void ShardHost::forget_reads(const ClientId& client) {
  for (auto& [number, table] : tables_) {
    if (table.job == client.job) table.values->forget_reads(client.number);
  }
}

void ShardHost::forget_all_reads() {
  for (auto& [number, table] : tables_) table.values->forget_all_reads();
}

HostState ShardHost::state() const {
  HostState state;
  auto tables = nlohmann::json::array(), clients = nlohmann::json::array();
  for (const auto& [number, table] : tables_) {
    TableSpec spec = table.values->spec();
    tables.push_back({{"number", number},
                      {"job", table.job},
                      {"shard", table.shard},
                      {"shards", table.shards},
                      {"spec", config::dump(spec)},
                      {"version", table.values->version()},
                      {"clocks", table.values->clocks()}});
    for (auto& entry : table.values->state()) {
      state.tensors.emplace_back(std::to_string(number) + "/" + entry.name, std::move(entry.values));
    }
  }
  for (const auto& [client, last] : last_applied_) {
    clients.push_back(
        {{"job", client.job}, {"number", client.number}, {"incarnation", client.incarnation}, {"last", last}});
  }
  state.description = nlohmann::json{{"next_number", next_number_}, {"tables", tables}, {"clients", clients}}.dump();
  return state;
}

void ShardHost::load(const HostState& state) {
  try {
    load_unchecked(state);
  } catch (const nlohmann::json::exception& error) {
    throw Error(std::string("the state has a malformed description: ") + error.what());
  } catch (const c10::Error& error) {  // a tensor of another shape or type
    throw Error(std::string("the state does not fit its tables: ") + error.what_without_backtrace());
  }
}

void ShardHost::load_unchecked(const HostState& state) {
  const auto description = parse_json(state.description, "the description of the state").raw();
  for (const auto& one : description.at("tables")) {
    const auto number = one.at("number").get<std::uint32_t>();
    CreateRequest request{.shard = one.at("shard").get<std::int64_t>(), .shards = one.at("shards").get<std::int64_t>()};
    config::load_text(request.table, one.at("spec").get<std::string>(), "table");
    Table& table = add(number, {one.at("job").get<std::string>(), request.shard, request.shards, allocated(request)});
    const std::string prefix = std::to_string(number) + "/";
    NamedTensors values;
    for (const auto& [name, tensor] : state.tensors) {
      if (name.starts_with(prefix)) values.emplace_back(name.substr(prefix.size()), tensor);
    }
    table.values->load_state(values);
    table.resumed_at = one.at("version").get<std::int64_t>();
    table.values->resume(table.resumed_at, one.at("clocks").get<std::vector<std::int64_t>>());
  }
  for (const auto& one : description.at("clients")) {
    const ClientId client{.job = one.at("job"), .number = one.at("number"), .incarnation = one.at("incarnation")};
    last_applied_[client] = one.at("last").get<std::uint64_t>();
  }
  next_number_ = description.at("next_number").get<std::uint32_t>();
}

std::vector<ClientId> ShardHost::known_clients() const {
  std::vector<ClientId> clients;
  for (const auto& [client, last] : last_applied_) clients.push_back(client);
  return clients;
}

std::string ShardHost::status() const {
  auto tables = nlohmann::json::array();
  for (const auto& [number, table] : tables_) {
    const Shard& shard = *table.values;
    nlohmann::json one{{"job", table.job},
                       {"name", shard.spec().name},
                       {"shard", table.shard},
                       {"shards", table.shards},
                       {"bytes", shard.bytes()},
                       {"dtype", shard.spec().dtype},
                       {"version", shard.version()},
                       {"waiting", shard.waiting()},
                       {"staleness_seen", shard.staleness_seen()},
                       {"requests", table.requests},
                       {"bytes_received", table.bytes_received},
                       {"bytes_sent", table.bytes_sent}};
    for (const auto& [name, count] : shard.counts()) one[name] = count;
    tables.push_back(std::move(one));
  }
  return nlohmann::json{{"bytes", bytes_}, {"tables", tables}}.dump();
}

}  // namespace phalanx::ps
