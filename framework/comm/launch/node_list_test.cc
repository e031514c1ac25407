// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/node_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::ThrowsMessage;

TEST(NodeList, NamesAreInTheOrderOfTheList) {
  EXPECT_THAT(expand_node_list("node1"), ElementsAre("node1"));
  EXPECT_THAT(expand_node_list("b,a,b.example.org"), ElementsAre("b", "a", "b.example.org"));
  EXPECT_THAT(expand_node_list("node[1-3,7]"), ElementsAre("node1", "node2", "node3", "node7"));
}

TEST(NodeList, NumbersKeepTheirLeadingZeros) {
  EXPECT_THAT(expand_node_list("gpu[08-10]-ib,login"), ElementsAre("gpu08-ib", "gpu09-ib", "gpu10-ib", "login"));
  EXPECT_THAT(expand_node_list("n[098-101]"), ElementsAre("n098", "n099", "n100", "n101"));
}

TEST(NodeList, ANameMayHaveSeveralBrackets) {
  EXPECT_THAT(expand_node_list("r[1-2]n[1,3]"), ElementsAre("r1n1", "r1n3", "r2n1", "r2n3"));
}

TEST(NodeList, MalformedListsAreRefused) {
  for (const char* list : {"", "a,", ",a", "a[1", "a1]", "a[[1]]", "a[]", "a[1-]", "a[3-1]", "a[x]", "a[-1]", "a[1,]",
                           "a[0-9999999999]", "a[0-999]b[0-999]"}) {
    EXPECT_THAT([&] { expand_node_list(list); },
                ThrowsMessage<ConfigError>(HasSubstr("node list \"" + std::string(list) + "\"")))
        << list;
  }
}

TEST(TaskCounts, AreThoseOfEachNode) {
  EXPECT_THAT(parse_task_counts("4"), Optional(ElementsAre(4)));
  EXPECT_THAT(parse_task_counts("2(x3),1,12(x2)"), Optional(ElementsAre(2, 2, 2, 1, 12, 12)));
}

TEST(TaskCounts, OfMalformedListsAreUnknown) {
  for (const char* list : {"", "0", "-1", "2,", ",2", "2(x", "2(x3", "2(x0)", "2(3)", "2(x3)1", "x", "1(x70000)"}) {
    EXPECT_EQ(parse_task_counts(list), std::nullopt) << list;
  }
}

}  // namespace
}  // namespace phalanx
