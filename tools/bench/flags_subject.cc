// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "framework/backends/shared_memory/waiter.h"
#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "tools/bench/subject.h"
#include "tools/bench/timed.h"

namespace phalanx::bench {
namespace {

/// The number of the last barrier that a rank has entered. Alone in two cache lines, which processors fetch together.
struct alignas(128) Flag {
  std::atomic<std::uint64_t> entered{0};
};

[[noreturn]] void fail(const std::string& what) {
  throw Error("flags: " + what + ": " + std::generic_category().message(errno));
}

/// A flag for each rank, in memory that all ranks share.
class SharedFlags {
 public:
  SharedFlags(const RankInfo& rank_info, Store& store) : rank_(rank_info.rank), size_(rank_info.size) {
    Descriptor file;
    if (rank_ == 0) {
      file = Descriptor(::memfd_create("phalanx-flags", MFD_CLOEXEC));
      if (!file.valid() || ::ftruncate(file.get(), static_cast<off_t>(bytes())) != 0) fail("cannot share memory");
      store.set("file", "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file.get()));
    } else {
      const std::string path = store.get("file");
      file = Descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
      if (!file.valid()) fail("cannot open " + path);
    }
    void* const memory = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) fail("cannot map memory");
    flags_ = static_cast<Flag*>(memory);  // a new file holds zeros
    store_barrier(store, "mapped", size_);
  }
  ~SharedFlags() { ::munmap(flags_, bytes()); }
  SharedFlags(const SharedFlags&) = delete;
  SharedFlags& operator=(const SharedFlags&) = delete;

  void exchange() {
    const std::uint64_t number = ++entered_;
    flags_[rank_].entered.store(number, std::memory_order_release);
    for (int rank = 0; rank < size_; ++rank) {
      const auto& flag = flags_[rank].entered;
      waiter_.wait([&] { return flag.load(std::memory_order_acquire) >= number; }, [](auto) {});
    }
  }

  int size() const { return size_; }

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(size_) * sizeof(Flag); }

  int rank_, size_;
  shared_memory::Waiter waiter_{size_, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN))};
  Flag* flags_ = nullptr;
  std::uint64_t entered_ = 0;
};

class FlagsSubject final : public Subject {
 public:
  explicit FlagsSubject(std::shared_ptr<SharedFlags> flags) : flags_(std::move(flags)) {}

  std::string name() const override { return "flags"; }
  int size() const override { return flags_->size(); }
  std::vector<std::string> algorithms(const std::string&) const override { return {"native"}; }
  std::string absent(const Case& what) const override {
    return what.op == "barrier" ? "" : "flags are exchanged only as a barrier";
  }

  std::unique_ptr<Trial> prepare(const Case&) override {
    return make_trial([flags = flags_] { flags->exchange(); }, timed([flags = flags_] { flags->exchange(); }));
  }

 private:
  std::shared_ptr<SharedFlags> flags_;
};

}  // namespace

std::unique_ptr<Subject> make_flags_subject(const RankInfo& rank_info, StorePtr store) {
  if (!rank_info.one_host()) throw ConfigError("--against flags: all ranks must be on one host");
  const auto rendezvous = make_prefix_store("bench/flags", std::move(store));
  return std::make_unique<FlagsSubject>(std::make_shared<SharedFlags>(rank_info, *rendezvous));
}

}  // namespace phalanx::bench
