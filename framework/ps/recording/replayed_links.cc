// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/recording/replayed_links.h"

#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/collectives/recording/failure.h"
#include "framework/ps/recording/answer.h"

namespace phalanx::ps {
namespace {

// Gives a request its recorded answer.
void answer(Request& request, const recording::RecordedOperation& recorded) {
  request.finished = true;
  if (recorded.head.has(recording::kFailed)) {
    request.error = recording::failure_in(recorded.received);
    return;
  }
  const std::string& bytes = recorded.received;
  const at::Tensor to = returned_to(request);
  const std::size_t values = to.defined() ? to.nbytes() : 0;
  AnswerNumbers numbers;
  if (bytes.size() >= sizeof(numbers)) std::memcpy(&numbers, bytes.data(), sizeof(numbers));
  if (bytes.size() < sizeof(numbers) || numbers.text_bytes > bytes.size() ||
      bytes.size() != sizeof(numbers) + numbers.text_bytes + values) {
    throw DataError("the recording is damaged: the answer to " + request.what + " has " + std::to_string(bytes.size()) +
                    " bytes, which does not fit the request");
  }
  request.reply = {.header = from_numbers(numbers), .text = bytes.substr(sizeof(numbers), numbers.text_bytes)};
  if (values > 0) std::memcpy(to.mutable_data_ptr(), bytes.data() + (bytes.size() - values), values);
  request.done(request.reply.header);
}

// Answers a request that the recorded rank did not make. It says that there are no rows, and no more of them.
void answer_nothing(Request& request) {
  request.finished = true;
  request.reply.header = {.verb = request.message.header.verb, .status = Status::kDone, .clock = -1};
  request.done(request.reply.header);
}

class ReplayedLink final : public Link {
 public:
  ReplayedLink(std::shared_ptr<recording::Replay> replay, const LinkOptions& options)
      : replay_(std::move(replay)), number_(replay_->follow_connection(name_of(options))) {
    Request attempt = connection_attempt();
    ask(attempt, true);  // recorded only if it failed
    if (attempt.error) std::rethrow_exception(attempt.error);
  }

  void send(const RequestPtr& request) override { ask(*request); }

  void wait(const RequestPtr& request) override {
    if (!request->finished) replay_->throw_unanswered(request->what);
    if (const auto error = std::exchange(request->error, nullptr)) std::rethrow_exception(error);
  }

  bool done(const RequestPtr& request) override { return request->finished; }
  void register_table(std::uint32_t, const std::string&) override {}
  void unregister_table(std::uint32_t) override {}
  void unregister_tables() override {}

  std::int64_t lost_updates() override {
    Request question = question_for_lost_updates();
    ask(question);
    if (!question.finished) replay_->throw_unanswered(question.what);
    return question.reply.header.version;
  }

  bool is_lost() override { return false; }
  void leave() override {}

 private:
  void ask(Request& request, bool connects = false) {
    if (replay_->detached()) return answer_nothing(request);
    const auto asked = recorded_request(request, number_, connects ? 0 : 1, replay_->memory());
    if (const auto recorded = replay_->follow_request(asked.head, sent_by(request), request.what)) {
      answer(request, *recorded);
    }
  }

  std::shared_ptr<recording::Replay> replay_;
  std::uint32_t number_;
};

class ReplayedLinks final : public Links {
 public:
  explicit ReplayedLinks(std::shared_ptr<recording::Replay> replay) : replay_(std::move(replay)) {}

  std::shared_ptr<Link> connect(const LinkOptions& options) override {
    return std::make_shared<ReplayedLink>(replay_, options);
  }
  bool need_servers() const override { return false; }
  bool tables_are_there() const override { return replay_->detached(); }

 private:
  std::shared_ptr<recording::Replay> replay_;
};

}  // namespace

std::shared_ptr<Links> replay_links(std::shared_ptr<recording::Replay> replay) {
  return std::make_shared<ReplayedLinks>(std::move(replay));
}

}  // namespace phalanx::ps
