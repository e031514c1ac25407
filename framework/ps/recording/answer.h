// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/collectives/recording/format.h"
#include "framework/collectives/recording/named_memory.h"
#include "framework/ps/client/link_options.h"
#include "framework/ps/client/request.h"
#include "framework/ps/protocol/message.h"

namespace phalanx::ps {

/// A request in a recording: its entry without the answer, and the checksums of the named parts of the data that it
/// sends.
struct RecordedRequest {
  recording::EntryHead head{};
  std::vector<std::uint32_t> piece_sums{};
};

/// Returns the entry of request `sequence` over connection `server`. Numbers that depend on when other answers arrive,
/// such as the version of the values from which an update was computed, do not count, nor do clocks, which begin again
/// when a run resumes.
RecordedRequest recorded_request(const Request& request, std::uint32_t server, std::uint64_t sequence,
                                 const recording::NamedMemory& memory);

/// The attempt to connect, and the question for Link::lost_updates(), as requests. The answer to the latter is the
/// version.
Request connection_attempt();
Request question_for_lost_updates();

/// Names a connection in messages: "parameter server 0 (tables of \"strategy of world\")".
std::string name_of(const LinkOptions& link);

/// The numbers of an answer, which a recording has before the text and the values.
struct AnswerNumbers {
  std::int64_t clock = 0;
  std::int64_t version = 0;
  std::int64_t waited_for = 0;
  std::uint32_t table = 0;
  std::uint32_t rows = 0;
  std::uint64_t text_bytes = 0;
};

/// Returns the numbers of a reply. from_numbers() is the inverse; it leaves the other fields of a header at 0.
AnswerNumbers numbers_of(const Message& reply);
Header from_numbers(const AnswerNumbers& numbers);

}  // namespace phalanx::ps
