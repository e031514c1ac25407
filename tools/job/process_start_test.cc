#include "tools/job/process_start.h"

#include <gtest/gtest.h>

#include <thread>

namespace phalanx {
namespace {

TEST(ProcessStart, LiesBeforeNowAndDoesNotMove) {
  const auto first = process_start();
  EXPECT_LT(first, std::chrono::steady_clock::now() + std::chrono::milliseconds(10));
  EXPECT_GT(first, std::chrono::steady_clock::now() - std::chrono::seconds(30));
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  const auto difference = process_start() - first;
  EXPECT_LT(difference, std::chrono::milliseconds(20));
  EXPECT_GT(difference, std::chrono::milliseconds(-20));
}

}  // namespace
}  // namespace phalanx
