// SPDX-License-Identifier: Apache-2.0
#include "launch/mpirun/mpirun.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/environment.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

// Creates <folder>/bin/mpirun, a program that does nothing, and returns the folder.
std::string mpi_in(const std::string& name) {
  const std::filesystem::path folder = ::testing::TempDir() + "find_mpirun_test/" + name;
  std::filesystem::create_directories(folder / "bin");
  std::ofstream(folder / "bin/mpirun") << "#!/bin/sh\n";
  std::filesystem::permissions(folder / "bin/mpirun", std::filesystem::perms::owner_all);
  return folder;
}

class FindMpirun : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const auto& [name, value] : before_) value ? ::setenv(name, value->c_str(), 1) : ::unsetenv(name);
  }

 private:
  const std::vector<std::pair<const char*, std::optional<std::string>>> before_{{"MPI_HOME", environment("MPI_HOME")},
                                                                                {"PATH", environment("PATH")}};
};

TEST_F(FindMpirun, LooksInMpiHomeThenOnPathThenWhereItWasBuilt) {
  const std::string home = mpi_in("home"), path = mpi_in("path"), built = mpi_in("built");
  ::setenv("MPI_HOME", home.c_str(), 1);
  ::setenv("PATH", ("/no/such/folder:" + path + "/bin").c_str(), 1);
  EXPECT_EQ(find_mpirun(built), home + "/bin/mpirun");
  ::unsetenv("MPI_HOME");
  EXPECT_EQ(find_mpirun(built), path + "/bin/mpirun");
  ::setenv("PATH", "", 1);
  EXPECT_EQ(find_mpirun(built), built + "/bin/mpirun");
}

TEST_F(FindMpirun, ListsWhereItLooked) {
  ::unsetenv("MPI_HOME");
  ::setenv("PATH", "", 1);
  try {
    find_mpirun("/opt/gone");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "cannot find mpirun. Looked for\n"
                 "  $MPI_HOME/bin/mpirun: MPI_HOME is not set\n"
                 "  mpirun on PATH: PATH is empty\n"
                 "  /opt/gone/bin/mpirun (the MPI this program was built with): not there\n"
                 "Install Open MPI 5 and set MPI_HOME to its folder, or launch on this host without MPI: "
                 "launch.with=local.");
  }
}

TEST_F(FindMpirun, DoesNotLookElsewhereIfMpiHomeIsWrong) {
  ::setenv("MPI_HOME", "/opt/wrong", 1);
  ::setenv("PATH", (mpi_in("path") + "/bin").c_str(), 1);
  try {
    find_mpirun(mpi_in("built"));
    FAIL();
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find("MPI_HOME is /opt/wrong, but there is no /opt/wrong/bin/mpirun.\n"), 0u) << text;
    EXPECT_NE(text.find("built/bin (the MPI this program was built with)"), std::string::npos) << text;
  }
}

class RequireRemoteShell : public FindMpirun {
 protected:
  void SetUp() override {
    for (const char* name : kWays) ::unsetenv(name);
    ::setenv("PATH", "/no/such/folder", 1);
  }

