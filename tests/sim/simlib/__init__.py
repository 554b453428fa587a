# SPDX-License-Identifier: MIT
"""The simulated node: parts of tests/sim/simnode."""
