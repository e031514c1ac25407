// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/hydra.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <string>

namespace phalanx {
namespace {

void in_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    body();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

// Returns the prefix and the id that a grandchild of a process called `name` finds.
std::string found_below(const std::string& name) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  in_child([&] {
    ::prctl(PR_SET_NAME, name.c_str());
    in_child([&] {
      ::prctl(PR_SET_NAME, "a (script) 1 2");
      in_child([&] {
        const auto proxy = find_hydra_proxy();
        const std::string text = proxy ? proxy->prefix() + " " + proxy->id : "none";
        EXPECT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
      });
    });
  });
  ::close(ends[1]);
  std::array<char, 4096> text{};
  const auto count = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  return {text.data(), static_cast<std::size_t>(count > 0 ? count : 0)};
}

TEST(Hydra, TheProxyIsFoundThroughAScript) {
  const std::string first = found_below("hydra_pmi_proxy"), second = found_below("hydra_pmi_proxy");
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_TRUE(first.starts_with(program.parent_path().parent_path().string() + " ")) << first;
  EXPECT_NE(first, second) << "another launch has another id";
}

TEST(Hydra, AnotherLauncherIsNoProxy) { EXPECT_EQ(found_below("prterun"), "none"); }

TEST(Hydra, AProgramThatCannotBeReadHasNoPrefix) { EXPECT_EQ((HydraProxy{.program = "", .id = "1-2"}.prefix()), ""); }

}  // namespace
}  // namespace phalanx
