#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the inputs in testdata/: for each target well-formed ones, called good*, and malformed ones, called after what
is wrong with them. Inputs that a fuzzer has found, called found*, stay as they are.

    python3 tests/fuzz/make_corpora.py
"""

import io
import json
import pathlib
import pickle
import struct
import subprocess
import tarfile
import zipfile
import zlib

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent


def write(target, **inputs):
    """Writes inputs, text or bytes, by name."""
    folder = HERE / "testdata" / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in inputs.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def crc32c(data):
    """Returns the CRC-32C of bytes."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82f63b78 * (crc & 1)
    return crc ^ 0xffffffff


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


def stored(entries, method=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=method)
    return buffer.getvalue()


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


class Opcodes:
    """Opcodes of a pickle that torch.save() writes."""
    ORDERED = b"ccollections\nOrderedDict\n)R"

    @staticmethod
    def text(value):
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    @staticmethod
    def tensor(shape, strides, numel, key="0", storage="FloatStorage", offset=0):
        def sizes(values):
            return b"(" + b"".join(b"J" + struct.pack("<i", value) for value in values) + b"t"

        return (b"ctorch._utils\n_rebuild_tensor_v2\n((" + Opcodes.text("storage") + b"ctorch\n" + storage.encode() + b"\n" +
                Opcodes.text(key) + Opcodes.text("cpu") + b"J" + struct.pack("<i", numel) + b"tQJ" +
                struct.pack("<i", offset) + sizes(shape) + sizes(strides) + b"\x89" + Opcodes.ORDERED + b"tR")

    @staticmethod
    def state_dict(**tensors):
        body = b"".join(Opcodes.text(name) + tensor for name, tensor in tensors.items())
        return b"\x80\x02" + Opcodes.ORDERED + b"(" + body + b"u."


def doubled_text(times):
    """Returns a pickle that joins a name with itself again and again."""
    return b"\x80\x04\x8c\x01aq\x00" + b"0h\x00h\x00\x93q\x00" * times + b"."


def repeated_shape(dimensions, tensors):
    """Returns a pickle in which many entries are the same tensor of many dimensions."""
    tensor = Opcodes.tensor([1] * dimensions, [1] * dimensions, 1)
    return b"\x80\x02}(" + Opcodes.text("a") + tensor + b"q\x00" + b"".join(
        Opcodes.text(str(i)) + b"h\x00" for i in range(tensors)) + b"u."


def repeated_pairs(pairs, times):
    """Returns a pickle that makes many dictionaries of the same list."""
    pair = Opcodes.text("k") + b"N\x86q\x00"
    items = b"(" + pair + b"h\x00" * pairs + b"l\x85q\x01"
    return b"\x80\x02" + items + b"ccollections\nOrderedDict\nq\x02" + b"0h\x02h\x01Rq\x03" * times + b"."


