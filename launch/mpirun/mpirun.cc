// SPDX-License-Identifier: Apache-2.0
#include "launch/mpirun/mpirun.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/comm/launch/host_slots.h"

namespace phalanx {
namespace {

bool is_program(const std::string& path) {
  std::error_code none;
  return std::filesystem::is_regular_file(path, none) && ::access(path.c_str(), X_OK) == 0;
}

// Returns an empty string if the program is not found.
std::string on_path(const std::string& name, const std::string& path) {
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (!folder.empty() && is_program(folder + "/" + name)) return folder + "/" + name;
  }
  return {};
}

std::string name_of(const std::string& variable) { return variable.substr(0, variable.find('=')); }

void unset(std::vector<std::string>& environment, const std::string& name) {
  std::erase_if(environment, [&](const std::string& variable) { return name_of(variable) == name; });
}

void set(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  unset(environment, name);
  environment.push_back(name + "=" + value);
}

// Returns true if these options say how mpirun binds ranks. It refuses to be told twice.
bool binds(const std::vector<std::string>& options) {
  return std::ranges::any_of(options, [](const std::string& word) {
    return word == "--bind-to" || word == "-bind-to" || word.starts_with("--bind-to=");
  });
}

// Returns true if this option of mpirun says what happens when a rank ends. Its value is the next word, or follows "=".
bool chooses_recovery(const std::string& word) {
  return word == "--with-ft" || word == "-with-ft" || word.starts_with("--with-ft=");
}

// Returns true for a value of --with-ft, or of the parameter mpi_ft_enable, with which Open MPI has ULFM. Of the
// others, mpirun accepts some, which switch ULFM off, and ends with status 213 and without a word for the rest, such as
// "none".
bool switches_ulfm_on(const std::string& value) {
  constexpr std::array kOn = {"ulfm", "mpi", "yes", "true", "1"};
  return std::ranges::find(kOn, value) != kOn.end();
}

// Returns the first number of Open MPI's version, or nothing if it is unknown.
std::optional<int> version_of(const Mpirun& mpirun) {
  // Open MPI 5 does not start without HOME.
  const std::string command = "HOME=\"${HOME:-/tmp}\" '" + mpirun.path + "' --version 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> output(::popen(command.c_str(), "re"), ::pclose);
  std::array<char, 256> line{};
  int version = 0;
  while (output && std::fgets(line.data(), line.size(), output.get()) != nullptr) {
    const char* const begin = std::strstr(line.data(), "Open MPI) ");
    if (begin != nullptr && std::sscanf(begin, "Open MPI) %d", &version) == 1) return version;
  }
  return std::nullopt;
}

std::vector<std::string> hydra_command(const Mpirun& mpirun, const MpiLaunch& options, const std::string& host_file) {
  std::vector<std::string> command = {mpirun.path, "-n", std::to_string(options.ranks)};
  if (!options.hosts.empty()) command.insert(command.end(), {"-f", host_file});
  command.insert(command.end(), options.mpirun_options.begin(), options.mpirun_options.end());
  command.insert(command.end(), options.command.begin(), options.command.end());
  return command;
}

bool is_set(const char* variable) { return !environment(variable).value_or("").empty(); }

// A socket can be bound only to addresses of this host.
bool is_address_here(const addrinfo& address) {
  const int file = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0) return false;
  const bool bound = ::bind(file, address.ai_addr, address.ai_addrlen) == 0;
  ::close(file);
  return bound;
}

// Returns true if Open MPI 4 or 5 or Hydra would start its daemons with something other than ssh or rsh on PATH.
bool has_own_way() {
  constexpr std::array kVariables = {"SLURM_JOB_ID",
                                     "PBS_JOBID",
                                     "LSB_JOBID",
                                     "JOB_ID",
                                     "OMPI_MCA_plm",
                                     "PRTE_MCA_plm",
                                     "OMPI_MCA_plm_rsh_agent",
                                     "OMPI_MCA_plm_ssh_agent",
                                     "PRTE_MCA_plm_ssh_agent",
                                     "PRTE_MCA_plm_rsh_agent",
                                     "HYDRA_LAUNCHER",
                                     "HYDRA_LAUNCHER_EXEC",
                                     "I_MPI_HYDRA_BOOTSTRAP",
                                     "I_MPI_HYDRA_BOOTSTRAP_EXEC"};
  return std::ranges::any_of(kVariables, is_set);
}

// Throws ConfigError for a malformed name.
void require_host_names(const std::vector<std::string>& hosts) {
  for (const auto& host : hosts) (void)parse_host(host);
}

// Returns the name of the first host that is not this one, or an empty string.
std::string first_other(const std::vector<std::string>& hosts) {
  for (const auto& host : hosts) {
    if (const std::string name = parse_host(host).name; !is_this_host(name)) return name;
  }
  return {};
}

constexpr std::size_t kDashes = 60;  // minimum; the parts of mpirun use different numbers

bool is_rule(std::string_view line) { return line.size() >= kDashes && line.find_first_not_of('-') == line.npos; }

