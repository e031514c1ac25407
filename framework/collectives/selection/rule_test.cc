// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/selection/rule.h"

#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "framework/base/config/config.h"
#include "framework/base/text.h"
#include "framework/collectives/algorithm.h"
#include "framework/collectives/selection/selectable_ops.h"

namespace phalanx {
namespace {

struct Section {
  std::vector<SelectionRule> selection;
  template <class V>
  void visit(V& v) {
    v("selection", selection, "which algorithm an operation takes");
  }
};

std::string problems(const std::vector<SelectionRule>& rules) {
  const auto all = problems_of(rules, "config", "selection");
  return all.empty() ? "" : ConfigError(all).what();
}

// Returns "native" and the algorithms of `op` in this program.
std::string known(Op op) {
  std::vector<std::string> names{"native"};
  for (const auto* algorithm : Algorithms::global().of(op)) names.push_back(algorithm->name);
  return join(names, ", ");
}

// Returns "native, A, B or C" with the algorithms of all operations.
std::string any_algorithm() {
  std::set<std::string> names;
  for (const Op op : selectable_ops()) {
    for (const auto* algorithm : Algorithms::global().of(op)) names.insert(algorithm->name);
  }
  std::vector<std::string> but_last{"native"};
  but_last.insert(but_last.end(), names.begin(), std::prev(names.end()));
  return join(but_last, ", ") + " or " + *names.rbegin();
}

// Thresholds are in bytes for every dtype.
TEST(SelectionRule, IsReadFromYamlAndWrittenBack) {
  Section section;
  config::load_text(section, R"(
selection:
  - {op: all_reduce, up_to: 64KB, ranks: 4, scope: hosts, device: cpu, algorithm: counting}
  - {op: broadcast, backend: inproc}
)",
                    "t.yaml");
  ASSERT_EQ(section.selection.size(), 2u);
  const auto first = parse(section.selection[0]), second = parse(section.selection[1]);
  EXPECT_EQ(first.op, Op::kAllReduce);
  EXPECT_EQ(first.up_to, 64 << 10);
  EXPECT_EQ(first.ranks, 4);
  EXPECT_EQ(first.scope, Scope::kHosts);
  EXPECT_EQ(first.device, c10::kCPU);
  EXPECT_EQ(first.backend, "");
  ASSERT_NE(first.algorithm, nullptr);
  EXPECT_EQ(first.algorithm->name, "counting");
  EXPECT_EQ(second.up_to, kAnySize);
  EXPECT_FALSE(second.scope || second.device);
  EXPECT_EQ(second.backend, "inproc");
  EXPECT_EQ(second.algorithm, nullptr);

  const std::string text = config::dump(section);
  EXPECT_EQ(text, R"(selection:
  - {op: all_reduce, up_to: "64KB", ranks: 4, scope: hosts, device: cpu, backend: own, algorithm: counting}
  - {op: broadcast, up_to: "", ranks: 0, scope: any, device: any, backend: inproc, algorithm: native}
)");
  Section again;
  config::load_text(again, text, "t.yaml");
  EXPECT_EQ(config::dump(again), text);
}

TEST(SelectionRule, InvalidYamlIsRefusedWithItsLine) {
  Section section;
  try {
    config::load_text(section, R"(selection:
- {op: allreduce}
- {op: all_reduce, algorithm: countin, backend: inprok}
- {op: barrier, upto: 3}
)",
                      "t.yaml");
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.what(), R"(t.yaml:2:8: selection[0].op: must be broadcast, reduce, all_reduce, reduce_scatter, )"
                            R"(all_gather, gather, scatter or all_to_all, got "allreduce" (did you mean "all_reduce"?)
t.yaml:3:31: selection[1].algorithm: must be )" +
                                any_algorithm() +
                                R"(, got "countin" (did you mean "counting"?)
t.yaml:3:49: selection[1].backend: must be own or inproc, got "inprok" (did you mean "inproc"?)
t.yaml:4:8: selection[2].op: must be broadcast, reduce, all_reduce, reduce_scatter, all_gather, gather, scatter or )"
                                R"(all_to_all, got "barrier"