def make_pickle():
    good = Opcodes.state_dict(w=Opcodes.tensor([2, 2], [2, 1], 4), b=Opcodes.tensor([2], [1], 2, "1", "LongStorage"))
    tensor = Opcodes.tensor([2], [1], 2)
    nested = b"\x80\x02}(" + Opcodes.text("epoch") + b"K\x03" + Opcodes.text("model") + good[2:-1] + b"u."
    wrapped = Opcodes.tensor([1], [1], 1)
    write("pickle", good=good, good_nested=nested,
          good_parameter=Opcodes.state_dict(w=b"ctorch._utils\n_rebuild_parameter\n(" + wrapped + b"\x88)tR"),
          good_extra_state=Opcodes.state_dict(a_extra_state=b"N", w=tensor),
          good_protocol_4=pickle.dumps({}, 4), good_protocol_2=pickle.dumps({}, 2),
          truncated=good[:-1], empty=b"", list=b"\x80\x02].", mark=b"\x80\x02(.", no_mark=b"\x80\x02t.",
          no_stack=b"\x80\x02R.", no_memo=b"\x80\x02h\x07.", long_name=b"\x80\x02ccollections",
          opcode=b"\x80\x02P.", list_of_dict=b"\x80\x02}K\x01a.", odd_items=b"\x80\x02}(K\x01u.",
          number_key=b"\x80\x02}K\x01" + tensor + b"s.", not_a_tensor=Opcodes.state_dict(w=b"K\x01"),
          executes=b"\x80\x02cos\nsystem\n" + Opcodes.text("true") + b"\x85R.",
          wrong_pair=b"\x80\x02ccollections\nOrderedDict\n(((K\x01tltR.",
          dtype=Opcodes.state_dict(w=Opcodes.tensor([1], [1], 1, storage="QInt8Storage")),
          too_few_elements=Opcodes.state_dict(w=Opcodes.tensor([3], [1], 2)),
          outside=Opcodes.state_dict(w=Opcodes.tensor([2], [5], 2)),
          offset=Opcodes.state_dict(w=Opcodes.tensor([1], [1], 2, offset=7)),
          negative=Opcodes.state_dict(w=Opcodes.tensor([-1], [1], 2)),
          negative_storage=Opcodes.state_dict(w=Opcodes.tensor([1], [1], -2)),
          overflow=Opcodes.state_dict(w=Opcodes.tensor([1 << 30] * 3, [1, 1, 1], 2)),
          no_strides=Opcodes.state_dict(w=Opcodes.tensor([1], [], 2)),
          several=b"\x80\x02}(" + Opcodes.text("a") + good[2:-1] + Opcodes.text("b") + good[2:-1] + b"u.",
          persistent=b"\x80\x02K\x01Q.", found_doubled_text=doubled_text(60),
          found_repeated_shape=repeated_shape(300, 1500), found_repeated_pairs=repeated_pairs(1000, 1500))


def make_flight_recorder():
    """Writes dumps as torch.distributed pickles them: with protocol 2, and with others when Python wrote them again."""
    def entry(**others):
        frames = [{"name": "all_reduce", "filename": "/site-packages/torch/distributed/distributed_c10d.py", "line": 2806},
                  {"name": "step", "filename": "train.py", "line": 33}]
        return {"frames": frames, "record_id": 7, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": 8,
                "p2p_seq_id": 0, "op_id": 8, "profiling_name": "nccl:all_reduce", "time_created_ns": 1_800_000_000_000_000_000,
                "input_sizes": [[64, 10], [10], [], [5, 5]], "input_dtypes": ["Float"] * 4, "output_sizes": [[64, 10]],
                "output_dtypes": ["Float"], "state": "started", "time_discovered_started_ns": None,
                "time_discovered_completed_ns": None, "retired": False, "timeout_ms": 600000, "is_p2p": False, **others}

    def dump(*entries, protocol=2, groups=None, **others):
        groups = groups or {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}}
        return pickle.dumps({"version": "2.10", "pg_config": groups, "pg_status": {}, "entries": list(entries), **others},
                            protocol)

    done = entry(state="completed", duration_ms=1.5, time_discovered_completed_ns=1_800_000_001_000_000_000, retired=True)
    message = entry(profiling_name="nccl:recv 1<-2", is_p2p=True, p2p_seq_id=3)
    together = [entry(collective_seq_id=9), entry(collective_seq_id=9, profiling_name="nccl:coalesced")]
    write("flight_recorder", good=dump(done, entry(collective_seq_id=9)), good_message=dump(done, message),
          good_coalesced=dump(done, *together), good_empty=dump(),
          good_gloo=dump(entry(profiling_name="gloo:all_reduce", state="scheduled", retired=True)),
          good_protocol_4=dump(done, protocol=4), good_protocol_5=dump(message, protocol=5),
          good_without_entries=pickle.dumps({"version": "2.4"}, 2),
          good_no_peer=dump(entry(profiling_name="nccl:send 1->x", is_p2p=True)),
          good_unknown_group=dump(entry(process_group=("7", "mesh_tp"))),
          good_subgroup=dump(entry(process_group=("7", "mesh_tp")),
                             groups={"7": {"name": "7", "desc": "mesh_tp", "ranks": "[0, 1]"}}),
          truncated=dump(done)[:-30], empty=b"", list=pickle.dumps([1], 2), protocol_0=dump(done, protocol=0),
          executes=b"\x80\x02cos\nsystem\n" + Opcodes.text("true") + b"\x85R.",
          object=dump(complex=1j), set=dump(entry(frames={1})), long=dump(entry(record_id=1 << 80)),
          version=dump(version="1.0"), no_version=pickle.dumps({"entries": []}, 2), no_state=dump(entry(state=None)),
          state=dump(entry(state="lost")), time=dump(entry(time_created_ns=1.5)), name=dump(entry(profiling_name=3)),
          group=dump(entry(process_group=["0"])), duration=dump({**done, "duration_ms": "1"}),
          shape=dump(entry(input_sizes=[[-1]])), large_shape=dump(entry(input_sizes=[[1 << 40, 1 << 40]])),
          large_shapes=dump(entry(input_sizes=[[1 << 62]] * 9)), frames=dump(entry(frames=3)),
          ranks=dump(groups={"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 0]"}}),
          open_ranks=dump(groups={"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1"}}),
          not_a_member=dump(entry(process_group=("7", "x")), groups={"7": {"name": "7", "desc": "x", "ranks": "[1]"}}),
          repeated_name=dump(*[entry(profiling_name="x" * 3000)] * 3000))


