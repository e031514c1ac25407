// SPDX-License-Identifier: Apache-2.0
#include "framework/base/storage/unpickler.h"

#include <gmock/gmock.h>

#include <string>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using namespace std::string_literals;  // these strings contain NUL

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Unpickler, ReadsPlainValues) {
  const auto read = unpickle_plain("a",
                                   "\x80\x02}U\x01"
                                   "k\x88N\x8a\x02\0\xffG\xbf\xf8\0\0\0\0\0\0\x87\x86s."s);
  ASSERT_EQ(read.root->kind, PickleNode::kDict);
  ASSERT_EQ(read.root->items.size(), 2U);
  EXPECT_EQ(read.root->items[0]->text, "k");
  const auto& pair = read.root->items[1]->items;
  ASSERT_EQ(pair.size(), 2U);
  EXPECT_EQ(pair[0]->integer, 1) << "True";
  const auto& triple = pair[1]->items;
  ASSERT_EQ(triple.size(), 3U);
  EXPECT_EQ(triple[0]->kind, PickleNode::kNone);
  EXPECT_EQ(triple[1]->integer, -256);
  EXPECT_EQ(triple[2]->number, -1.5);
}

TEST(Unpickler, RefusesAnythingThatIsNotPlain) {
  for (const std::string& opcodes : {"cos\nsystem\n"s,                  // a function by its name
                                     "\x8c\x02os\x8c\x06system\x93"s,   // the same in protocol 4
                                     "cos\nsystem\n)R"s,                // a call
                                     "\x8f"s,                           // a set
                                     "\x8a\x09\0\0\0\0\0\0\0\0\1"s}) {  // an integer of more than 64 bits
    EXPECT_NO_THROW(unpickle("a", "\x80\x02"s + opcodes + "."));
    EXPECT_THAT([&] { unpickle_plain("a", "\x80\x02"s + opcodes + "."); },
                ThrowsMessage<DataError>(HasSubstr("plain value")))
        << opcodes;
  }
}

}  // namespace
}  // namespace phalanx
