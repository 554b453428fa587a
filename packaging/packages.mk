# SPDX-License-Identifier: MIT
# The Debian 12 packages that building, testing and linting need; `make deps`.
DEPS_BUILD := gcc libc6-dev pkg-config libnl-3-dev libibumad-dev libjansson-dev libinih-dev libkmod-dev libucx-dev libibverbs-dev libpmix-dev
DEPS_TEST := python3 python3-pytest python3-pytest-xdist python3-jsonschema libcmocka-dev iproute2 \
	infiniband-diags ucx-utils net-tools kmod strace time procps util-linux dash bash zsh tcsh busybox
# the fabric of tests/cli/test_selftest_umad.py; ibsim-utils starts no service, opensm would, so
# that is unpacked only (packaging/unpack-debs)
DEPS_TEST += ibsim-utils
DEPS_UNPACK := opensm libopensm9 libosmcomp5 libosmvendor5 libwrap0
# Dask itself, for tests/cli/test_dask.py: 20 packages without a dependency that starts a service
DEPS_TEST += python3-distributed python3-yaml
# Environment Modules and Lmod, for tests/cli/test_modulefile.py: the packages conflict, and each
# changes every login shell of the machine, so that both are unpacked only
DEPS_TEST += tcl lua5.3 lua-posix lua-filesystem lua-json lua-term
DEPS_UNPACK_MODULES := environment-modules lmod
# the launcher of tests/cli/test_ranks.py, without the compilers that it recommends
DEPS_TEST += openmpi-bin
# what packaging/slurm reads JSON with
DEPS_TEST += jq
# Slurm, for tests/cli/test_slurm.py and test_ranks_slurm.py: its packages start services and
# name this machine a node, so that they are unpacked only
DEPS_TEST += libmunge2 libhwloc15 libpmix2 liblz4-1 libnuma1
DEPS_UNPACK_SLURM := slurmctld slurmd slurm-client slurm-wlm-basic-plugins slurm-wlm-plugins munge libmunge2 libslurm38
DEPS_LINT := clang-format clang-tidy cppcheck shellcheck codespell mandoc pyflakes3
DEPS_FUZZ := clang libclang-rt-14-dev libcmocka-dev
# only `make vm-test` and `make demo-vm` install these
DEPS_VM := python3 qemu-system-x86 linux-headers-amd64 linux-source-6.1 binutils cpio kmod openssl xz-utils findutils e2fsprogs fakeroot
DEPS := $(DEPS_BUILD) $(DEPS_TEST) $(DEPS_LINT)
