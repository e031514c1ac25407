// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/hang/rank_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <system_error>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/observe/hang/process_state.h"
#include "framework/observe/monotonic_clock.h"

namespace phalanx {
namespace {

constexpr char kName[] = "phalanx-rank";
constexpr std::uint64_t kMagic = 0x31304b4e41524850;  // "PHRANK01", which changes with Layout
constexpr std::size_t kMaxFolder = 1024;
constexpr int kActivities = 10;
constexpr int kAttempts = 50;

}  // namespace

// The format of the file. `version` counts the beginnings and the ends of changes of the text, so it is odd while the
// text changes.
struct RankPage::Layout {
  std::uint64_t magic;
  std::int32_t rank, size;
  std::int64_t process, thread;
  std::array<char, kMaxFolder> folder;
  std::atomic<std::uint32_t> activity;
  std::atomic<std::int64_t> activity_since_ns;
  std::atomic<std::int64_t> step;
  std::atomic<std::uint64_t> version;
  std::atomic<std::uint64_t> length;
  std::array<char, kMaxText> text;
};

namespace {

using Layout = RankPage::Layout;

// Reads the whole file if it is a page. Other processes may open files with the same name.
bool read_layout(int file, Layout& layout) {
  const ssize_t count = ::pread(file, static_cast<void*>(&layout), sizeof(layout), 0);
  return count == static_cast<ssize_t>(sizeof(layout)) && layout.magic == kMagic;
}

std::optional<PageContents> contents_of(int file) {
  const auto layout = std::make_unique<Layout>();
  PageContents contents;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (!read_layout(file, *layout)) return std::nullopt;
    const auto before = layout->version.load();
    const auto length = std::min<std::uint64_t>(layout->length.load(), layout->text.size());
    std::uint64_t after = 0;
    const auto offset = static_cast<off_t>(offsetof(Layout, version));
    if (::pread(file, &after, sizeof(after), offset) != sizeof(after)) return std::nullopt;
    if (before != after || before % 2 != 0) continue;
    contents.text.assign(layout->text.data(), length);
    break;
  }
  contents.rank = layout->rank;
  contents.size = layout->size;
  contents.process = static_cast<pid_t>(layout->process);
  contents.thread = static_cast<pid_t>(layout->thread);
  contents.folder.assign(layout->folder.data(), ::strnlen(layout->folder.data(), layout->folder.size()));
  contents.activity = static_cast<Activity>(std::min<std::uint32_t>(layout->activity.load(), kActivities - 1));
  contents.activity_since_ns = layout->activity_since_ns.load();
  contents.step = layout->step.load();
  return contents;
}

std::string descriptor_path(pid_t process, int descriptor) {
  return "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
}

bool is_named_like_a_page(const std::string& path) {
  std::error_code none;
  const auto target = std::filesystem::read_symlink(path, none).string();
  return target.starts_with(std::string("/memfd:") + kName);
}

}  // namespace

std::string_view to_string(Activity activity) {
  static constexpr std::array<std::string_view, kActivities> kNames{"starting",
                                                                    "loading data",
                                                                    "forward",
                                                                    "backward",
                                                                    "update",
                                                                    "hooks",
                                                                    "evaluation",
                                                                    "saving a checkpoint",
                                                                    "serving parameters",
                                                                    "ending"};
  return kNames[static_cast<std::size_t>(activity)];
}

RankPage::RankPage(int rank, int size, const std::string& folder) : file_(::memfd_create(kName, MFD_CLOEXEC)) {
  const auto refuse = [] {
    throw Error("memory for the page of a rank is refused: " + std::generic_category().message(errno));
  };
  if (!file_.valid() || ::ftruncate(file_.get(), sizeof(Layout)) != 0) refuse();
  void* const memory = ::mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (memory == MAP_FAILED) refuse();
  page_ = new (memory) Layout;  // the memory is zero, and stays so
  page_->rank = rank;
  page_->size = size;
  page_->process = ::getpid();
  page_->thread = static_cast<std::int64_t>(::syscall(SYS_gettid));
  std::copy_n(folder.data(), std::min(folder.size(), kMaxFolder - 1), page_->folder.data());
  enter(Activity::kStarting);
  page_->magic = kMagic;
}

RankPage::~RankPage() { ::munmap(page_, sizeof(Layout)); }

void RankPage::enter(Activity activity) noexcept {
  page_->activity.store(static_cast<std::uint32_t>(activity), std::memory_order_relaxed);
  page_->activity_since_ns.store(monotonic_ns(), std::memory_order_relaxed);
}

void RankPage::set_step(std::int64_t step) noexcept { page_->step.store(step, std::memory_order_relaxed); }

std::string RankPage::blocked_in() const {
  const std::string call = phalanx::blocked_in(::getpid(), static_cast<pid_t>(page_->thread));
  if (activity() != Activity::kLoading || call.find("(futex)") == call.npos) return call;
  const auto files = blocked_on_files(::getpid());
  return files.empty() ? call : call + ", while the loader is in " + join(files, " and ");
}

std::int64_t RankPage::step() const noexcept { return page_->step.load(std::memory_order_relaxed); }

Activity RankPage::activity() const noexcept {
  return static_cast<Activity>(page_->activity.load(std::memory_order_relaxed));
}

std::int64_t RankPage::activity_since_ns() const noexcept {
  return page_->activity_since_ns.load(std::memory_order_relaxed);
}

double RankPage::activity_seconds() const noexcept {
  return static_cast<double>(monotonic_ns() - activity_since_ns()) * 1e-9;
}

void RankPage::publish(std::string_view text) noexcept {
  const std::size_t length = std::min(text.size(), kMaxText);
  page_->version.fetch_add(1);
  std::copy_n(text.data(), length, page_->text.data());
  page_->length.store(length);
  page_->version.fetch_add(1);
}

std::optional<PageContents> read_page(pid_t process, int descriptor) {
  const std::string path = descriptor_path(process, descriptor);
  if (!is_named_like_a_page(path)) return std::nullopt;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.valid() ? contents_of(file.get()) : std::nullopt;
}

std::vector<PageContents> pages_of(pid_t process) {
  std::vector<PageContents> pages;
  std::error_code none;
  std::filesystem::directory_iterator entry("/proc/" + std::to_string(process) + "/fd", none);
  for (const std::filesystem::directory_iterator end; !none && entry != end; entry.increment(none)) {
    auto page = read_page(process, std::atoi(entry->path().filename().c_str()));
    if (page && page->process == process) pages.push_back(*std::move(page));
  }
  std::ranges::sort(pages, {}, &PageContents::rank);
  return pages;
}

}  // namespace phalanx
