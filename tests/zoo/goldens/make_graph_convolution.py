#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/zoo/graph_convolution.golden: the results of PyTorch 2.13 for the graph network of the zoo.

    python3 tests/zoo/goldens/make_graph_convolution.py > tests/zoo/graph_convolution.golden

GCNConv is written as in the paper and PyTorch Geometric, with one edge at a time. A line has, separated by tabs:
  1  the model's section; parameters are filled as by testing::fill(), in float32
  2  graphs, nodes, features and classes
  3  the number of its parameters
  4  scores: the first of the first node, the last of the last node but one of the first graph and of the last
  5  the loss, with class (7 i + i // 3) mod classes for node i of all graphs
  6  the loss after one step of gradient descent with learning rate 0.1

Features are waves(...). Nodes i != j of graph g have an edge if (i j + i + j + g) mod 3 is 0. The last node of the last
graph is only padding: it has no features and no edges, and is ignored.
"""

import math

import torch
from torch import nn
from torch.nn import functional


class GCNConv(nn.Module):
    def __init__(self, taken, made):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(made))
        self.lin = nn.Linear(taken, made, bias=False)

    def forward(self, x, edges):
        """x: [nodes, features]; edges: pairs of nodes, in both directions."""
        edges = edges + [(i, i) for i in range(len(x))]
        degree = torch.zeros(len(x))
        for _, to in edges:
            degree[to] += 1
        x = self.lin(x)
        out = [self.bias] * len(x)
        for of, to in edges:
            out[to] = out[to] + x[of] / (degree[of] * degree[to]).sqrt()
        return torch.stack(out)


class GCN(nn.Module):
    def __init__(self, taken, hidden, classes):
        super().__init__()
        widths = [taken, *hidden, classes]
        self.layers = []
        for i in range(len(widths) - 1):
            self.layers.append(GCNConv(widths[i], widths[i + 1]))
            self.add_module(f"conv{i + 1}", self.layers[-1])

    def forward(self, x, edges):
        for layer in self.layers[:-1]:
            x = functional.relu(layer(x, edges))
        return self.layers[-1](x, edges)


def waves(*sizes):
    return torch.sin(0.37 * torch.arange(math.prod(sizes), dtype=torch.float64)).float().view(sizes)


def fill(model):
    for k, values in enumerate(model.parameters()):
        i = torch.arange(values.numel(), dtype=torch.float64)
        values.data = (0.2 * torch.sin(1.7 * i + k)).view(values.shape).float()


def edges_of(graph, graphs, nodes):
    last = nodes - (graph == graphs - 1)
    return [(i, j) for i in range(last) for j in range(last) if i != j and (i * j + i + j + graph) % 3 == 0]


def main():
    for section, (graphs, nodes, features, classes), hidden in (
            ("{name: graph_convolution, dropout: 0}", (3, 7, 4, 3), [16]),
            ("{name: graph_convolution, hidden: [5, 6], dropout: 0}", (2, 9, 3, 4), [5, 6]),
            ("{name: graph_convolution, hidden: [], dropout: 0}", (1, 6, 5, 2), [])):
        model = GCN(features, hidden, classes)
        fill(model)
        x = waves(graphs, nodes, features)
        x[-1, -1] = 0
        i = torch.arange(graphs * nodes)
        target = (7 * i + i // 3) % classes
        target[-1] = -100

        def scores():
            return torch.stack([model(x[graph], edges_of(graph, graphs, nodes)) for graph in range(graphs)])

        output = scores()
        first = functional.cross_entropy(output.flatten(0, 1), target)
        first.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
            second = functional.cross_entropy(scores().flatten(0, 1), target)
        shown = output[0, 0, 0], output[0, -2, -1], output[-1, -2, -1]
        print(section, f"{graphs},{nodes},{features},{classes}", sum(p.numel() for p in model.parameters()),
              ",".join(f"{value.item():.8g}" for value in shown), f"{first.item():.8g}", f"{second.item():.8g}",
              sep="\t")


if __name__ == "__main__":
    main()
