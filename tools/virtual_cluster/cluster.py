# SPDX-License-Identifier: Apache-2.0
"""A virtual cluster: hosts that are namespaces of this machine, which programs cannot distinguish from other machines.

Each host has its own network interface, host name and /dev/shm. All other files are shared with this machine, except
/etc/hosts, which names the hosts, and the folders that are given as private. A bridge connects the hosts. A
token bucket (tbf) limits what each host sends, and, if there are more than two, what each receives.

The hosts of a cluster share a PID namespace. The kernel kills all of its processes, and with them their network and
their mounts, when its first process ends. That process ends when its input does, so a cluster whose program is killed
leaves nothing behind. /run/phalanx/NAME.json records a cluster that outlives its program (up, down).

cluster.py JSON does what the command virtual_cluster is asked to do (the functions in COMMANDS).
"""

import contextlib
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

RIGHTS = "this requires root with CAP_NET_ADMIN and CAP_SYS_ADMIN: run it with sudo, or in a container that has both"
STATE = pathlib.Path("/run/phalanx")  # inside a cluster: a file system that its hosts share
PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux", "setpriv": "util-linux",
            "setsid": "util-linux", "unshare": "util-linux"}
INTERFACE = "eth0"
SUBNET, SUBNET_OF_IPV6 = "10.213.0.", "fd13:213::"
MOST_HOSTS = 250

# The first process of the cluster: prints its process id as others see it, and ends with its input.
FIRST = r"""
set -e
read -r pid rest </proc/self/stat
mount -t proc proc /proc
mkdir -p /run/phalanx
mount -t tmpfs -o mode=755 tmpfs /run/phalanx
mkdir /run/phalanx/bin /run/phalanx/pids /run/phalanx/cgroup
printf %s "$1" >/run/phalanx/hosts
printf %s "$2" >/run/phalanx/bin/ssh
chmod 755 /run/phalanx/bin/ssh
ip link set lo up
ip link add switch type bridge
ip link set switch up
echo "$pid"
exec env --ignore-signal=CHLD cat >/dev/null 2>&1  # the kernel removes processes that nobody waits for
"""

# The first process of a host: prints its process id in the cluster.
HOST = r"""
set -e
name=$1 address=$2
shift 2
hostname "$name"
ip link set lo up
if [ -d /sys/fs/cgroup ]; then mount --rbind /sys/fs/cgroup /run/phalanx/cgroup; fi
mount -t sysfs sysfs /sys
if [ -d /sys/fs/cgroup ]; then mount --move /run/phalanx/cgroup /sys/fs/cgroup; fi
mount --bind /run/phalanx/hosts /etc/hosts
for folder in /dev/shm "$@"; do mount -t tmpfs -o mode=1777 tmpfs "$folder"; done
echo $$ >/run/phalanx/pids/"$name"
ln -s "$name" /run/phalanx/pids/"$address"
echo $$
exec sleep infinity <&- >/dev/null 2>&1
"""

# Replaces ssh between hosts: ssh [OPTIONS] [USER@]HOST [COMMAND...]. As with ssh, the command gets none of the caller's
# variables, starts in the home folder, and has a separate session: Open MPI's daemons kill theirs.
SSH = r"""#!/bin/sh
while [ "${1#-}" != "$1" ]; do
  case $1 in -[bcDEeFIiJLlmOopQRSWw]) shift ;; esac
  shift
done
host=${1#*@}
shift
read -r pid 2>/dev/null <"/run/phalanx/pids/$host" || {
  echo "ssh: Could not resolve hostname $host: not a host of this cluster" >&2
  exit 255
}
path=/run/phalanx/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
exec nsenter --target "$pid" --net --uts --mount env -i HOME="${HOME:-/root}" USER="${USER:-root}" SHELL=/bin/sh \
  PATH="$path" setsid --wait sh -c 'cd; eval "${1:-exec sh}"' sh "$*"
"""

