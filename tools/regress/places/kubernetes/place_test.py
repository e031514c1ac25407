#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the place "kubernetes" with a kubectl that runs the command of each TrainJob on this machine."""

import json
import os

from program import ROOT, ProgramTest, becomes_true, main

RUN_JOBS = str(ROOT / "tools/regress/places/testing/run_jobs")

# Keeps the objects in the folder CLUSTER: NAME.json as applied, NAME.status once the command has ended.
KUBECTL = r"""#!/usr/bin/env python3
import json, os, pathlib, subprocess, sys
cluster = pathlib.Path(os.environ["CLUSTER"])
verb, *words = sys.argv[1:]

def condition(kind, **more):
    return {"conditions": [{"type": kind, "status": "True", **more}]}

def status(name):
    file = cluster / f"{name}.status"
    if not file.exists() or not file.read_text():
        return {}
    code = int(file.read_text())
    reason = {124: "DeadlineExceeded", 125: "NodeLost"}.get(code, "JobsFailed")
    return condition("Complete") if code == 0 else condition("Failed", reason=reason, message="as it was told")

if verb == "apply":
    job = json.loads(pathlib.Path(words[1]).read_text())
    name = job["metadata"]["name"]
    (cluster / f"{name}.json").write_text(json.dumps(job))
    limit = job["spec"].get("activeDeadlineSeconds", 1000)
    script = 'timeout "$@"; echo $? >"$0.new"; mv "$0.new" "$0"'
    command = job["spec"]["trainer"]["command"]
    subprocess.Popen(["sh", "-c", script, str(cluster / f"{name}.status"), str(limit), *command],
                     stdout=subprocess.DEVNULL, start_new_session=True)
elif verb == "get" and words[0] == "trainjobs":
    items = [json.loads(file.read_text()) for file in cluster.glob("*.json")]
    label = dict([words[2].split("=")])
    print(json.dumps({"items": [{**item, "status": status(item["metadata"]["name"])} for item in items
                                if item["metadata"]["labels"] == label]}))
elif verb == "get" and words[0] == "pods":
    code = int((cluster / f"{words[2].split('=')[1]}.status").read_text())
    terminated = [{"state": {"terminated": {"exitCode": code}}}] if code != 125 else []
    print(json.dumps({"items": [{"status": {"containerStatuses": terminated}}]}))
elif verb == "delete":
    names = [words[1]] if words[0] == "trainjob" else [file.stem for file in cluster.glob("*.json")]
    for name in names:
        (cluster / f"{name}.json").unlink(missing_ok=True)
    with open(cluster / "deleted", "a") as log:
        log.write(" ".join(words) + "\n")
"""


class Kubernetes(ProgramTest):
    def setUp(self):
        super().setUp()
        self.owner, self.cluster, self.manifests = (self.folder / name for name in ("out", "cluster", "manifests"))
        for folder in (self.owner, self.cluster, self.folder / "bin"):
            folder.mkdir()
        kubectl = self.folder / "bin/kubectl"
        kubectl.write_text(KUBECTL)
        kubectl.chmod(0o755)

    def job(self, name, script, **more):
        (self.owner / name).mkdir(exist_ok=True)
        command = ["/somewhere/else/bin/sh", "-c", script, "sh"]
        return {"name": name, "command": command, "folder": str(self.owner / name), **more}

    def start_jobs(self, *jobs, path=None):
        path = f"{self.folder}/bin:{os.environ['PATH']}" if path is None else path
        return self.start(f"kubernetes:{self.manifests}", self.owner, json.dumps(jobs), command=(RUN_JOBS,),
                          environment={"CLUSTER": str(self.cluster), "PATH": path})

    def write_runtimes(self):
        self.assert_status(1, self.start_jobs())

    def ends(self, process):
        self.assert_status(0, process)
        return {end.pop("name"): end for end in map(json.loads, process.out.splitlines()[1:])}

    def test_writes_runtimes_to_edit_and_leaves_them_then(self):
        process = self.start_jobs()
        self.assert_status(1, process)
        self.assertIn("runtime.yaml; edit it for your cluster", process.err)
        runtimes = self.manifests / "runtime.yaml"
        self.assertIn("kind: TrainingRuntime\n", runtimes.read_text())
        runtimes.write_text("edited\n")
        self.ends(self.start_jobs())
        self.assertEqual("edited\n", runtimes.read_text())

    def test_follows_jobs_to_their_end(self):
        self.write_runtimes()
        ends = self.ends(self.start_jobs(self.job("good", "echo out; echo err >&2"), self.job("bad", "exit 4"),
                                         self.job("lost", "exit 125"), self.job("slow", "sleep 600", time_limit=1)))
        self.assertEqual({"good": 0, "bad": 4, "lost": 1, "slow": 143},
                         {name: end["exit_status"] for name, end in ends.items()})
        self.assertRegex(ends["lost"]["infrastructure_error"], "TrainJob r-lost-.* failed: NodeLost: as it was told")
        self.assertTrue(ends["slow"]["timed_out"])
        self.assertEqual("out\n", (self.owner / "good/stdout.log").read_text())
        self.assertEqual("err\n", (self.owner / "good/stderr.log").read_text())
        self.assertEqual([], list(self.cluster.glob("*.json")), "ended TrainJobs are deleted")
        self.assertEqual(4, len(list(self.manifests.glob("*.json"))), "their manifests remain")

    def test_a_pod_that_is_started_again_resumes(self):
        self.write_runtimes()
        job = self.job("again", "echo $*")
        (self.owner / "again/metrics.jsonl").touch()
        self.assertEqual(0, self.ends(self.start_jobs(job))["again"]["exit_status"])
        self.assertEqual("--resume=auto\n", (self.owner / "again/stdout.log").read_text())

    def test_stops_jobs(self):
        self.write_runtimes()
        process = self.start_jobs(self.job("long", "echo up; sleep 5"))
        self.assertTrue(becomes_true(lambda: (self.owner / "long/stdout.log").exists()))
        (self.owner / "long.stop").touch()
        self.assertEqual(143, self.ends(process)["long"]["exit_status"])

    def test_without_kubectl_only_writes_the_manifests(self):
        self.write_runtimes()
        end = self.ends(self.start_jobs(self.job("a", "true"), path=""))["a"]
        self.assertRegex(end["infrastructure_error"],
                         "kubectl apply -f .*/manifests/r-a-.*json: there is no kubectl on PATH")


if __name__ == "__main__":
    main()
