# SPDX-License-Identifier: Apache-2.0
"""Formats that ranks write and read back: JSON, safetensors, ZIP archives, manifests and recordings."""

import json
import struct
import zipfile

from corpora.inputs import crc32c, stored, write


def make_json():
    write("json", good='{"a": [1, -2.5e3, true, null, "\\u00e9"], "b": {}}', good_number="1", truncated='{"a": [1',
          duplicate='{"a": 1, "a": 2}', nested="[" * 300 + "]" * 300, empty="", not_utf8=b'"\xff"')


def safetensors(header, elements):
    text = header if isinstance(header, str) else json.dumps(header)
    return struct.pack("<Q", len(text)) + text.encode() + elements


def make_safetensors():
    def entry(begin, end, shape, dtype="F32"):
        return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}

    good = {"__metadata__": {"format": "pt"}, "w": entry(0, 16, [2, 2]), "b": entry(16, 20, [2], "BF16"),
            "n": entry(20, 20, [0, 3], "I64")}
    write("safetensors",
          good=safetensors(good, bytes(20)),
          good_empty=safetensors({}, b""),
          cut_in_length=b"\x01\x00",
          header_too_long=struct.pack("<Q", 1 << 62) + b"{}",
          not_json=safetensors("{", b""),
          wrong_dtype=safetensors({"w": entry(0, 4, [1], "F33")}, bytes(4)),
          f8=safetensors({"w": entry(0, 4, [4], "F8_E4M3")}, bytes(4)),
          one_offset=safetensors({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}, bytes(4)),
          negative_size=safetensors({"w": entry(0, 4, [-1])}, bytes(4)),
          overflow=safetensors({"w": entry(0, 4, [1 << 62, 4])}, bytes(4)),
          wrong_end=safetensors({"w": entry(0, 8, [1])}, bytes(8)),
          beyond=safetensors({"w": entry(4, 8, [1])}, bytes(4)),
          reversed=safetensors({"w": entry(4, 0, [1])}, bytes(4)),
          overlap=safetensors({"a": entry(0, 4, [1]), "b": entry(2, 6, [1])}, bytes(6)),
          gap=safetensors({"a": entry(0, 4, [1]), "b": entry(5, 9, [1])}, bytes(9)),
          rest=safetensors({"a": entry(0, 4, [1])}, bytes(5)),
          twice=safetensors('{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
                            '"a":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}}', bytes(1)))


def zip64(entries):
    """Returns an archive whose directory is a zip64 one."""
    archive = stored(entries)
    end = archive.rindex(b"PK\x05\x06")
    count, size, begin = struct.unpack_from("<HII", archive, end + 10)
    record = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, size, begin)
    locator = b"PK\x06\x07" + struct.pack("<IQI", 0, end, 1)
    return archive[:end] + record + locator + archive[end:]


def make_zip():
    good = stored({"a/x": b"hello", "a/y": b""})
    directory = good.index(b"PK\x01\x02")
    write("zip", good=good, good_zip64=zip64({"a/x": b"hello"}), good_comment=good[:-2] + b"\x03\x00abc",
          compressed=stored({"a": bytes(100)}, zipfile.ZIP_DEFLATED), cut=good[:-10], empty=b"",
          wrong_checksum=good.replace(b"hello", b"hallo"), no_local=b"PK\x03\x03" + good[4:],
          no_central=good[:directory] + b"PK\x01\x03" + good[directory + 4:],
          directory_beyond=good[:-6] + struct.pack("<IH", len(good) + 1, 0),
          entry_beyond=good[:directory + 42] + struct.pack("<I", len(good) + 9) + good[directory + 46:],
          content_cut=good[:directory + 20] + struct.pack("<II", len(good), len(good)) + good[directory + 28:],
          entry_too_long=good[:directory + 20] + struct.pack("<II", 1 << 30, 1 << 30) + good[directory + 28:],
          name_too_long=good[:directory + 28] + b"\xff\xff" + good[directory + 30:],
          zip64_beyond=zip64({"a": b"x"})[:-42] + b"PK\x06\x07" + struct.pack("<IQI", 0, 1 << 40, 1) + zip64({"a": b"x"})[-22:],
          zip64_damaged=zip64({"a": b"x"}).replace(b"PK\x06\x06", b"PK\x06\x05"))


