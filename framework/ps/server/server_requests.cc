// SPDX-License-Identifier: Apache-2.0
// Handles the requests of clients and transfers values.
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/ps/protocol/checksum.h"
#include "framework/ps/replication/replica_message.h"
#include "framework/ps/server/server_loop.h"

namespace phalanx::ps {
namespace {

std::int64_t elements_sent(const Transfer& transfer) {
  return static_cast<std::int64_t>(transfer.sent / c10::elementSize(transfer.dtype));
}

at::Tensor empty_payload(const Transfer& transfer) {
  return at::empty({elements_sent(transfer)}, at::dtype(transfer.dtype));
}

// Returns how the payload that a request announces differs from the expected one, or an empty string.
std::string mismatch(const Header& request, const Transfer& transfer) {
  if (request.payload_bytes == transfer.sent && request.dtype == static_cast<std::uint8_t>(transfer.dtype)) return {};
  return "the request has " + std::to_string(request.payload_bytes) + " bytes where " + std::to_string(transfer.sent) +
         " of " + c10::toString(transfer.dtype) + " are expected";
}

}  // namespace

// Allocates memory only if the payload fits the table. If it does not, the connection cannot be used any more, since
// the payload could not be told from the next request.
at::Tensor Server::Loop::allocate_payload(Session& session, const Message& begun) {
  if (session.leader) return room_for_replica(begun, options_.limits.memory_bytes);
  if (!session.client) throw ConnectionError("a client sent values before it identified itself");
  const Transfer transfer = host_of(session).transfer(*session.client, begun.header);
  if (const auto wrong = mismatch(begun.header, transfer); !wrong.empty()) throw ConnectionError(wrong);
  return empty_payload(transfer);
}

void Server::Loop::refuse_if_in_use(const Session& session) const {
  for (const auto& [socket, other] : sessions_) {
    if (other.get() == &session || other->chain != session.chain || !other->client || other->left ||
        other->client->job != session.client->job)
      continue;
    throw Error("another client (number " + std::to_string(other->client->number) + ") uses job \"" +
                session.client->job + "\"; give one of the two another name");
  }
}

void Server::Loop::fetch_payload(Session& session, Message& request) {
  const Header& header = request.header;
  if (!session.memory) throw Error("this server cannot reach the client's memory");
  const Transfer transfer = host_of(session).transfer(*session.client, header);
  if (const auto wrong = mismatch(header, transfer); !wrong.empty()) throw Error(wrong);
  if (transfer.sent == 0) return;
  if (session.memory->is_ours()) {
    request.payload =
        at::from_blob(reinterpret_cast<void*>(header.address), {elements_sent(transfer)}, at::dtype(transfer.dtype));
    if (session.chain) request.payload = request.payload.clone();  // the reply may overwrite it before it is forwarded
    return;
  }
  request.payload = empty_payload(transfer);
  if (!session.memory->read(header.address, request.payload.mutable_data_ptr(), transfer.sent)) {
    throw ConnectionError("the client's memory cannot be read");
  }
}

void Server::Loop::send_values(const SessionPtr& session, const Header& request, Message reply,
                               const at::Tensor& values) {
  if (reply.header.status == Status::kDone && values.defined()) {
    reply.header.payload_bytes = values.nbytes();
    reply.header.dtype = static_cast<std::uint8_t>(values.scalar_type());
    if (request.summed()) reply.header.set_sum(checksum_of(values));
    if (!request.in_memory()) {
      reply.payload = values.clone();  // the shard may change before the reply is sent
    } else if (!session->memory->write(
                   request.address + host_of(*session).transfer(*session->client, request).returned_at,
                   values.const_data_ptr(), values.nbytes())) {
      return;  // the next event reports that the connection has ended
    } else {
      reply.header.flags |= kInMemory;
    }
  }
  if (!session->chain) return answer(session, std::move(reply));
  session->chain->replica().when_applied([this, session, reply = std::move(reply)]() mutable {
    try {
      answer(session, std::move(reply));
    } catch (const ConnectionError& error) {
      log_info() << "parameter server: a reply could not be delivered: " << error.what();
    }
  });
}

// Returns the status of this server: all tables that it holds alone and as a member of chains.
Message Server::Loop::status_of_all(const Header& request) const {
  auto status = nlohmann::json::parse(host_.status());
  for (const auto& [key, membership] : chains_) {
    const auto& chain = membership.chain;
    const Replica& replica = chain->replica();
    if (replica.role() == Replica::Role::kBlank) continue;
    const auto part = nlohmann::json::parse(replica.host().status());
    status["bytes"] = status.at("bytes").get<std::int64_t>() + part.at("bytes").get<std::int64_t>();
    for (auto table : part.at("tables")) {
      table["role"] = chain->leads() ? "leader" : "copy";
      status["tables"].push_back(std::move(table));
    }
  }
  return {.header = {.verb = request.verb, .status = Status::kDone, .id = request.id}, .text = status.dump()};
}

// Returns the status of the part that a chain holds, and of its replication.
Message Server::Loop::status_of(Chain& chain, const Header& request) {
  const Replica& replica = chain.replica();
  auto status = nlohmann::json::parse(replica.host().status());
  status["member"] = replica.member();
  status["epoch"] = replica.epoch();
  status["copies"] = replica.copies();
  status["replies_held"] = replica.held();
  status["queued_bytes"] = chain.queued_bytes();  // for the slowest copy
  return {.header = {.verb = request.verb, .status = Status::kDone, .id = request.id}, .text = status.dump()};
}

void Server::Loop::handle(const SessionPtr& session, Message request) {
  const Header header = request.header;
  try {
    if (header.verb >= Verb::kReplica) throw Error("only servers of a chain may send this request");
    if (header.verb == Verb::kClear) refuse_if_in_use(*session);
    if (header.in_memory()) fetch_payload(*session, request);
    if (const auto damage = damage_of(header, request.payload); !damage.empty()) throw Error(damage);
  } catch (const ConnectionError&) {
    throw;
  } catch (const std::exception& error) {
    Message refusal{.header = {.verb = header.verb, .status = Status::kRefused, .id = header.id}, .text = error.what()};
    answer(session, std::move(refusal));
    return;
  }
  if (header.verb == Verb::kPing) {
    return answer(session, {.header = {.verb = header.verb, .status = Status::kDone, .id = header.id}});
  }
  session->left |= header.verb == Verb::kLeave;
  const auto give = [this, session, header](Message reply, const at::Tensor& values) {
    try {
      send_values(session, header, std::move(reply), values);
    } catch (const ConnectionError& error) {
      log_info() << "parameter server: a reply could not be delivered: " << error.what();
    }
  };
  if (header.verb == Verb::kStatus) {
    return give(session->chain ? status_of(*session->chain, header) : status_of_all(header), {});
  }
  if (!session->chain || header.verb == Verb::kVersion) {
    host_of(*session).handle(*session->client, request, give);
  } else if (session->chain->leads()) {
    session->chain->replica().submit(*session->client, request, give);
  }
}

}  // namespace phalanx::ps
