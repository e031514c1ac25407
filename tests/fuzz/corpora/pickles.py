# SPDX-License-Identifier: Apache-2.0
"""Pickles and what contains them: PyTorch's weights, dumps of its flight recorder, and exported programs."""

import json
import pickle
import struct
import zipfile

from corpora.inputs import ROOT, stored, write


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


def make():
    """Writes these corpora."""
    make_pickle()
    make_flight_recorder()
    make_torch()
    make_program()
