# SPDX-License-Identifier: Apache-2.0
"""Texts that launchers, agents, hosts and ranks send to each other."""

import json

from corpora.inputs import write


def make():
    """Writes these corpora."""
    def request(**changes):
        return json.dumps({"host": "node7", "ranks": 2, "versions": {"Phalanx": "1.0", "Open MPI": "5.0"}, **changes})

    write("join_request", good=request().ljust(1024), good_many=request(ranks=4096), none=request(ranks=0),
          many=request(ranks=4097), number=request(ranks=1e300), no_ranks=request(ranks=None), host=request(host=7),
          versions=request(versions=["1.0"]), version=request(versions={"Phalanx": 1}), long=request(host="n" * 2000),
          empty="", list="[]", rest=request() + "x")

    def answer(length=None, **changes):
        text = json.dumps({"refusal": "", "folder": "/job", "command": ["train", "--config=a.yaml"], "variables": "A=1\nB=2\n",
                           "token_file": "/job/run/join.token", "token": "abc", "secret_is_of_job": True, **changes})
        return "%08d" % (len(text) if length is None else length) + text

    write("join_answer", good=answer(), good_refusal=answer(refusal="no more ranks may join"), empty="", short="0000",
          digits="0000000x{}", negative=answer(-1), large=answer(1 << 21), cut=answer()[:-1], rest=answer() + " ",
          no_token=answer(token=None), command=answer(command="train"), words=answer(command=[1]), flag=answer(secret_is_of_job=1))
    write("agent_output", good="Epoch 1\n\0alive 7\n\0lost 3\nEpoch 2\n\0ended 12 0\n\0status 0\n", good_text="no line\n",
          good_cut="\0alive", good_long="\0" + "x" * 1000 + "\n", word="\0hello\n", nothing="\0\n", number="\0lost 3a\n",
          negative="\0lost -1\n", large="\0ended 4294967297 1\n", status="\0status 99999999999999999999\n", space="\0alive  7\n")
    write("agent_orders", good="alive 1\nended 3\nstart 5 3 1 2 4 1800000000000000000\nstop\nend\nkill\n", good_empty="",
          good_far="ended 7000\n", good_cut="start 5", word="hello\n", number="ended 4294967296\n", negative="ended -1\n",
          newcomer="start 5 3\n", start="start\n", nul="stop\0\n")
    write("newcomer", good="5 3 1 2 4 1800000000000000000", good_joins="5 -1 5 0 2 0", empty="", cut="5 3 1 2 4", number="-1 3 1 2 4 9",
          nobody="5 -2 1 2 4 9", place="5 3 -1 2 4 9", share="5 3 1 -2 4 9", shares="5 3 1 2 0 9", time="5 3 1 2 4 -9",
          rest="5 3 1 2 4 9 x", large="5 3 1 2 99999999999 9", late="5 3 1 2 4 99999999999999999999")
    write("attempt", good="2 0 1 3\n5 2 1 2 4 9\n6 -1 6 0 2 9", good_alone="0 0", empty="", nobody="2", word="2 0 x", number="x 0",
          newcomer="2 0 1\n5 2", line="2 0 1\n\n5 2 1 2 4 9")

    def failure(**changes):
        return json.dumps({"rank": 3, "host": "node7", "log": "/job/logs/rank3.log", "message": "out of paper", "secondary": False,
                           "time": 1.8e9, "status": 1, "spares_host": False, **changes})

    write("failure", good=failure(), good_lines=failure(message="a\nb"), good_old=failure(spares_host=None), empty="", cut="{",
          list="[1]", rank=failure(rank=1e300), no_rank=failure(rank=None), message=failure(message=["a"]), flag=failure(secondary=0),
          time=failure(time="now"), status=failure(status=1 << 40), host=failure(host=7), log=failure(log={}),
          spares=failure(spares_host="yes"))
    write("end_of_run", good="0\n", good_interrupted="130\n", good_time="124", empty="", failed="1\n", unknown="77", word="done",
          large="99999999999")
