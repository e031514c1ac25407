# SPDX-License-Identifier: Apache-2.0
"""Runs train as users and launchers do, for the tests of the whole program."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

# Tests start in the root of their runfiles.
ROOT = pathlib.Path.cwd()
TRAIN = str(ROOT / "tools/train")
QUICKSTART = str(ROOT / "configs/quickstart.yaml")
HOST = socket.gethostname()
_MARK = "PHALANX_TEST_MARK"

# Seconds after which something that must happen is considered missing. A loaded machine may take a while; a hang takes
# forever.
DEADLINE = 120

# Settings that make a whole run take about a second.
SHORT = {"dataset.train_samples": 512, "dataset.test_samples": 128, "train.max_steps": 16, "watch.every_steps": 4, "evaluate.every_epochs": 0,
         "expect": "{}"}
# Settings for a run that trains until it is ended.
ENDLESS = {**SHORT, "train.max_steps": 0, "train.epochs": 1000000}


def sets(*settings, **more):
    """Returns --set arguments for dicts of keys and values."""
    merged = {key: value for setting in (*settings, more) for key, value in setting.items()}
    return [f"--set={key}={value}" for key, value in merged.items()]


def as_if_on_a_device(config):
    """Changes the config file of a run for a run on a device, with all options that only devices support."""
    text = config.read_text()
    for was, on_device in (("device: auto", "device: cuda"), ("cuda_graph: false", "cuda_graph: true"),
                           ("resident: false", "resident: true")):
        assert text.count(was) == 1, f"{was} in {config}"
        text = text.replace(was, on_device)
    config.write_text(text)


def mpirun(ranks):
    """Returns the beginning of a command that starts ranks by hand. Open MPI searches its parts next to the real
    path."""
    program = os.path.realpath(ROOT / os.environ["MPIRUN"])
    return [program, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", str(ranks)]


def mpiexec():
    """Returns the path of another MPI's mpiexec. Hydra searches its parts next to the real path. Skips the test if this MPI
    could not be downloaded."""
    program = pathlib.Path(os.path.realpath(ROOT / os.environ["MPIEXEC"]))
    if program.name == "absent.txt":
        raise unittest.SkipTest(" ".join(program.read_text().split()))
    return program


def free_port():
    """Returns a free port below the range that the system uses for connections, so that no connection takes it before
    the test."""
    while True:
        port = random.SystemRandom().randrange(15000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def torchrun(rank, size, port, **more):
    """Returns the environment that torchrun gives to a rank of this host."""
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(size),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), **more}


def signals(pid, field):
    """Returns signal numbers of a process: SigIgn: ignored signals; ShdPnd: pending signals."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return set()
    mask = int(re.search(rf"^{field}:\s*(\w+)", text, re.MULTILINE)[1], 16)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


def becomes_true(condition, seconds=DEADLINE):
    """Calls `condition` until it is true or the time is up. Returns its last result."""
    end = time.monotonic() + seconds
    while not (answer := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return answer


def processes(mark):
    """Returns the ids of all processes that inherited `mark`, at any depth of the process tree."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"{_MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            pass  # the process has ended, or belongs to another user
    return found


class RunFolder:
    """The files of a run."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def log(self, rank):
        return self.path / f"logs/rank{rank}.log"

    @property
    def config(self):
        return self.path / "config.yaml"

    @property
    def weights(self):
        return (self.path / "weights.safetensors").read_bytes()

    def weights_after(self, step):
        """Returns the weights in the checkpoint of a step, by name, however ranks have shared them out among files."""
        found = {}
        for file in (self.path / f"checkpoints/step-{step:08}").glob("weights-*.safetensors"):
            data = file.read_bytes()
            begin = 8 + int.from_bytes(data[:8], "little")
            for name, tensor in json.loads(data[8:begin]).items():
                if name != "__metadata__":
                    first, end = tensor["data_offsets"]
                    found[name] = (tensor["dtype"], tensor["shape"], data[begin + first:begin + end])
        return found

    @property
    def summary(self):
        return json.loads((self.path / "summary.json").read_text())

    @property
    def metrics(self):
        file = self.path / "metrics.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


class Process:
    """A program that a test has started, in its own process group."""

    def __init__(self, command, folder, **options):
        self.output, self.errors = folder / "stdout", folder / "stderr"
        self.started = time.monotonic()
        with open(self.output, "wb") as output, open(self.errors, "wb") as errors:
            self._popen = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                           **{"stdout": output, "stderr": errors, "start_new_session": True, **options})
        self.pid = self._popen.pid

    def wait(self, seconds=DEADLINE):
        """Returns the exit status, as a shell reports it."""
        try:
            status = self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds} s\n{self.text()}") from None
        return status if status >= 0 else 128 - status

    @property
    def running(self):
        return self._popen.poll() is None

    @property
    def out(self):
        return self.output.read_text()

    @property
    def err(self):
        return self.errors.read_text()

    @property
    def words(self):
        """Returns standard error on one line, without the frame, whose lines may be broken inside of names."""
        return " ".join(self.err.replace("│", " ").split())

    def text(self):
        return f"--- stdout\n{self.out}--- stderr\n{self.err}"

    def kill(self, what=signal.SIGKILL):
        os.kill(self.pid, what)

    def interrupt(self, what=signal.SIGINT):
        """Sends a signal to the process group, as a terminal does for Ctrl-C."""
        os.killpg(self.pid, what)


