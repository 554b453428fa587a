# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# The HCA is pulled out while apply waits for its port: apply ends by itself with a document
# and an exit code of the contract, and leaves no half-written file; with the HCA back it
# goes on as if nothing had been.
# boot: links
# seconds: 120
# hw: no, it removes the HCA

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
softib_param state=2
softib_node
nodeprep apply --ip 10.0.0.50/24 --timeout 20 --no-selftest --json >"$WORK/json" 2>"$WORK/err" &
apply=$!
wait_for 10 sh -c "ip addr show ib0 | grep -q 'inet 10.0.0.50'"
rdma link del mlx5_0
code=0
SECONDS=0
wait "$apply" || code=$?
cat "$WORK/json" "$WORK/err"
[ "$SECONDS" -lt 25 ] || fail "apply went on for $SECONDS s"
case $code in 1 | 3 | 4) ;; *) fail "exit $code" ;; esac
holds '.schema == 1 and .ready == false'
# it names what went, by the name that people know
holds '.error == null or (.error.message | contains("ib0"))'
find / -xdev \( -name '.*nodeprep*' -o -name '*.tmp' -o -name '.nccl.conf.*' \) -print >"$WORK/left"
[ ! -s "$WORK/left" ] || fail "left behind: $(cat "$WORK/left")"

say "the HCA is back"
softib_param state=4
softib_node
nodeprep_json 0 apply --ip 10.0.0.50/24 --no-selftest
holds '.ready'
