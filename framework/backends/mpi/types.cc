// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/types.h"

#include <array>

#include "framework/backends/mpi/error.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {
namespace {

using Kind = Reduction::Kind;

// MPI's convention is result[i] = source[i] . result[i]. These reductions are commutative.
template <c10::ScalarType kDtype, Kind kKind>
void combine(void* source, void* result, int* count, MPI_Datatype*) {
  Reduction(kKind).combine(kDtype, result, source, *count);
}

template <c10::ScalarType kDtype, Kind kKind>
MPI_Op made_op() {
  static const MPI_Op op = [] {
    constexpr int kCommutative = 1;
    MPI_Op made = MPI_OP_NULL;
    check(MPI_Op_create(&combine<kDtype, kKind>, kCommutative, &made), "MPI_Op_create");
    return made;
  }();
  return op;
}

template <c10::ScalarType kDtype>
MPI_Op narrow_op(Kind kind) {
  switch (kind) {
    case Kind::kProduct:
      return made_op<kDtype, Kind::kProduct>();
    case Kind::kMin:
      return made_op<kDtype, Kind::kMin>();
    case Kind::kMax:
      return made_op<kDtype, Kind::kMax>();
    default:
      return made_op<kDtype, Kind::kSum>();
  }
}

MPI_Op bool_op(Kind kind) {
  switch (kind) {
    case Kind::kProduct:
    case Kind::kMin:
    case Kind::kBitAnd:
      return MPI_LAND;
    case Kind::kBitXor:
      return MPI_LXOR;
    default:
      return MPI_LOR;
  }
}

MPI_Op native_op(Kind kind) {
  switch (kind) {
    case Kind::kProduct:
      return MPI_PROD;
    case Kind::kMin:
      return MPI_MIN;
    case Kind::kMax:
      return MPI_MAX;
    case Kind::kBitAnd:
      return MPI_BAND;
    case Kind::kBitOr:
      return MPI_BOR;
    case Kind::kBitXor:
      return MPI_BXOR;
    default:
      return MPI_SUM;
  }
}

}  // namespace

MPI_Datatype type_of(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::kByte:
      return MPI_UINT8_T;
    case c10::kChar:
      return MPI_INT8_T;
    case c10::kShort:
      return MPI_INT16_T;
    case c10::kInt:
      return MPI_INT32_T;
    case c10::kLong:
      return MPI_INT64_T;
    case c10::kHalf:
    case c10::kBFloat16:
      return MPI_UINT16_T;
    case c10::kFloat:
      return MPI_FLOAT;
    case c10::kDouble:
      return MPI_DOUBLE;
    case c10::kBool:
      return MPI_C_BOOL;
    default:
      return MPI_DATATYPE_NULL;  // unreachable: the argument checks refuse all other dtypes
  }
}

MPI_Op op_of(const Reduction& reduction, c10::ScalarType dtype) {
  switch (dtype) {
    case c10::kHalf:
      return narrow_op<c10::kHalf>(reduction.kind());
    case c10::kBFloat16:
      return narrow_op<c10::kBFloat16>(reduction.kind());
    case c10::kBool:
      return bool_op(reduction.kind());
    default:
      return native_op(reduction.kind());
  }
}

MPI_Datatype make_run(MPI_Datatype element, MPI_Aint offset, std::int64_t count, std::int64_t most) {
  const auto expect_success = [](int code) { check(code, "creating an MPI datatype for a long run of elements"); };
  int size = 0;
  expect_success(MPI_Type_size(element, &size));
  const auto blocks = static_cast<int>(count / most), rest = static_cast<int>(count % most);
  MPI_Datatype block = MPI_DATATYPE_NULL, run = MPI_DATATYPE_NULL;
  expect_success(MPI_Type_contiguous(static_cast<int>(most), element, &block));
  const std::array<int, 2> counts{blocks, rest};
  const std::array<MPI_Aint, 2> offsets{offset, offset + static_cast<MPI_Aint>(blocks * most * size)};
  const std::array<MPI_Datatype, 2> types{block, element};
  expect_success(MPI_Type_create_struct(2, counts.data(), offsets.data(), types.data(), &run));
  expect_success(MPI_Type_commit(&run));
  MPI_Type_free(&block);
  return run;
}

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
