#include "framework/comm/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <utility>

#include "framework/base/error.h"
#include "framework/comm/c10d_store.h"
#include "framework/comm/polling.h"

namespace phalanx {
namespace {

class PrefixStore final : public Store {
 public:
  PrefixStore(std::string prefix, StorePtr store) : prefix_(std::move(prefix) + "/"), store_(std::move(store)) {}

  void set(const std::string& key, const std::string& value) override { store_->set(prefix_ + key, value); }
  std::string get(const std::string& key) override { return store_->get(prefix_ + key); }
  std::int64_t add(const std::string& key, std::int64_t amount) override { return store_->add(prefix_ + key, amount); }

 private:
  std::string prefix_;
  StorePtr store_;
};

[[noreturn]] void refuse_file(const std::string& path, const std::string& why) {
  throw CommError(CommError::Kind::kSystem, "file store " + path + ": " + why);
}

// c10d would make the file readable by everybody, follow a link that somebody else laid, and take what a run that
// crashed has left for messages of this one. A file that nobody wrote to for a whole timeout serves no living run:
// ranks that still waited would have given up.
void claim_file(const std::string& path, Seconds timeout) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) refuse_file(path, std::string("cannot open: ") + std::strerror(errno));
  struct stat status{};
  const int failed = ::fstat(file, &status);
  ::close(file);
  if (failed != 0) refuse_file(path, std::string("cannot stat: ") + std::strerror(errno));
  if (status.st_uid != ::geteuid()) refuse_file(path, "belongs to another user; name a file of your own");
  const Seconds age(std::difftime(std::time(nullptr), status.st_mtime));
  if (status.st_size > 0 && age > timeout + Seconds(1)) {  // times of files may be rounded to seconds
    refuse_file(path, "an earlier run left it, last written " + in_seconds(age) + " ago; remove it or name another");
  }
}

}  // namespace

StorePtr make_hash_store(Seconds timeout) {
  return std::make_shared<C10dStore>("the store of this process", c10::make_intrusive<c10d::HashStore>(), timeout);
}

StorePtr make_file_store(const std::string& path, int ranks, Seconds timeout) {
  claim_file(path, timeout);
  try {
    return std::make_shared<C10dStore>("file store " + path, c10::make_intrusive<c10d::FileStore>(path, ranks),
                                       timeout);
  } catch (const std::system_error& error) {
    refuse_file(path, error.what());
  }
}

StorePtr make_prefix_store(const std::string& prefix, StorePtr store) {
  return std::make_shared<PrefixStore>(prefix, std::move(store));
}

void store_barrier(Store& store, const std::string& name, int ranks) {
  // By a key of its own, not by the count: then all but the last only wait.
  if (store.add(name + "/arrived", 1) == ranks) store.set(name + "/complete", "");
  store.get(name + "/complete");
}

}  // namespace phalanx
