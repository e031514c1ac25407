// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

namespace phalanx::bench {

/// A library that bench installs with pip, and calls from a program that it compiles with the headers of that library.
/// Nothing of it is linked into Phalanx. The library has a launcher, Hydra, which starts this program for each rank.
struct PeerLibrary {
  std::string name;                         // intelmpi, mpich, oneccl
  std::string version;                      // names the folder in the cache
  std::vector<std::string> wheels;          // exact requirements for pip, without their dependencies
  std::string extra_wheel;                  // wheel of which only the file `extra_file` is used; may be empty
  std::string extra_file;                   // path below the folder of the library
  const char* source;                       // text of the program's .cc file
  std::vector<std::string> links;           // libraries that the program links
  std::vector<std::string> settings;        // variables for its processes; @ means the folder of the library
  std::vector<std::string> oversubscribed;  // more of them if there are more ranks than cores
  std::set<std::string> lacks;              // operations that it does not have
};

/// Returns Intel MPI, MPICH and oneCCL, which runs over Intel MPI.
const std::vector<PeerLibrary>& peer_libraries();

/// Returns the library of this name, or null.
const PeerLibrary* find_peer_library(const std::string& name);

/// Installs the library under $XDG_CACHE_HOME or ~/.cache and compiles its program, unless both were done before. The
/// first call needs network access, a C++ compiler (c++) and up to a gigabyte of disk. Throws a ConfigError that begins
/// with `flag`, the flag that requires the library, and names the missing requirement.
void install_peer_library(const PeerLibrary& library, const std::string& flag);

/// Throws a ConfigError that begins with `flag` unless the library is installed.
void require_peer_library(const PeerLibrary& library, const std::string& flag);

/// Returns the command that starts the program for `ranks` ranks, with `argument`. The processes get a new environment:
/// the settings of the library, and those variables of this process that begin like settings of MPIs, libfabric, UCX
/// and oneCCL, which override them. The command writes to standard error only. The library must be installed.
std::vector<std::string> start_command(const PeerLibrary& library, int ranks, const std::string& argument);

}  // namespace phalanx::bench