def make_torch():
    goldens = ROOT / "framework/base/storage/goldens"
    tensor = Opcodes.state_dict(w=Opcodes.tensor([2], [1], 2))

    def archive(data, **others):
        return stored({"archive/data.pkl": data, "archive/byteorder": "little", **others})

    write("torch", good=archive(tensor, **{"archive/data/0": bytes(8)}),
          good_golden=(goldens / "state_dict.pt").read_bytes(), good_nested=(goldens / "nested.pt").read_bytes(),
          legacy=(goldens / "legacy.pt").read_bytes(), no_pickle=stored({"archive/x": b""}), not_a_zip=b"weights",
          no_storage=archive(tensor), short_storage=archive(tensor, **{"archive/data/0": bytes(4)}),
          big_endian=stored({"archive/data.pkl": tensor, "archive/byteorder": "big"}),
          script=archive(tensor, **{"archive/constants.pkl": b"", "archive/data/0": bytes(8)}))


def program(model=None, config=None, weights=b"", version="0", order="little"):
    model = model if model is not None else {"schema_version": {"major": 8, "minor": 0}}
    config = config if config is not None else {"config": {}}
    return stored({"m/archive_format": "pt2", "m/archive_version": version, "m/byteorder": order,
                   "m/models/model.json": json.dumps(model), "m/data/weights/model_weights_config.json": json.dumps(config),
                   "m/data/weights/w": weights, "m/data/constants/model_constants_config.json": '{"config": {}}'})