def manifest(**changes):
    fields = {"format": 1, "step": 5, "position": {"epoch": 1, "batch": 2}, "ranks": 2, "updates": 5,
              "identity": {"model": "mlp"}, "strategy": "data_parallel", "readings": {"accuracy": 0.5, "loss": None},
              "tested_at": 4, "config": "seed: 1\n", "provenance": {"host": "a"},
              "files": [{"name": "model.safetensors", "bytes": 10, "crc32c": "0123abcd"}], **changes}
    body = json.dumps({key: value for key, value in fields.items() if value is not ...}, indent=2)[:-2]
    return body + ',\n  "crc32c": "%08x"\n}\n' % crc32c(body.encode())


def make_manifest():
    write("manifest", good=manifest(), truncated=manifest()[:-5], empty="", damaged=manifest().replace("mlp", "mlq"),
          format=manifest(format=2), no_position=manifest(position=...), ranks=manifest(ranks="two"),
          files=manifest(files=[{"name": 1}]), checksum=manifest(files=[{"name": "a", "bytes": 1, "crc32c": "x"}]),
          identity=manifest(identity={"a": 1}), readings=manifest(readings={"a": "b"}), list=manifest(identity=[1]))


def recording_entry(kind, payload, group=0, pieces=0, op=0, dtype=0, reduction=0, size=None):
    """Returns an entry of a recording; see framework/collectives/recording/format.h."""
    def head(checksum):
        return struct.pack("<IIIIQQqqQiiIIIBbBB", 0x59527250, checksum, crc32c(payload), kind,
                           len(payload) if size is None else size, 1, 1, 3, 0, -1, 0, group, 5, pieces, op, dtype, reduction, 2)
    return head(crc32c(head(0))) + payload


def recording(*entries, magic=b"PhalanxRecording 2\n", header={}, group={}):
    fields = {"rank": 0, "ranks": 2, "local_rank": 0, "local_ranks": 2, "threads": 1, "seed": 1, "backend": "shm",
              "build": "1", "run_folder": "runs/a", "config": "seed: 1", "digest": 3, "last": 0, **header}
    world = {"name": "world", "rank": 0, "size": 2, "ways": 1, **group}
    return b"".join([magic, recording_entry(1, json.dumps(fields).encode()), recording_entry(2, json.dumps(world).encode()),
                     *entries])


def make_recording():
    operation = recording_entry(3, b"abc", op=3)
    good = recording(operation, recording_entry(4, bytes(8)), recording_entry(5, bytes(8)))
    server, answer = recording_entry(6, b"parameter server 0"), recording_entry(7, struct.pack("<5q", 0, 3, 1, 0, 2), op=16)
    write("recording", good=good, good_torn=good[:-5], empty=b"", version=recording(magic=b"PhalanxRecording 3\n"),
          good_version_1=recording(operation, magic=b"PhalanxRecording 1\n"), good_answers=recording(server, answer),
          server=recording(answer), servers=recording(recording_entry(6, b"x", group=1 << 30)),
          no_header=good[:30], head=good[:-30] + b"x" + good[-29:], payload=recording(operation[:-1] + b"d"),
          pieces=recording(recording_entry(3, b"abc", op=3, pieces=1 << 30)), good_size=recording(operation, recording_entry(3, b"", size=1 << 62)),
          op=recording(recording_entry(3, b"", op=99)), dtype=recording(recording_entry(3, b"", op=3, dtype=-1)),
          reduction=recording(recording_entry(3, b"", op=3, reduction=77)), kind=recording(recording_entry(9, b"")),
          group=recording(recording_entry(3, b"", op=3, group=7)), groups=recording(recording_entry(2, b"{}", group=1 << 30)),
          rank=recording(header={"rank": "two"}), ways=recording(group={"ways": -1}))


def make():
    """Writes these corpora."""
    make_json()
    make_safetensors()
    make_zip()
    make_manifest()
    make_recording()
