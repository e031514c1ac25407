// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/tar_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <numeric>
#include <string>

#include "datasets/images/tar_entry.h"
#include "datasets/testing/image_files.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::tar_bytes;
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

TEST(IndexTar, RefusesFilesThatAreNotWholeArchives) {
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

// Replaces a field of an archive's first header and updates the checksum.
std::string with_field(std::string archive, std::size_t place, const std::string& field) {
  archive.replace(place, field.size(), field).replace(148, 8, "        ");
  const auto sum = std::accumulate(archive.begin(), archive.begin() + 512, 0U,
                                   [](unsigned total, char byte) { return total + static_cast<unsigned char>(byte); });
  std::array<char, 8> digits{};
  std::snprintf(digits.data(), digits.size(), "%06o", sum);
  return archive.replace(148, 7, std::string(digits.data()) + '\0');
}

// Returns an archive with a header of `type` before a file of five bytes.
std::string after_header(char type, const std::string& content) {
  return with_field(tar_entry("header", content), 156, {type}) + tar_entry("1.cls", "7 \n\n\n") + tar_end();
}

TEST(IndexTar, RefusesImpossibleNumbers) {
  const auto refused = [](const std::string& bytes, const std::string& why) {
    const auto path = written(bytes);
    EXPECT_THAT([&] { index_tar(path); }, ThrowsMessage<DataError>(HasSubstr(why)));
  };
  for (const char* size : {"-512", "-1024", "9223372036854775808", "5x"}) {
    const std::string record = std::string(" size=") + size + "\n";
    const auto length = record.size() + 2;  // the length has two digits
    refused(after_header('x', std::to_string(length) + record),
            "an extended header has a size that is not a number: \"" + std::string(size));
  }
  refused(after_header('x', "28 size=9223372036854775807\n"), "the archive ends within a file of 9223372036854775807");
  for (const char* records : {"0 size=1\n", "10 size=10\n", "99 size=1\n", "-10 size=1\n", "7 size=\n1", "x"}) {
    refused(after_header('x', records), "a damaged extended header");
  }
  const auto archive = tar_bytes({{"1.cls", "3"}});
  refused(with_field(archive, 124, "-0000001000"), "the size of a file is not a number");
  refused(with_field(archive, 124, std::string(12, '\xff')), "the size of a file is not a number");
  refused(with_field(archive, 124, '\x80' + std::string(11, '\x7f')), "the size of a file is not a number");
  refused(with_field(archive, 124, std::string("\x80\0\0\0\x7f", 5) + std::string(7, '\xff')),
          "the archive ends within");
}

TEST(IndexTar, AppliesAnExtendedHeaderOnlyToTheNextEntry) {
  const std::string name(120, 'd');
  for (const char type : {'2', '5'}) {
    auto archive = tar_bytes({{name, ""}});  // has two headers: the long name and the entry
    archive = archive.substr(0, 1024) + with_field(archive.substr(1024, 512), 156, {type}) + tar_entry("1.cls", "3") +
              tar_end();
    const auto entries = index_tar(written(archive));
    ASSERT_EQ(entries.size(), 1U);
    EXPECT_EQ(entries[0].name, "1.cls");
  }
}

std::string link_entry(const std::string& name, const std::string& target) {
  return with_field(with_field(tar_entry(name, ""), 156, "1"), 157, target);
}

TEST(IndexTar, ResolvesHardLinks) {
  const std::string long_name(120, 'n'), zero(1, '\0');
  const auto long_target = with_field(tar_entry("long", long_name + zero), 156, "K");
  const auto archive = tar_entry("1.jpg", "content") + link_entry("2.jpg", "1.jpg") +
                       tar_bytes({{long_name, "other"}}).substr(0, 2048) + long_target +
                       link_entry("3.jpg", long_name.substr(0, 100)) + tar_end();
  const auto entries = index_tar(written(archive));
  ASSERT_EQ(entries.size(), 4U);
  EXPECT_EQ(entries[1].name, "2.jpg");
  EXPECT_EQ(entries[1].offset, entries[0].offset);
  EXPECT_EQ(entries[1].size, 7);
  EXPECT_EQ(entries[3].offset, entries[2].offset);
  const auto path = written(link_entry("2.jpg", "1.jpg") + tar_entry("1.jpg", "content") + tar_end());
  EXPECT_THAT([&] { index_tar(path); },
              ThrowsMessage<DataError>(HasSubstr("2.jpg is a link to 1.jpg, which does not come before it")));
}

// Some archives have a link for each file, so that a search through all entries for each link would be quadratic.
TEST(IndexTar, ResolvesManyHardLinksToTheFirstFileOfTheirName) {
  constexpr int kLinks = 20'000;
  std::string archive = tar_entry("1.jpg", "content") + tar_entry("1.jpg", "other");
  for (int i = 0; i < kLinks; ++i) {
    archive += link_entry(std::to_string(i), i == 0 ? "1.jpg" : std::to_string(i - 1));
  }
  const auto entries = index_tar(written(archive + tar_end()));
  ASSERT_EQ(entries.size(), kLinks + 2U);
  EXPECT_EQ(entries.back().offset, entries.front().offset);
}

}  // namespace
}  // namespace phalanx