bool is_of_library(std::string_view line) { return line.starts_with("NBC_Progress: an error "); }

// mpirun breaks lines at arbitrary points if a host's name makes them too long.
std::string one_line(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

std::optional<RankEnd> killed(const std::string& text) {
  int rank = 0, signal = 0;
  std::array<char, 256> host{};
  const auto begin = text.find("process rank ");
  if (begin == text.npos) return std::nullopt;
  const int found = std::sscanf(text.c_str() + begin, "process rank %d with PID %*d on node %255s exited on signal %d",
                                &rank, host.data(), &signal);
  if (found != 3) return std::nullopt;
  return RankEnd{.rank = rank, .status = W_EXITCODE(0, signal), .host = host.data()};
}

std::optional<RankEnd> exited(const std::string& text) {
  int status = 0;
  std::array<char, 256> name{};
  const auto begin = text.find("Process name: ");
  if (begin == text.npos) return std::nullopt;
  const int found = std::sscanf(text.c_str() + begin, "Process name: %255s Exit code: %d", name.data(), &status);
  const char* comma = std::strrchr(name.data(), ',');
  if (found != 2 || !comma) return std::nullopt;
  return RankEnd{.rank = std::atoi(comma + 1), .status = W_EXITCODE(status, 0)};
}

}  // namespace

bool is_this_host(const std::string& name) {
  if (name == "localhost" || name == host_name()) return true;
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(name.c_str(), nullptr, &wanted, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, ::freeaddrinfo);
  for (const addrinfo* one = found; one; one = one->ai_next) {
    if (is_address_here(*one)) return true;
  }
  return false;
}

bool is_matched(std::string_view name, std::string_view pattern) {
  return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern;
}

std::string find_mpirun() { return find_mpirun(PHALANX_MPI_HOME); }

std::string find_mpirun(const std::string& built_with) {
  const std::string home = environment("MPI_HOME").value_or("");
  const std::string path = environment("PATH").value_or("");
  const std::string in_home = home + "/bin/mpirun", in_built_with = built_with + "/bin/mpirun";
  if (!home.empty()) {
    if (is_program(in_home)) return in_home;
    throw ConfigError(
        "MPI_HOME is " + home + ", but there is no " + in_home +
        ".\nCorrect MPI_HOME, or unset it: then mpirun is looked for on PATH and in " + built_with +
        "/bin (the MPI this program was built with). To launch on this host without MPI: launch.with=local.");
  }
  if (const auto found = on_path("mpirun", path); !found.empty()) return found;
  if (is_program(in_built_with)) return in_built_with;
  throw ConfigError(
      "cannot find mpirun. Looked for\n"
      "  $MPI_HOME/bin/mpirun: MPI_HOME is not set\n"
      "  mpirun on PATH: " +
      (path.empty() ? "PATH is empty" : "not in " + path) + "\n" + "  " + in_built_with +
      " (the MPI this program was built with): not there\n" +
      "Install Open MPI 5 and set MPI_HOME to its folder, or launch on this host without MPI: launch.with=local.");
}

Mpirun identify_mpirun(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  const fs::path real = fs::canonical(path, unknown), folder = real.parent_path();
  const std::string name = real.filename().string();
  // A system may have several MPIs in one folder, where the names of programs differ.
  const bool open_mpi = name == "prterun" || name == "orterun" || name.ends_with("openmpi");
  if (unknown || open_mpi || !is_program(folder / "hydra_pmi_proxy")) return {.path = path};
  const std::string hydra = folder / "mpiexec.hydra";
  return {.path = is_program(hydra) ? hydra : path,
          .kind = is_program(folder / "hydra_bstrap_proxy") ? MpirunKind::kIntelMpi : MpirunKind::kMpich};
}

void require_remote_shell(const std::vector<std::string>& hosts) {
  require_host_names(hosts);
  const std::string path = environment("PATH").value_or("");
  if (has_own_way() || !on_path("ssh", path).empty() || !on_path("rsh", path).empty()) return;
  const std::string other = first_other(hosts);
  if (other.empty()) return;
  throw ConfigError("launch.hosts: mpirun starts ranks on " + other + " through ssh, but there is no ssh on PATH (" +
                    path + "). Install an OpenSSH client, or name another agent in PRTE_MCA_plm_ssh_agent.");
}

void require_ssh(const std::vector<std::string>& hosts) {
  require_host_names(hosts);
  const std::string path = environment("PATH").value_or("");
  if (!on_path("ssh", path).empty()) return;
  const std::string other = first_other(hosts);
  if (other.empty()) return;
  throw ConfigError("launch.hosts: launch.with: ssh starts an agent on " + other +
                    " through ssh, but there is no ssh on PATH (" + path +
                    "). Install an OpenSSH client, or use launch.with: mpi, whose mpirun may reach it in another way.");
}

std::string find_program(const std::string& name) { return on_path(name, environment("PATH").value_or("")); }

void require_variables(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    if (name.ends_with('*') || environment(name)) continue;
    throw ConfigError("launch.pass_variables: " + name + " is not set; set it, or leave it out");
  }
}