def make_program():
    with zipfile.ZipFile(ROOT / "tests/zoo/exported/mlp.pt2") as archive:
        names = [info.filename for info in archive.infolist()]
        entries = {name: archive.read(name) for name in names}
    root = names[0].split("/")[0]
    model = json.loads(entries[root + "/models/model.json"])
    wanted = {name: content for name, content in entries.items() if "sample_inputs" not in name}

    def with_model(change):
        copy = json.loads(json.dumps(model))
        change(copy)
        return stored({**wanted, root + "/models/model.json": json.dumps(copy, separators=(",", ":"))})

    def with_weights(**changes):
        name = root + "/data/weights/model_weights_config.json"
        config = json.loads(entries[name])
        entry = next(iter(config["config"].values()))
        for key, value in changes.items():
            (entry if key in entry else entry["tensor_meta"])[key] = value
        return stored({**wanted, name: json.dumps(config, separators=(",", ":"))})

    def graph(copy):
        return copy["graph_module"]["graph"]

    huge = {"as_int": 1 << 61}
    write("program", good=with_model(lambda copy: None), version=program(version="1"), order=program(order="big"),
          schema=program({"schema_version": {"major": 7}}), no_graph=program(), not_a_zip=b"program",
          no_nodes=with_model(lambda copy: graph(copy).pop("nodes")),
          unknown_operator=with_model(lambda copy: graph(copy)["nodes"][0].update(target="torch.ops.aten.x.default")),
          no_inputs=with_model(lambda copy: graph(copy).update(inputs=[])),
          node_inputs=with_model(lambda copy: graph(copy)["nodes"][0].update(inputs=[])),
          node_outputs=with_model(lambda copy: graph(copy)["nodes"][0].update(outputs=[])),
          pickled=with_weights(use_pickle=True), no_record=with_weights(path_name="nothing"), dtype=with_weights(dtype=99),
          strides=with_weights(strides=[]), offset=with_weights(storage_offset=huge),
          negative=with_weights(storage_offset={"as_int": -1}), sizes=with_weights(sizes=[huge, huge]),
          found_empty_overflow=with_weights(sizes=[{"as_int": 0}, huge, huge], strides=[{"as_int": 1}] * 3))


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


def idx(shape, values, magic=b"\0\0\x08"):
    return magic + bytes([len(shape)]) + b"".join(struct.pack(">I", size) for size in shape) + values


def make_idx():
    import gzip
    write("idx", good=idx([2, 2, 3], bytes(range(12))), good_gzip=gzip.compress(idx([1, 1, 2], b"ab"), mtime=0),
          rank=idx([2], b"ab"), type=idx([1, 1, 1], b"a", b"\0\0\x09"), magic=idx([1, 1, 1], b"a", b"\1\0\x08"),
          zero=idx([0, 1, 1], b""), short=idx([2, 2, 2], b"a"), long=idx([1, 1, 1], b"ab"), header=b"\0\0\x08\3\0",
          huge=idx([0xffffffff] * 3, b"a"), empty=b"",
          gzip_cut=gzip.compress(idx([1, 1, 2], b"ab"), mtime=0)[:-6],
          gzip_damaged=gzip.compress(idx([1, 1, 2], b"ab"), mtime=0)[:-8] + bytes(8))


def npy(descr="'<f4'", order="False", shape="(2, 3)", numbers=bytes(24), version=1):
    header = "{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n" % (descr, order, shape)
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + \
        header.encode() + numbers


def make_numpy():
    packed = stored({"x.npy": npy(numbers=bytes(24))}, zipfile.ZIP_DEFLATED)
    plain = stored({"y.npy": npy(), "x.npy": npy()})
    central = packed.index(b"PK\x01\x02")
    write("numpy", good=npy(), good_2=npy(version=2), good_fortran=npy(order="True"), good_half=npy("'>f2'", numbers=bytes(12)),
          good_bytes=npy("'|u1'", shape="(5,)", numbers=b"abcde"), good_scalar=npy("'<i8'", shape="()", numbers=bytes(8)),
          good_none=npy(shape="(0, 3)", numbers=b""), good_archive=plain, good_packed=packed,
          magic=b"NUMPY", header=npy()[:20], no_descr=npy().replace(b"descr", b"xescr"), fields=npy("[('a', '<f4')]"),
          type=npy("'<c8'"), object=npy("'|O'"), shape=npy(shape="(x)"), negative=npy(shape="(-1,)"),
          huge=npy(shape="(%d, 4)" % (1 << 62)), short=npy(numbers=b""), long=npy(numbers=bytes(25)),
          no_array=stored({"y.npy": npy()}), archive_cut=plain[:-8], checksum=plain.replace(bytes(24), b"\1" * 24),
          method=packed[:central + 10] + b"\x0c" + packed[central + 11:],
          claims=packed[:central + 24] + struct.pack("<I", 0xfffffffe) + packed[central + 28:],
          stream=packed.replace(packed[60:70], bytes(10)))


