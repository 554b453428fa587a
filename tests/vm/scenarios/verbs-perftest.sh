# shellcheck shell=bash disable=SC2016
# SPDX-License-Identifier: MIT
# The rung verbs beside ib_write_lat and ib_write_bw: same machine, same port, one after the
# other. In the VM the ratios are told only: there the sender's processor does the work of
# both HCAs, which perftest's two processes do on two. On hardware they must be within 5 %.
# boot: rungs
# seconds: 300
# hw: yes

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_node
PROGRAM=/usr/libexec/nodeprep/nodeprep-selftest
[ -x "$PROGRAM" ] || PROGRAM=$(command -v nodeprep-selftest) || fail "no nodeprep-selftest"
command -v ib_write_lat >/dev/null || skip "perftest is not installed"
worst=0

# perftest PROGRAM COLUMN BYTES OPTIONS...: the figure of that column, client and server here.
perftest() {
	local program=$1 column=$2 bytes=$3 server port=$((20000 + RANDOM % 10000))
	shift 3
	"$program" -d "$CA" -s "$bytes" -F -p "$port" "$@" >"$WORK/server" 2>&1 &
	server=$!
	wait_for 20 sh -c "ss -ltn | grep -q ':$port '"
	"$program" -d "$CA" -s "$bytes" -F -p "$port" "$@" 127.0.0.1 >"$WORK/client" 2>&1 || {
		cat "$WORK/client" "$WORK/server" >&2
		fail "$program $bytes" >&2
	}
	wait "$server" || true
	awk -v bytes="$bytes" -v column="$column" '$1 == bytes { print $column }' "$WORK/client"
}

# Half a round trip in microseconds, its median; 10^6 bytes a second, their mean.
latency() { perftest ib_write_lat 5 "$1" -n 5000; }
bandwidth() { perftest ib_write_bw 4 "$1" --report_gbits -n $((HW == 0 ? 500 : 5000)) | awk '{ print $1 * 125 }'; }

# compare WHAT OURS THEIRS SIGN: a line, and the worst of the ratios in percent.
compare() {
	local percent
	case $3 in
	[1-9]* | 0.[0-9]*[1-9]*) ;;
	*)
		# perftest counts cycles, and those of an emulated processor are no clock
		[ "$HW" = 0 ] || [ "${NODEPREP_EMULATED:-0}" = 1 ] || fail "no figure of perftest: $1 '$3'"
		echo "  $1: $2; perftest has no clock here: '$3'"
		return
		;;
	esac
	percent=$(awk -v a="$2" -v b="$3" 'BEGIN { printf "%.1f", 100 * a / b }')
	echo "  $1: $2, perftest $3, $percent %"
	worst=$(awk -v w="$worst" -v p="$4$percent" 'BEGIN { p = p < 0 ? 100 + p : p - 100; print (p > w ? p : w) }')
}

must 0 "$PROGRAM" verbs --device "$CA:1" --timeout-ms 90000
cp "$WORK/out" "$WORK/json"
for bytes in 8 4096; do
	ours=$(jq -r --argjson b "$bytes" '.selftest[0].sizes[] | select(.size_bytes == $b) | .latency_us' "$WORK/json")
	compare "latency of $bytes bytes, us" "$ours" "$(latency "$bytes")" ""
done
for bytes in 65536 1048576; do
	ours=$(jq -r --argjson b "$bytes" '.selftest[0].sizes[] | select(.size_bytes == $b) | .bandwidth_MBps' "$WORK/json")
	compare "bandwidth of $bytes bytes, MB/s" "$ours" "$(bandwidth "$bytes")" "-"
done
echo "behind perftest by at most $worst %"
# the node that hw-form plays is emulated: its figures are no measure
[ "$HW" = 0 ] || [ "${NODEPREP_EMULATED:-0}" = 1 ] || awk -v w="$worst" 'BEGIN { exit w > 5 }' ||
	fail "more than 5 % behind perftest: $worst %"
