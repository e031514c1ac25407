# SPDX-License-Identifier: Apache-2.0
"""The models that Phalanx trains, in idiomatic JAX: functions of parameters, which are dictionaries of arrays.

They have the same layers and numbers of parameters. Images are [rows, height, width, channels], the order in which XLA
computes convolutions on a CPU.
"""
import math

import jax
import jax.numpy as jnp


class Values:
    """Draws initial values, which are the same in every process."""

    def __init__(self):
        self.key = jax.random.key(1)

    def next_key(self):
        self.key, key = jax.random.split(self.key)
        return key

    def uniform(self, shape, inputs):
        bound = 1 / math.sqrt(inputs)
        return jax.random.uniform(self.next_key(), shape, minval=-bound, maxval=bound)

    def normal(self, shape):
        return 0.02 * jax.random.normal(self.next_key(), shape)

    def linear(self, inputs, outputs):
        return {"weight": self.uniform((inputs, outputs), inputs), "bias": self.uniform((outputs,), inputs)}

    def convolution(self, side, inputs, outputs):
        shape = (side, side, inputs, outputs)
        return {"weight": self.uniform(shape, side * side * inputs), "bias": self.uniform((outputs,), side * side * inputs)}

    def small_linear(self, inputs, outputs):
        return {"weight": self.normal((inputs, outputs)), "bias": jnp.zeros(outputs)}


def linear(layer, x):
    return x @ layer["weight"] + layer["bias"]


def convolution(layer, x, padding):
    y = jax.lax.conv_general_dilated(x, layer["weight"], (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return y + layer["bias"]


def max_pool(x):
    """Pools windows of 2 x 2 that do not overlap. The gradient of XLA's own windows is several times slower."""
    rows, height, width, channels = x.shape
    return x.reshape(rows, height // 2, 2, width // 2, 2, channels).max((2, 4))


def make_mlp():
    values = Values()
    return [values.linear(784, 512), values.linear(512, 512), values.linear(512, 10)]


def mlp(parameters, x):
    x = x.reshape(len(x), -1)
    for layer in parameters[:-1]:
        x = jax.nn.relu(linear(layer, x))
    return linear(parameters[-1], x)


def make_lenet(channels):
    values = Values()
    return {"conv1": values.convolution(5, channels, 6), "conv2": values.convolution(5, 6, 16),
            "fc1": values.linear(400, 120), "fc2": values.linear(120, 84), "fc3": values.linear(84, 10)}


def lenet(parameters, x):
    x = x.transpose(0, 2, 3, 1)
    x = max_pool(jax.nn.relu(convolution(parameters["conv1"], x, ((2, 2), (2, 2)))))
    x = max_pool(jax.nn.relu(convolution(parameters["conv2"], x, "VALID")))
    x = x.reshape(len(x), -1)
    x = jax.nn.relu(linear(parameters["fc1"], x))
    return linear(parameters["fc3"], jax.nn.relu(linear(parameters["fc2"], x)))


def make_norm(width):
    return {"scale": jnp.ones(width), "bias": jnp.zeros(width)}


def norm(layer, x):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * layer["scale"] + layer["bias"]


def make_char_lm(classes, context, width, layers=4):
    values = Values()
    blocks = [{"ln_1": make_norm(width), "c_attn": values.small_linear(width, 3 * width),
               "c_proj": values.small_linear(width, width), "ln_2": make_norm(width),
               "c_fc": values.small_linear(width, 4 * width), "mlp_proj": values.small_linear(4 * width, width)}
              for _ in range(layers)]
    return {"wte": values.normal((classes, width)), "wpe": values.normal((context, width)), "blocks": blocks,
            "ln_f": make_norm(width)}


def attention(block, x, heads):
    rows, length, width = x.shape
    parts = jnp.split(linear(block["c_attn"], x), 3, axis=2)
    query, key, value = (part.reshape(rows, length, heads, -1).transpose(0, 2, 1, 3) for part in parts)
    scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(width // heads)
    earlier = jnp.tril(jnp.ones((length, length), bool))
    seen = jax.nn.softmax(jnp.where(earlier, scores, -jnp.inf)) @ value
    return linear(block["c_proj"], seen.transpose(0, 2, 1, 3).reshape(rows, length, width))


def char_lm(parameters, x, heads=4):
    """GPT-2 over characters; its last layer shares the weights of the embedding."""
    x = parameters["wte"][x] + parameters["wpe"][:x.shape[1]]
    for block in parameters["blocks"]:
        x = x + attention(block, norm(block["ln_1"], x), heads)
        x = x + linear(block["mlp_proj"], jax.nn.gelu(linear(block["c_fc"], norm(block["ln_2"], x)), approximate=True))
    return norm(parameters["ln_f"], x) @ parameters["wte"].T


def make_model(name, sample, classes):
    """Returns the parameters, and the function of parameters and inputs, for samples of this shape."""
    if name == "mlp":
        return make_mlp(), mlp
    if name == "lenet":
        return make_lenet(sample[0]), lenet
    if name == "char_lm":
        return make_char_lm(classes, sample[0], 128), char_lm
    if name == "gpt":
        return make_char_lm(classes, sample[0], 256), char_lm
    raise ValueError(f"workload {name} has no model in JAX")