std::string why_no_ulfm(const Mpirun& mpirun) {
  constexpr int kFirstWithUlfm = 5;
  std::string name = mpirun.kind == MpirunKind::kMpich ? "MPICH" : "Intel MPI";
  if (!mpirun.is_hydra()) {
    const auto version = version_of(mpirun);
    if (!version || *version >= kFirstWithUlfm) return "";
    name = "Open MPI " + std::to_string(*version);
  }
  return mpirun.path + " is that of " + name +
         ", which has no ULFM, with which ranks go on after one of them has ended; set MPI_HOME to an Open MPI from "
         "version 5 on, or use backend gloo with launch.with: local, or ssh for several hosts";
}

std::string words_against_ulfm(const std::vector<std::string>& options) {
  for (std::size_t i = 0; i < options.size(); ++i) {
    const std::string& word = options[i];
    if (!chooses_recovery(word) && word != "mpi_ft_enable") continue;
    const auto equals = word.find('=');
    const bool follows = equals == word.npos && i + 1 < options.size();
    const std::string value = follows ? options[i + 1] : equals == word.npos ? "" : word.substr(equals + 1);
    if (!switches_ulfm_on(value)) return follows ? word + " " + value : word;
  }
  return "";
}

std::vector<std::string> mpirun_environment(const Mpirun& mpirun, const std::vector<std::string>& inherited,
                                            const std::string& rendezvous, bool terminal) {
  auto environment = inherited;
  unset(environment, "PHALANX_RENDEZVOUS");
  if (!rendezvous.empty()) set(environment, "PHALANX_RENDEZVOUS", rendezvous);
  set(environment, "PHALANX_LAUNCHER", "mpi");
  set(environment, "PHALANX_TERMINAL", terminal ? "1" : "0");
  const bool home = std::ranges::find(environment, "HOME", name_of) != environment.end();
  if (!home) set(environment, "HOME", "/tmp");  // Open MPI 5 does not start without one
  const auto pins = [](const std::string& variable) { return variable.starts_with("I_MPI_PIN"); };
  if (mpirun.kind == MpirunKind::kIntelMpi && std::ranges::none_of(environment, pins)) {
    set(environment, "I_MPI_PIN", "0");  // as --bind-to none; MPICH does not bind ranks
  }
  return environment;
}

std::vector<std::string> mpirun_command(const Mpirun& mpirun, const MpiLaunch& options,
                                        const std::vector<std::string>& environment, bool root,
                                        const std::string& host_file) {
  if (mpirun.is_hydra()) return hydra_command(mpirun, options, host_file);
  std::vector<std::string> command = {mpirun.path, "--oversubscribe"};
  const auto add = [&](std::initializer_list<std::string> words) { command.insert(command.end(), words); };
  if (!binds(options.mpirun_options)) add({"--bind-to", "none"});
  add({"-np", std::to_string(options.ranks)});
  if (root) add({"--allow-run-as-root"});
  if (!options.hosts.empty()) add({"--host", join(options.hosts, ",")});
  const bool chosen = std::ranges::any_of(options.mpirun_options, chooses_recovery);  // mpirun takes the first value
  if (options.goes_on && !chosen) add({"--with-ft", "ulfm"});
  for (const auto& variable : environment) {
    const std::string name = name_of(variable);
    const auto matches = [&](const std::string& pattern) { return is_matched(name, pattern); };
    if (is_matched(name, "PHALANX_*") || std::ranges::any_of(options.pass_variables, matches)) add({"-x", name});
  }
  command.insert(command.end(), options.mpirun_options.begin(), options.mpirun_options.end());
  command.insert(command.end(), options.command.begin(), options.command.end());
  return command;
}

std::string MpirunNotices::feed(std::string_view piece) {
  pending_ += piece;
  std::string passed;
  std::size_t begin = 0;
  for (std::size_t end; (end = pending_.find('\n', begin)) != pending_.npos; begin = end + 1) {
    const std::string line = pending_.substr(begin, end - begin);
    if (is_rule(line)) {
      inside_ = !inside_;
      if (inside_) notices_.emplace_back();
    } else if (inside_) {
      notices_.back() += line + "\n";
    } else if (std::exchange(after_library_, is_of_library(line)) && line.empty()) {
      continue;
    } else if (!after_library_) {
      passed += line + "\n";
    }
  }
  pending_.erase(0, begin);
  return passed;
}

std::string MpirunNotices::finish() {
  if (inside_) notices_.back() += pending_;
  std::string rest = inside_ ? "" : pending_;
  pending_.clear();
  return rest;
}

std::vector<RankEnd> rank_ends_in(const std::vector<std::string>& notices) {
  std::vector<RankEnd> ends;
  for (const auto& notice : notices) {
    const std::string text = one_line(notice);
    if (auto end = killed(text)) ends.push_back(*end);
    if (auto end = exited(text)) ends.push_back(*end);
  }
  return ends;
}

}  // namespace phalanx
