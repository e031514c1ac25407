// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace phalanx {

/// Base class of everything that Phalanx throws on purpose. what() is complete: it says what happened, where, and what
/// to do.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One thing wrong with a configuration.
struct ConfigProblem {
  std::string origin{};      // file, or the command-line flag that set the key
  int line = 0;              // from 1; 0 if the problem has no line (a flag, a missing key)
  int column = 0;            // from 1
  std::string key{};         // path from the root: "optimizer.lr"
  std::string message{};     // what is wrong: "unknown key", "expected an integer, got \"ten\""
  std::string suggestion{};  // what to write instead; empty if no known word is close
};

/// A configuration that cannot be used. Lists every problem found, not only the first. what() has one line for each, in
/// the form of compiler errors, so that editors and terminals can jump to it:
///
///     train.yaml:3:5: optimizer.momentun: unknown key (did you mean "momentum"?)
class ConfigError : public Error {
 public:
  explicit ConfigError(std::vector<ConfigProblem> problems);
  explicit ConfigError(const std::string& message);  // one problem without a place

  const std::vector<ConfigProblem>& problems() const { return problems_; }

 private:
  std::vector<ConfigProblem> problems_;
};

/// A communication that did not complete. The communicator stays usable only after kMismatch, which every rank
/// receives.
class CommError : public Error {
 public:
  enum class Kind {
    kTimeout,   // the deadline passed while a peer was absent
    kPeerLost,  // a peer ended or left the group
    kMismatch,  // ranks called different operations, or the same one with different arguments
    kSystem,    // the operating system or a library refused: memory, sockets, MPI
  };

  CommError(Kind kind, const std::string& message) : Error(message), kind_(kind) {}

  Kind kind() const { return kind_; }

  /// Returns true if the cause is a failure on another rank: a peer was lost or never came.
  bool secondary() const { return kind_ == Kind::kPeerLost || kind_ == Kind::kTimeout; }

 private:
  Kind kind_;
};

/// The results of a run that has completed and saved everything are not what its config expects.
class ExpectationError : public Error {
 public:
  using Error::Error;
};

/// Data that is missing or malformed. Messages name the file and, if there is one, the byte offset.
class DataError : public Error {
 public:
  using Error::Error;
};

}  // namespace phalanx