t.yaml:4:17: selection[2].upto: unknown key (did you mean "up_to"?))");
  }
}

TEST(SelectionRule, ProblemsHaveTheirPlaceInTheList) {
  EXPECT_EQ(
      problems({{.op = "broadcast"}, {.up_to = "1KB"}, {.op = "all_reduce", .up_to = "many"}}),
      "config: selection[1].op: missing; known: broadcast, reduce, all_reduce, reduce_scatter, all_gather, gather, "
      "scatter, all_to_all\n"
      "config: selection[2].up_to: " +
          [] {
            try {
              (void)parse({.op = "all_reduce", .up_to = "many"});
            } catch (const ConfigError& error) {
              return error.problems().front().message;
            }
            return std::string();
          }());
  EXPECT_EQ(problems({{.op = "all_reduce", .algorithm = "counting_broadcast"}}),
            "config: selection[0].algorithm: \"counting_broadcast\" is not an algorithm of all_reduce, only of "
            "broadcast; known: " +
                known(Op::kAllReduce) + " (did you mean \"counting\"?)");
  EXPECT_EQ(problems({{.op = "reduce", .scope = "rack"}}),
            "config: selection[0].scope: must be any, host or hosts, got \"rack\"");
  EXPECT_EQ(problems({{.op = "reduce", .device = "tpu"}}),
            "config: selection[0].device: \"tpu\" is not one of any, cpu");
  EXPECT_EQ(problems({{.op = "all_reduce", .algorithm = "countng"}}),
            "config: selection[0].algorithm: \"countng\" is not an algorithm of all_reduce; known: " +
                known(Op::kAllReduce) + " (did you mean \"counting\"?)");
}

TEST(SelectionRule, AnUnreachableOneIsRefused) {
  const std::string unreachable = "config: selection[1]: is never reached: [0], ";
  EXPECT_EQ(problems({{.op = "all_reduce"}, {.op = "all_reduce", .up_to = "1KB", .algorithm = "counting"}}),
            unreachable + "all_reduce -> native, comes first and covers it entirely");
  EXPECT_EQ(problems({{.op = "reduce", .up_to = "2KB", .algorithm = "counting"},
                      {.op = "reduce", .up_to = "2KB", .ranks = 3}}),
            unreachable + "reduce up to 2KB -> counting, comes first and covers it entirely");
  EXPECT_EQ(problems({{.op = "reduce", .algorithm = "counting_even"},
                      {.op = "reduce", .up_to = "2KB", .algorithm = "counting_even"}}),
            unreachable + "reduce -> counting_even, comes first and covers it entirely");
  EXPECT_EQ(problems({{.op = "reduce", .scope = "hosts"}, {.op = "reduce", .ranks = 3, .scope = "hosts"}}),
            unreachable + "reduce of several hosts -> native, comes first and covers it entirely");
}

TEST(SelectionRule, AReachableOneIsAccepted) {
  EXPECT_EQ(problems({{.op = "all_reduce", .up_to = "1KB"}, {.op = "all_reduce"}}), "") << "larger ones";
  EXPECT_EQ(problems({{.op = "all_reduce"}, {.op = "reduce"}}), "") << "other operations";
  EXPECT_EQ(problems({{.op = "all_reduce", .ranks = 2}, {.op = "all_reduce"}}), "") << "other groups";
  EXPECT_EQ(problems({{.op = "all_reduce", .scope = "host"}, {.op = "all_reduce", .scope = "hosts"}}), "")
      << "groups elsewhere";
  EXPECT_EQ(problems({{.op = "all_reduce", .device = "cpu"}, {.op = "all_reduce"}}), "") << "other tensors";
  EXPECT_EQ(problems({{.op = "all_reduce", .algorithm = "counting_even"}, {.op = "all_reduce"}}), "")
      << "where the first does not suit";
}

}  // namespace
}  // namespace phalanx
