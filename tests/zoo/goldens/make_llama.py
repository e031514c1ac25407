#!/usr/bin/env python3
"""Writes tests/zoo/llama.golden: what LlamaForCausalLM of Hugging Face's transformers 5.23 says.

    python3 tests/zoo/goldens/make_llama.py > tests/zoo/llama.golden

Lines "count SECTION CLASSES PARAMETERS" of published sizes; lines "step SECTION" with, after a tab each, the loss of a text
of 11 tokens in float64, the loss after a step of gradient descent with learning rate 0.1, and the last score of the
first sequence; then the names and shapes of the first of these models.
"""
import torch
from transformers import LlamaConfig, LlamaForCausalLM

PUBLISHED = [  # section of ours, vocabulary, and the rest of Hugging Face's config
    ("{name: llama, layers: 32, heads: 32, width: 4096, hidden: 11008}", 32000,
     dict(num_hidden_layers=32, num_attention_heads=32, hidden_size=4096, intermediate_size=11008)),
    ("{name: llama, layers: 16, heads: 32, key_value_heads: 8, width: 2048, hidden: 8192, tied: true}", 128256,
     dict(num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8, hidden_size=2048, intermediate_size=8192,
          tie_word_embeddings=True)),
]
TINY = [
    ("{name: llama, layers: 2, heads: 4, key_value_heads: 2, width: 16, hidden: 24}",
     dict(num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, hidden_size=16, intermediate_size=24,
          rms_norm_eps=1e-5)),
    ("{name: llama, layers: 1, heads: 2, width: 8, hidden: 12, rope_theta: 100, epsilon: 1.0e-3, tied: true}",
     dict(num_hidden_layers=1, num_attention_heads=2, hidden_size=8, intermediate_size=12, rms_norm_eps=1e-3,
          rope_theta=100.0, tie_word_embeddings=True)),
]


def fill(model):
    """As fill() of model_under_test.h."""
    with torch.no_grad():
        for k, (name, values) in enumerate(model.named_parameters()):
            i = torch.arange(values.numel(), dtype=torch.float64)
            norm = values.dim() == 1 and name.endswith("weight")
            values.copy_((0.2 * torch.sin(1.7 * i + k) + (1 if norm else 0)).view(values.shape))


def exact_norm(self, x):
    """In the precision of x, not in float32."""
    return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


def main():
    from transformers.models.llama import modeling_llama
    modeling_llama.LlamaRMSNorm.forward = exact_norm
    for section, classes, sizes in PUBLISHED:
        with torch.device("meta"):
            model = LlamaForCausalLM(LlamaConfig(vocab_size=classes, **sizes))
        print("count", section, classes, sum(p.numel() for p in model.parameters()), sep="\t")
    text = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]).view(2, 6)
    layout = ""
    for section, sizes in TINY:
        model = LlamaForCausalLM(LlamaConfig(vocab_size=11, max_position_embeddings=6, attention_bias=False, **sizes)).double()
        fill(model)
        if not layout:
            layout = "".join(f"{name} {list(p.shape)}\n" for name, p in model.named_parameters())
        losses = []
        for _ in range(2):
            scores = model(text).logits
            loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), (text * 3 % 11).flatten())
            losses.append(loss.item())
            if len(losses) == 1:
                last = scores[0, -1, -1].item()
                loss.backward()
                with torch.no_grad():
                    for p in model.parameters():
                        p -= 0.1 * p.grad
        print("step", section, *(f"{x:.9f}" for x in losses), f"{last:.9f}", sep="\t")
    print(layout, end="")


main()
