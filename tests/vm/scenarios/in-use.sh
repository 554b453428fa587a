# shellcheck shell=bash disable=SC2016
# SPDX-License-Identifier: MIT
# A job has queue pairs on the HCA, or a TCP connection over ib0: neither the netdev's mode
# nor its address is changed under it, and its owner is named. With --force they are (C40).
# boot: links
# seconds: 240
# hw: no, it changes a netdev in use

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
want() { printf '[netdev ib0]\naddress = %s\nmode = %s\n' "$1" "$2" >/etc/nodeprep/nodeprep.conf; }
now() { echo "$(cat /sys/class/net/ib0/mode) $(cat /sys/class/net/ib0/mtu) $(ip -o -4 addr show ib0 | awk '{ print $4 }')"; }
refused() {
	local before
	before=$(now)
	nodeprep_json 3 apply --no-selftest
	holds '.changed == false and .error.code == "netdev.in_use"'
	holds '.error.message | contains($who)' --arg who "process $1 ($2)"
	holds '.error.hint | contains("--force")'
	[ "$(now)" = "$before" ] || fail "ib0 is $(now), and was $before"
}
softib_node
want 10.0.0.50/24 datagram
nodeprep_json 0 apply --no-selftest

ibv_rc_pingpong -d "$CA" -p 19000 >"$WORK/job" 2>&1 &
job=$!
wait_for 10 sh -c "rdma resource show qp pid $job | grep -q pingpong"
nodeprep_json 0 apply --no-selftest
holds '.changed == false and all(.checks[]; .code != "netdev.in_use")'
want 10.0.0.50/16 datagram
refused "$job" ibv_rc_pingpong
nodeprep_json 3 plan
holds '.error.code == "netdev.in_use"'
want 10.0.0.50/24 connected
refused "$job" ibv_rc_pingpong
nodeprep_json 0 apply --no-selftest --force
has_code netdev.in_use ib0
[ "$(cat /sys/class/net/ib0/mode)" = connected ] || fail "--force did not change the mode"
kill "$job"
wait "$job" || true
want 10.0.0.50/24 datagram
nodeprep_json 0 apply --no-selftest
holds '.changed and all(.checks[]; .code != "netdev.in_use")'

# its own end, too: the address is this node's
busybox nc -l -p 19001 >/dev/null </dev/zero &
server=$!
wait_for 10 sh -c "busybox netstat -ltn | grep -q :19001"
exec 9<>/dev/tcp/10.0.0.50/19001
want 10.0.0.50/16 datagram
nodeprep_json 3 apply --no-selftest
holds '.error.code == "netdev.in_use" and (.error.message | contains("TCP connection from 10.0.0.50"))'
exec 9>&-
kill "$server" 2>/dev/null || true # it may end by itself
wait "$server" || true
nodeprep_json 0 apply --no-selftest
[ "$(now)" = "datagram 2044 10.0.0.50/16" ] || fail "ib0 is $(now)"
