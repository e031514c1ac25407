#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the throughput of 1, 2 and 4 hosts of a virtual cluster with the predictions of //tools:simulate.

The prediction knows the throughput of one host, the number of parameters, and the rates of the links. Hosts share the
cores of this machine."""

import os
import pathlib
import re
import statistics
import sys
import unittest

import program
from program import QUICKSTART, ROOT, TRAIN, ProgramTest, sets

sys.path[:0] = [str(ROOT / "tools/virtual_cluster")]
import cluster

VIRTUAL_CLUSTER = str(ROOT / "tools/virtual_cluster/virtual_cluster")
SIMULATE = str(ROOT / "tools/simulate/simulate")

LINKS = {"100mbit": 100e6 / 8, "1gbit": 1e9 / 8}  # bytes per second
FRAMING = 0.94  # share of a link that is left for data by the headers of Ethernet, IP and TCP, and acknowledgements
TARGET = 0.15  # relative error of a prediction
ROUNDS = 3  # of which the median counts
SAMPLES = 8  # of a rank in each step
HIDDEN = 1024
PIXELS, CLASSES = 28 * 28, 10
PARAMETERS = (PIXELS + 1) * HIDDEN + (HIDDEN + 1) * HIDDEN + (HIDDEN + 1) * CLASSES

# Long steps that do nothing but compute and then exchange gradients.
SETTINGS = {"model": f"{{name: mlp, hidden: [{HIDDEN}, {HIDDEN}]}}", "strategy": "all_reduce", "backend": "hybrid",
            "launch.threads": 1, "evaluate.every_epochs": 0, "dataset.test_samples": 16, "expect": "{}"}


os.environ["PATH"] += ":/usr/sbin:/sbin"  # where ip and tc are
REFUSAL = cluster.refusal()


@unittest.skipIf(REFUSAL, REFUSAL)
class Scaling(ProgramTest):
    def throughput(self, hosts, link, steps):
        """Returns the samples per second of a run with one rank on each host."""
        names = ", ".join(f"node{host + 1}:1" for host in range(hosts))
        placed = {"launch.hosts": f"[{names}]", "launch.ranks": hosts} if hosts > 1 else {"launch.ranks": 1}
        folder = self.folder / f"{hosts}-{link}-{len(list(self.folder.iterdir()))}"
        mpirun = pathlib.Path(os.path.realpath(ROOT / os.environ["MPIRUN"])).parent
        process = self.start("run", f"--hosts={hosts}", f"--link={link}", "--", TRAIN, f"--config={QUICKSTART}",
                             f"--run_dir={folder}",
                             *sets(SETTINGS, placed, {"train.global_batch_size": SAMPLES * hosts,
                                                      "train.max_steps": steps}),
                             command=(VIRTUAL_CLUSTER,), environment={"PATH": f"{mpirun}:{os.environ['PATH']}"})
        self.assert_status(0, process)
        return program.RunFolder(folder).summary["throughput"]

    def predicted(self, hosts, link, one_host):
        """Returns the samples per second that simulate predicts."""
        scenario = self.folder / "scenario.yaml"
        scenario.write_text(f"""
cluster: {{hosts: {hosts}, ranks_per_host: 1, nic_bandwidth: {LINKS[link]}, nic_latency: 1e-4,
          network_efficiency: {FRAMING}}}
model: {{name: mlp, parameters: {PARAMETERS}, seconds_per_sample: {max(1, hosts / os.cpu_count()) / one_host}}}
train: {{samples_per_replica: {SAMPLES}, overlap: false, algorithm: ring}}
""")
        process = self.start(scenario, command=(SIMULATE,))
        self.assert_status(0, process)
        return float(re.search(r"throughput\s+([\d.]+) samples/s", process.out)[1])

    def test_is_as_predicted(self):
        rows = []
        for link in LINKS:
            measured = {hosts: [] for hosts in (1, 2, 4)}
            for _ in range(ROUNDS):
                for hosts, values in measured.items():
                    values.append(self.throughput(hosts, link, 60 if link == "1gbit" else 20))
            medians = {hosts: statistics.median(values) for hosts, values in measured.items()}
            for hosts in (2, 4):
                rows.append((link, hosts, medians[1], medians[hosts], self.predicted(hosts, link, medians[1])))
        for link, hosts, one, measured, predicted in rows:
            print(f"{link:8} {hosts} hosts: {measured:8.1f} samples/s, predicted {predicted:8.1f} "
                  f"({predicted / measured - 1:+.1%}); one host {one:.1f}")
        for link, hosts, _, measured, predicted in rows:
            with self.subTest(link=link, hosts=hosts):
                self.assertLess(abs(predicted / measured - 1), TARGET)


if __name__ == "__main__":
    program.main()