  static std::string refused(const std::vector<std::string>& hosts) {
    try {
      require_remote_shell(hosts);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  static constexpr std::array kWays = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "PRTE_MCA_plm_ssh_agent"};
};

TEST_F(RequireRemoteShell, AnotherHostNeedsSsh) {
  EXPECT_EQ(refused({"localhost:2", "192.0.2.1:2"}),
            "launch.hosts: mpirun starts ranks on 192.0.2.1 through ssh, but there is no ssh on PATH (/no/such/folder)."
            " Install an OpenSSH client, or name another agent in PRTE_MCA_plm_ssh_agent.");
  const std::filesystem::path folder = mpi_in("with_ssh");
  std::filesystem::copy_file(folder / "bin/mpirun", folder / "bin/ssh",
                             std::filesystem::copy_options::overwrite_existing);
  ::setenv("PATH", (folder / "bin").c_str(), 1);
  EXPECT_EQ(refused({"192.0.2.1"}), "");
}

TEST_F(RequireRemoteShell, ThisHostNeedsNothing) {
  EXPECT_EQ(refused({"localhost", host_name() + ":2", "127.0.0.1"}), "");
}

TEST_F(RequireRemoteShell, AnAgentOrABatchSystemReplacesSsh) {
  for (const char* name : kWays) {
    ::setenv(name, "17", 1);
    EXPECT_EQ(refused({"192.0.2.1"}), "") << name;
    ::unsetenv(name);
  }
}

TEST_F(RequireRemoteShell, AnInvalidHostIsRefused) {
  EXPECT_NE(refused({"a:-1"}).find("\"a:-1\" is not a host"), std::string::npos);
}

TEST_F(RequireRemoteShell, AgentsNeedSshItself) {
  const auto refused_agents = [](const std::vector<std::string>& hosts) -> std::string {
    try {
      require_ssh(hosts);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  ::setenv("SLURM_JOB_ID", "17", 1);
  ::setenv("PRTE_MCA_plm_ssh_agent", "/bin/true", 1);
  EXPECT_EQ(
      refused_agents({"localhost:2", "192.0.2.1:2"}),
      "launch.hosts: launch.with: ssh starts an agent on 192.0.2.1 through ssh, but there is no ssh on PATH "
      "(/no/such/folder). Install an OpenSSH client, or use launch.with: mpi, whose mpirun may reach it in another "
      "way.");
  EXPECT_EQ(refused_agents({"localhost", host_name() + ":2"}), "");
  const std::filesystem::path folder = mpi_in("with_ssh_only");
  std::filesystem::copy_file(folder / "bin/mpirun", folder / "bin/ssh",
                             std::filesystem::copy_options::overwrite_existing);
  ::setenv("PATH", (folder / "bin").c_str(), 1);
  EXPECT_EQ(refused_agents({"192.0.2.1"}), "");
  EXPECT_NE(refused_agents({"a:-1"}).find("\"a:-1\" is not a host"), std::string::npos);
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("PRTE_MCA_plm_ssh_agent");
}

using Words = std::vector<std::string>;

TEST(MpirunCommand, OnThisHost) {
  EXPECT_EQ(mpirun_command({"/mpi/bin/mpirun"}, {.ranks = 3, .command = {"train", "--config", "a b"}}, {"A=1"}, false),
            (Words{"/mpi/bin/mpirun", "--oversubscribe", "--bind-to", "none", "-np", "3", "train", "--config", "a b"}));
}

TEST(MpirunCommand, OnSeveralHostsAsRootWithVariables) {
  const MpiLaunch options = {.ranks = 4, .hosts = {"n1:2", "n2:2"}, .command = {"train"}};
  EXPECT_EQ(mpirun_command({"mpirun"}, options, {"A=1", "PHALANX_DATA=/data", "PHALANX_LAUNCHER=mpi"}, true),
            (Words{"mpirun", "--oversubscribe", "--bind-to", "none", "-np", "4", "--allow-run-as-root", "--host",
                   "n1:2,n2:2", "-x", "PHALANX_DATA", "-x", "PHALANX_LAUNCHER", "train"}));
}

TEST(MpirunCommand, WithOptionsAndVariablesOfTheUser) {
  const MpiLaunch options = {.ranks = 2,
                             .mpirun_options = {"--mca", "btl_tcp_if_include", "eth1"},
                             .pass_variables = {"RACK", "NCCL_*"},
                             .command = {"train"}};
  EXPECT_EQ(
      mpirun_command({"mpirun"}, options, {"RACK=7", "RACKS=8", "NCCL_DEBUG=INFO", "NCC=1", "PHALANX_A=1"}, false),
      (Words{"mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2", "-x", "RACK", "-x", "NCCL_DEBUG", "-x",
             "PHALANX_A", "--mca", "btl_tcp_if_include", "eth1", "train"}));
}

TEST(MpirunCommand, TheUserMayBindRanks) {
  for (const Words& binding : {Words{"--bind-to", "core"}, Words{"--bind-to=core"}}) {
    const auto command = mpirun_command({"mpirun"}, {.mpirun_options = binding, .command = {"train"}}, {}, false);
    EXPECT_EQ(std::ranges::count(command, "none"), 0) << "mpirun refuses two bindings";
  }
}

TEST(MpirunCommand, GoesOnWithoutLostRanksIfAsked) {
  EXPECT_EQ(mpirun_command({"mpirun"}, {.ranks = 3, .command = {"train"}, .goes_on = true}, {}, false),
            (Words{"mpirun", "--oversubscribe", "--bind-to", "none", "-np", "3", "--with-ft", "ulfm", "train"}));
  for (const Words& words : {Words{"--with-ft", "mpi"}, Words{"--with-ft=mpi"}}) {
    const auto command =
        mpirun_command({"mpirun"}, {.mpirun_options = words, .command = {"train"}, .goes_on = true}, {}, false);
    EXPECT_EQ(std::ranges::count(command, "ulfm"), 0) << "the user has chosen";
  }
}

TEST(WordsAgainstUlfm, AreThoseThatSwitchItOffOrThatMpirunDoesNotKnow) {
  EXPECT_EQ(words_against_ulfm({}), "");
  EXPECT_EQ(words_against_ulfm({"--mca", "btl", "self,tcp", "--with-ft", "ulfm", "--with-ft=mpi"}), "");
  EXPECT_EQ(words_against_ulfm({"--mca", "mpi_ft_enable", "true"}), "");
  EXPECT_EQ(words_against_ulfm({"--tag-output", "--with-ft", "none"}), "--with-ft none");
  EXPECT_EQ(words_against_ulfm({"-with-ft", "no"}), "-with-ft no");
  EXPECT_EQ(words_against_ulfm({"--with-ft=none", "--tag-output"}), "--with-ft=none");
  EXPECT_EQ(words_against_ulfm({"--with-ft"}), "--with-ft");
  EXPECT_EQ(words_against_ulfm({"--with-ft", "ulfm", "--mca", "mpi_ft_enable", "0"}), "mpi_ft_enable 0");
}

// Makes the mpirun of an Open MPI of this version.
Mpirun open_mpi_of(const std::string& version) {
  const std::string folder = mpi_in("of_version");
  std::ofstream(folder + "/bin/mpirun") << "#!/bin/sh\n[ \"$1\" = --version ] && echo 'mpirun (Open MPI) " << version
                                        << "'\n";
  return {.path = folder + "/bin/mpirun"};
}

TEST(WhyNoUlfm, SaysWhichMpiIsNeeded) {
  EXPECT_EQ(why_no_ulfm(open_mpi_of("5.0.11")), "");
  EXPECT_EQ(why_no_ulfm({.path = mpi_in("of_no_version") + "/bin/mpirun"}), "");
  EXPECT_NE(why_no_ulfm(open_mpi_of("4.1.6")).find("mpirun is that of Open MPI 4, which has no ULFM"),
            std::string::npos);
  const std::string mpich = why_no_ulfm({.path = "/mpi/bin/mpiexec.hydra", .kind = MpirunKind::kMpich});
  EXPECT_TRUE(mpich.starts_with("/mpi/bin/mpiexec.hydra is that of MPICH, which has no ULFM")) << mpich;
  EXPECT_NE(mpich.find("set MPI_HOME to an Open MPI from version 5 on"), std::string::npos) << mpich;
}

const Mpirun kMpichs{.path = "/mpi/bin/mpiexec.hydra", .kind = MpirunKind::kMpich};
const Mpirun kIntels{.path = "/mpi/bin/mpiexec.hydra", .kind = MpirunKind::kIntelMpi};

TEST(MpirunCommand, OfHydra) {
  const MpiLaunch options = {
      .ranks = 3, .mpirun_options = {"-prepend-rank"}, .pass_variables = {"RACK"}, .command = {"train", "a b"}};
  EXPECT_EQ(mpirun_command(kMpichs, options, {"RACK=7", "PHALANX_A=1"}, true),
            (Words{"/mpi/bin/mpiexec.hydra", "-n", "3", "-prepend-rank", "train", "a b"}));
  EXPECT_EQ(mpirun_command(kIntels, {.ranks = 4, .hosts = {"n1:2", "n2:2"}, .command = {"train"}}, {}, false, "/tmp/h"),
            (Words{"/mpi/bin/mpiexec.hydra", "-n", "4", "-f", "/tmp/h", "train"}));
}

// Creates files in a new folder's bin and returns the path of its mpirun.
std::string programs(const std::string& name, const Words& files, const std::string& real = "mpirun") {
  std::filesystem::remove_all(::testing::TempDir() + "find_mpirun_test/" + name);
  const std::filesystem::path folder = mpi_in(name), program = folder / "bin/mpirun";
  for (const auto& file : files) {
    std::filesystem::copy_file(program, folder / "bin" / file, std::filesystem::copy_options::overwrite_existing);
  }
  if (real == "mpirun") return program;
  std::filesystem::remove(program);
  std::filesystem::create_symlink(real, program);
  return program;
}

TEST(IdentifyMpirun, GoesByTheProgramsNextToIt) {
  const auto open_mpi = identify_mpirun(programs("of_openmpi", {"prterun"}));
  EXPECT_EQ(open_mpi.kind, MpirunKind::kOpenMpi);
  const auto mpich = identify_mpirun(programs("of_mpich", {"hydra_pmi_proxy", "mpiexec.hydra"}));
  EXPECT_EQ(mpich.kind, MpirunKind::kMpich);
  EXPECT_TRUE(mpich.path.ends_with("of_mpich/bin/mpiexec.hydra")) << mpich.path;
  const auto intel = identify_mpirun(programs("of_intel", {"hydra_pmi_proxy", "hydra_bstrap_proxy", "mpiexec.hydra"}));
  EXPECT_EQ(intel.kind, MpirunKind::kIntelMpi);
}

TEST(IdentifyMpirun, OpenMpisIsRecognizedInAFolderThatAlsoHasHydra) {
  const auto both = identify_mpirun(programs("of_both", {"hydra_pmi_proxy", "mpiexec.hydra", "prterun"}, "prterun"));
  EXPECT_EQ(both.kind, MpirunKind::kOpenMpi);
  EXPECT_TRUE(both.path.ends_with("of_both/bin/mpirun")) << both.path;
}

TEST(RequireVariables, NamesOneThatIsNotSet) {
  ::setenv("MPIRUN_TEST_SET", "", 1);
  ::unsetenv("MPIRUN_TEST_UNSET");
  EXPECT_NO_THROW(require_variables({"MPIRUN_TEST_SET", "MPIRUN_TEST_UNSET*"}));
  try {
    require_variables({"MPIRUN_TEST_SET", "MPIRUN_TEST_UNSET"});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "launch.pass_variables: MPIRUN_TEST_UNSET is not set; set it, or leave it out");
  }
}

TEST(MpirunEnvironment, KeepsWhatIsThereAndAddsWhatIsMissing) {
  EXPECT_EQ(
      mpirun_environment({}, {"PHALANX_LAUNCHER=x", "HOME=/home/ada"}, "file:///a/store", true),
      (Words{"HOME=/home/ada", "PHALANX_RENDEZVOUS=file:///a/store", "PHALANX_LAUNCHER=mpi", "PHALANX_TERMINAL=1"}));
  EXPECT_EQ(mpirun_environment({}, {"PHALANX_RENDEZVOUS=file:///b/store"}, "", false),
            (Words{"PHALANX_LAUNCHER=mpi", "PHALANX_TERMINAL=0", "HOME=/tmp"}));
}

TEST(MpirunEnvironment, LetsRanksOfIntelMpiUseAllCoresUnlessTheUserBindsThem) {
  const auto has = [](const Words& environment, const std::string& variable) {
    return std::ranges::count(environment, variable) == 1;
  };
  EXPECT_TRUE(has(mpirun_environment(kIntels, {"HOME=/"}, "", false), "I_MPI_PIN=0"));
  EXPECT_FALSE(has(mpirun_environment(kIntels, {"I_MPI_PIN_DOMAIN=core"}, "", false), "I_MPI_PIN=0"));
  EXPECT_FALSE(has(mpirun_environment(kMpichs, {"HOME=/"}, "", false), "I_MPI_PIN=0"));
}

const std::string kRule = std::string(74, '-') + "\n";
const std::string kKilled =
    "prterun noticed that process rank 1 with PID 12970 on node a-host-of-long-name exited on\nsignal 9 (Killed).\n";
const std::string kExited =
    "prterun detected that one or more processes exited with non-zero status,\n"
    "thus causing the job to be terminated. The first process to do so was:\n\n"
    "   Process name: [prterun-vm-12974@1,3]\n"
    "   Exit code:    7\n";
const std::string kExitedOpenMpi4 =
    "mpirun detected that one or more processes exited with non-zero status, thus causing\n"
    "the job to be terminated. The first process to do so was:\n\n"
    "  Process name: [[31337,1],0]\n"
    "  Exit code:    2\n";

TEST(MpirunNotices, AreSeparatedFromTheOutputOfRanks) {
  MpirunNotices notices;
  EXPECT_EQ(notices.feed("rank says\n" + kRule + "mpirun says\n" + kRule + "and ranks"), "rank says\n");
  EXPECT_EQ(notices.feed(" again\nand"), "and ranks again\n");
  EXPECT_EQ(notices.finish(), "and");
  EXPECT_EQ(notices.notices(), std::vector<std::string>{"mpirun says\n"});
}

TEST(MpirunNotices, MayArriveInAnyPieces) {
  MpirunNotices notices;
  std::string passed;
  for (const char c : "one\n" + kRule + kKilled + kRule + "two\n") passed += notices.feed({&c, 1});
  EXPECT_EQ(passed, "one\ntwo\n");
  EXPECT_EQ(notices.notices(), std::vector<std::string>{kKilled});
}

TEST(MpirunNotices, DropWhatTheLibrarySaysOfPeersThatHaveEnded) {
  MpirunNotices notices;
  const std::string noise = "NBC_Progress: an error 75 was found during schedule 0x5605 at row-offset 0 - aborting\n\n";
  EXPECT_EQ(notices.feed("one\n" + noise + noise + "two\n\n" + noise + "\n"), "one\ntwo\n\n\n");
}

TEST(MpirunNotices, IncludeOneThatIsCutOff) {
  MpirunNotices notices;
  notices.feed(kRule + "mpirun sa");
  EXPECT_EQ(notices.finish(), "");
  EXPECT_EQ(notices.notices(), std::vector<std::string>{"mpirun sa"});
}

TEST(MpirunNotices, TellHowARankEnded) {
  const auto ends = rank_ends_in({"something else\n", kKilled, kExited, kExitedOpenMpi4});
  ASSERT_EQ(ends.size(), 3u);
  EXPECT_EQ(ends[0].rank, 1);
  EXPECT_EQ(ends[0].host, "a-host-of-long-name");
  EXPECT_EQ(ends[0].status, W_EXITCODE(0, SIGKILL));
  EXPECT_EQ(ends[1].rank, 3);
  EXPECT_EQ(ends[1].status, W_EXITCODE(7, 0));
  EXPECT_EQ(ends[2].rank, 0);
  EXPECT_EQ(ends[2].status, W_EXITCODE(2, 0));
}

}  // namespace
}  // namespace phalanx
