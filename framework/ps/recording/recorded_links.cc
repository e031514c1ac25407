// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/recording/recorded_links.h"

#include <array>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/storage/crc32c.h"
#include "framework/collectives/recording/failure.h"
#include "framework/ps/client/socket_link.h"
#include "framework/ps/recording/answer.h"

namespace phalanx::ps {
namespace {

template <class T>
std::string_view memory_of(const T* data, std::size_t bytes) {
  return {reinterpret_cast<const char*>(data), bytes};
}

// A request from the time at which it is sent to the time at which its answer is recorded.
class UnansweredRequest {
 public:
  UnansweredRequest(std::shared_ptr<recording::Recorder> recorder, RecordedRequest request)
      : recorder_(std::move(recorder)), place_(recorder_->place()), request_(std::move(request)) {}

  void write_answer(const Message& reply, const at::Tensor& returned) {
    const AnswerNumbers numbers = numbers_of(reply);
    const std::string_view values =
        returned.defined() ? memory_of(static_cast<const char*>(returned.const_data_ptr()), returned.nbytes())
                           : std::string_view();
    if (!values.empty()) request_.head.flags |= recording::kReceived;
    request_.head.detail = crc32c(values.data(), values.size(), crc32c(reply.text.data(), reply.text.size()));
    write(memory_of(&numbers, sizeof(numbers)), reply.text, values);
  }

  void write_failure(const std::exception& error) {
    request_.head.flags |= recording::kFailed;
    write(recording::to_failure(error), {}, {});
  }

 private:
  void write(std::string_view first, std::string_view second, std::string_view third) {
    const auto& sums = request_.piece_sums;
    const std::array<std::string_view, 4> parts{memory_of(sums.data(), sums.size() * sizeof(std::uint32_t)), first,
                                                second, third};
    recorder_->add(place_, request_.head, parts);
  }

  std::shared_ptr<recording::Recorder> recorder_;
  recording::Recorder::Place place_;
  RecordedRequest request_;
};

class RecordedLink final : public Link {
 public:
  RecordedLink(std::shared_ptr<recording::Recorder> recorder, std::uint32_t number, const LinkOptions& options)
      : recorder_(std::move(recorder)), number_(number) {
    UnansweredRequest attempt = unanswered(connection_attempt(), 0);
    try {
      inner_ = std::make_unique<SocketLink>(options);
    } catch (const std::exception& error) {
      attempt.write_failure(error);
      throw;
    }
  }

  void send(const RequestPtr& request) override {
    {
      const std::lock_guard lock(mutex_);
      unanswered_.insert_or_assign(request.get(), unanswered(*request, ++requests_));
    }
    inner_->send(request);
  }

  void wait(const RequestPtr& request) override {
    auto asked = take(request.get());
    try {
      inner_->wait(request);
    } catch (const std::exception& error) {
      if (asked) asked->write_failure(error);
      throw;
    }
    if (asked) asked->write_answer(request->reply, returned_to(*request));
  }

  bool done(const RequestPtr& request) override { return inner_->done(request); }
  void register_table(std::uint32_t number, const std::string& name) override { inner_->register_table(number, name); }
  void unregister_table(std::uint32_t number) override { inner_->unregister_table(number); }
  void unregister_tables() override { inner_->unregister_tables(); }

  std::int64_t lost_updates() override {
    std::unique_lock lock(mutex_);
    UnansweredRequest asked = unanswered(question_for_lost_updates(), ++requests_);
    lock.unlock();
    Message reply;
    reply.header.version = inner_->lost_updates();
    asked.write_answer(reply, {});
    return reply.header.version;
  }

  bool is_lost() override { return inner_->is_lost(); }
  void leave() override { inner_->leave(); }

 private:
  UnansweredRequest unanswered(const Request& request, std::uint64_t sequence) const {
    return {recorder_, recorded_request(request, number_, sequence, recorder_->memory())};
  }

  std::optional<UnansweredRequest> take(const Request* request) {
    const std::lock_guard lock(mutex_);
    auto found = unanswered_.extract(request);
    if (found.empty()) return std::nullopt;
    return std::move(found.mapped());
  }

  std::shared_ptr<recording::Recorder> recorder_;
  std::uint32_t number_;
  std::unique_ptr<SocketLink> inner_;
  std::mutex mutex_;  // protects everything below
  std::uint64_t requests_ = 0;
  std::map<const Request*, UnansweredRequest> unanswered_;
};

class RecordedLinks final : public Links {
 public:
  explicit RecordedLinks(std::shared_ptr<recording::Recorder> recorder) : recorder_(std::move(recorder)) {}

  std::shared_ptr<Link> connect(const LinkOptions& options) override {
    return std::make_shared<RecordedLink>(recorder_, recorder_->add_server(name_of(options)), options);
  }
  bool need_servers() const override { return true; }
  bool tables_are_there() const override { return false; }

 private:
  std::shared_ptr<recording::Recorder> recorder_;
};

}  // namespace

std::shared_ptr<Links> record_links(std::shared_ptr<recording::Recorder> recorder) {
  return std::make_shared<RecordedLinks>(std::move(recorder));
}

}  // namespace phalanx::ps
