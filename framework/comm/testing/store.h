// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include "framework/base/error.h"
#include "framework/comm/store/store.h"

// Helpers that the tests of stores share.
namespace phalanx::testing {

inline const std::string kSecret = "a secret of the tests";

/// A deadline that only a hanging test reaches.
inline constexpr Seconds kLong{30};

/// A deadline that a test waits for.
inline constexpr Seconds kShort{0.05};

/// Returns the CommError that `call` throws; a test in which it throws none fails.
inline CommError comm_error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const CommError& error) {
    return error;
  }
  ADD_FAILURE() << "no CommError";
  return {CommError::Kind::kSystem, ""};
}

/// Expects that what `writer` writes is what `reader` reads: two clients of a store.
inline void keep_notes(Store& writer, Store& reader) {
  const std::string binary("a\0b\xff", 4);
  writer.set("binary", binary);
  writer.set("empty", "");
  EXPECT_EQ(reader.get("binary"), binary);
  EXPECT_EQ(reader.get("empty"), "");
  writer.set("binary", "new");
  EXPECT_EQ(reader.get("binary"), "new");
  EXPECT_EQ(writer.add("count", 2), 2);
  EXPECT_EQ(reader.add("count", -3), -1);
  auto later = std::async(std::launch::async, [&] { return reader.get("later"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  writer.set("later", "here");
  EXPECT_EQ(later.get(), "here");
}

/// Expects that a store with the deadline kShort says for which key it has waited, and how long.
inline void expect_timeout(Store& store) {
  const auto error = comm_error_of([&] { store.get("absent"); });
  EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
  for (const std::string text : {"\"absent\"", "0.05 s"}) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

}  // namespace phalanx::testing
