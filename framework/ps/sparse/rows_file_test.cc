// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/sparse/rows_file.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/storage/safetensors.h"
#include "framework/ps/testing/service.h"

namespace phalanx::ps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Service;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

constexpr std::int64_t kStoredDim = 3;

TableSpec stored_rows() {
  return {.name = "t",
          .rules = {"{name: adagrad}"},
          .dim = kStoredDim,
          .sparse = {.keys = 1'000'000, .capacity = 100'000, .initial = "normal", .scale = 2, .seed = 5}};
}

class RowsFileTest : public ::testing::Test {
 protected:
  void expect_refused(const NamedTensors& tensors, const std::string& why) const {
    save_safetensors(path_, tensors);
    EXPECT_THAT([&] { RowsFile(path_, stored_rows()); },
                ThrowsMessage<DataError>(AllOf(StartsWith(path_ + ": "), HasSubstr(why))));
  }

  const std::string path_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

at::Tensor read(const RowsFile& file, const at::Tensor& keys) {
  at::Tensor rows = at::empty({keys.numel(), kStoredDim});
  file.read(keys, rows);
  return rows;
}

// The table has more than one block of rows per server, so several blocks are combined in the file.
TEST_F(RowsFileTest, HasTheRowsOfTheServersAndInitialValuesOfOthers) {
  const auto keys = at::arange(5000, at::kLong) * 101, others = keys + 1;
  for (const int servers : {1, 3}) {
    at::Tensor expected, expected_others;
    {
      const Service service(servers, "unix");
      const auto client = service.client();
      SparseTable table(*client, stored_rows());
      table.push(keys, at::arange(5000 * kStoredDim, at::kFloat).reshape({5000, kStoredDim}), {.scale = 0.5}).wait();
      write_rows_file(path_, table);
      expected = table.pull(keys);
      expected_others = table.pull(others);
    }
    const RowsFile file(path_, stored_rows());
    EXPECT_EQ(file.rows(), 5000);
    EXPECT_TRUE(read(file, keys).equal(expected)) << servers;
    EXPECT_TRUE(read(file, others).equal(expected_others)) << servers;
    EXPECT_TRUE(read(file, keys.flip(0)).equal(expected.flip(0))) << servers;
    EXPECT_EQ(read(file, keys.narrow(0, 0, 0)).numel(), 0);
  }
}

TEST_F(RowsFileTest, HasOnlyInitialValuesOfAnUnusedTable) {
  const Service service(2, "unix");
  const auto client = service.client();
  SparseTable table(*client, stored_rows());
  write_rows_file(path_, table);
  const RowsFile file(path_, stored_rows());
  EXPECT_EQ(file.rows(), 0);
  const auto keys = at::arange(10, at::kLong);
  EXPECT_TRUE(read(file, keys).equal(table.pull(keys)));
}

TEST_F(RowsFileTest, ADamagedFileIsRefused) {
  const auto keys = at::tensor(std::vector<std::int64_t>{3, 1, 2});
  const auto rows = at::zeros({3, kStoredDim});
  expect_refused({{"keys", keys}}, "no int64 \"keys\" [r] and float32 \"rows\" [r, dim]");
  expect_refused({{"keys", keys.to(at::kInt)}, {"rows", rows}}, "no int64 \"keys\"");
  expect_refused({{"keys", keys}, {"rows", rows.narrow(0, 0, 2)}}, "no int64 \"keys\"");
  expect_refused({{"keys", keys}, {"rows", at::zeros({3, 8})}}, "rows have 8 numbers, the rows of the table have 3");
  for (const std::int64_t wrong : {-1, 1'000'000}) {
    const auto one = at::tensor(std::vector<std::int64_t>{1, wrong, 2});
    expect_refused({{"keys", one}, {"rows", rows}}, "the table has no key " + std::to_string(wrong));
  }
  expect_refused({{"keys", at::tensor(std::vector<std::int64_t>{3, 1, 3})}, {"rows", rows}}, "key 3 appears twice");
}

TEST_F(RowsFileTest, AFileCutAnywhereIsRefused) {
  save_safetensors(path_, {{"keys", at::arange(2, at::kLong)}, {"rows", at::zeros({2, kStoredDim})}});
  const std::string whole = read_file(path_);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_atomically(path_, whole.substr(0, length));
    EXPECT_THAT([&] { RowsFile(path_, stored_rows()); }, ThrowsMessage<DataError>(StartsWith(path_ + ": "))) << length;
  }
}

TEST_F(RowsFileTest, AFileThatIsCutLaterIsAnErrorToo) {
  save_safetensors(path_, {{"keys", at::arange(2, at::kLong)}, {"rows", at::zeros({2, kStoredDim})}});
  const RowsFile file(path_, stored_rows());
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 4);
  EXPECT_THAT([&] { read(file, at::arange(2, at::kLong)); },
              ThrowsMessage<DataError>(path_ + ": row 1 cannot be read: the file has become shorter"));
}

}  // namespace
}  // namespace phalanx::ps
