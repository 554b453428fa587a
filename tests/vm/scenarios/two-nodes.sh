# shellcheck shell=bash disable=SC2016 # jq and bash -c have their own $
# SPDX-License-Identifier: MIT
# Two network namespaces as two nodes, each with its own HCA, ib0 and files: apply on both,
# then ping, verbs rc and UCX rc from one to the other.
# boot: two-nodes
# seconds: 240
# hw: no, it makes namespaces of HCAs

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
# Must come before the first namespace. HCAs then belong to one namespace each.
rdma system set netns exclusive
softib_add mlx5_0 mlx5_1
load_modules
wait_for 5 test -e /sys/class/net/ib1

# node N COMMAND...: on that node; its /etc, /root, /var and /run are its own.
node() {
	local n=$1
	shift
	ip netns exec "n$n" bash -c 'for d in etc root var run; do mount --bind "$0/$d" "/$d"; done
		exec "$@"' "$WORK/n$n" "$@"
}
for n in 1 2; do
	ip netns add "n$n"
	ip -n "n$n" link set lo up
	rdma dev set "mlx5_$((n - 1))" netns "n$n"
done
# netdev_of HCA: by its GUID, which ends in the number of the HCA in the order of adding
netdev_of() {
	local file
	file=$(grep -l ":0${1#mlx5_}\$" /sys/class/net/ib*/address) && basename "$(dirname "$file")"
}
for n in 1 2; do
	mkdir -p "$WORK/n$n"/root "$WORK/n$n"/run "$WORK/n$n"/var/lib
	cp -r /etc "$WORK/n$n/etc"
	# the move made a new netdev, and it is still in the first namespace
	wait_for 10 netdev_of "mlx5_$((n - 1))"
	ip link set "$(netdev_of "mlx5_$((n - 1))")" netns "n$n" name ib0
done
must 0 ip -n n1 link show ib0
must 0 ip -n n2 link show ib0

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
