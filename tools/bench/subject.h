#pragma once

#include <memory>
#include <string>

#include "framework/comm/communicator.h"

namespace phalanx::bench {

/// Something that runs collectives: a backend of Phalanx, or a peer. One per rank.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual int size() const = 0;
  virtual at::Tensor allocate(const std::string& memory, std::int64_t elements) = 0;  // float32, zeroed
  virtual void all_reduce(const at::Tensor& tensor) = 0;                              // sum, in place, blocking
  virtual void broadcast(const at::Tensor& tensor) = 0;                               // from rank 0, blocking
  virtual void barrier() = 0;
};

/// A backend, by its Communicator.
std::unique_ptr<Subject> make_backend_subject(CommunicatorPtr world);

/// Open MPI by its own blocking calls, with no Phalanx between. MPI must be running.
std::unique_ptr<Subject> make_openmpi_subject();

}  // namespace phalanx::bench
