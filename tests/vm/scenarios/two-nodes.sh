# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Two network namespaces as two nodes, each with its own HCA, ib0 and files: apply on both,
# then ping, verbs rc and UCX rc from one to the other.
# boot: two-nodes
# seconds: 240
# hw: no, it makes namespaces of HCAs

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
two_nodes

for n in 1 2; do
	say "apply on node $n"
	must 0 node "$n" nodeprep apply --ip "10.0.0.5$n/24" "${PATIENT[@]}"
	grep -q "rc mlx5_$((n - 1)):1" "$WORK/out" || fail "no rc rung on node $n"
	must 0 node "$n" cat /etc/nodeprep/ucx.env
	grep -q "mlx5_$((n - 1)):1,ib0" "$WORK/out" || fail "node $n lists another node's HCA"
done

say "from node 1 to node 2"
must 0 node 1 ping -c 3 -W 5 10.0.0.52
node 2 ibv_rc_pingpong -n 200 >"$WORK/server" 2>&1 &
wait_for 10 node 2 sh -c 'ss -ltn | grep -q :18515'
must 0 node 1 timeout 30 ibv_rc_pingpong -n 200 10.0.0.52
wait
cat "$WORK/server"
grep -q "200 iters" "$WORK/server" || fail "the other end of ibv_rc_pingpong saw nothing"
node 2 env UCX_TLS=rc,self UCX_NET_DEVICES=mlx5_1:1 ucx_perftest >"$WORK/server" 2>&1 &
wait_for 10 node 2 sh -c 'ss -ltn | grep -q :13337'
must 0 node 1 timeout 60 env UCX_TLS=rc,self UCX_NET_DEVICES=mlx5_0:1 \
	ucx_perftest -t tag_lat -n 200 -w 20 10.0.0.52
wait