# With --sshd, the same name is the real client, which uses a key of the cluster.
SSH_TO_SSHD = """#!/bin/sh
exec /usr/bin/ssh -F /run/phalanx/ssh_config "$@"
"""
KEYS = r"""
set -e
umask 077
ssh-keygen -q -t ed25519 -N '' -f /run/phalanx/host_key
ssh-keygen -q -t ed25519 -N '' -f /run/phalanx/key
cat >/run/phalanx/ssh_config <<end
IdentityFile /run/phalanx/key
IdentitiesOnly yes
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
end
cat >/run/phalanx/sshd_config <<end
HostKey /run/phalanx/host_key
AuthorizedKeysFile /run/phalanx/key.pub
PermitRootLogin yes
StrictModes no
UsePAM no
PidFile none
SetEnv PATH=/run/phalanx/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
end
mkdir -p /run/sshd
"""


class Refused(SystemExit):
    """Something that this machine does not permit or does not have."""

    def __init__(self, why):
        hint = f"; {RIGHTS}" if re.search("not permitted|denied", why) else ""
        super().__init__(f"virtual cluster: {why}{hint}")


def what_is_missing(sshd=False):
    """Returns why no hosts can be made here, if that is known without trying; otherwise an empty string."""
    if os.geteuid() != 0:
        return f"not allowed to create network namespaces; {RIGHTS}"
    needed = {**PROGRAMS, **({"sshd": "openssh-server", "ssh-keygen": "openssh-client"} if sshd else {})}
    absent = [program for program in needed if shutil.which(program) is None]
    packages = " and ".join(sorted({needed[program] for program in absent}))
    return f"no {', '.join(absent)} on PATH; install {packages}" if absent else ""


