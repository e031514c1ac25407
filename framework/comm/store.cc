#include "framework/comm/store.h"

#include <c10/util/Exception.h>
#include <c10/util/Flags.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/stat.h>
#include <torch/csrc/distributed/c10d/exception.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <future>
#include <sstream>
#include <system_error>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/log.h"
#include "framework/comm/seal.h"
#include "framework/comm/store_address.h"

C10_DECLARE_int(caffe2_log_level);

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;

std::string in_seconds(Seconds time) {
  std::ostringstream text;
  text.precision(3);
  text << time.count() << " s";
  return text.str();
}

// Asks again and again: briefly at first, since what is waited for mostly is near; then rarely, since a thousand ranks
// may ask one server.
template <class Ready>
bool poll(const Ready& ready, Seconds timeout) {
  using std::chrono::microseconds;
  const auto deadline = Clock::now() + timeout;
  for (microseconds nap{50};; nap = std::min(nap * 3 / 2, microseconds(20'000))) {
    if (ready()) return true;
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(nap);
  }
}

// A store of c10d, with our deadlines and errors. Its own waits are not used: that of a file counts whole seconds, that
// of TCP keeps the connection from the other threads of the process.
class C10dStore : public Store {
 public:
  C10dStore(std::string name, c10::intrusive_ptr<c10d::Store> store, Seconds timeout)
      : name_(std::move(name)), store_(std::move(store)), timeout_(timeout) {}

  void set(const std::string& key, const std::string& value) override {
    guarded("set", key, [&] { store_->set(key, std::vector<std::uint8_t>(value.begin(), value.end())); });
  }

  std::string get(const std::string& key) override {
    const auto value = get_bytes(key);
    return std::string(value.begin(), value.end());
  }

  std::int64_t add(const std::string& key, std::int64_t amount) override {
    return guarded("add", key, [&] { return store_->add(key, amount); });
  }

 protected:
  std::vector<std::uint8_t> get_bytes(const std::string& key) {
    const bool there = poll([&] { return guarded("get", key, [&] { return store_->check({key}); }); }, timeout_);
    if (!there) {
      throw CommError(CommError::Kind::kTimeout,
                      describe("get", key) + ": waited " + in_seconds(timeout_) + ", but no rank has set it");
    }
    return guarded("get", key, [&] { return store_->get(key); });
  }

  c10d::Store& store() { return *store_; }

  std::string describe(const char* operation, const std::string& key) const {
    return std::string(operation) + " \"" + key + "\" of " + name_;
  }

  template <class Call>
  std::invoke_result_t<Call> guarded(const char* operation, const std::string& key, const Call& call) {
    try {
      return call();
    } catch (const c10::DistNetworkError& error) {
      throw CommError(CommError::Kind::kPeerLost,
                      describe(operation, key) + ": the connection is lost (" + error.what_without_backtrace() + ")");
    } catch (const c10::Error& error) {
      throw CommError(CommError::Kind::kSystem, describe(operation, key) + ": " + error.what_without_backtrace());
    } catch (const std::system_error& error) {
      throw CommError(CommError::Kind::kSystem, describe(operation, key) + ": " + error.what());
    }
  }

 private:
  std::string name_;
  c10::intrusive_ptr<c10d::Store> store_;
  Seconds timeout_;
};

// One whose values are sealed. Sums are values too, which a rank replaces only as it has read them; a random text after
// each shows it that the new one is its own. Keys have a prefix, so that ranks without the secret do not read them.
class SealedStore final : public C10dStore {
 public:
  SealedStore(std::string name, c10::intrusive_ptr<c10d::Store> store, Seconds timeout, Seal seal)
      : C10dStore(std::move(name), std::move(store), timeout), seal_(std::move(seal)) {}

  void set(const std::string& key, const std::string& value) override {
    const std::string place = place_of(key);
    guarded("set", key, [&] { store().set(place, seal_.sealed(place, value)); });
  }

  std::string get(const std::string& key) override {
    const std::string place = place_of(key);
    return seal_.opened(place, get_bytes(place));
  }

  std::int64_t add(const std::string& key, std::int64_t amount) override {
    const std::string place = place_of(key);
    Seal::Bytes seen;
    while (true) {
      const std::int64_t sum = (seen.empty() ? 0 : std::stoll(seal_.opened(place, seen))) + amount;
      const auto wanted = seal_.sealed(place, std::to_string(sum) + " " + random_text());
      const auto now = guarded("add", key, [&] { return store().compareSet(place, seen, wanted); });
      if (now == wanted) return sum;
      seen = now;
    }
  }

 private:
  static std::string place_of(const std::string& key) { return "sealed/" + key; }

  Seal seal_;
};

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

// c10d logs each attempt that fails with a stack trace. What is wrong our errors say; its log is for those who ask for
// it.
void quiet_c10d() {
  static const bool done = [] {
    constexpr int kFatal = 3;
    if (!environment("TORCH_CPP_LOG_LEVEL")) FLAGS_caffe2_log_level = kFatal;
    return true;
  }();
  (void)done;
}

// Why a host's name has no address; empty: it has one.
std::string why_unresolved(const std::string& host) {
  addrinfo* addresses = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, nullptr, &addresses);
  if (error != 0) return ::gai_strerror(error);
  ::freeaddrinfo(addresses);
  return "";
}

std::string unresolved(const std::string& name, const std::string& host, const std::string& why) {
  return name + ": cannot resolve the address " + host + " (" + why + "); correct MASTER_ADDR";
}

[[noreturn]] void refuse_port(const std::string& name, int port) {
  throw CommError(CommError::Kind::kSystem, name + ": address already in use: port " + std::to_string(port) +
                                                " is taken on this host; end what listens there (ss -ltnp) or " +
                                                "choose another port (MASTER_PORT)");
}

[[noreturn]] void explain_connection(const std::string& name, const std::string& host, bool serve, int port,
                                     const c10::Error& error) {
  const std::string why = error.what_without_backtrace();
  if (const auto no_address = why_unresolved(host); !no_address.empty()) {
    throw CommError(CommError::Kind::kSystem, unresolved(name, host, no_address));
  }
  if (serve && why.find("EADDRINUSE") != std::string::npos) refuse_port(name, port);
  if (serve) throw CommError(CommError::Kind::kSystem, name + ": cannot serve: " + why);
  throw CommError(CommError::Kind::kTimeout, name + ": cannot reach it; check that rank 0 runs, that the address " +
                                                 "(MASTER_ADDR, MASTER_PORT) is right and that no firewall is " +
                                                 "between: " + why);
}

// Whoever listens at the address, c10d waits for its answer without a deadline; so that is done aside, in a thread that
// is left to itself when nothing comes.
c10::intrusive_ptr<c10d::Store> open_tcp(const std::string& name, const std::string& host,
                                         const c10d::TCPStoreOptions& options, Seconds timeout) {
  using Opened = c10::intrusive_ptr<c10d::Store>;
  std::packaged_task<Opened()> open([=]() -> Opened { return c10::make_intrusive<c10d::TCPStore>(host, options); });
  auto opened = open.get_future();
  std::thread opener(std::move(open));
  constexpr Seconds kGrace{5};  // c10d's own deadline for connecting comes first, and says more
  if (opened.wait_for(timeout + kGrace) == std::future_status::ready) {
    opener.join();
    return opened.get();
  }
  opener.detach();
  throw CommError(CommError::Kind::kTimeout, name + ": waited " + in_seconds(timeout) +
                                                 ", but what listens there does not answer as a store; " +
                                                 "check that the address (MASTER_ADDR, MASTER_PORT) is that of rank 0");
}

// The host learns here which ranks never came; without it, each user would wait for them by another key.
void await_ranks(Store& store, const std::string& name, bool serve, int ranks, Seconds timeout, bool sealed) {
  const std::string key = "phalanx/joined";
  auto joined = store.add(key, 1);
  if (!serve) return;
  if (poll([&] { return joined >= ranks || (joined = store.add(key, 0)) >= ranks; }, timeout)) return;
  throw CommError(CommError::Kind::kTimeout, name + ": waited " + in_seconds(timeout) + ", but only " +
                                                 std::to_string(joined) + " of " + std::to_string(ranks) +
                                                 " ranks have joined" +
                                                 (sealed ? " with this job's secret (PHALANX_JOB_SECRET)" : ""));
}

// For c10d, which closes it. Nothing: c10d listens at all addresses of this host.
std::optional<int> listening_socket(const std::string& name, const std::string& host, int port) {
  const Descriptor socket = listen_for_store(host, port);
  if (socket.valid()) return ::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0);
  if (errno == EADDRINUSE) refuse_port(name, port);
  log_info() << name << ": listens at all addresses of this host, since " << host << " names none of its own";
  return {};
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

StorePtr make_tcp_store(const std::string& named, int port, bool serve, int ranks, Seconds timeout,
                        const std::optional<std::string>& secret) {
  const std::string name = "TCP store " + named + ":" + std::to_string(port), host = store_host(named);
  const auto seal = secret ? std::optional<Seal>(*secret) : std::nullopt;
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(port);
  options.isServer = serve;
  options.waitWorkers = false;
  options.timeout = std::chrono::seconds(std::max<std::int64_t>(1, std::llround(std::ceil(timeout.count()))));
  if (serve) options.masterListenFd = listening_socket(name, host, port);
  quiet_c10d();
  // A name may come up later than its ranks, as those of containers do; a mistake should not take all that time to
  // show.
  if (const auto why = why_unresolved(host); !why.empty()) {
    log_warning() << unresolved(name, host, why) << ", or wait: it is tried for " << in_seconds(timeout);
  }
  StorePtr store;
  try {
    auto opened = open_tcp(name, host, options, timeout);
    if (seal) {
      store = std::make_shared<SealedStore>(name, std::move(opened), timeout, *seal);
    } else {
      store = std::make_shared<C10dStore>(name, std::move(opened), timeout);
    }
  } catch (const c10::Error& error) {
    explain_connection(name, host, serve, port, error);
  }
  await_ranks(*store, name, serve, ranks, timeout, seal.has_value());
  return store;
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
