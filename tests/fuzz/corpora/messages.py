# SPDX-License-Identifier: Apache-2.0
"""What comes over connections, and texts that a person writes."""

import json
import struct

from corpora.inputs import write

HEADER = "<IHBBQIHBBqqqdQQII"  # framework/ps/protocol/message.h


def message(verb, number=1, table=0, rule=0, dtype=0, flags=0, clock=0, version=0, payload=b"", text=b"", rows=0,
            payload_bytes=None, text_bytes=None, magic=0x53504850, protocol=4, address=0, waited=0):
    text = text.encode() if isinstance(text, str) else text
    header = struct.pack(HEADER, magic, protocol, verb, 0, number, table, rule, dtype, flags, clock, version, waited, 1.0,
                         address, len(payload) if payload_bytes is None else payload_bytes,
                         len(text) if text_bytes is None else text_bytes, rows)
    return header + text + payload


def make_messages():
    create = message(2, 1, text="table: {name: t, elements: 4, dtype: float32, rules: [add]}\nshard: 0\nshards: 1\n")
    sparse = message(2, 1, text="table: {name: s, elements: 0, dim: 2, rules: [add], sparse: {keys: 10, capacity: 2}}\n")
    floats = struct.pack("<4f", 1, 2, 3, 4)
    rows = struct.pack("<q2f", 3, 1, 2)
    write("client_messages", good=create + message(3, 2, 1, dtype=6, payload=floats) + message(4, 3, 1, dtype=6,
          payload_bytes=0), good_status=message(7) + message(8, 2), good_create=create,
          sparse=sparse, sparse_push=sparse + message(3, 2, 1, payload=rows, rows=1), magic=message(7, magic=1),
          protocol=message(7, protocol=2), text=message(2, text_bytes=1 << 30), verb=message(99), table=message(3, 2, 7),
          payload=create + message(3, 2, 1, dtype=6, payload=floats[:4]), rule=create + message(3, 2, 1, rule=9, dtype=6,
          payload=floats), elements=message(2, text="table: {name: t, elements: 4611686018427387904}"),
          negative=message(2, text="table: {name: t, elements: -1}"), not_yaml=message(2, text="{"), good_cut=create[:50],
          rows=sparse + message(3, 2, 1, payload=b"", rows=0xffffffff, payload_bytes=1 << 40))
    state = json.dumps({"description": "{}", "tensors": [{"name": "1/values", "dtype": 6, "sizes": [2], "begin": 0}]}).encode()

    def install(text, elements=bytes(8), dtype=0):
        head = struct.pack("<Q", len(text)) + text
        return message(64, 1, rule=1, dtype=dtype, payload=head + bytes(-len(head) % 64) + elements)

    def tensor(**changes):
        one = {"name": "1/values", "dtype": 6, "sizes": [2], "begin": 0, **changes}
        return install(json.dumps({"description": "{}", "tensors": [one]}).encode())

    fixed = message(3, 2, 1) + struct.pack("<QiI", 5, 0, 3)
    write("replica_messages", good_apply=message(64, 1, rule=2, text=fixed + b"job"), good_applied=message(64, 2, rule=3),
          good_refused=message(64, 1, rule=4, text="busy"), state=install(state), no_state=message(64, 1, rule=1),
          short=message(64, 1, rule=1, payload=b"abc"), length=message(64, 1, rule=1, payload=b"\xff" * 16),
          not_json=install(b"{"), dtype=tensor(dtype=99), sizes=tensor(sizes=[1 << 62, 4]), begin=tensor(begin=1 << 63),
          negative=tensor(sizes=[-1]), outside=tensor(begin=64), element=message(64, 1, rule=2, dtype=6, payload=b"abc"),
          unknown=message(64, 1, rule=2, dtype=200, payload=b"abc"), verb=message(3, payload=b"abc"),
          request=message(64, 1, rule=2, text=b"abc"), job=message(64, 1, rule=2, text=fixed[:-4] + b"\xff" * 4),
          found_no_memory=message(64, 1, rule=1, payload_bytes=1 << 42), found_dtype=message(64, 1, rule=2, dtype=21, payload=b"abcd"))


