# SPDX-License-Identifier: Apache-2.0
"""Draws configs of tiny models at random from everything that a config accepts, and knows what the documents promise
for each."""

import copy
import dataclasses
import random

BATCH = 12
# Enough for three steps, the last of which has half a batch, or is dropped.
SAMPLES = 30
STEPS = 3

# Strategies that compute the same as a single process (docs/strategies.md).
EXACT = {"auto", "single", "all_reduce", "overlapped", "sharded", "sync_ps"}
# Strategies in which the order of arrival determines the last bits, or more.
BY_ARRIVAL = {"sync_ps", "downpour", "ssp", "dc_asgd", "easgd", "hogwild"}
WITH_SERVERS = {"sync_ps", "downpour", "ssp", "dc_asgd", "easgd"}


@dataclasses.dataclass
class Draw:
    """A config, and a second placement on which a run of it resumes."""
    config: dict
    # Sections that replace sections of `config` in the resumed run; empty: the run resumes unchanged.
    moved: dict

    @property
    def resumed_config(self):
        return {**copy.deepcopy(self.config), **self.moved}

    @property
    def reference(self):
        """Returns the config of one process that computes the same, or None if the documents do not promise that."""
        if not computes_as_one_process(self.config):
            return None
        plain = copy.deepcopy(self.config)
        for key in ("strategy", "mesh", "pipeline", "backend", "roles"):
            plain.pop(key, None)
        plain["launch"] = {"ranks": 1, "threads": 1}
        for key in ("accumulate", "data_parallel", "checkpoint_activations"):
            plain["train"].pop(key, None)
        return plain

    @property
    def steps(self):
        return STEPS - (self.config.get("loader", {}).get("last_batch") == "drop")

    @property
    def repeats_bit_for_bit(self):
        """Returns true if the resumed run must end with exactly the weights of the uninterrupted one."""
        return not self.moved and not names_of_strategies(self.config) & BY_ARRIVAL


def names_of_strategies(config):
    """Returns the name of the strategy; for levels, the names of both levels' strategies."""
    strategy = config["strategy"]
    if strategy["name"] == "levels":
        return {strategy["intra"]["name"], strategy["inter"]["name"]}
    return {strategy["name"]}


def computes_as_one_process(config):
    model, strategy, train = config["model"], config["strategy"], config["train"]
    optimizer = config.get("optimizer", {"name": "sgd"})["name"]
    parts = [strategy, strategy.get("intra", {}), strategy.get("inter", {})]
    return (names_of_strategies(config) <= EXACT
            and not any("compression" in part or "server_optimizer" in part for part in parts)
            and train.get("precision", "fp32") in ("fp32", "fp64")
            and train.get("gradients", "mean") == "mean"
            and "determinism" not in config
            and model["name"] not in ("resnet18", "dcgan")  # batch norm sees only the samples of its rank
            # Rounding determines the sign of gradients that are 0, for example the gradients of scores that choose one
            # expert.
            and optimizer != "lion" and (optimizer == "sgd" or model.get("top_k") != 1))