def tar_of(entries, kind=tarfile.USTAR_FORMAT):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=kind) as archive:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            if content is None:
                info.type, info.linkname = tarfile.LNKTYPE, entries[0][0]
            info.size = len(content or b"")
            archive.addfile(info, io.BytesIO(content or b""))
    return buffer.getvalue().rstrip(b"\0") + bytes(1024)


def tar_block(name, size, kind, content=b"", target=b""):
    block = bytearray(512)
    block[:len(name)] = name
    block[124:124 + len(size)] = size
    block[156:157] = kind
    block[157:157 + len(target)] = target
    block[257:265] = b"ustar\00000"
    block[148:156] = b" " * 8
    block[148:155] = b"%06o\0" % sum(block)
    return bytes(block) + content + bytes(-len(content) % 512)


def make_tar():
    def record(key, value):
        body = " %s=%s\n" % (key, value)
        length = len(body) + 2 if len(body) < 98 else len(body) + 3
        return ("%d" % length + body).encode()

    def with_record(key, value):
        text = record(key, value)
        return tar_block(b"p", b"%011o" % len(text), b"x", text) + tar_block(b"a", b"0", b"0") + ending

    plain, long = [("a.jpg", b"x"), ("b.txt", bytes(600))], [("n" * 150, b"x")]
    ending = bytes(1024)
    write("tar", good=tar_of(plain), good_pax=tar_of(long, tarfile.PAX_FORMAT), good_gnu=tar_of(long, tarfile.GNU_FORMAT),
          good_link=tar_of([("a", b"x"), ("b", None)]),
          good_binary_size=tar_block(b"a", b"\x80" + bytes(10) + b"\1", b"0", b"x") + ending,
          cut=tar_of(plain)[:1900], gzip=b"\x1f\x8b\x08" + bytes(600), checksum=tar_of(plain).replace(b"a.jpg", b"b.jpg"),
          size=tar_block(b"a", b"xyz", b"0") + ending, too_long=tar_block(b"a", b"00000077777", b"0") + ending,
          binary_overflow=tar_block(b"a", b"\x80" + b"\xff" * 11, b"0") + ending,
          pax_size=with_record("size", "x"), pax_huge=with_record("size", str(1 << 62)),
          name_cut=tar_block(b"p", b"00000001000", b"L"),
          pax_damaged=tar_block(b"p", b"00000000004", b"x", b"9 ab") + ending,
          name_too_long=tar_block(b"l", b"00077777777", b"L") + ending,
          no_target=tar_block(b"b", b"0", b"1", target=b"a") + ending, empty=b"")


def make_table():
    write("table", good="a,b,c\n1,2,x\n3,4,y\n5,6,x\n", good_quoted='a;b;c\n"1";"2";"x;""y"\n3;4;z\n',
          good_missing="a\tb\n1\t0\n2\t1\n", ragged="a,b\n1,2\n3\n", quote='a,b\n1,2"3\n', open_quote='a,b\n1,"2\n',
          not_utf8=b"a,b\n\xff,1\n", empty="", header_only="a,b\n", infinite="a,b\n1e999,1\n2,3\n",
          mixed="a,b\n1,1\nx,2\n", missing="a,b\n,1\n2,2\n", gzip_cut=b"\x1f\x8b\x08\0\0\0", nul=b"a,b\n\0,1\n1,2\n")


def make_encoding():
    def encoding(target=None, column=None, **changes):
        number = {"name": "age", "type": "number", "missing": "fill", "fill": 2.5, "indicator": True, "mean": 1, "scale": 2}
        text = {"name": "sex", "type": "text", "missing": "drop", "categories": ["f", "m"]}
        return json.dumps({"version": 1, "classes": 2, "unknown": "error", "inputs": [{**number, **(column or {})}, text],
                           "targets": [{**text, "name": "y", **(target or {})}], **changes})

    write("encoding", good=encoding(), empty="", list="[]", truncated=encoding()[:40], version=encoding(version=2),
          classes=encoding(classes=3), negative=encoding(classes=-1), none=encoding(inputs=[]), scale=encoding(column={"scale": 0}),
          type=encoding(column={"type": "x"}), missing=encoding(column={"missing": "x"}), categories=encoding({"categories": [1]}))