def make_greetings():
    def greeting(*words):
        return "".join("%d:%s," % (len(str(word)), word) for word in words)

    good = ("job", 3, "abc", 0, "", 0, 0, 0, "1.5", 2, "a:1", "b:2")
    write("greeting", good=greeting(*good), good_alone=greeting("job", 3, "abc", 0, "", 0, 0, 0, 0, 0), empty="",
          cut=greeting(*good)[:-3], rest=greeting(*good) + "x", number=greeting("job", "x", *good[2:]),
          member=greeting(*good[:5], -1, *good[6:]), failover=greeting(*good[:8], "inf", *good[9:]),
          nan=greeting(*good[:8], "nan", *good[9:]), members=greeting(*good[:9], 1 << 40), length="99999999999999999999:a,",
          negative="-1:a,", colon="3abc")
    write("ranges", good=struct.pack("<4q", 0, 5, 7, 9), good_empty=b"", odd=b"abc", order=struct.pack("<4q", 7, 9, 0, 5),
          beyond=struct.pack("<2q", 0, 1001), none=struct.pack("<2q", 3, 3), negative=struct.pack("<2q", -1, 3))


def make_store():
    def request(verb, key, argument=0, value=b"", key_bytes=None):
        return struct.pack("<IIq", verb, len(key) if key_bytes is None else key_bytes, argument) + key + value

    opening = b"phalanx store 1?" + b"7" * 64
    write("store_greeting", good=opening, good_cut=opening[:20], opening=b"GET / HTTP/1.1\r\n\r\n", proof=opening + b"0" * 64,
          own_words=opening.replace(b"?", b"!"))
    write("store_requests", good=request(1, b"a", 3, b"xyz") + request(2, b"a") + request(3, b"n", 5), good_empty=request(2, b""),
          verb=request(9, b"a"), key=request(2, b"", key_bytes=5000), value=request(1, b"a", 1 << 40),
          negative=request(1, b"a", -1))


def make_texts():
    good = "table:\n  name: t\n  elements: 4\n  dtype: float32\n  rules: [add]\nshard: 0\nshards: 2\n"
    write("config", good=good, good_empty="", good_sparse="table: {name: s, dim: 2, sparse: {keys: 10, scale: 1e-2}}\n",
          alias="table: &a {name: t}\nshard: *a\n", tag="shard: !!int 1\n", documents="a: 1\n---\nb: 2\n",
          duplicate="shard: 1\nshard: 1\n", unknown="sharts: 1\n", type="shard: x\n", limit="shards: 0\n", syntax="a: [1,\n",
          nested="table: " + "[" * 200 + "]" * 200, number="shard: 99999999999999999999\n", key="? [a]\n: 1\n",
          not_utf8=b"table: {name: \xff}\n"[:-2] + b"\n", nul=b"shard: 1\0\n")
    write("node_list", good="gpu[01-03,7]-ib,login", good_one="a", open="a[1-2", order="a[3-1]", huge="a[0-99999999]", empty="",
          product="a[0-999][0-999]", number="a[99999999999999999999-1]", nested="a[[1]]", comma="a,,b")
    write("init_method", good="tcp://host:29500?rank=0&world_size=2", good_file="file:///tmp/x?rank=1&world_size=2",
          scheme="http://host:1", rank="tcp://host:1?rank=2&world_size=2", number="tcp://host:1?rank=x&world_size=2",
          port="tcp://host:x?rank=0&world_size=2", key="tcp://host:1?rank=0&world_size=2&x=1", alone="tcp://host:1?rank=0",
          no_port="tcp://host?rank=0&world_size=2")
    write("http_address", good="http://localhost:8080/metrics", good_six="http://[::1]:80", scheme="https://a", empty="",
          port="http://a:99999", open="http://[::1", none="http://")
    challenge = 'Digest realm="r", nonce="n", opaque="o", qop="auth", algorithm=SHA-256'
    write("http_challenge", good=challenge, good_stale=challenge + ",stale=true", good_spaces=challenge.replace(", ", " ,,  "),
          empty="", basic='Basic realm="r"', md5=challenge.replace("SHA-256", "MD5"), no_nonce=challenge.replace('"n"', '""'),
          no_qop=challenge.replace("auth", "other"), open=challenge + ', x="', no_value=challenge + ", x")


def make():
    """Writes these corpora."""
    make_messages()
    make_greetings()
    make_store()
    make_texts()
