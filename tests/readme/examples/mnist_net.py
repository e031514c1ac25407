import torch
from torch import nn

model = nn.Sequential(
    nn.Flatten(), nn.Linear(784, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10)
)
example = (torch.zeros(4, 1, 28, 28),)
batch = torch.export.Dim("batch")
program = torch.export.export(model.train(), example, dynamic_shapes=({0: batch},))
torch.export.save(program, "model.pt2")
