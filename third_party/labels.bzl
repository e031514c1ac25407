# SPDX-License-Identifier: Apache-2.0
"""Labels of this repository for BUILD files of other repositories, whether or not this one is the main one."""

def absolute(label):
    """Returns a label as text that means the same in every repository. `label` is a Label of the calling file."""
    text = str(label)  # without @ if this is the main repository, up to Bazel 5
    return text if text.startswith("@") else "@" + text
