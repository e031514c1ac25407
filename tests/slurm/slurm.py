# SPDX-License-Identifier: Apache-2.0
"""A real Slurm for tests, on the hosts of a virtual cluster: munged, slurmctld and a slurmd per host."""

import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path.cwd() / "tools/virtual_cluster"))
import cluster

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "squeue", "scancel", "scontrol", "sinfo")
PACKAGES = "slurmctld, slurmd, slurm-client and munge (PHALANX_WITH=slurm ./bazelw installs them)"
DEADLINE = 60  # seconds
CORES = 4  # of each node; more than there are, as nothing here computes much

CONF = """
ClusterName=test
SlurmctldHost=node1
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
TmpFS={folder}/tmp.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
AccountingStorageType=accounting_storage/none
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=node[1-{nodes}] CPUs={cores}
PartitionName=low Nodes=ALL Default=YES
PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF
"""


def what_is_missing():
    """Returns why there can be no Slurm here, or an empty string."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    if absent:
        return f"no {', '.join(absent)} on PATH; install {PACKAGES}"
    try:
        with cluster.Cluster(1):
            return ""
    except SystemExit as problem:
        return str(problem)


class Slurm:
    """Starts Slurm on entry, and ends all of its processes on exit. folder: an empty folder, for its files."""

    def __init__(self, folder, nodes=2):
        self.folder, self.nodes = pathlib.Path(folder), nodes
        self.environment = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}
        self._cluster = cluster.Cluster(nodes)
        self._processes = []

    def __enter__(self):
        self._write_files()
        self._cluster.__enter__()
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._cluster.__exit__()
        for process in self._processes:
            process.wait()

    def command(self, *words):
        """Returns the command that runs a command on the first node."""
        return self._cluster.command(0, list(words))

    def output(self, *words):
        """Returns what a command that succeeds prints."""
        done = subprocess.run(self.command(*words), env=self.environment, capture_output=True, text=True, check=False,
                              timeout=DEADLINE)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
        return done.stdout.strip()

    def _write_files(self):
        (self.folder / "state").mkdir()
        for node in self._cluster.names:
            (self.folder / f"spool.{node}").mkdir()
            (self.folder / f"tmp.{node}").mkdir()
        (self.folder / "munge.key").write_bytes(os.urandom(128))
        (self.folder / "munge.key").chmod(0o600)
        conf = CONF.format(folder=self.folder, nodes=self.nodes, cores=CORES)
        (self.folder / "slurm.conf").write_text(conf)
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")

    def _start(self):
        munge = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        self._serve(0, "munged", "--foreground", "--force",
                    *(f"--{option}={self.folder}/munge.{name}" for option, name in munge.items()))
        self._await((self.folder / "munge.socket").exists, "munged does not listen")
        self._serve(0, "slurmctld", "-D", "-c")
        for host in range(self.nodes):
            self._serve(host, "slurmd", "-D")
        self._await(self._is_ready, "the nodes are not idle")

    def _serve(self, host, *words):
        with open(self.folder / "daemons.log", "ab") as log:
            self._processes.append(subprocess.Popen(self._cluster.command(host, list(words)), env=self.environment,
                                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def _is_ready(self):
        asked = subprocess.run(self.command("sinfo", "--noheader", "--states=idle", "--partition=low", "--format=%D"),
                               env=self.environment, capture_output=True, text=True, check=False, timeout=DEADLINE)
        return asked.stdout.strip() == str(self.nodes)

    def _await(self, condition, problem):
        deadline = time.monotonic() + DEADLINE
        while not condition():
            if time.monotonic() > deadline or any(process.poll() is not None for process in self._processes):
                raise AssertionError(f"{problem}:\n{(self.folder / 'daemons.log').read_text()}")
            time.sleep(0.02)
