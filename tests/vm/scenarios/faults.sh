# shellcheck shell=bash disable=SC2016
# SPDX-License-Identifier: MIT
# Faults while data moves, over verbs and over UCX rc: a bit that is lost on the way, a port
# that goes away, a rung that is killed. Each has its own code, and none hangs. (The peer of
# verbs goes away in the scenario verbs.)
# boot: rungs
# seconds: 240
# hw: no, it breaks a software HCA

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_node

say "each large packet of mlx5_0 loses a bit"
softib_set mlx5_0 corrupt 1
rung 1 verbs --device mlx5_0:1
code_is selftest.data_corrupt fail
holds '.selftest[0] | [.sizes[].size_bytes] == [8] and (.message | contains("(4 KiB) arrived corrupt: byte at offset 2048"))'
rung 1 rc --device mlx5_0:1
code_is selftest.data_corrupt fail
holds '.selftest[0] | .transport == "rc_verbs/mlx5_0:1" and (.message | contains("(4 KiB) arrived corrupt"))'
say "another HCA gets the same of it"
softib_add mlx5_1
rung 1 verbs --device mlx5_1:1 --peer mlx5_0:1
code_is selftest.data_corrupt fail
rdma link del mlx5_1
softib_set mlx5_0 corrupt 0

say "the port goes away under UCX"
"$SELFTEST" rc --device mlx5_0:1 --full --verbose --timeout-ms 90000 >"$WORK/json" 2>"$WORK/err" &
running=$!
wait_for 60 grep -q "^nodeprep: rc: 1 B: " "$WORK/err"
softib_set mlx5_0 state DOWN
code=0
wait "$running" || code=$?
jq -c '.selftest[0] | .code, .message' "$WORK/json"
[ "$code" = 1 ] || fail "exit $code, though its port was DOWN"
code_is selftest.rc.endpoint fail
message_has "Endpoint timeout"
rung 1 rc --device mlx5_0:1
code_is selftest.rc.port_not_active skip
softib_set mlx5_0 state ACTIVE

say "the rung is killed"
# The self-test's program runs under another name, and before the rung once more for a moment,
# to ask the libraries. --full: a fast machine would be through with less.
kill_rung() {
	local proc
	for proc in /proc/[0-9]*; do
		if [ "$(readlink "$proc/exe")" = "$SELFTEST" ] && grep -qzx rc "$proc/cmdline"; then
			kill -9 "${proc#/proc/}" && return
		fi
	done
	return 1
}
nodeprep selftest rc --full --json "${PATIENT[@]}" >"$WORK/json" 2>"$WORK/err" &
running=$!
wait_for 30 kill_rung
code=0
wait "$running" || code=$?
cat "$WORK/json" "$WORK/err"
[ "$code" = 1 ] || fail "exit $code, though the rung was killed"
code_is selftest.crashed fail
message_has "signal 9"
