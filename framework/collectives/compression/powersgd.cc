// SPDX-License-Identifier: Apache-2.0
// PowerSGD (Vogels et al.: PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization, 2019):
// approximates each matrix M [m, l] of the bucket by a product of rank r, found by one step of subspace iteration, with
// error feedback. Q [l, r] is the same on all ranks and random at first; each rank has a residual e, which is zero at
// first. A step is
//
//   1. M += e;  P = mean over ranks of M Q                     all_reduce of m r floats
//   2. P = orthonormalize(P)                                   each rank by itself, with the same bits
//   3. Q = M' P;  e = M - P Q'
//   4. Q = mean over ranks of Q;  M = P Q'                     all_reduce of l r floats
//
// The next step starts from Q (warm start), so that over several steps P finds the directions that matter. A direction
// that P lacks is drawn again at random. A mean of rank r or less is exact up to rounding.
//
// A parameter with two or more dimensions is a matrix of its first dimension by the product of the others. Without
// shapes, the bucket is one matrix of floor(sqrt n) rows, plus a remainder. Vectors, the remainder, and matrices that
// would not get smaller, (m + l) r >= m l, are sent uncompressed together with P. The first `start_after` steps are not
// compressed at all. Wire: 2 (P - 1) / P 4 (u + sum of (m + l) r) bytes per rank and step, where u elements are
// uncompressed.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "framework/base/random.h"
#include "framework/collectives/compression/compressor.h"
#include "framework/collectives/compression/orthogonal.h"

namespace phalanx {
namespace {

struct PowerSgdConfig {
  std::int64_t rank = 2;
  std::int64_t start_after = 0;
  bool warm_start = true;

  template <class V>
  void visit(V& v) {
    v("rank", rank, "rank of the approximation", config::between(1, 1024));
    v("start_after", start_after, "initial steps without compression", config::at_least(0));
    v("warm_start", warm_start, "start from the factors of the previous step");
  }
};

// A run of the bucket: a matrix that is compressed or, with rank 0, a vector that is not.
struct Piece {
  std::int64_t begin = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 1;
  std::int64_t rank = 0;

  std::int64_t elements() const { return rows * columns; }
  std::int64_t p_elements() const { return rank > 0 ? rows * rank : elements(); }
  std::int64_t q_elements() const { return columns * rank; }
};

Piece make_piece(std::int64_t begin, std::int64_t rows, std::int64_t columns, std::int64_t rank) {
  const auto possible = std::min({rank, rows, columns});
  const bool smaller = (rows + columns) * possible < rows * columns;
  return smaller ? Piece{begin, rows, columns, possible} : Piece{.begin = begin, .rows = rows * columns};
}

std::vector<Piece> pieces_of(const BucketLayout& layout, std::int64_t rank) {
  std::vector<Piece> pieces;
  if (layout.shapes.empty() && layout.elements > 0) {
    const auto rows = static_cast<std::int64_t>(std::sqrt(static_cast<double>(layout.elements)));
    const auto columns = layout.elements / rows;
    pieces.push_back(make_piece(0, rows, columns, rank));
    pieces.push_back(make_piece(rows * columns, layout.elements - rows * columns, 1, rank));
  }
  std::int64_t begin = 0;
  for (const auto& shape : layout.shapes) {
    std::int64_t elements = 1;
    for (const auto size : shape) elements *= size;
    const auto rows = shape.size() < 2 || elements == 0 ? elements : shape.front();
    pieces.push_back(make_piece(begin, rows, elements / std::max<std::int64_t>(rows, 1), rank));
    begin += elements;
  }
  std::erase_if(pieces, [](const Piece& piece) { return piece.elements() == 0; });
  return pieces;
}

// Sets one column of `q` to random numbers, uniform in [-1, 1), which are the same on every rank and platform.
void draw(const at::Tensor& q, std::int64_t column, std::uint64_t seed) {
  auto* values = q.mutable_data_ptr<float>();
  for (std::int64_t row = 0; row < q.size(0); ++row) {
    const auto bits = mix(seed, static_cast<std::uint64_t>(row * q.size(1) + column)) >> 40;
    values[row * q.size(1) + column] = static_cast<float>(bits) * 0x1p-23F - 1;
  }
}

// Computes m = p q' in a fixed order of operations, unlike a library's product, so that all ranks get the same bits.
void multiply(const at::Tensor& m, const at::Tensor& p, const at::Tensor& q) {
  const at::Tensor transposed = q.t().contiguous();
  const auto rank = p.size(1);
  const auto columns = m.size(1);
  const auto* left = p.const_data_ptr<float>();
  auto* row = m.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < m.size(0); ++i, row += columns) {
    std::fill_n(row, columns, 0.0F);
    for (std::int64_t k = 0; k < rank; ++k) {
      const float factor = *left++;
      const float* right = transposed.const_data_ptr<float>() + k * columns;
      for (std::int64_t j = 0; j < columns; ++j) row[j] += factor * right[j];
    }
  }
}

class PowerSgd final : public Compressor {
 public:
  PowerSgd(const PowerSgdConfig& config, const BucketLayout& layout)
      : Compressor(layout, config.start_after), config_(config), pieces_(pieces_of(layout, config.rank)) {}

