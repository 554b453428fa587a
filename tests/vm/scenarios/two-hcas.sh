# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Three HCAs, two addresses: each netdev gets its own, data moves on each HCA and from one to
# the next, lists are in natural order (mlx5_1 before mlx5_10), a degraded link is named, and
# where mlx5_10 is kept out the exact form of mlx5_1 is written (C2).
# boot: rungs
# seconds: 360
# hw: no, it needs HCAs of these names

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_node mlx5_10 mlx5_1 mlx5_0
wait_for 5 test -e /sys/class/net/ib2
nodeprep_json 3 plan --ip 10.0.0.50/24 --ifname ib7
nodeprep_json 0 apply --ip ib0=10.0.0.50/24 --ip ib1=10.0.1.50/24 "${PATIENT[@]}"
ip addr show ib0 | grep -q "inet 10.0.0.50/24" || fail "ib0 lacks its address"
ip addr show ib1 | grep -q "inet 10.0.1.50/24" || fail "ib1 lacks its address"
holds '[.selftest[] | select(.rung == "rc" and .status == "ok") | .device] == ["mlx5_0:1", "mlx5_1:1", "mlx5_10:1"]'
holds '[.selftest[] | select(.rung == "verbs" and .status == "ok") | .device] == ["mlx5_0:1", "mlx5_0:1-mlx5_1:1", "mlx5_1:1", "mlx5_1:1-mlx5_10:1", "mlx5_10:1", "mlx5_10:1-mlx5_0:1"]'
must 0 cat /etc/nodeprep/ucx.env
grep -q "mlx5_0:1,mlx5_1:1,mlx5_10:1,ib0" "$WORK/out" || fail "not in natural order"

say "mlx5_1 runs on one of its four lanes (C33)"
softib_set mlx5_1 width 1X
wait_for 10 running ib1
nodeprep_json 1 check --ip ib0=10.0.0.50/24 --ip ib1=10.0.1.50/24
has_code port.width_degraded mlx5_1:1
holds '[.checks[] | select(.status == "fail")] | length == 1'
softib_set mlx5_1 width 4X
wait_for 10 running ib1

say "mlx5_10 is kept out"
printf '[ports]\nignore = mlx5_10:1, mlx5_0:1\n' >/etc/nodeprep/nodeprep.conf
nodeprep_json 0 apply --ip ib0=10.0.0.50/24 --ip ib1=10.0.1.50/24 --no-selftest
must 0 cat /root/.nccl.conf
grep -q '^NCCL_IB_HCA==mlx5_1' "$WORK/out" || fail "NCCL would take mlx5_10 as well"
