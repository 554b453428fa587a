# SPDX-License-Identifier: MIT
"""STAND-IN for raft_dask (README.md beside it): for the tests of packaging/dask/cluster-test."""

__version__ = "0.0.stand-in"
