// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/child.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>

#include "framework/base/error.h"

namespace phalanx::bench {
namespace {

std::string problem_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(Child, AnswersLineByLine) {
  Child child({"sh", "-c", "while read line; do echo \"heard $line\"; echo more; done"});
  for (const char* word : {"one", "two"}) {
    child.send(word);
    EXPECT_EQ(child.receive(Seconds(20)), std::string("heard ") + word);
    EXPECT_EQ(child.receive(Seconds(20)), "more");
  }
}

TEST(Child, IsAnErrorIfItDoesNotAnswer) {
  Child child({"cat"});
  EXPECT_EQ(problem_of([&] { child.receive(Seconds(0.05)); }), "cat has not answered for 0.05 s");
}

TEST(Child, IsAnErrorIfItHasEnded) {
  Child child({"true"});
  EXPECT_NE(problem_of([&] { child.receive(Seconds(20)); }).find("true has ended"), std::string::npos);
  EXPECT_NE(problem_of([&] {
              for (int i = 0; i < 1000; ++i) child.send("x");
            }).find("true has ended"),
            std::string::npos);
}

TEST(Child, IsAnErrorIfItDoesNotExist) {
  EXPECT_NE(problem_of([] { Child child({"/no/such/program"}); }).find("cannot start /no/such/program"),
            std::string::npos);
}

TEST(Child, RunsUntilItsInputIsClosed) {
  Child child({"cat"});
  EXPECT_TRUE(child.running());
  child.lines().close();
  while (child.running()) std::this_thread::yield();
}

TEST(Child, IsKilledIfItDoesNotListen) { Child child({"sleep", "1000"}); }

TEST(RunProgram, GivesTheExitStatus) {
  EXPECT_EQ(run_program({"true"}), 0);
  EXPECT_EQ(run_program({"sh", "-c", "exit 7"}), 7);
  EXPECT_EQ(run_program({"sh", "-c", "kill -9 $$"}), 128 + 9);
  EXPECT_EQ(run_program({"/no/such/program"}), 127);
}

}  // namespace
}  // namespace phalanx::bench
