// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/recording/answer.h"

#include <array>
#include <cstring>

#include "framework/base/error.h"
#include "framework/base/storage/crc32c.h"
#include "framework/collectives/recording/input_digest.h"

namespace phalanx::ps {
namespace {

// The fields of a request that determine its answer, besides the values that it sends.
struct Asked {
  double scale = 1;
  std::uint32_t rows = 0;
  std::uint16_t rule = 0;
  std::uint8_t verb = 0;
  std::uint8_t flags = 0;
};
static_assert(sizeof(Asked) == 16, "its checksum must not depend on padding");

std::uint32_t sum_of(const Request& request) {
  const Header& header = request.message.header;
  const Asked asked{.scale = header.scale,
                    .rows = header.rows,
                    .rule = header.rule,
                    .verb = static_cast<std::uint8_t>(header.verb),
                    .flags = static_cast<std::uint8_t>(header.flags & (kTick | kReadOnly))};
  std::uint32_t sum = crc32c(&asked, sizeof(asked));
  sum = crc32c(request.what.data(), request.what.size(), sum);
  return crc32c(request.message.text.data(), request.message.text.size(), sum);
}

}  // namespace

RecordedRequest recorded_request(const Request& request, std::uint32_t server, std::uint64_t sequence,
                                 const recording::NamedMemory& memory) {
  RecordedRequest recorded{.head = {.kind = recording::EntryKind::kAnswer, .sequence = sequence, .group = server}};
  recorded.head.set_call({.elements = static_cast<std::int64_t>(request.transfer.sent),
                          .tag = static_cast<std::int32_t>(sum_of(request)),
                          .op = Op::kCustom,
                          .dtype = c10::kByte});
  // The progress of servers depends on the other ranks, and on the time.
  if (request.message.header.verb == Verb::kStatus) {
    recorded.head.flags |= recording::kMeasured;
    return recorded;
  }
  const at::Tensor sent = sent_by(request);
  auto digest = recording::digest_of(sent, recording::pieces_of(sent, memory));
  recorded.head.input_sum = digest.sum;
  recorded.head.pieces = static_cast<std::uint32_t>(digest.pieces.size());
  recorded.piece_sums = std::move(digest.pieces);
  return recorded;
}

Request connection_attempt() {
  Request request;
  request.message.header.verb = Verb::kHello;
  request.what = "a connection";
  return request;
}

Request question_for_lost_updates() {
  Request request;
  request.message.header.verb = Verb::kStatus;
  request.what = "the number of lost updates";
  return request;
}

std::string name_of(const LinkOptions& link) {
  return "parameter server " + std::to_string(link.part) + " (tables of \"" + link.job + "\")";
}

AnswerNumbers numbers_of(const Message& reply) {
  const Header& header = reply.header;
  return {.clock = header.clock,
          .version = header.version,
          .waited_for = header.waited_for,
          .table = header.table,
          .rows = header.rows,
          .text_bytes = reply.text.size()};
}

Header from_numbers(const AnswerNumbers& numbers) {
  return {.status = Status::kDone,
          .table = numbers.table,
          .clock = numbers.clock,
          .version = numbers.version,
          .waited_for = numbers.waited_for,
          .rows = numbers.rows};
}

}  // namespace phalanx::ps