def remove_what_is_refused(config, placement):
    """Removes options from `config` that do not fit together or do not fit `placement`, so that most draws train."""
    if not placement:
        return
    model, train, strategy, mesh = config["model"], config["train"], config["strategy"], placement["mesh"]
    parts = [strategy, strategy.get("intra", {}), strategy.get("inter", {})]
    names = names_of_strategies(config)
    if "server_optimizer" in strategy or "dc_asgd" in names:
        config.pop("optimizer", None)
    if not names <= EXACT:
        train.pop("gradients", None)
        mesh.pop("context", None)
    if config.get("determinism"):
        config["strategy"] = {"name": "auto"}
        config["train"] = train = {"global_batch_size": BATCH, "epochs": 1, "virtual_shards": 12}
        placement["launch"]["ranks"] = {5: 4}.get(placement["launch"]["ranks"], placement["launch"]["ranks"])
        placement["mesh"] = mesh = {}
        config.pop("roles", None)
    if any(part.get("compression") for part in parts) and train.get("precision") == "fp16":
        train["precision"] = "bf16"
    if "pipe" in mesh:
        for key in ("accumulate", "sync_batch_norm"):
            train.pop(key, None)
        placement["pipeline"]["micro_batches"] = min(placement["pipeline"].get("micro_batches", 0), 2)
    if model["name"] not in ("gpt", "moe_gpt", "resnet18"):
        train.pop("checkpoint_activations", None)
    if model["name"] in ("lstm", "dcgan", "resnet18"):
        mesh.pop("tensor", None)
    if model["name"] not in ("gpt", "moe_gpt", "resnet18", "mlp", "lenet"):
        mesh.pop("pipe", None)
    if model["name"] != "moe_gpt":
        mesh.pop("expert", None)
    elif train.get("accumulate") or train.get("data_parallel") or "pipe" in mesh:
        model["count_over"] = "sequence"
    if model["name"] not in ("gpt", "moe_gpt"):
        mesh.pop("context", None)
    if "tensor" not in mesh or model["name"] != "gpt":
        for key in ("sequence_parallel", "async_tensor"):
            mesh.pop(key, None)
    if model["name"] != "resnet18":
        train.pop("sync_batch_norm", None)
    if any(mesh.get(axis) for axis in ("pipe", "tensor", "expert", "context")) or "checkpoint_activations" in train:
        train.pop("data_parallel", None)
    if "pipe" not in mesh:
        placement["pipeline"] = {}
    for part in parts:
        if part.get("stage", 1) > 1:
            part.pop("one_copy", None)
            part.pop("compression", None)
            if "pipe" in mesh or "leaders" in strategy or part is not strategy:
                part["stage"] = 1
    if "inproc" != placement["backend"] and "hogwild" in names:
        placement["backend"] = "shm"
    if "hogwild" in names:
        train.pop("ema_decay", None)


