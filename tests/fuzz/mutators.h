// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tests/fuzz/target.h"

/// Changes of inputs that keep the structure of a format, as Target::mutate. An input that does not have the format is
/// changed byte by byte.
namespace phalanx::fuzz {

/// Replaces a number, or removes, repeats or moves an element of a JSON document.
std::string mutate_json(const std::string& input, const MutateBytes& mutate, Random& random);

/// Changes the header as JSON, or the elements, and writes the length of the header.
std::string mutate_safetensors(const std::string& input, const MutateBytes& mutate, Random& random);

/// Removes, repeats, moves or adds whole opcodes, or changes the argument of one.
std::string mutate_pickle(const std::string& input, const MutateBytes& mutate, Random& random);

/// Changes an entry of an archive, as a pickle or as JSON if its name says so, and writes the checksums.
std::string mutate_zip(const std::string& input, const MutateBytes& mutate, Random& random);

/// Changes a header or the content of a file in a tar archive, and writes the checksums of the headers.
std::string mutate_tar(const std::string& input, const MutateBytes& mutate, Random& random);

/// Changes the JSON of a checkpoint's manifest, and writes its checksum.
std::string mutate_manifest(const std::string& input, const MutateBytes& mutate, Random& random);

/// Changes fields of one message of a parameter server, its text or its payload, and writes their lengths.
std::string mutate_messages(const std::string& input, const MutateBytes& mutate, Random& random);

/// Does the same with requests to a store.
std::string mutate_store_requests(const std::string& input, const MutateBytes& mutate, Random& random);

}  // namespace phalanx::fuzz