class ProgramTest(unittest.TestCase):
    """Gives each test its own folder and TMPDIR, and kills all processes that it leaves behind."""

    def setUp(self):
        # Bazel's folder is not used: its path is too long for some sockets.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="phalanx-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self.mark = self.folder.name
        self.addCleanup(self._kill_all)
        self._shared_memory = set(os.listdir("/dev/shm"))
        self._count = 0

    def environment(self, **variables):
        """Returns the environment for programs of this test; None removes a variable."""
        # A test may itself run under a launcher, or in an environment with variables of one.
        foreign = ("OMPI_", "PMIX_", "PRTE_", "PMI_", "I_MPI_", "SLURM_", "TORCHELASTIC_", "PHALANX_", "MASTER_", "MPI_HOME",
                   "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "BUILD_WORKING_DIRECTORY")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        # Keeps Open MPI's segments separate from the segments of other programs that run at the same time.
        own = {_MARK: self.mark, "TMPDIR": str(self.temporary),
               "OMPI_MCA_btl_sm_backing_directory": str(self.temporary)}
        return {name: value for name, value in {**kept, **own, **variables}.items() if value is not None}

    def run_folder(self, name="run"):
        return RunFolder(self.folder / name)

    def start(self, *arguments, command=(TRAIN,), environment={}, **options):
        """Starts train, in this test's folder, with `arguments` after `command`."""
        self._count += 1
        folder = self.folder / f"process{self._count}"
        folder.mkdir()
        process = Process([*command, *map(str, arguments)], folder, env=self.environment(**environment),
                          **{"cwd": self.folder, **options})
        self.addCleanup(lambda: process.running and (process.kill(), process.wait()))
        return process

    def train(self, *arguments, config=QUICKSTART, run="run", **options):
        """Starts train with a config and a run folder."""
        return self.start(f"--config={config}", f"--run_dir={self.folder / run}", *arguments, **options)

    def wait_for_training(self, run, process):
        """Waits until the metrics in the run folder show that training is in progress."""
        becomes_true(lambda: len(run.metrics) >= 2 or not process.running)
        self.assertTrue(process.running, process.text())
        self.assertGreaterEqual(len(run.metrics), 2, process.text())

    def rank_process(self, run, rank):
        """Returns the id of the process of a rank, which is the one that writes the rank's log."""
        log = os.path.realpath(run.log(rank))
        for pid in processes(self.mark):
            try:
                if any(os.path.realpath(f"/proc/{pid}/fd/{fd}") == log for fd in os.listdir(f"/proc/{pid}/fd")):
                    return pid
            except OSError:
                pass
        raise AssertionError(f"no process has {log} open")

    def assert_status(self, expected, process, seconds=DEADLINE):
        self.assertEqual(expected, process.wait(seconds), process.text())

    def assert_framed_once(self, process, rank, ranks, log):
        """Checks that standard error has one report that names the failed rank and its log."""
        self.assertEqual(1, process.err.count("┌─"), process.text())
        self.assertIn(f"┌─ Rank {rank} of {ranks} on {HOST} failed ─", process.err)
        self.assertIn(f"│ Log: {log}\n", process.err)
        self.assertTrue(log.exists())

    def assert_nothing_left(self):
        """Checks that this test has left no process, no temporary file and no shared memory."""
        self.assertTrue(becomes_true(lambda: not processes(self.mark), 5), self._describe_processes())
        self.assertTrue(becomes_true(lambda: not os.listdir(self.temporary), 5), os.listdir(self.temporary))
        new = {name for name in os.listdir("/dev/shm") if not name.startswith("sm_segment.")} - self._shared_memory
        becomes_true(lambda: not new & set(os.listdir("/dev/shm")), 20)  # files of other programs disappear
        self.assertEqual(set(), new & set(os.listdir("/dev/shm")))

    def _describe_processes(self):
        lines = []
        for pid in processes(self.mark):
            try:
                arguments = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                lines.append(f"{pid} {arguments}")
            except OSError:
                pass  # the process has ended
        return "\n".join(lines)

    def _kill_all(self):
        for pid in processes(self.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class ShardLoader(unittest.TestLoader):
    """Loads every n-th test, if Bazel runs a test in n shards."""

    def __init__(self):
        super().__init__()
        self._shards, self._shard = int(os.environ.get("TEST_TOTAL_SHARDS", 1)), int(os.environ.get("TEST_SHARD_INDEX", 0))
        self._found = 0
        if "TEST_SHARD_STATUS_FILE" in os.environ:
            pathlib.Path(os.environ["TEST_SHARD_STATUS_FILE"]).touch()

    def getTestCaseNames(self, case):
        chosen = []
        for name in super().getTestCaseNames(case):
            if self._found % self._shards == self._shard:
                chosen.append(name)
            self._found += 1
        return chosen


class TimedResult(unittest.TextTestResult):
    """Prints the seconds that each test has taken."""

    def startTest(self, test):
        super().startTest(test)
        self._since = time.monotonic()

    def addSuccess(self, test):
        unittest.TestResult.addSuccess(self, test)
        self.stream.writeln(f"ok ({time.monotonic() - self._since:.1f} s)")


def main():
    # Programs inherit ignored signals and keep ignoring them; the parent of the tests may ignore some.
    for number in (signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    unittest.main(testRunner=unittest.TextTestRunner(verbosity=2, resultclass=TimedResult), testLoader=ShardLoader())
