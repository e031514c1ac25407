#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/zoo/text.golden: the results of other implementations of text models, from Hugging Face's transformers
5.24 and torch.nn.

    python3 tests/zoo/goldens/make_text.py > tests/zoo/text.golden

Fields are separated by tabs. Lines "count SECTION CLASSES PARAMETERS" have the parameters of published sizes. Lines
"step SECTION LOSS AFTER SCORE" have the loss of a text of 11 tokens in float64, the loss after a step of gradient
descent with learning rate 0.1, and the last score of the first sequence. Lines "layout SECTION PARAMETER SHAPE" name
the parameters.
"""
import math

import torch
from torch import nn
from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM

TEXT = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]).view(2, 6)
CLASSES = 11
PUBLISHED = [  # our section, the reference, vocabulary, and the rest of its config
    ("{name: llama, layers: 32, heads: 32, width: 4096, hidden: 11008}", LlamaForCausalLM, LlamaConfig, 32000,
     dict(num_hidden_layers=32, num_attention_heads=32, hidden_size=4096, intermediate_size=11008)),
    ("{name: llama, layers: 16, heads: 32, key_value_heads: 8, width: 2048, hidden: 8192, tied: true}",
     LlamaForCausalLM, LlamaConfig, 128256,
     dict(num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8, hidden_size=2048, intermediate_size=8192,
          tie_word_embeddings=True)),
    ("{name: bert, layers: 12, heads: 12, width: 768}", BertForMaskedLM, BertConfig, 30522, {}),
]


def llama(**sizes):
    config = LlamaConfig(vocab_size=CLASSES, max_position_embeddings=6, attention_bias=False, **sizes)
    model = LlamaForCausalLM(config)
    return model, lambda text: model(text).logits


def bert(padding=-1, **sizes):
    config = BertConfig(vocab_size=CLASSES, max_position_embeddings=6, hidden_dropout_prob=0,
                        attention_probs_dropout_prob=0, attn_implementation="eager", **sizes)
    model = BertForMaskedLM(config)
    return model, lambda text: model(text, attention_mask=text.ne(padding).long()).logits


class Recurrent(nn.Module):
    """PyTorch's examples/word_language_model, with a zero initial state."""

    def __init__(self, cell, layers, width, tied=False):
        super().__init__()
        self.encoder = nn.Embedding(CLASSES, width)
        self.rnn = cell(width, width, layers, batch_first=True)
        self.decoder = nn.Linear(width, CLASSES)
        if tied:
            self.decoder.weight = self.encoder.weight

    def forward(self, text):
        return self.decoder(self.rnn(self.encoder(text))[0])


def recurrent(*args, **fields):
    model = Recurrent(*args, **fields)
    return model, model


class Seq2Seq(nn.Module):
    """torch.nn.Transformer between sinusoidal embeddings and a head."""

    def __init__(self, layers, heads, width, hidden, tied=True, padding=-1):
        super().__init__()
        if tied:
            self.embedding = nn.Embedding(CLASSES, width)
        else:
            self.source_embedding = nn.Embedding(CLASSES, width)
            self.target_embedding = nn.Embedding(CLASSES, width)
        self.transformer = nn.Transformer(width, heads, layers, layers, hidden, dropout=0, batch_first=True)
        if not tied:
            self.head = nn.Linear(width, CLASSES)
        self.tied, self.padding, self.width = tied, padding, width

    def embedded(self, table, text):
        length, width = text.shape[1], self.width
        sines = torch.zeros(length, width, dtype=torch.float64)
        for place in range(length):
            for i in range(0, width, 2):
                angle = place / 10000 ** (i / width)
                sines[place, i], sines[place, i + 1] = math.sin(angle), math.cos(angle)
        return table(text) * math.sqrt(width) + sines

    def forward(self, source):
        target = source * 7 % CLASSES
        tables = [self.embedding] * 2 if self.tied else [self.source_embedding, self.target_embedding]
        unknown = source.eq(self.padding)
        later = torch.ones(target.shape[1], target.shape[1]).triu(1).bool()
        x = self.transformer(self.embedded(tables[0], source), self.embedded(tables[1], target), tgt_mask=later,
                             src_key_padding_mask=unknown, memory_key_padding_mask=unknown)
        return x @ self.embedding.weight.T if self.tied else self.head(x)


def seq2seq(*args, **fields):
    model = Seq2Seq(*args, **fields)
    return model, model


STRETCHED = "{name: llama, layers: 1, heads: 1, width: 16, hidden: 12, rope_theta: 100, rope_scaling: "


