// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/compression/orthogonal.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Matrix {
 public:
  Matrix(std::int64_t rows, std::int64_t columns, std::vector<float> values)
      : rows_(rows), columns_(columns), values_(std::move(values)) {}

  std::vector<std::int64_t> orthonormalize() { return phalanx::orthonormalize(values_.data(), rows_, columns_); }
  float at(std::int64_t row, std::int64_t column) const { return values_[row * columns_ + column]; }
  const std::vector<float>& values() const { return values_; }
  double dot(std::int64_t a, std::int64_t b) const {
    double sum = 0;
    for (std::int64_t row = 0; row < rows_; ++row) sum += static_cast<double>(at(row, a)) * at(row, b);
    return sum;
  }

 private:
  std::int64_t rows_, columns_;
  std::vector<float> values_;
};

TEST(Orthonormalize, TurnsColumnsFromLeftToRight) {
  Matrix matrix(2, 2, {3, 1, 4, 7});
  EXPECT_THAT(matrix.orthonormalize(), IsEmpty());
  EXPECT_FLOAT_EQ(matrix.at(0, 0), 0.6F);
  EXPECT_FLOAT_EQ(matrix.at(1, 0), 0.8F);
  EXPECT_FLOAT_EQ(matrix.at(0, 1), -0.8F);
  EXPECT_FLOAT_EQ(matrix.at(1, 1), 0.6F);
}

// A single pass in float would leave dot products of 1e-2 here.
TEST(Orthonormalize, WorksForNearlyEqualColumns) {
  std::vector<float> values;
  for (int row = 0; row < 50; ++row) {
    for (int column = 0; column < 4; ++column) {
      values.push_back(1 + 1e-4F * static_cast<float>((row * (column + 1) * 7919) % 101));
    }
  }
  Matrix matrix(50, 4, values);
  EXPECT_THAT(matrix.orthonormalize(), IsEmpty());
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) EXPECT_NEAR(matrix.dot(a, b), a == b ? 1 : 0, 1e-6) << a << ", " << b;
  }
}

TEST(Orthonormalize, ReturnsDependentColumns) {
  // The columns are 0, a vector, twice that vector, another vector, and the sum of the two.
  Matrix matrix(3, 5,
                {0, 1, 2, 1, 2,  //
                 0, 2, 4, 0, 2,  //
                 0, 3, 6, 0, 3});
  EXPECT_THAT(matrix.orthonormalize(), ElementsAre(0, 2, 4));
  for (const int column : {0, 2, 4}) EXPECT_EQ(matrix.dot(column, column), 0);
  for (const int column : {1, 3}) EXPECT_NEAR(matrix.dot(column, column), 1, 1e-6);
  EXPECT_NEAR(matrix.dot(1, 3), 0, 1e-6);
}

TEST(Orthonormalize, ZeroesColumnsThatAreNotFinite) {
  Matrix matrix(2, 2, {std::numeric_limits<float>::quiet_NaN(), 3, 1, 4});
  EXPECT_THAT(matrix.orthonormalize(), ElementsAre(0));
  EXPECT_FLOAT_EQ(matrix.at(0, 1), 0.6F);
}

TEST(Orthonormalize, GivesTheSameBitsAtAnyAlignment) {
  std::vector<float> values;
  for (int i = 0; i < 37 * 3; ++i) values.push_back(std::sin(static_cast<float>(i * i)));
  Matrix matrix(37, 3, values);
  matrix.orthonormalize();
  std::vector<float> shifted(values.size() + 3);
  for (std::size_t shift = 1; shift <= 3; ++shift) {
    std::ranges::copy(values, shifted.begin() + static_cast<std::ptrdiff_t>(shift));
    phalanx::orthonormalize(shifted.data() + shift, 37, 3);
    EXPECT_TRUE(std::equal(matrix.values().begin(), matrix.values().end(), shifted.begin() + shift));
  }
}

}  // namespace
}  // namespace phalanx
