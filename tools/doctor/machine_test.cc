// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/machine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace phalanx::doctor {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

TEST(Machine, IsReadFromFilesOfTheKernel) {
  const fs::path root = fs::path(::testing::TempDir()) / "machine";
  write(root / "proc/cpuinfo", "processor\t: 0\nmodel name\t: Fast CPU\nflags\t\t: fpu hypervisor avx2\n");
  write(root / "proc/meminfo", "MemTotal:       2048 kB\nMemAvailable:   1024 kB\n");
  write(root / "etc/os-release", "NAME=\"X\"\nPRETTY_NAME=\"Some Linux 1\"\n");
  write(root / "sys/fs/cgroup/cpu.max", "150000 100000\n");
  write(root / "proc/driver/nvidia/gpus/0000:01/information", "Model: \t\t Some GPU\nIRQ: 1\n");
  for (const char* name : {"node0", "node1", "nodes"}) fs::create_directories(root / "sys/devices/system/node" / name);
  const Machine machine = read_machine(root);
  EXPECT_EQ(machine.cpu, "Fast CPU");
  EXPECT_TRUE(machine.virtual_machine);
  EXPECT_EQ(machine.memory, 2048 * 1024);
  EXPECT_EQ(machine.available_memory, 1024 * 1024);
  EXPECT_EQ(machine.distribution, "Some Linux 1");
  EXPECT_EQ(machine.quota_cores, 1.5);
  EXPECT_EQ(machine.numa_nodes, 2);
  EXPECT_EQ(machine.devices, std::vector<std::string>{"Some GPU"});
}

TEST(Machine, UnknownFieldsAreEmpty) {
  const Machine machine = read_machine("/no/such/root");
  EXPECT_EQ(machine.cpu, "");
  EXPECT_EQ(machine.memory, 0);
  EXPECT_EQ(machine.quota_cores, 0);
  EXPECT_EQ(machine.dev_shm, 0);
  EXPECT_FALSE(machine.virtual_machine);
  EXPECT_TRUE(machine.devices.empty());
  EXPECT_EQ(machine.numa_nodes, 1);
}

TEST(Machine, ThisOneHasCores) {
  const Machine machine = read_machine();
  EXPECT_GE(machine.cores, machine.allowed_cores);
  EXPECT_GE(machine.allowed_cores, 1);
  EXPECT_GT(machine.memory, machine.available_memory);
  EXPECT_FALSE(machine.host.empty());
}

}  // namespace
}  // namespace phalanx::doctor
