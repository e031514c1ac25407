// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The texts of the files of this folder that a program of a peer library is compiled from, which are embedded so that
/// bench needs no file at run time.
namespace phalanx::bench {

extern const char* const kTimedSource;        // timed.h
extern const char* const kMpiCallsSource;     // mpi_calls.h
extern const char* const kPeerProgramSource;  // peer_program.h
extern const char* const kMpiPeerSource;      // mpi_peer.cc
extern const char* const kCclPeerSource;      // ccl_peer.cc

}  // namespace phalanx::bench