class Drawing:
    """The decisions of one draw."""

    def __init__(self, seed):
        self._random = random.Random(seed)

    def one(self, *choices):
        return self._random.choice(choices)

    def chance(self, probability):
        return self._random.random() < probability

    def draw(self):
        model, dataset = self._model()
        config = {
            "seed": self._random.randrange(100), "model": model, "dataset": dataset,
            **self._placement(model["name"]),
            "optimizer": self._optimizer(),
            "train": self._train(),
            "evaluate": {"every_epochs": 1},
            "watch": {"every_steps": 1},
            "framework": {"timeout": 30},
        }
        if model["name"] == "dcgan":
            config["task"] = "adversarial"
            config["turns"] = self._turns()
        self._rare_options(config)
        config["strategy"] = self._strategy(config)
        moved = self._placement(model["name"]) if self.chance(0.6) else {}
        if self.chance(0.9):
            for placement in (config, moved):
                remove_what_is_refused(config, placement)
        if self.chance(0.15):
            config["framework"]["topology"] = {"levels": ["host", "pair"], "keys": {"pair": {"ranks": 2}}}
        return Draw(config, moved)

    def _model(self):
        kind = self.one("mlp", "mlp", "gpt", "gpt", "gpt", "moe_gpt", "moe_gpt", "lenet", "lstm", "resnet18", "dcgan")
        samples = {"train_samples": SAMPLES, "test_samples": self.one(5, 12)}
        tokens = {"name": "random_tokens", "vocabulary": 19, "context": 8, **samples}
        if kind == "mlp":
            return ({"name": kind, "hidden": self.one([8], [8, 6], [12, 8, 8])},
                    {"name": "spirals", "classes": 3, **samples})
        if kind in ("gpt", "moe_gpt"):
            model = {"name": kind, "layers": self.one(1, 2, 4), "heads": self.one(2, 4), "width": 8}
            if self.chance(0.2):
                model["dropout"] = 0.1
            if self.chance(0.2):
                model["attention"] = "explicit"
            if kind == "moe_gpt":
                model.update(experts=self.one(2, 4), top_k=self.one(1, 2), balance=self.one(0, 0.01),
                             capacity_factor=self.one(0, 0, 1.25), count_over=self.one("batch", "sequence", "sequence"))
            return model, tokens
        if kind == "lstm":
            return {"name": kind, "layers": 1, "width": 8, "tied": self.one(True, False)}, tokens
        images = {"name": "random_images", "channels": self.one(1, 3), "classes": 4, **samples}
        if kind == "lenet":
            return {"name": kind}, {**images, "channels": 1, "side": 28}
        if kind == "resnet18":
            return {"name": kind, "width": 16}, {**images, "side": 10}
        return {"name": kind, "width": 4}, {"name": "with_noise", "of": {**images, "side": 16}}

    def _placement(self, model):
        """Draws the number of ranks, the backend and the mesh."""
        ranks = self.one(1, 2, 2, 3, 4, 4, 5, 6)
        mesh = {}
        left = ranks
        axes = ["pipe", "tensor", "expert", "context"]
        self._random.shuffle(axes)
        for axis in axes:
            fits = {"pipe": 0.3, "tensor": 0.3, "expert": 0.5 if model == "moe_gpt" else 0.02,
                    "context": 0.2 if model in ("gpt", "moe_gpt") else 0.02}
            if left % 2 == 0 and self.chance(fits[axis]):
                mesh[axis] = 2
                left //= 2
        placement = {"launch": {"ranks": ranks, "threads": 1}, "mesh": mesh,
                     "backend": self.one("auto", "shm", "inproc", "gloo", "hybrid")}
        if "tensor" in mesh and self.chance(0.3):
            mesh["sequence_parallel"] = True
            if self.chance(0.5):
                mesh["async_tensor"] = True
        pipeline = {}
        if "pipe" in mesh and self.chance(0.7):
            pipeline["schedule"] = self.one("gpipe", "1f1b", "interleaved", "zb_h1", "zero_bubble", "dualpipe")
            pipeline["micro_batches"] = self.one(0, 1, 2, 3, 4, 12, 20)
            if pipeline["schedule"] == "interleaved":
                pipeline["stages_per_rank"] = 2
        placement["pipeline"] = pipeline
        return placement

    def _optimizer(self):
        name = self.one("sgd", "sgd", "sgd", "adam", "adamw", "adagrad", "rmsprop", "lion", "ftrl", "lamb", "lars",
                        "adafactor", "muon")
        optimizer = {"name": name, "lr": 0.01}
        if name == "sgd":
            optimizer.update(lr=0.05, momentum=self.one(0, 0.9))
        if self.chance(0.3):
            optimizer["weight_decay"] = 0.01
        return optimizer

    def _turns(self):
        turns = {"discriminator": {"optimizer": {"name": self.one("sgd", "adam"), "lr": 0.01}}}
        return turns if self.chance(0.5) else {}

    def _train(self):
        train = {"global_batch_size": BATCH, "epochs": 1}
        for key, probability, values in (
                ("accumulate", 0.3, (2, 3, 5)), ("precision", 0.25, ("bf16", "fp16", "fp64")),
                ("checkpoint_activations", 0.2, (1, 2)), ("clip_norm", 0.2, (0.1, 10)), ("clip_value", 0.1, (0.01,)),
                ("ema_decay", 0.2, (0.9,)), ("data_parallel", 0.1, (2, 3)), ("sync_batch_norm", 0.1, (True,)),
                ("gradients", 0.1, ("sum",)), ("memory_format", 0.05, ("channels_last",))):
            if self.chance(probability):
                train[key] = self.one(*values)
        return train

    def _rare_options(self, config):
        name = config["model"]["name"]
        if self.chance(0.15):
            patterns = {"mlp": ["fc1", "bias"], "gpt": ["wte", r"h\.0\.", "ln_"], "lenet": ["conv"], "lstm": ["encoder"],
                        "moe_gpt": ["wte", "expert", r"h\.0\."], "resnet18": ["conv1", "bn"], "dcgan": ["discriminator"]}
            config["init"] = {"freeze": self.one(*patterns[name])}
        if self.chance(0.12):
            layers = {"mlp": "*", "gpt": "*c_attn", "moe_gpt": "*c_attn", "lenet": "fc*"}.get(name, "*")
            config["lora"] = {"layers": [layers], "rank": 2}
        if self.chance(0.05):
            config["determinism"] = "world_size_invariant"
        if self.chance(0.15):
            config["replica_check"] = {"every_steps": 1}
        if self.chance(0.2):
            config["schedule"] = self.one({"name": "warmup", "over": 2}, {"name": "cosine"}, {"name": "linear"},
                                          {"name": "one_cycle"}, {"name": "wsd"})
        if self.chance(0.1):
            config["framework"]["bucket_bytes"] = self.one("64B", "1KB", "auto")
        if self.chance(0.1):
            config["framework"]["check_collectives"] = True
        if self.chance(0.1):
            config["loader"] = self.one({"prefetch": 2}, {"shares": "measured"}, {"last_batch": "drop"},
                                        {"last_batch": "pad"})

    def _strategy(self, config):
        name = self.one("auto", "all_reduce", "overlapped", "sharded", "sharded", "sharded", "local_sgd", "diloco",
                        "gossip", "hogwild", "sync_ps", "downpour", "ssp", "dc_asgd", "easgd", "levels", "levels",
                        "levels")
        ranks = config["launch"]["ranks"]
        if name != "levels":
            strategy = self._with_options(name)
        else:
            strategy = {"name": "levels",
                        "intra": self._with_options(self.one("all_reduce", "overlapped", "sharded", "sharded", "sync_ps")),
                        "inter": self._with_options(self.one("all_reduce", "local_sgd", "gossip", "downpour", "ssp",
                                                             "dc_asgd", "easgd", "diloco")),
                        "ranks_per_group": self.one(1, 2, 3, ranks)}
            if self.chance(0.3):
                strategy["leaders"] = 1
        if names_of_strategies({"strategy": strategy}) & WITH_SERVERS and ranks > 2 and self.chance(0.3):
            config["roles"] = {"server": 1}
        return strategy

    def _with_options(self, name):
        strategy = {"name": name}
        if name in ("all_reduce", "overlapped", "sharded", "local_sgd", "diloco") and self.chance(0.25):
            strategy["compression"] = self.one({"name": "fp16"}, {"name": "bf16"}, {"name": "int8", "block": 8},
                                               {"name": "int4", "block": 8}, {"name": "one_bit", "block": 8},
                                               {"name": "topk", "fraction": 0.3}, {"name": "powersgd", "rank": 1})
        if name == "sharded":
            strategy["stage"] = self.one(1, 1, 2, 3)
            if self.chance(0.2):
                strategy["one_copy"] = True
            if strategy["stage"] == 3 and self.chance(0.3):
                strategy["reshard_after_forward"] = False
        if name in ("local_sgd", "diloco", "downpour", "easgd"):
            strategy["every"] = self.one(1, 2, 4)
        if name in ("local_sgd", "diloco") and self.chance(0.3):
            strategy["warmup_steps"] = 1
        if name == "local_sgd":
            strategy["momentum"] = self.one("local", "average", "reset")
        if name == "diloco" and strategy["every"] > 1:
            strategy["fragments"], strategy["overlap"] = self.one((1, 0), (2, 0), (1, 1), (2, 1))
        if name in ("sync_ps", "downpour", "ssp") and self.chance(0.3):
            strategy["server_optimizer"] = {"name": self.one("sgd", "adam", "adamw", "adagrad", "rmsprop", "lion", "ftrl"),
                                            "lr": 0.01}
        if name == "ssp":
            strategy["staleness"] = self.one(0, 1)
        if name == "easgd" and self.chance(0.4):
            strategy["synchronous"] = True
        if name == "gossip" and self.chance(0.3):
            strategy["compression"] = self.one("bf16", "fp16", "int8")
        return strategy


def draw(seed):
    """Returns the draw with this number, which is the same on every machine."""
    return Drawing(seed).draw()
