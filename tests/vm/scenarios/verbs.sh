# shellcheck shell=bash disable=SC2016,SC2034 # jq has its own $; AS is for lib.sh
# SPDX-License-Identifier: MIT
# nodeprep-selftest verbs by itself: on one port and between two, as nobody, and each thing
# that may be in its way: memlock, permission, port, peer, driver library, GID. The scenario
# roce does it on RoCE.
# boot: rungs
# seconds: 480
# hw: no, it calls the self-test's program with software HCAs

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
NOBODY=(setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs)

softib_node mlx5_0 mlx5_1

say "one port, both ends"
rung 0 verbs --device mlx5_0:1
code_is "" ok
holds '.selftest[0] | [.sizes[].size_bytes] == [8, 4096, 65536, 1048576, 8388608] and all(.sizes[]; .latency_us > 0 and .bandwidth_MBps > 0)'
holds '.selftest[0].counters | .moved_bytes > 16000000 and .xmit_bytes >= .moved_bytes and .rcv_bytes >= .moved_bytes'

say "from one port to another, as nobody"
AS=("${NOBODY[@]}")
rung 0 verbs --device mlx5_0:1 --peer mlx5_1:1
holds '.selftest[0] | .transport == "verbs rc mlx5_0:1 to mlx5_1:1" and (.counters | .xmit_bytes >= .moved_bytes and .rcv_bytes >= .moved_bytes)'
rung 0 verbs --device mlx5_0:1 --gid-index 0
rung 1 verbs --device mlx5_0:1 --gid-index 7
code_is selftest.verbs.gid_index fail

say "all ports"
rung 0 verbs
holds '[.selftest[] | select(.status == "ok") | .device] == ["mlx5_0:1", "mlx5_1:1"]'

say "UCX over the same port: its counters tell"
rung 0 rc --device mlx5_0:1
holds '.selftest[0] | (.message | contains("the port counted")) and (.counters | .moved_bytes > 100000000 and .xmit_bytes >= .moved_bytes and .rcv_bytes >= .moved_bytes)'

say "memlock"
(
	ulimit -l 64
	rung 1 verbs --device mlx5_0:1
	code_is selftest.verbs.memlock fail
	holds '.selftest[0] | (.message | contains("64 KiB")) and (.hint | contains("LimitMEMLOCK"))'
)

say "no permission for the device"
for node in /dev/infiniband/uverbs*; do chmod 0600 "$node"; done
rung 1 verbs --device mlx5_0:1
code_is selftest.verbs.permission fail
AS=()
rung 0 verbs --device mlx5_0:1
for node in /dev/infiniband/uverbs*; do chmod 0666 "$node"; done

say "ports and peers"
rung 1 verbs --device mlx5_7:1
code_is selftest.verbs.no_device fail
rung 1 verbs --device mlx5_0:1 --peer mlx5_7:1
code_is selftest.verbs.no_peer fail
softib_set mlx5_1 state DOWN
rung 1 verbs --device mlx5_1:1
code_is selftest.verbs.port_not_active skip
rung 1 verbs --device mlx5_0:1 --peer mlx5_1:1
code_is selftest.verbs.port_not_active skip
softib_set mlx5_1 state ACTIVE

say "no driver library"
mv /etc/libibverbs.d /etc/libibverbs.away
rung 1 verbs --device mlx5_0:1
mv /etc/libibverbs.away /etc/libibverbs.d
code_is selftest.verbs.no_provider fail

say "the other port goes away in the middle: no acknowledgement"
"$SELFTEST" verbs --device mlx5_0:1 --peer mlx5_1:1 --full --timeout-ms 90000 >"$WORK/json" &
running=$!
sleep 4
softib_set mlx5_1 state DOWN
code=0
wait "$running" || code=$?
[ "$code" = 1 ] || fail "exit $code, though its peer was DOWN"
code_is selftest.verbs.no_path fail
holds '.selftest[0].message | contains("transport retry counter exceeded")'
softib_set mlx5_1 state ACTIVE
