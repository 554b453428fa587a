# shellcheck shell=bash disable=SC2016
# SPDX-License-Identifier: MIT
# The rungs on RoCE, a stock rdma_rxe device: which GID verbs takes of those that there are,
# a wrong index, a peer that this GID does not reach, rc, and what skips there.
# boot: rungs
# seconds: 300
# hw: no, it calls the self-test's program with software HCAs

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"

# roce NETDEV CA ADDRESS...: its MTU takes packets of 4096 bytes and their headers; with fewer a
# packet all takes several times as long
roce() {
	local dev=$1 ca=$2 address
	shift 2
	ip link add "$dev" mtu 4400 type dummy
	for address; do
		case $address in
		*:*) ip addr add "$address" nodad dev "$dev" ;;
		*) ip addr add "$address" dev "$dev" ;;
		esac
	done
	ip link set "$dev" up
	rdma link add "$ca" type rxe netdev "$dev"
	wait_for 5 test -e "/sys/class/infiniband/$ca/ports/1/state"
}
gids() { cat /sys/class/infiniband/rocep1s0/ports/1/gids/{0,1,2} | tr '\n' ' '; }
has_gid() { [[ $(gids) == *"$1"* ]]; }
MAPPED=0000:0000:0000:0000:0000:ffff:0a09:0001
# takes_gid GID ARGUMENTS...: verbs takes it, and a first size gets there and back; then it is stopped.
takes_gid() {
	local gid=$1 running
	shift
	"$SELFTEST" verbs --device rocep1s0:1 --verbose --timeout-ms 90000 "$@" >"$WORK/json" 2>"$WORK/err" &
	running=$!
	wait_for 60 grep -q "verbs: 8 B: " "$WORK/err"
	kill -9 "$running" 2>/dev/null || true # a fast machine is through by then
	wait "$running" 2>/dev/null || true
	by_gid "$gid"
}
# by_gid GID: both ends were joined by it.
by_gid() {
	grep "GID" "$WORK/err"
	[ "$(grep -c "verbs: rocep1s0:1, GID [0-9] (RoCE v2) $1, MTU 4096" "$WORK/err")" = 2 ] || fail "not by GID $1"
}

modprobe -a ib_uverbs ib_umad rdma_ucm rdma_rxe
softib_add mlx5_0
roce eth8 rocep1s0 10.9.0.1/24 fd00:9::1/64
wait_for 5 has_gid "$MAPPED"
wait_for 5 has_gid fd00:0009
must 0 ibv_devinfo -v -d rocep1s0

say "of the GIDs there are, that of the IPv4 address"
rung 0 verbs --device rocep1s0:1 --verbose
by_gid ::ffff:10.9.0.1
holds '.selftest[0] | .transport == "verbs RoCE rocep1s0:1" and [.sizes[].size_bytes] == [8, 4096, 65536, 1048576, 8388608]'
say "another one, when told to"
takes_gid "fe80::[0-9a-f:]*" --gid-index 0
say "an index that has none"
rung 1 verbs --device rocep1s0:1 --gid-index 9
code_is selftest.verbs.gid_index fail
message_has "the entry is empty"

say "a GID that does not lead to the peer, and a peer of another kind"
roce eth9 rocep1s1 10.9.1.1/24
rung 1 verbs --device rocep1s0:1 --peer rocep1s1:1 --gid-index 1
code_is selftest.verbs.no_path fail
holds '.selftest[0].hint | contains("GIDs") or contains("addresses and routes")'
rung 1 verbs --device mlx5_0:1 --peer rocep1s0:1
code_is selftest.verbs.unlike fail

# UCX 1.13 takes the GID of the IPv4 address too, but its ud, by which rc connects, gets nothing
# through a stock rdma_rxe with that one.
say "without the IPv4 address, that of the IPv6 address; rc moves data"
ip addr del 10.9.0.1/24 dev eth8
wait_for 5 eval "! has_gid $MAPPED"
takes_gid fd00:9::1
rung 0 rc --device rocep1s0:1
holds '.selftest[0] | .status != "fail" and (.transport | startswith("rc_verbs/rocep1s0:1"))'

say "no InfiniBand, and no link"
rung 1 umad --device rocep1s0:1
code_is selftest.umad.not_infiniband skip
ip link set eth8 down
wait_for 5 grep -q DOWN /sys/class/infiniband/rocep1s0/ports/1/state
rung 1 verbs --device rocep1s0:1
code_is selftest.verbs.port_not_active skip
