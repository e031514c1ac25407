# SPDX-License-Identifier: Apache-2.0
"""Measurements of several systems in turns, so that all of them see the same changes of the machine."""

import random
import statistics


def in_turns(names, rounds):
    """Yields (round, name): each name once in every round, beginning with another one in each."""
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            yield number, name


def interval(values, draws=2000):
    """Returns the bounds between which the median of the values lies with a probability of 95 % (by bootstrap)."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(draws))
    return medians[draws // 40], medians[-1 - draws // 40]


def as_words(settings):
    """Returns --set arguments for a dict of keys and values."""
    return [f"--set={key}={value}" for key, value in settings.items()]