  StateDict state(const Communicator&) override {
    make_buffers();
    return {{"steps", steps(), true}, {"q", q_, true}, {"residual", residual_}};
  }

 private:
  // A piece, its values, and its parts of the messages.
  struct View {
    const Piece& piece;
    at::Tensor values;    // [rows, columns]
    at::Tensor residual;  // [rows, columns]
    at::Tensor p;         // [rows, rank]; for a vector its values, [rows, 1]
    at::Tensor q;         // [columns, rank]
  };

  void exchange(Wire& wire, at::Tensor tensor) override {
    const auto step = *steps().const_data_ptr<std::int64_t>();
    const auto views = views_of(tensor);
    if (step == start_after() || !config_.warm_start) draw_all(views, step);

    tensor.add_(residual_);
    for (const auto& view : views) project(view);
    wire.all_reduce(p_, Reduction::kMean);

    std::vector<std::vector<std::int64_t>> dependent;
    for (const auto& view : views) dependent.push_back(turn(view));
    if (q_.numel() > 0) wire.all_reduce(q_, Reduction::kMean);

    for (std::size_t i = 0; i < views.size(); ++i) {
      deliver(views[i]);
      for (const auto column : dependent[i]) draw(views[i].q, column, seed(i, step));
    }
  }

  std::vector<View> views_of(const at::Tensor& tensor) {
    make_buffers();
    std::vector<View> views;
    std::int64_t p_begin = 0, q_begin = 0;
    for (const auto& piece : pieces_) {
      const auto of_bucket = [&](const at::Tensor& flat) {
        return flat.narrow(0, piece.begin, piece.elements()).view({piece.rows, piece.columns});
      };
      views.push_back(
          {piece, of_bucket(tensor), of_bucket(residual_),
           p_.narrow(0, p_begin, piece.p_elements()).view({piece.rows, std::max<std::int64_t>(piece.rank, 1)}),
           q_.narrow(0, q_begin, piece.q_elements()).view({piece.columns, piece.rank})});
      p_begin += piece.p_elements();
      q_begin += piece.q_elements();
    }
    return views;
  }

  void make_buffers() {
    if (residual_.defined()) return;
    std::int64_t p_elements = 0, q_elements = 0;
    for (const auto& piece : pieces_) {
      p_elements += piece.p_elements();
      q_elements += piece.q_elements();
    }
    p_ = at::empty({p_elements}, at::kFloat);
    q_ = at::zeros({q_elements}, at::kFloat);
    residual_ = at::zeros({layout().elements}, at::kFloat);
  }

  void draw_all(const std::vector<View>& views, std::int64_t step) const {
    for (std::size_t i = 0; i < views.size(); ++i) {
      for (std::int64_t column = 0; column < views[i].piece.rank; ++column) draw(views[i].q, column, seed(i, step));
    }
  }

  static std::uint64_t seed(std::size_t piece, std::int64_t step) {
    return mix(mix(0, static_cast<std::uint64_t>(step)), piece);
  }

  static void project(const View& view) {
    at::Tensor p = view.p;
    if (view.piece.rank == 0) {
      p.copy_(view.values);
    } else {
      at::mm_out(p, view.values, view.q);
    }
  }

  // Performs steps 2 and 3. Returns the dependent columns of P.
  static std::vector<std::int64_t> turn(const View& view) {
    if (view.piece.rank == 0) return {};
    at::Tensor q = view.q;
    const bool finite = at::isfinite(view.p).all().item<bool>();
    auto dependent = orthonormalize(view.p.mutable_data_ptr<float>(), view.piece.rows, view.piece.rank);
    if (finite) {
      at::mm_out(q, view.values.t(), view.p);
      at::Tensor residual = view.residual;
      residual.copy_(view.values).addmm_(view.p, q.t(), 1, -1);
    } else {
      // M is not finite on at least one rank: all ranks deliver NaN and keep their previous residual.
      view.p.fill_(std::numeric_limits<float>::quiet_NaN());
      q.zero_();
    }
    return dependent;
  }

  static void deliver(const View& view) {
    if (view.piece.rank == 0) {
      view.values.copy_(view.p);
    } else {
      multiply(view.values, view.p, view.q);
    }
  }

  PowerSgdConfig config_;
  std::vector<Piece> pieces_;
  at::Tensor p_, q_;     // P (or the values) and Q of all pieces, one after the other; one message each
  at::Tensor residual_;  // [n] e; 0 for uncompressed elements
};

const bool powersgd_registered =
    Compressors::global().add<PowerSgdConfig>("powersgd", "low-rank approximation of matrices, with error feedback",
                                              [](const PowerSgdConfig& config, const BucketLayout& layout) {
                                                return std::make_unique<PowerSgd>(config, layout);
                                              });

}  // namespace
}  // namespace phalanx
