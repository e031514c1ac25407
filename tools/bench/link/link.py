# SPDX-License-Identifier: Apache-2.0
"""Compares all_reduce between two hosts with the capacity of the link between them.

    bazel run //tools/bench/link -- --rate 1gbit --bytes 64KB,1MB,16MB

The hosts belong to a virtual cluster (tools/virtual_cluster/cluster.py), which needs root. An all_reduce of n bytes
sends at least n bytes from each of two hosts; `stream` is one TCP connection that carries exactly that, in both
directions at once. The program prints a table, and with --json it writes a file:
    {"rate": "1gbit", "rows": [{"subject", "bytes", "seconds", "times_stream", "sent", "times_least"}, ...]}
seconds are medians over the rounds; a round ends when its last rank has finished. The two hosts share the cores of one
machine here: if it has other work to do, only --realtime shows what the link allows.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys

import cluster

HERE = pathlib.Path(__file__).resolve().parent
RANK = os.environ.get("PHALANX_LINK_RANK", "")
DEADLINE = 300  # seconds for all sizes of one subject
UNITS = {"": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


def parse_size(text):
    found = re.fullmatch(r"(\d+)([KMG]B)?", text.strip())
    if not found:
        raise argparse.ArgumentTypeError(f'"{text}" is not a size; write 4096, 64KB or 16MB')
    return int(found[1]) * UNITS[found[2] or ""]


def parse_options():
    parser = argparse.ArgumentParser(prog="link", description="all_reduce between two hosts, against the link itself")
    parser.add_argument("--rate", default="1gbit", help="rate of the link, in the notation of tc")
    parser.add_argument("--bytes", default="64KB,1MB,16MB", type=lambda text: [parse_size(s) for s in text.split(",")])
    parser.add_argument("--rounds", default=10, type=int, help="measurements of each size")
    parser.add_argument("--subjects", default="hybrid,gloo,mpi,hybrid+mpi", type=lambda text: text.split(","),
                        help="backends; NAME+mpi: started by mpirun, as mpi itself is; NAME=FOLDER: backend mpi with the "
                        "MPICH or Intel MPI in FOLDER")
    parser.add_argument("--ranks_per_host", default=2, type=int, help="ranks on each of the two hosts (2)")
    parser.add_argument("--realtime", action="store_true", help="give ranks priority over everything else on this machine")
    parser.add_argument("--json", help="JSON file for the rows")
    return parser.parse_args()


@contextlib.contextmanager
def started(commands):
    """Runs the commands as processes, which have ended when the block is left. The output of the first is read; the
    output of the others is passed on."""
    processes = []
    try:
        for number, (command, environment) in enumerate(commands):
            out = subprocess.PIPE if number == 0 else sys.stderr
            processes.append(subprocess.Popen(command, env=environment, stdout=out, text=True, start_new_session=True))
        yield processes
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout:
                process.stdout.close()


def rows_of(subject, commands):
    """Returns the rows that the first of the processes has measured."""
    with started(commands) as processes:
        try:
            out, _ = processes[0].communicate(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            raise SystemExit(f"link: {subject} has not finished within {DEADLINE} s") from None
        for process in processes if subject != "stream" else processes[:1]:
            if process.wait(timeout=DEADLINE) != 0:
                raise SystemExit(f"link: {subject} failed, see above")
    lines = [json.loads(line) for line in out.splitlines()]
    return [{"subject": subject, **line, "seconds": statistics.median(line["seconds"])} for line in lines]


def measure_stream(hosts, options):
    stream = ["python3", str(HERE / "stream.py")]
    sizes = ",".join(str(size) for size in options.bytes)
    there = hosts.addresses[1]
    client = [*stream, "connect", there, cluster.INTERFACE, sizes, str(options.rounds)]
    return rows_of("stream", [(hosts.command(0, client), None), (hosts.command(1, [*stream, "serve", there]), None)])


def rank_command(backend, options):
    sizes = ",".join(str(size) for size in options.bytes)
    return [RANK, f"--backend={backend}", f"--bytes={sizes}", f"--rounds={options.rounds}",
            f"--interface={cluster.INTERFACE}"]


def torchrun_variables(hosts, host, local_rank, per_host):
    return {**os.environ, "RANK": str(host * per_host + local_rank), "WORLD_SIZE": str(2 * per_host),
            "LOCAL_RANK": str(local_rank), "LOCAL_WORLD_SIZE": str(per_host), "MASTER_ADDR": hosts.addresses[0],
            "MASTER_PORT": "29500", "GLOO_SOCKET_IFNAME": cluster.INTERFACE, "OMP_NUM_THREADS": "1"}


def measure_ranks(backend, hosts, options):
    """Measures ranks that find each other by the environment variables of torchrun. The byte counters belong to the
    first host."""
    command = rank_command(backend, options)
    places = [(host, local_rank) for host in range(2) for local_rank in range(options.ranks_per_host)]
    return rows_of(backend, [(hosts.command(host, command),
                              torchrun_variables(hosts, host, local_rank, options.ranks_per_host))
                             for host, local_rank in places])


def measure_mpirun(subject, hosts, options):
    """Measures the same with mpirun on the first host, which starts its daemon on the other one through ssh."""
    mpirun = subprocess.run([RANK, "--mpirun"], capture_output=True, text=True, check=True).stdout.strip()
    settings = {"btl_tcp_if_include": cluster.INTERFACE, "pml": "ob1", "btl": "self,sm,tcp"}
    command = [mpirun, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
               "--host", ",".join(f"{name}:{options.ranks_per_host}" for name in hosts.names)]
    for name, value in settings.items():
        command += ["--mca", name, value]
    command += ["-x", "OMP_NUM_THREADS"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HOME": os.environ.get("HOME", "/tmp")}
    ranks = rank_command(subject.split("+")[0], options)
    return rows_of(subject, [(hosts.command(0, [*command, *ranks]), environment)])


def measure_mpiexec(subject, hosts, options):
    """Measures backend mpi with an MPICH or Intel MPI over TCP. Its mpiexec starts the other host's ranks through ssh."""
    name, _, folder = subject.partition("=")
    mpiexec = pathlib.Path(folder).expanduser().resolve() / "bin/mpiexec.hydra"
    if not mpiexec.exists():
        raise SystemExit(f"link: {subject}: there is no {mpiexec}")
    command = [str(mpiexec), "-launcher", "ssh", "-iface", cluster.INTERFACE, "-hosts", ",".join(hosts.names),
               "-ppn", str(options.ranks_per_host), "-n", str(2 * options.ranks_per_host)]
    # Without UCX_TLS, UCX finds out that both hosts are one machine, and uses no link.
    settings = {"OMP_NUM_THREADS": "1", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": cluster.INTERFACE,
                "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": cluster.INTERFACE,
                "I_MPI_ROOT": str(mpiexec.parents[1]), "I_MPI_PIN": "0", "I_MPI_FABRICS": "shm:ofi"}
    return rows_of(name, [(hosts.command(0, command + rank_command("mpi", options)), {**os.environ, **settings})])