def png(width, height, depth=8, color=2, rows=None, chunks=b""):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    channels = {0: 1, 2: 3, 4: 2, 6: 4}[color]
    data = rows if rows is not None else (b"\0" + bytes(width * channels * depth // 8)) * height
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)) + chunks + \
        chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def make_image():
    exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
    chunk = struct.pack(">I", len(exif)) + b"eXIf" + exif + struct.pack(">I", zlib.crc32(b"eXIf" + exif))
    images = {}
    try:
        from PIL import Image
        for name, kind, options in (("good_jpeg", "JPEG", {"exif": b"Exif\0\0" + exif}), ("good_webp", "WEBP", {}),
                                    ("good_grey_jpeg", "JPEG", {})):
            buffer = io.BytesIO()
            Image.new("L" if "grey" in name else "RGB", (20, 10), 7).save(buffer, kind, **options)
            images[name] = buffer.getvalue()
        images["jpeg_cut"] = images["good_jpeg"][:-40]
        images["webp_cut"] = images["good_webp"][:-4]
    except ImportError:
        pass  # the files that are there stay
    write("image", good=png(3, 2), good_alpha=png(2, 2, color=6), good_16=png(2, 1, 16), good_exif=png(3, 2, chunks=chunk),
          huge=png(60000, 60000, rows=b""), cut=png(3, 2)[:-20], checksum=png(3, 2)[:30] + b"x" + png(3, 2)[31:],
          short=png(3, 2, rows=b"\0"), gif=b"GIF89a" + bytes(20), empty=b"", exif_damaged=png(3, 2, chunks=chunk[:20]),
          found_long_chunk=png(3, 2, chunks=b"\x47\x00\x04\xff" + chunk[4:]), **images)


