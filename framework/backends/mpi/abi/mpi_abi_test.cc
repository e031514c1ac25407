// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/abi/mpi_abi.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>

// Compares our declarations with those of MPICH, whose macros and global names replace ours after it is included.
namespace phalanx::mpi {
namespace {

struct Constant {
  const char* name;
  std::intptr_t value;
};

#define PHALANX_VALUE(type, name, value) {#name, (std::intptr_t)(name)},
const Constant kOurs[] = {PHALANX_MPI_NUMBERS(PHALANX_VALUE) PHALANX_MPI_HANDLES(PHALANX_VALUE)};

using OurStatus = MPI_Status;

#define PHALANX_TYPE(name, ...) using Our_##name = std::remove_pointer_t<decltype(name)>;
PHALANX_MPI_FUNCTIONS(PHALANX_TYPE)

const auto kOurInPlace = reinterpret_cast<std::intptr_t>(MPI_IN_PLACE);
const auto kOurStatusIgnore = reinterpret_cast<std::intptr_t>(MPI_STATUS_IGNORE);

}  // namespace
}  // namespace phalanx::mpi

#if __has_include(<mpi_abi.h>)
#include <mpi_abi.h>

// Outside of our namespace, so that the names are theirs. Some are macros, others are enumerators.
static const std::intptr_t kTheirs[] = {
#define PHALANX_THEIR_VALUE(type, name, value) (std::intptr_t)(name),
    PHALANX_MPI_NUMBERS(PHALANX_THEIR_VALUE) PHALANX_MPI_HANDLES(PHALANX_THEIR_VALUE)};
static const std::intptr_t kTheirInPlace = (std::intptr_t)(MPI_IN_PLACE);
static const std::intptr_t kTheirStatusIgnore = (std::intptr_t)(MPI_STATUS_IGNORE);

namespace phalanx::mpi {
namespace {

// The only type of arguments that has a name of its own here, because that of the standard has none.
template <class Type>
struct AsTheirs {
  using type = Type;
};
template <>
struct AsTheirs<OurStatus*> {
  using type = ::MPI_Status*;
};
template <>
struct AsTheirs<const OurStatus*> {
  using type = const ::MPI_Status*;
};
template <class... Arguments>
struct AsTheirs<int(Arguments...)> {
  using type = int(typename AsTheirs<Arguments>::type...);
};

TEST(MpiAbi, ConstantsAreThoseOfAnMpi) {
  ASSERT_EQ(std::size(kTheirs), std::size(kOurs));
  for (std::size_t i = 0; i < std::size(kOurs); ++i) EXPECT_EQ(kOurs[i].value, kTheirs[i]) << kOurs[i].name;
  EXPECT_EQ(kOurInPlace, kTheirInPlace);
  EXPECT_EQ(kOurStatusIgnore, kTheirStatusIgnore);
}

TEST(MpiAbi, TypesAreThoseOfAnMpi) {
  EXPECT_TRUE((std::is_same_v<standard_abi::MPI_Comm, ::MPI_Comm>));
  EXPECT_TRUE((std::is_same_v<standard_abi::MPI_Aint, ::MPI_Aint>));
  EXPECT_TRUE((std::is_same_v<standard_abi::MPI_Count, ::MPI_Count>));
  EXPECT_EQ(sizeof(OurStatus), sizeof(::MPI_Status));
  EXPECT_EQ(offsetof(OurStatus, MPI_ERROR), offsetof(::MPI_Status, MPI_ERROR));
}

TEST(MpiAbi, FunctionsAreThoseOfAnMpi) {
#define PHALANX_SAME(name, ...) EXPECT_TRUE((std::is_same_v<AsTheirs<Our_##name>::type, decltype(::name)>)) << #name;
  PHALANX_MPI_FUNCTIONS(PHALANX_SAME)
}

}  // namespace
}  // namespace phalanx::mpi

#else

TEST(MpiAbi, IsThatOfAnMpi) { GTEST_SKIP() << "MPICH, whose header has the declarations, could not be downloaded"; }

#endif