def measure(subject, hosts, options):
    if "=" in subject:
        return measure_mpiexec(subject, hosts, options)
    if subject == "mpi" or subject.endswith("+mpi"):
        return measure_mpirun(subject, hosts, options)
    return measure_ranks(subject, hosts, options)


def compare(rows):
    """Adds to each row its time relative to the stream of the same size, and its bytes relative to the least
    possible."""
    stream = {row["bytes"]: row["seconds"] for row in rows if row["subject"] == "stream"}
    for row in rows:
        row["times_stream"] = row["seconds"] / stream[row["bytes"]]
        row["times_least"] = max(row["sent"], row["received"]) / row["bytes"]
    return rows


def print_table(rows):
    print("| all_reduce by | bytes | ms | times stream | bytes each way | times least |\n|---|---|---|---|---|---|")
    for row in sorted(rows, key=lambda row: row["bytes"]):
        print(f"| {row['subject']} | {row['bytes']} | {row['seconds'] * 1e3:.2f} | {row['times_stream']:.2f} | "
              f"{max(row['sent'], row['received'])} | {row['times_least']:.3f} |")


def main():
    options = parse_options()
    if missing := cluster.what_is_missing():
        raise SystemExit(f"link: {missing}")
    for number in signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, lambda *_: sys.exit(1))  # runs every clean-up, as Ctrl-C does
    if options.realtime:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    with cluster.Cluster(2, options.rate) as hosts:
        rows = measure_stream(hosts, options)
        for subject in options.subjects:
            rows += measure(subject, hosts, options)
    print_table(compare(rows))
    if options.json:
        folder = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
        (folder / options.json).write_text(json.dumps({"rate": options.rate, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
