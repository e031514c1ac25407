// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/peer_subject.h"

#include <charconv>
#include <utility>

#include "framework/base/error.h"

namespace phalanx::bench {
namespace {

class PeerTrial final : public Trial {
 public:
  PeerTrial(std::shared_ptr<LineSocket> lines, int id, Seconds timeout)
      : lines_(std::move(lines)), id_(std::to_string(id)), timeout_(timeout) {}
  ~PeerTrial() override {
    try {
      lines_->ask("drop " + id_, timeout_);
    } catch (const Error&) {  // it has ended; the next call reports that
    }
  }

  double run(std::int64_t repeats) override {
    const std::string answer = lines_->ask("run " + id_ + " " + std::to_string(repeats), timeout_);
    double microseconds = 0;
    const char* end = answer.data() + answer.size();
    if (std::from_chars(answer.data(), end, microseconds).ptr != end) {
      throw Error(lines_->name() + ": expected a time, got \"" + answer + "\"");
    }
    return microseconds;
  }

 private:
  std::shared_ptr<LineSocket> lines_;
  std::string id_;
  Seconds timeout_;
};

}  // namespace

PeerSubject::PeerSubject(std::string name, int size, std::shared_ptr<LineSocket> lines, Seconds timeout)
    : name_(std::move(name)), size_(size), lines_(std::move(lines)), timeout_(timeout) {}

std::string PeerSubject::absent(const Case& what) const {
  return what.op == "send_recv" && size_ < 2 ? "needs two ranks" : "";
}

std::unique_ptr<Trial> PeerSubject::prepare(const Case& what) {
  const Sizes sizes = sizes_of(what, size_);
  const int id = ++prepared_;
  lines_->ask("prepare " + std::to_string(id) + " " + what.op + " " + std::to_string(sizes.whole) + " " +
                  std::to_string(sizes.part) + " " + what.memory,
              timeout_);
  return std::make_unique<PeerTrial>(lines_, id, timeout_);
}

}  // namespace phalanx::bench
