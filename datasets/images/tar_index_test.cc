#include "datasets/images/tar_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace phalanx