def stretched(**parameters):
    """Returns a llama of one head with wavelengths from 6 to 350 tokens, some of which are stretched."""
    return llama(num_hidden_layers=1, num_attention_heads=1, hidden_size=16, intermediate_size=12, rms_norm_eps=1e-5,
                 rope_parameters=dict(rope_theta=100.0, **parameters))


TINY = [
    ("{name: llama, layers: 2, heads: 4, key_value_heads: 2, width: 16, hidden: 24}",
     lambda: llama(num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, hidden_size=16,
                   intermediate_size=24, rms_norm_eps=1e-5)),
    ("{name: llama, layers: 1, heads: 2, width: 8, hidden: 12, rope_theta: 100, epsilon: 1.0e-3, tied: true}",
     lambda: llama(num_hidden_layers=1, num_attention_heads=2, hidden_size=8, intermediate_size=12, rms_norm_eps=1e-3,
                   rope_theta=100.0, tie_word_embeddings=True)),
    (STRETCHED + "{rope_type: linear, factor: 4}}", lambda: stretched(rope_type="linear", factor=4.0)),
    (STRETCHED + "{rope_type: llama3, factor: 8, low_freq_factor: 1, high_freq_factor: 4, "
     "original_max_position_embeddings: 64}}",
     lambda: stretched(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                       original_max_position_embeddings=64)),
    (STRETCHED + "{rope_type: yarn, factor: 4, original_max_position_embeddings: 64}}",
     lambda: stretched(rope_type="yarn", factor=4.0, original_max_position_embeddings=64)),
    (STRETCHED + "{rope_type: yarn, factor: 4, original_max_position_embeddings: 64, beta_fast: 8, beta_slow: 2, "
     "attention_factor: 1.5}}",
     lambda: stretched(rope_type="yarn", factor=4.0, original_max_position_embeddings=64, beta_fast=8.0, beta_slow=2.0,
                       attention_factor=1.5)),
    ("{name: bert, layers: 2, heads: 4, width: 16}",
     lambda: bert(num_hidden_layers=2, num_attention_heads=4, hidden_size=16, intermediate_size=64)),
    ("{name: bert, layers: 1, heads: 2, width: 8, hidden: 12, padding: 5}",
     lambda: bert(padding=5, num_hidden_layers=1, num_attention_heads=2, hidden_size=8, intermediate_size=12)),
    ("{name: lstm, layers: 2, width: 12}", lambda: recurrent(nn.LSTM, 2, 12)),
    ("{name: lstm, layers: 1, width: 8, tied: true}", lambda: recurrent(nn.LSTM, 1, 8, tied=True)),
    ("{name: gru, layers: 2, width: 12}", lambda: recurrent(nn.GRU, 2, 12)),
    ("{name: transformer, layers: 2, heads: 4, width: 16, hidden: 24}", lambda: seq2seq(2, 4, 16, 24)),
    ("{name: transformer, layers: 1, heads: 2, width: 8, tied: false, padding: 5}",
     lambda: seq2seq(1, 2, 8, 32, tied=False, padding=5)),
]


def fill(model):
    """The same as fill() of model_under_test.h."""
    with torch.no_grad():
        for k, (name, values) in enumerate(model.named_parameters()):
            i = torch.arange(values.numel(), dtype=torch.float64)
            norm = values.dim() == 1 and name.endswith("weight")
            values.copy_((0.2 * torch.sin(1.7 * i + k) + (1 if norm else 0)).view(values.shape))


def exact_norm(self, x):
    """Normalizes in the precision of x, not in float32."""
    return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


def main():
    from transformers.models.llama import modeling_llama
    modeling_llama.LlamaRMSNorm.forward = exact_norm
    for section, make, make_config, classes, sizes in PUBLISHED:
        with torch.device("meta"):
            model = make(make_config(vocab_size=classes, **sizes))
        print("count", section, classes, sum(p.numel() for p in model.parameters()), sep="\t")
    for section, make in TINY:
        model, forward = make()
        model.double()
        fill(model)
        for name, p in model.named_parameters():
            print("layout", section, name, list(p.shape), sep="\t")
        losses = []
        for _ in range(2):
            scores = forward(TEXT)
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), (TEXT * 3 % CLASSES).flatten())
            losses.append(loss.item())
            if len(losses) == 1:
                last = scores[0, -1, -1].item()
                loss.backward()
                with torch.no_grad():
                    for p in model.parameters():
                        if p.grad is not None:
                            p -= 0.1 * p.grad
        print("step", section, *(f"{x:.9f}" for x in losses), f"{last:.9f}", sep="\t")


main()
