// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/compression/orthogonal.h"

#include <cmath>

namespace phalanx {
namespace {

constexpr double kDependent = 1e-6;  // float32 columns are not more accurate than this

// The columns of a row-major matrix, each as a run of doubles.
class Columns {
 public:
  Columns(const float* matrix, std::int64_t rows, std::int64_t columns) : rows_(rows), values_(rows * columns) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) (*this)[column][row] = *matrix++;
    }
  }

  double* operator[](std::int64_t column) { return values_.data() + column * rows_; }

  double dot(std::int64_t a, std::int64_t b) {
    double sum = 0;
    for (std::int64_t row = 0; row < rows_; ++row) sum += (*this)[a][row] * (*this)[b][row];
    return sum;
  }
  double norm(std::int64_t column) { return std::sqrt(dot(column, column)); }

  void subtract_projection(std::int64_t column, std::int64_t unit) {
    const double length = dot(column, unit);
    for (std::int64_t row = 0; row < rows_; ++row) (*this)[column][row] -= length * (*this)[unit][row];
  }

  void scale(std::int64_t column, double factor) {
    for (std::int64_t row = 0; row < rows_; ++row) (*this)[column][row] *= factor;
  }
  void clear(std::int64_t column) {
    for (std::int64_t row = 0; row < rows_; ++row) (*this)[column][row] = 0;
  }

 private:
  std::int64_t rows_;
  std::vector<double> values_;
};

}  // namespace

std::vector<std::int64_t> orthonormalize(float* matrix, std::int64_t rows, std::int64_t columns) {
  Columns all(matrix, rows, columns);
  std::vector<std::int64_t> dependent;
  for (std::int64_t column = 0; column < columns; ++column) {
    const double before = all.norm(column);
    for (int pass = 0; pass < 2; ++pass) {
      for (std::int64_t unit = 0; unit < column; ++unit) all.subtract_projection(column, unit);
    }
    const double after = all.norm(column);
    if (std::isfinite(after) && after > kDependent * before) {
      all.scale(column, 1 / after);
    } else {
      all.clear(column);
      dependent.push_back(column);
    }
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) *matrix++ = static_cast<float>(all[column][row]);
  }
  return dependent;
}

}  // namespace phalanx
