# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# The only IPoIB netdev is called ibp65s0 and nothing is called ib0 (C4): it is used, and the
# files carry its real name.
# boot: links
# seconds: 60
# hw: no, it renames a netdev

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_node
ip link set ib0 name ibp65s0
must 0 nodeprep apply --ip 10.0.0.50/24 --no-selftest
ip addr show ibp65s0 | grep -q "inet 10.0.0.50/24" || fail "ibp65s0 lacks the address"
grep -q "^NCCL_SOCKET_IFNAME=ibp65s0" /root/.nccl.conf || fail "NCCL is told another name"
grep -q "mlx5_0:1,ibp65s0" /etc/nodeprep/ucx.env || fail "UCX is told another name"
nodeprep_json 3 plan --ip 10.0.0.50/24 --ifname ib0
