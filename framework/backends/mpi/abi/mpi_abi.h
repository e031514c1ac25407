// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The types of handles that the standard names.
struct MPI_ABI_Comm;
struct MPI_ABI_Datatype;
struct MPI_ABI_Errhandler;
struct MPI_ABI_File;
struct MPI_ABI_Info;
struct MPI_ABI_Message;
struct MPI_ABI_Op;
struct MPI_ABI_Request;

/// The part of the standard ABI of MPI 5.0 that the backend uses (chapter "Application Binary Interface" and the
/// appendix of constants of the MPI standard). mpi_abi_test.cc compares it with the header of an MPI that has the ABI.
///
/// Functions are pointers that load_library() (library.h) sets, so that a program needs no MPI to be linked or started.
/// They are null before that.
namespace phalanx::mpi::inline standard_abi {

using MPI_Comm = MPI_ABI_Comm*;
using MPI_Datatype = MPI_ABI_Datatype*;
using MPI_Errhandler = MPI_ABI_Errhandler*;
using MPI_File = MPI_ABI_File*;
using MPI_Info = MPI_ABI_Info*;
using MPI_Message = MPI_ABI_Message*;
using MPI_Op = MPI_ABI_Op*;
using MPI_Request = MPI_ABI_Request*;

using MPI_Aint = std::intptr_t;
using MPI_Count = std::int64_t;

struct MPI_Status {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int MPI_internal[5];
};

using MPI_User_function = void(void* source, void* result, int* count, MPI_Datatype* type);

/// Constants, as F(type, name, value). Error classes and keys are numbers, handles are small addresses.
///
/// MPI_ERRORS_RETURN is missing: Intel MPI 2021.18 has exchanged it with MPI_ERRORS_ABORT (errors_return() of vendor.h
/// finds it).
#define PHALANX_MPI_NUMBERS(F)        \
  F(int, MPI_SUCCESS, 0)              \
  F(int, MPI_ERR_TRUNCATE, 15)        \
  F(int, MPI_UNDEFINED, -32766)       \
  F(int, MPI_THREAD_SINGLE, 0)        \
  F(int, MPI_THREAD_FUNNELED, 1024)   \
  F(int, MPI_THREAD_SERIALIZED, 2048) \
  F(int, MPI_THREAD_MULTIPLE, 4096)   \
  F(int, MPI_COMM_TYPE_SHARED, 221)   \
  F(int, MPI_TAG_UB, 501)             \
  F(int, MPI_MAX_ERROR_STRING, 512)   \
  F(int, MPI_MAX_LIBRARY_VERSION_STRING, 8192)

#define PHALANX_MPI_HANDLES(F)                  \
  F(MPI_Op, MPI_OP_NULL, 0x20)                  \
  F(MPI_Op, MPI_SUM, 0x21)                      \
  F(MPI_Op, MPI_MIN, 0x22)                      \
  F(MPI_Op, MPI_MAX, 0x23)                      \
  F(MPI_Op, MPI_PROD, 0x24)                     \
  F(MPI_Op, MPI_BAND, 0x28)                     \
  F(MPI_Op, MPI_BOR, 0x29)                      \
  F(MPI_Op, MPI_BXOR, 0x2a)                     \
  F(MPI_Op, MPI_LAND, 0x30)                     \
  F(MPI_Op, MPI_LOR, 0x31)                      \
  F(MPI_Op, MPI_LXOR, 0x32)                     \
  F(MPI_Comm, MPI_COMM_NULL, 0x100)             \
  F(MPI_Comm, MPI_COMM_WORLD, 0x101)            \
  F(MPI_Comm, MPI_COMM_SELF, 0x102)             \
  F(MPI_File, MPI_FILE_NULL, 0x118)             \
  F(MPI_Message, MPI_MESSAGE_NULL, 0x128)       \
  F(MPI_Info, MPI_INFO_NULL, 0x130)             \
  F(MPI_Errhandler, MPI_ERRHANDLER_NULL, 0x140) \
  F(MPI_Request, MPI_REQUEST_NULL, 0x180)       \
  F(MPI_Datatype, MPI_DATATYPE_NULL, 0x200)     \
  F(MPI_Datatype, MPI_INT, 0x209)               \
  F(MPI_Datatype, MPI_FLOAT, 0x210)             \
  F(MPI_Datatype, MPI_DOUBLE, 0x214)            \
  F(MPI_Datatype, MPI_C_BOOL, 0x238)            \
  F(MPI_Datatype, MPI_INT8_T, 0x240)            \
  F(MPI_Datatype, MPI_UINT8_T, 0x241)           \
  F(MPI_Datatype, MPI_BYTE, 0x247)              \
  F(MPI_Datatype, MPI_INT16_T, 0x248)           \
  F(MPI_Datatype, MPI_UINT16_T, 0x249)          \
  F(MPI_Datatype, MPI_INT32_T, 0x250)           \
  F(MPI_Datatype, MPI_INT64_T, 0x258)

#define PHALANX_MPI_NUMBER(type, name, value) inline constexpr type name = value;
#define PHALANX_MPI_HANDLE(type, name, value) inline const type name = reinterpret_cast<type>(std::uintptr_t{value});
PHALANX_MPI_NUMBERS(PHALANX_MPI_NUMBER)
PHALANX_MPI_HANDLES(PHALANX_MPI_HANDLE)
#undef PHALANX_MPI_NUMBER
#undef PHALANX_MPI_HANDLE

inline void* const MPI_IN_PLACE = reinterpret_cast<void*>(std::uintptr_t{1});
inline constexpr MPI_Status* MPI_STATUS_IGNORE = nullptr;

/// Functions that return int, as F(name, parameters...).
#define PHALANX_MPI_FUNCTIONS(F)                                                                                       \
  F(MPI_Abi_get_version, int* major, int* minor)                                                                       \
  F(MPI_Abort, MPI_Comm comm, int status)                                                                              \
  F(MPI_Allreduce, const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)                 \
  F(MPI_Comm_free, MPI_Comm* comm)                                                                                     \
  F(MPI_Comm_get_attr, MPI_Comm comm, int key, void* value, int* found)                                                \
  F(MPI_Comm_idup, MPI_Comm comm, MPI_Comm* copy, MPI_Request* request)                                                \
  F(MPI_Comm_rank, MPI_Comm comm, int* rank)                                                                           \
  F(MPI_Comm_set_errhandler, MPI_Comm comm, MPI_Errhandler handler)                                                    \
  F(MPI_Comm_size, MPI_Comm comm, int* size)                                                                           \
  F(MPI_Comm_split, MPI_Comm comm, int color, int key, MPI_Comm* part)                                                 \
  F(MPI_Comm_split_type, MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* part)                        \
  F(MPI_Error_class, int code, int* error_class)                                                                       \
  F(MPI_Error_string, int code, char* text, int* length)                                                               \
  F(MPI_File_get_errhandler, MPI_File file, MPI_Errhandler* handler)                                                   \
  F(MPI_Finalize)                                                                                                      \
  F(MPI_Finalized, int* flag)                                                                                          \
  F(MPI_Get_elements_x, const MPI_Status* status, MPI_Datatype type, MPI_Count* count)                                 \
  F(MPI_Get_library_version, char* text, int* length)                                                                  \
  F(MPI_Iallgather, const void* from, int count, MPI_Datatype type, void* to, int to_count, MPI_Datatype to_type,      \
    MPI_Comm comm, MPI_Request* request)                                                                               \
  F(MPI_Iallgatherv, const void* from, int count, MPI_Datatype type, void* to, const int* to_counts,                   \
    const int* to_begins, MPI_Datatype to_type, MPI_Comm comm, MPI_Request* request)                                   \
  F(MPI_Iallreduce, const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,                \
    MPI_Request* request)                                                                                              \
  F(MPI_Ialltoall, const void* from, int count, MPI_Datatype type, void* to, int to_count, MPI_Datatype to_type,       \
    MPI_Comm comm, MPI_Request* request)                                                                               \
  F(MPI_Ialltoallw, const void* from, const int* counts, const int* begins, const MPI_Datatype* types, void* to,       \
    const int* to_counts, const int* to_begins, const MPI_Datatype* to_types, MPI_Comm comm, MPI_Request* request)     \
  F(MPI_Ibarrier, MPI_Comm comm, MPI_Request* request)                                                                 \
  F(MPI_Ibcast, void* data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request)               \
  F(MPI_Igather, const void* from, int count, MPI_Datatype type, void* to, int to_count, MPI_Datatype to_type,         \
    int root, MPI_Comm comm, MPI_Request* request)                                                                     \
  F(MPI_Igatherv, const void* from, int count, MPI_Datatype type, void* to, const int* to_counts,                      \
    const int* to_begins, MPI_Datatype to_type, int root, MPI_Comm comm, MPI_Request* request)                         \
  F(MPI_Improbe, int source, int tag, MPI_Comm comm, int* found, MPI_Message* message, MPI_Status* status)             \
  F(MPI_Imrecv, void* data, int count, MPI_Datatype type, MPI_Message* message, MPI_Request* request)                  \
  F(MPI_Init_thread, int* argc, char*** argv, int required, int* provided)                                             \
  F(MPI_Initialized, int* flag)                                                                                        \
  F(MPI_Ireduce, const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,         \
    MPI_Request* request)                                                                                              \
  F(MPI_Ireduce_scatter, const void* from, void* to, const int* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm,   \
    MPI_Request* request)                                                                                              \
  F(MPI_Ireduce_scatter_block, const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,     \
    MPI_Request* request)                                                                                              \
  F(MPI_Iscatter, const void* from, int count, MPI_Datatype type, void* to, int to_count, MPI_Datatype to_type,        \
    int root, MPI_Comm comm, MPI_Request* request)                                                                     \
  F(MPI_Iscatterv, const void* from, const int* counts, const int* begins, MPI_Datatype type, void* to, int to_count,  \
    MPI_Datatype to_type, int root, MPI_Comm comm, MPI_Request* request)                                               \
  F(MPI_Isend, const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request) \
  F(MPI_Op_create, MPI_User_function* function, int commutes, MPI_Op* op)                                              \
  F(MPI_Query_thread, int* provided)                                                                                   \
  F(MPI_Test, MPI_Request* request, int* done, MPI_Status* status)                                                     \
  F(MPI_Type_commit, MPI_Datatype* type)                                                                               \
  F(MPI_Type_contiguous, int count, MPI_Datatype old, MPI_Datatype* type)                                              \
  F(MPI_Type_create_struct, int count, const int* lengths, const MPI_Aint* offsets, const MPI_Datatype* types,         \
    MPI_Datatype* type)                                                                                                \
  F(MPI_Type_free, MPI_Datatype* type)                                                                                 \
  F(MPI_Type_size, MPI_Datatype type, int* size)

#define PHALANX_MPI_DECLARE(name, ...) extern int (*name)(__VA_ARGS__);
PHALANX_MPI_FUNCTIONS(PHALANX_MPI_DECLARE)
#undef PHALANX_MPI_DECLARE

}  // namespace phalanx::mpi::inline standard_abi