class Cluster:
    """Makes the hosts on entry, and removes them, with all processes on them, on exit.

    rate: of each host's connection, in the notation of tc; empty: no limit. sshd: each host runs a real sshd; without
    it, a program replaces ssh. private: existing folders that are empty and different on each host. ipv6: hosts
    have addresses of IPv6 only, not even 127.0.0.1. names, addresses: of the hosts.
    """

    def __init__(self, hosts, rate="", sshd=False, private=(), ipv6=False):
        if not 1 <= hosts <= MOST_HOSTS:
            raise Refused(f"there can be 1 to {MOST_HOSTS} hosts, not {hosts}")
        self.rate, self.sshd, self.private, self.ipv6 = rate, sshd, list(private), ipv6
        self.names = [f"node{number}" for number in range(1, hosts + 1)]
        subnet = SUBNET_OF_IPV6 if ipv6 else SUBNET
        self.addresses = [f"{subnet}{number}" for number in range(1, hosts + 1)]
        self.first = 0  # process id of the first process
        self.pids = []  # of the first process of each host, in the cluster's PID namespace
        self._process = None

    def __enter__(self):
        if missing := what_is_missing(self.sshd):
            raise Refused(missing)
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_):
        self._remove()

    def command(self, host, command):
        """Returns the command that runs `command` on a host, which is given by its number, in the current folder. It
        gets SIGTERM if the process that enters the host is killed. It has a separate session, because mpirun sends
        signals to process groups, and it does not see the id of a group that began outside of the cluster."""
        path = f"PATH=/run/phalanx/bin:{os.environ.get('PATH', os.defpath)}"
        return [*self._inside("--pid"), "setpriv", "--pdeathsig", "TERM", "setsid", *self._on(host), "env", path,
                "sh", "-c", 'cd "$0" && exec "$@"', os.getcwd(), *command]

    def stay(self):
        """Lets the cluster outlive this object: from now on, one of its own processes holds its input open."""
        keep = "exec sleep infinity </dev/null >/dev/null 2>&1 &"
        subprocess.run([*self._inside("--pid"), "sh", "-c", keep], pass_fds=[self._process.stdin.fileno()], check=True)
        self._release()

    def _inside(self, *spaces):
        return ["nsenter", "--target", str(self.first), "--mount", *spaces]

    def _on(self, host):
        return ["nsenter", "--target", str(self.pids[host]), "--net", "--uts", "--mount"]

    def _make(self):
        names = "".join(f"{address} {name}\n" for name, address in zip(self.names, self.addresses))
        hosts = f"{'::1' if self.ipv6 else '127.0.0.1'} localhost\n{names}"
        script = ["sh", "-c", FIRST, "cluster", hosts, SSH_TO_SSHD if self.sshd else SSH]
        self._process = subprocess.Popen(["unshare", "--pid", "--fork", "--mount", "--net", *script], text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                         start_new_session=True)
        self.first = said_pid(self._process)
        for number in range(len(self.names)):
            self._add_host(number)
        if self.sshd:
            run(*self._inside("--pid"), "sh", "-c", KEYS)
            for number in range(len(self.names)):
                run(*self._inside("--pid"), *self._on(number), shutil.which("sshd"), "-f", "/run/phalanx/sshd_config")

    def _add_host(self, number):
        name, address = self.names[number], self.addresses[number]
        start = 'unshare --net --uts --mount sh -c "$0" "$@" &'  # remains, as a child of the first process
        with subprocess.Popen([*self._inside("--pid", "--net"), "sh", "-c", start, HOST, "host", name, address,
                               *self.private], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as starting:
            self.pids.append(said_pid(starting))
        switch = self._inside("--pid", "--net")  # process ids of hosts are valid here
        host = [*self._inside("--pid"), *self._on(number)]
        run(*switch, "ip", "link", "add", name, "type", "veth", "peer", "name", INTERFACE, "netns", str(self.pids[-1]))
        run(*switch, "ip", "link", "set", name, "master", "switch", "up")
        if self.ipv6:
            run(*host, "ip", "address", "flush", "dev", "lo", "to", "127.0.0.0/8")
            run(*host, "ip", "address", "add", f"{address}/64", "dev", INTERFACE, "nodad")  # ready at once
        else:
            run(*host, "ip", "address", "add", f"{address}/24", "dev", INTERFACE)
        run(*host, "ip", "link", "set", INTERFACE, "up")
        if self.rate:
            limit(host, INTERFACE, self.rate)
        if self.rate and len(self.names) > 2:  # several hosts can send to one
            limit(switch, name, self.rate)

    def _remove(self):
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait()
            self._release()

    def _release(self):
        for stream in self._process.stdin, self._process.stdout, self._process.stderr:
            stream.close()
        self._process = None


def refusal(hosts=1):
    """Tries to make hosts. Returns why that is impossible here, or an empty string if it is possible."""
    try:
        with Cluster(hosts, "1gbit"):
            return ""
    except SystemExit as problem:
        return str(problem)


def limit(enter, interface, rate):
    # The bucket holds two of the longest packets that TCP hands down. With a smaller one the kernel would split
    # packets, which takes more CPU time than hosts with network cards need. The queue is long enough that nothing is
    # dropped.
    run(*enter, "tc", "qdisc", "add", "dev", interface, "root", "tbf", "rate", rate, "burst", "128kb", "limit", "16mb")


def said_pid(process):
    """Returns the number that the process prints first."""
    line = process.stdout.readline().strip()
    if not line.isdecimal():
        raise Refused(" ".join(process.stderr.read().split()) or f"{process.args[0]} has ended")
    return int(line)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        words = [word for word in ("ip", "tc", "sh") if word in command]
        what = " ".join(command[command.index(words[0]):]) if words and words[0] != "sh" else command[-1].strip()[:40]
        raise Refused(f"{what}: {done.stderr.strip() or f'exit status {done.returncode}'}")


def started_at(pid):
    """Returns the time at which a process started, or an empty string if there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def state_file(name):
    if not re.fullmatch(r"[\w-]+", name):
        raise Refused(f'"{name}" cannot be the name of a cluster: use letters, digits, - and _')
    return STATE / f"{name}.json"


def find_cluster(name):
    """Returns the cluster that is up, or None. Forgets one whose processes have ended."""
    file = state_file(name)
    if not file.exists():
        return None
    state = json.loads(file.read_text())
    if started_at(state["first"]) != state["started_at"]:
        file.unlink(missing_ok=True)
        return None
    cluster = Cluster(len(state["pids"]), state["rate"])
    cluster.first, cluster.pids = state["first"], state["pids"]
    return cluster


def make_cluster(job):
    return Cluster(job["hosts"], job["link"], job["sshd"], job["private"])


def up(job):
    """Starts a cluster that remains until it is taken down."""
    name = job["name"]
    if find_cluster(name):
        raise Refused(f"cluster {name} is up already; take it down first: virtual_cluster down --name {name}")
    STATE.mkdir(parents=True, exist_ok=True)
    with make_cluster(job) as cluster:
        state = {"first": cluster.first, "started_at": started_at(cluster.first), "pids": cluster.pids,
                 "rate": cluster.rate}
        unfinished = state_file(name).with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(state))
        unfinished.rename(state_file(name))
        cluster.stay()
    hosts = [f"{host} {address}" for host, address in zip(cluster.names, cluster.addresses)]
    print(f"cluster {name}: {', '.join(hosts)}")


def down(job):
    """Ends all processes of a cluster, and waits until they are gone."""
    name = job["name"]
    cluster = find_cluster(name)
    if cluster is None:
        print(f"cluster {name} is not up")
        return
    started, deadline = started_at(cluster.first), time.monotonic() + 30
    os.kill(cluster.first, signal.SIGKILL)
    while started_at(cluster.first) == started:
        if time.monotonic() > deadline:
            raise Refused(f"process {cluster.first} of cluster {name} does not end")
        time.sleep(0.01)
    for file in STATE.glob(f"{name}.*"):
        file.unlink(missing_ok=True)
    print(f"cluster {name}: down")


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


def run_on(cluster, job):
    """Runs a command on a host, passes signals on to it, and returns its exit status."""
    if job["host"] not in cluster.names:
        raise Refused(f'there is no host "{job["host"]}": the hosts are {", ".join(cluster.names)}')
    command = cluster.command(cluster.names.index(job["host"]), job["command"])
    with subprocess.Popen(command, preexec_fn=die_with_parent) as entering:

        def pass_on(number, _):
            # The command is the child of nsenter, which would end at once.
            children = pathlib.Path(f"/proc/{entering.pid}/task/{entering.pid}/children").read_text().split()
            send = os.killpg if number == signal.SIGINT else os.kill  # as the terminal does
            for child in map(int, children):
                with contextlib.suppress(ProcessLookupError):
                    send(child, number)

        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            signal.signal(number, pass_on)
        status = entering.wait()
    return status if status >= 0 else 128 - status


def run_command(job):
    """Runs a command on a host of a cluster that is up or, with a number of hosts, of one that is made for it."""
    if job["hosts"]:
        with make_cluster(job) as cluster:
            return run_on(cluster, job)
    cluster = find_cluster(job["name"])
    if cluster is None:
        raise Refused(f"cluster {job['name']} is not up; start it with virtual_cluster up, or give a number of --hosts")
    return run_on(cluster, job)


def serve(job):
    """Makes hosts for a program that is not in Python. Writes a line of JSON, {"hosts": [{"enter": words before a
    command, "interface": name of the network interface}, ...]} or {"missing": why there are none}, and removes the
    hosts when standard input ends."""
    if missing := what_is_missing():
        print(json.dumps({"missing": missing}), flush=True)
        return
    with make_cluster(job) as cluster:
        entries = [{"enter": cluster.command(host, []), "interface": INTERFACE} for host in range(len(cluster.names))]
        print(json.dumps({"hosts": entries}), flush=True)
        sys.stdin.read()


COMMANDS = {"up": up, "down": down, "run": run_command, "serve": serve}
DEFAULTS = {"name": "default", "hosts": 0, "link": "", "sshd": False, "private": [], "host": "node1", "command": []}


def main():
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, lambda *_: sys.exit(1))  # runs every clean-up
    os.environ["PATH"] = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"  # where ip and tc are
    job = {**DEFAULTS, **json.loads(sys.argv[1])}
    sys.exit(COMMANDS[job["do"]](job))


if __name__ == "__main__":
    main()
