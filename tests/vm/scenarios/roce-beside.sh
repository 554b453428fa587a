# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# A stock rdma_rxe device (RoCE) beside the InfiniBand HCA: it is no InfiniBand port, gets no
# IPoIB, is in no list, and fails nothing (C17).
# boot: rungs
# seconds: 90
# hw: no, it adds a software HCA

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_node
ip link add eth9 type dummy
ip link set eth9 up
modprobe rdma_rxe
rdma link add rocep1s0 type rxe netdev eth9
wait_for 5 test -e /sys/class/infiniband/rocep1s0/ports/1/state
nodeprep_json 0 apply --ip 10.0.0.50/24 "${PATIENT[@]}"
rung_is rc ok
holds '[.selftest[] | select(.rung == "rc") | .device] == ["mlx5_0:1"]'
holds 'all(.checks[] | select(.target | startswith("rocep1s0")); .status != "fail")'
holds 'any(.checks[]; .target | startswith("rocep1s0"))'
must 0 cat /etc/nodeprep/ucx.env
! grep -q rocep1s0 "$WORK/out" || fail "the RoCE device is in UCX_NET_DEVICES"
must 0 cat /root/.nccl.conf
