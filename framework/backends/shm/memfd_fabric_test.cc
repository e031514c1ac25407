// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shm/memfd_fabric.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "framework/base/error.h"

namespace phalanx::shm {
namespace {

// A child process that waits to be killed.
class Peer {
 public:
  Peer() : pid_(::fork()) {
    if (pid_ != 0) return;
    for (;;) ::pause();
  }
  ~Peer() {
    kill();
    ::waitpid(pid_, nullptr, 0);
  }
  void kill() const { ::kill(pid_, SIGKILL); }
  int pid() const { return pid_; }

 private:
  int pid_;
};

TEST(MemfdFabric, ABlockOpenedByItsHandleIsTheSameMemory) {
  MemfdFabric fabric({::getpid()});
  const auto block = fabric.create(8192);
  const auto opened = fabric.open(block.handle);
  ASSERT_NE(block.memory.get(), opened.get());
  std::strcpy(static_cast<char*>(block.memory.get()) + 100, "phalanx");
  EXPECT_STREQ(static_cast<char*>(opened.get()) + 100, "phalanx");
}

TEST(MemfdFabric, AHandleIsInvalidAfterRelease) {
  MemfdFabric fabric({::getpid()});
  const auto handle = fabric.create(4096).handle;
  fabric.release();
  EXPECT_THROW((void)fabric.open(handle), CommError);
}

// Returns the error of opening the descriptor `fd` of this process where `handle` promises a block.
std::string refusal(int fd, shared_memory::Fabric::Handle handle) {
  handle.token = fd;
  try {
    (void)MemfdFabric({::getpid()}).open(handle);
  } catch (const CommError& error) {
    return error.what();
  }
  return "opened";
}

TEST(MemfdFabric, OpensNothingButTheBlockOfTheHandle) {
  MemfdFabric fabric({::getpid()});
  const auto handle = fabric.create(4096).handle;
  const std::string meant = "is not the shared memory of a rank";

  const std::string path = ::testing::TempDir() + "unrelated";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  ASSERT_EQ(::ftruncate(file, handle.bytes), 0);
  EXPECT_NE(refusal(file, handle).find(meant), std::string::npos) << "a file of the same size";

  const int foreign = ::memfd_create("phalanx", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(foreign, handle.bytes), 0);
  EXPECT_NE(refusal(foreign, handle).find(meant), std::string::npos) << "another program's memory";

  const auto other = fabric.create(4096).handle;
  EXPECT_NE(refusal(static_cast<int>(other.token), handle).find(meant), std::string::npos) << "another block";

  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_NE(refusal(ends[0], handle).find(meant), std::string::npos) << "a pipe, which an open might wait for";
  for (const int fd : {file, foreign, ends[0], ends[1]}) ::close(fd);
  ::unlink(path.c_str());
}

TEST(MemfdFabric, OpensNoBlockOfAnotherSize) {
  MemfdFabric fabric({::getpid()});
  auto handle = fabric.create(4096).handle;
  handle.bytes = 8192;  // writing past the end would raise a signal
  EXPECT_THROW((void)fabric.open(handle), CommError);
}

TEST(MemfdFabric, NoticesThatAPeerEndedBeforeItIsReaped) {
  Peer peer;
  MemfdFabric fabric({::getpid(), peer.pid()});
  EXPECT_TRUE(fabric.alive(0));
  EXPECT_TRUE(fabric.alive(1));
  peer.kill();
  siginfo_t info;
  ::waitid(P_PID, peer.pid(), &info, WEXITED | WNOWAIT);  // ended, but still a zombie
  EXPECT_FALSE(fabric.alive(1));
}

TEST(MemfdFabric, ASubsetMayHoldPeersThatHaveEnded) {
  Peer peer;
  MemfdFabric fabric({::getpid(), peer.pid()});
  peer.kill();
  siginfo_t info;
  ::waitid(P_PID, peer.pid(), &info, WEXITED | WNOWAIT);
  const int ranks[] = {1, 0};
  const auto subset = fabric.subset(ranks);
  EXPECT_FALSE(subset->alive(0));
  EXPECT_TRUE(subset->alive(1));
}

TEST(MemfdFabric, NamesTheRankWhoseProcessIsGone) {
  int gone = 0;
  {
    Peer peer;
    gone = peer.pid();
  }
  try {
    MemfdFabric fabric({::getpid(), gone});
    FAIL() << "accepted a process that is gone";
  } catch (const CommError& error) {
    EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost);
    EXPECT_NE(std::string(error.what()).find("rank 1, process " + std::to_string(gone)), std::string::npos);
  }
}

TEST(MemfdFabric, ALackOfMemoryIsAnErrorNotASignal) {
  MemfdFabric fabric({::getpid()});
  const auto block = fabric.create(1 << 20);
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tight{.rlim_cur = 64 << 10, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &tight);
  EXPECT_THROW(fabric.create(1 << 20), CommError);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THROW(fabric.create(std::size_t{1} << 62), CommError);
}

TEST(MemfdFabric, FetchesFromAnyAddressOfAPeer) {
  std::vector<std::uint64_t> words(100'000);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = i * i;
  const auto original = words;
  Peer peer;  // has a copy of all this memory
  std::ranges::fill(words, 0);
  MemfdFabric fabric({::getpid(), peer.pid()});
  const auto* there = reinterpret_cast<const std::byte*>(words.data());
  std::vector<std::uint64_t> fetched(words.size());
  fabric.fetch(1, reinterpret_cast<std::byte*>(fetched.data()), there, fetched.size() * sizeof(fetched[0]));
  EXPECT_EQ(fetched, original);
}

TEST(MemfdFabric, FindsOutWhetherItCanFetch) {
  static const std::uint64_t word = 42;
  Peer peer;
  MemfdFabric fabric({::getpid(), peer.pid()});
  EXPECT_FALSE(fabric.fetches());
  using Words = std::vector<MemfdFabric::Word>;
  EXPECT_TRUE(fabric.can_fetch(Words{{&word, 42}, {&word, 42}}));
  EXPECT_FALSE(fabric.can_fetch(Words{{&word, 42}, {&word, 43}})) << "another process's word";
  EXPECT_FALSE(fabric.can_fetch(Words{{&word, 42}, {nullptr, 42}}));
  fabric.set_fetches(true);
  const int ranks[] = {1};
  EXPECT_TRUE(fabric.fetches() && fabric.subset(ranks)->fetches());
}

TEST(MemfdFabric, FetchingFromAPeerThatIsGoneNamesIt) {
  Peer peer;
  MemfdFabric fabric({::getpid(), peer.pid()});
  peer.kill();
  ::waitpid(peer.pid(), nullptr, 0);
  std::byte byte{};
  try {
    fabric.fetch(1, &byte, &byte, 1);
    FAIL() << "fetched from a process that is gone";
  } catch (const CommError& error) {
    EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost);
    EXPECT_NE(std::string(error.what()).find("rank 1, process " + std::to_string(peer.pid())), std::string::npos);
  }
}

TEST(MemfdFabric, LeavesNoFileInDevShm) {
  MemfdFabric fabric({::getpid()});
  const auto block = fabric.create(4096);
  char path[256]{};
  const std::string link = "/proc/self/fd/" + std::to_string(block.handle.token);
  ASSERT_GT(::readlink(link.c_str(), path, sizeof(path) - 1), 0);
  EXPECT_EQ(std::string(path).rfind("/memfd:", 0), 0u) << path;
}

}  // namespace
}  // namespace phalanx::shm
