#include "datasets/images/tar_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

#include "datasets/images/tar_entry.h"
#include "datasets/testing/image_files.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string written(const std::string& bytes) {
  const auto path = ::testing::TempDir() + "/archive.tar";
  write_atomically(path, bytes);
  return path;
}

TEST(IndexTar, FindsFilesWhereTheyLie) {
  const std::string long_name = std::string(150, 'd') + "/" + std::string(60, 'n') + ".jpg";
  for (const bool pax : {false, true}) {
    const std::vector<std::pair<std::string, std::string>> files{
        {"1.jpg", std::string(700, 'a')}, {"1.cls", "3"}, {long_name, "content"}, {"empty", ""}};
    const auto path = written(testing::tar_bytes(files, pax));
    const auto bytes = read_file(path);
    const auto entries = index_tar(path);
    ASSERT_EQ(entries.size(), files.size());
    for (std::size_t i = 0; i < files.size(); ++i) {
      EXPECT_EQ(entries[i].name, files[i].first);
      EXPECT_EQ(bytes.substr(static_cast<std::size_t>(entries[i].offset), static_cast<std::size_t>(entries[i].size)),
                files[i].second);
    }
  }
}

TEST(IndexTar, RefusesWhatIsNoWholeArchive) {
  const auto archive = testing::tar_bytes({{"1.jpg", std::string(700, 'a')}, {"1.cls", "3"}});
  const auto refused = [](const std::string& bytes, const std::string& why) {
    const auto path = written(bytes);
    EXPECT_THAT([&] { index_tar(path); }, ThrowsMessage<DataError>(AllOf(HasSubstr("archive.tar"), HasSubstr(why))));
  };
  refused(archive.substr(0, 1000), "byte 0: the archive ends within a file of 700 bytes");
  refused(archive.substr(0, 1600), "byte 1536: the archive ends early");
  refused(std::string(2048, 'x'), "byte 0: not a header of a tar archive");
  refused("", "the archive ends early");
  auto damaged = archive;
  damaged[1536 + 10] = 'x';
  refused(damaged, "byte 1536: not a header");
  EXPECT_THAT([] { index_tar("/no/such.tar"); }, ThrowsMessage<DataError>(HasSubstr("/no/such.tar")));
}

// An entry of another type, and, where it is given, with another size in its header.
std::string entry(char type, const std::string& name, const std::string& content, const std::string& size = "") {
  std::string bytes = tar_entry(name, content);
  bytes[156] = type;
  if (!size.empty()) bytes.replace(124, 12, size + std::string(12 - size.size(), '\0'));
  bytes.replace(148, 8, "        ");
  unsigned sum = 0;
  for (std::size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(bytes[i]);
  std::array<char, 8> digits{};
  std::snprintf(digits.data(), digits.size(), "%06o", sum);
  return bytes.replace(148, 8, digits.data(), 8);
}

std::string pax(const std::string& key_and_value) {
  auto length = key_and_value.size() + 3;  // with a space, a line feed and at least one digit
  while (std::to_string(length).size() + key_and_value.size() + 2 != length) ++length;
  return entry('x', "extended", std::to_string(length) + " " + key_and_value + "\n");
}

// Each of these would be read again and again, or beyond the end.
TEST(IndexTar, RefusesNumbersThatCannotBe) {
  const auto refused = [](const std::string& bytes, const std::string& why) {
    const auto path = written(bytes + tar_end());
    EXPECT_THAT([&] { index_tar(path); }, ThrowsMessage<DataError>(AllOf(HasSubstr("archive.tar"), HasSubstr(why))));
  };
  const auto file = tar_entry("1.jpg", "content");
  refused(pax("size=-1024") + file, "the size of a file is \"-1024\", not a number");
  refused(pax("size=7x") + file, "the size of a file is \"7x\", not a number");
  refused(pax("size=9223372036854775807") + file, "the archive ends within a file of 9223372036854775807 bytes");
  refused(pax("size=99999999999999999999") + file, "not a number");
  refused(entry('x', "extended", "0 size=7\n") + file, "a malformed extended header");
  refused(entry('x', "extended", "999 size=7\n") + file, "a malformed extended header");
  refused(entry('x', "extended", "9 size=7!") + file, "a malformed extended header");
  refused(entry('0', "1.jpg", "content", "-0000001000"), "the size of a file is not a number");
  refused(entry('0', "1.jpg", "content", std::string(12, '\xff')), "the size of a file is not a number");
  refused(entry('0', "1.jpg", "content", "\x80" + std::string(3, '\0') + std::string(8, '\x7f')), "byte 0: ");
}

TEST(IndexTar, AnExtendedHeaderIsForTheNextHeaderOfAnyType) {
  for (const auto& folder : {pax("path=folder") + entry('5', "f", ""), entry('L', "x", "folder") + entry('5', "f", "")}) {
    const auto entries = index_tar(written(folder + tar_entry("1.jpg", "content") + tar_end()));
    ASSERT_EQ(entries.size(), 1u);
    EXPECT_EQ(entries[0].name, "1.jpg");
  }
}

}  // namespace
}  // namespace phalanx
