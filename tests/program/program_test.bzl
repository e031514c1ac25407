# SPDX-License-Identifier: Apache-2.0
"""A test of whole programs: a Python script that runs them."""

def program_test(name, script = None, cases = [], data = [], tags = [], uses_mpi = False, mpiexec = None, **kwargs):
    """Runs `script`, or NAME.py, which imports program.py.

    Args:
      name: of the test.
      script: a Python 3 file.
      cases: its test classes to run; none: all of them.
      data: files that it needs besides train and configs.
      tags: of the test.
      uses_mpi: whether it starts Open MPI.
      mpiexec: the label of another MPI's mpiexec that it starts, or of the reason why it is absent.
      **kwargs: as for any test.
    """
    mpirun = "//third_party/openmpi:mpirun"
    native.sh_test(
        name = name,
        srcs = [script or name + ".py"],
        args = cases,
        data = data + [
            "//configs",
            "//tests/program",
            "//tools:train",
        ] + ([mpirun] if uses_mpi else []) + ([mpiexec] if mpiexec else []),
        env = dict({
            "OMP_NUM_THREADS": "1",  # a rank takes one core, as the tests' tags say
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": "tests/program",
        }, **dict(
            {"MPIRUN": "$(rootpath %s)" % mpirun} if uses_mpi else {},
            **({"MPIEXEC": "$(rootpath %s)" % mpiexec} if mpiexec else {})
        )),
        tags = tags + (["no-tsan"] if uses_mpi or mpiexec else []),
        **kwargs
    )