def make_tokenizers():
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<unk>": 3, "\u2581": 4}, "merges": ["a b"], "unk_token": "<unk>"}
    split = {"type": "Split", "pattern": {"Regex": "\\w+|\\s+"}, "behavior": "Isolated", "invert": False}

    def tokenizer(**parts):
        return json.dumps({"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
                           "pre_tokenizer": None, "post_processor": None, "decoder": None, "model": model, **parts})

    def added(number, content):
        return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": True}

    unigram = {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1.5], ["ab", -2]], "byte_fallback": False}
    pieces = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
              "vocab": {"[UNK]": 0, "a": 1, "##b": 2}}
    charsmap = {"type": "Precompiled", "precompiled_charsmap": "CAAAAAAAAAAAAAAAYQA="}
    write("tokenizer", good=tokenizer(), good_parts=tokenizer(
              normalizer={"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]}, pre_tokenizer=split,
              added_tokens=[added(5, "<s>")]), good_unigram=tokenizer(model=unigram), good_pieces=tokenizer(model=pieces),
          good_bytes=tokenizer(pre_tokenizer={"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
                               decoder={"type": "ByteLevel"}),
          good_charsmap=tokenizer(normalizer=charsmap), no_model=tokenizer(model=None), kind=tokenizer(model={"type": "X"}),
          merge=tokenizer(model={**model, "merges": ["a c"]}), merge_words=tokenizer(model={**model, "merges": ["a"]}),
          number=tokenizer(model={**model, "vocab": {"a": -1}}), huge=tokenizer(model={**model, "vocab": {"a": 1 << 60}}),
          regex=tokenizer(pre_tokenizer={**split, "pattern": {"Regex": "("}}), unknown=tokenizer(model={**unigram, "unk_id": 9}),
          pieces=tokenizer(model={**unigram, "vocab": []}), empty_token=tokenizer(added_tokens=[added(5, "")]),
          added=tokenizer(added_tokens=[added(1 << 60, "x")]), charsmap_text=tokenizer(
              normalizer={"type": "Precompiled", "precompiled_charsmap": "????"}), truncated=tokenizer()[:100], empty="")
    unigram_model = (ROOT / "datasets/text/testing_unigram.model").read_bytes()
    write("sentence_piece", good=unigram_model, cut=unigram_model[:100], empty=b"", text=b"not a model",
          denormalizer=(ROOT / "datasets/text/testing_denormalizer.model").read_bytes(),
          good_japanese=(ROOT / "datasets/text/testing_japanese.model").read_bytes(), **malformed_models(unigram_model))


def field(number, kind, content=b""):
    """Returns a field of a message in the format of protocol buffers: of kind 0 with a number, of kind 2 with bytes."""
    def varint(value):
        return bytes([value & 127 | 128]) + varint(value >> 7) if value > 127 else bytes([value])
    key = varint(number << 3 | kind)
    return key + (varint(content) if kind == 0 else varint(len(content)) + content if kind == 2 else content)


def malformed_models(model):
    """Returns malformed models of SentencePiece by error: each is a well-formed model with one more field."""
    def piece(text, score=0.0, kind=1):
        return model + field(1, 2, field(1, 2, text) + field(2, 5, struct.pack("<f", score)) + field(3, 0, kind))

    def rules(units=None, texts=b"\0", size=None):
        trie = struct.pack("<768I", *[(units or {}).get(i, 0x80000000) for i in range(768)])
        return model + field(5, 2, field(2, 2, struct.pack("<I", len(trie) if size is None else size) + trie + texts))

    def unit(label, offset, leaf=False):
        return label | leaf << 8 | offset << 10

    root = {0: unit(0, 256)}  # children from 256 on
    with_rule = {**root, 353: unit(97, 353 ^ 512, leaf=True)}  # for "a"; its text is the one that unit 512 says
    return {"no_text": model + field(1, 2, b""), "nul": piece(b"a\0b"), "type": piece(b"abc", kind=9),
            "score": piece(b"abc", float("nan")), "score_type": model + field(1, 2, field(1, 2, b"abc") + field(2, 0, 1)),
            "text_type": model + field(1, 2, field(1, 0, 1)), "trainer_twice": model + field(2, 2) + field(2, 2),
            "charsmap_twice": model + field(5, 2, field(2, 2) + field(2, 2)), "group": model + b"\x0b\x0c",
            "long_number": model + b"\x08" + b"\xff" * 10, "no_number": model + b"\0\0", "trie_size": rules(root, size=3),
            "trie_beyond": rules(root, size=1 << 30), "trie_out": rules({0: unit(0, 1024)}), "trie_no_texts": rules(root, b""),
            "trie_child_out": rules({**root, 353: unit(97, 1024)}), "trie_endless": rules({**root, 353: unit(97, 97)}),
            "trie_no_text": rules({**with_rule, 512: 0x80000009}), "trie_open_text": rules(with_rule, b"abc"),
            "trie_long_text": rules(with_rule, b"x" * 300 + b"\0"),
            "charsmap_short": model + field(5, 2, field(2, 2, b"\0\0"))}


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


def make_launch():
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
    write("agent_output", good="Epoch 1\n\0alive 7\n\0lost 3\nEpoch 2\n\0ended 12\n\0status 0\n", good_text="no line\n",
          good_cut="\0alive", good_long="\0" + "x" * 1000 + "\n", word="\0hello\n", nothing="\0\n", number="\0lost 3a\n",
          negative="\0lost -1\n", large="\0ended 4294967297\n", status="\0status 99999999999999999999\n", space="\0alive  7\n")
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


def main():
    """Writes all corpora."""
    make_json()
    make_safetensors()
    make_zip()
    make_pickle()
    make_flight_recorder()
    make_torch()
    make_program()
    make_manifest()
    make_recording()
    make_idx()
    make_numpy()
    make_tar()
    make_table()
    make_encoding()
    make_image()
    make_tokenizers()
    make_messages()
    make_greetings()
    make_store()
    make_texts()
    make_launch()


if __name__ == "__main__":
    main()
