// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

#include "tools/bench/timed.h"

/// The frame of a program that calls another library next to a rank, as peer_subject.h describes: PROGRAM FOLDER.
/// Includes nothing of Phalanx, as timed.h.
namespace phalanx::bench {

/// A case, as in operation.h.
struct PeerCase {
  std::string op;
  std::int64_t whole = 0, part = 0;  // elements of float32
  std::string memory;                // private or registered
};

/// Returns the elements of the second buffer that an operation needs; 0: it needs none.
inline std::int64_t other_elements(const PeerCase& what) {
  if (what.op == "all_to_all") return what.whole;
  for (const char* op : {"all_gather", "reduce_scatter", "gather", "scatter"}) {
    if (what.op == op) return what.part;
  }
  return 0;
}

/// Zeros in private memory.
inline std::shared_ptr<float> private_memory(std::int64_t elements) {
  const std::size_t line = 64, bytes = (static_cast<std::size_t>(elements) * sizeof(float) + line) / line * line;
  auto* const data = static_cast<float*>(std::aligned_alloc(line, bytes));
  if (data == nullptr) throw std::runtime_error("no memory for " + std::to_string(bytes) + " bytes");
  std::memset(data, 0, bytes);
  return {data, [](float* memory) { std::free(memory); }};
}

/// The connection to the rank of the same number: lines of text.
class RankConnection {
 public:
  /// Connects to FOLDER/N, where N is the rank that Hydra, which starts this program, gives it.
  explicit RankConnection(const std::string& folder) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const char* const rank = std::getenv("PMI_RANK");
    if (rank == nullptr) throw std::runtime_error("PMI_RANK is not set");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", folder.c_str(), rank);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      throw std::runtime_error(std::string("cannot connect to ") + address.sun_path);
    }
  }

  /// Returns false at the end.
  bool receive(std::string& line) {
    for (line.clear();;) {
      char letter = 0;
      if (::read(socket_, &letter, 1) != 1) return false;
      if (letter == '\n') return true;
      line.push_back(letter);
    }
  }

  void send(const std::string& line) {
    const std::string text = line + "\n";
    if (::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
      throw std::runtime_error("the rank has ended");
    }
  }

 private:
  int socket_;
};

/// Stays on the rank's cores, which it sends first: "0 1". An empty line means that it may run anywhere.
inline void stay_on_cores_of_rank(RankConnection& rank) {
  std::string line;
  if (!rank.receive(line)) throw std::runtime_error("the rank has ended");
  std::istringstream cores(line);
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core = 0; cores >> core;) CPU_SET(core, &set);
  if (CPU_COUNT(&set) > 0 && ::sched_setaffinity(0, sizeof(set), &set) != 0) {
    throw std::runtime_error("cannot run on cores " + line);
  }
}

/// Obeys commands until the rank ends. `prepare` returns what measures a case and owns its buffers.
inline void serve_rank(RankConnection& rank, const std::function<void()>& synchronize,
                       const std::function<Measure(const PeerCase&)>& prepare) {
  std::map<std::string, Measure> trials;
  for (std::string line; rank.receive(line);) {
    std::istringstream words(line);
    std::string word, number;
    words >> word >> number;
    std::string answer = "ok";
    if (word == "prepare") {
      PeerCase what;
      words >> what.op >> what.whole >> what.part >> what.memory;
      trials[number] = prepare(what);
    } else if (word == "run") {
      std::int64_t repeats = 1;
      words >> repeats;
      const Measure& measure = trials.at(number);
      synchronize();
      char text[64];
      std::snprintf(text, sizeof(text), "%.9f", measure(repeats) / static_cast<double>(repeats));
      answer = text;
    } else {
      trials.erase(number);
    }
    rank.send(answer);
  }
}

/// Runs `serve` and reports its error. Returns the status of the program. `name` begins the error message.
inline int run_peer(const char* name, int count, char** words, const std::function<void(RankConnection&)>& serve) {
  try {
    if (count != 2) throw std::runtime_error("expected a folder");
    RankConnection rank(words[1]);
    stay_on_cores_of_rank(rank);
    serve(rank);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
}

}  // namespace phalanx::bench
