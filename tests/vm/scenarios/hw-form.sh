# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# The form for physical nodes (`hw`), with this VM as the node: what says `# hw: yes` runs and
# passes, the rest is skipped with its reason, the exit code follows; nothing is touched
# when the address is not given.
# boot: hw-form
# seconds: 500
# hw: no, it is that form itself

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
# as after a node's boot
softib_add mlx5_0
load_modules
wait_for 5 test -e /sys/class/net/ib0
# hw IP [COMMAND...]: that form, with the address or without
hw() {
	local -x NODEPREP_HW=1 NODEPREP_EMULATED=1 NODEPREP_HW_TIMEOUT=90 NODEPREP_HW_IP=$1 BUILD=${BUILD:-/usr/sbin}
	shift
	"$@"
}

say "refused: nothing is touched"
ip addr >"$WORK/before"
touch "$WORK/mark"
sleep 0.1
must 2 hw "" bash /vm/hw
must 2 hw 10.0.0.50/24 bash /vm/hw no-such-scenario
BUILD=/tmp must 2 hw 10.0.0.50/24 bash /vm/hw
NODEPREP_HW_IP=10.0.0.50/24 must 2 bash /vm/hw
must 2 hw 10.0.0.50/24 setpriv --reuid alice --regid alice --clear-groups bash /vm/hw
ip addr | cmp - "$WORK/before" || fail "it changed an address"
find / -xdev -newer "$WORK/mark" -type f ! -path "$WORK/*" >"$WORK/touched"
[ ! -s "$WORK/touched" ] || fail "it wrote $(cat "$WORK/touched")"

say "all of them"
must 0 hw 10.0.0.50/24 bash /vm/hw
cp "$WORK/out" "$WORK/all"
yes=0 no=0
for file in /vm/scenarios/*.sh; do
	name=$(basename "$file" .sh)
	if grep -q '^# hw: yes' "$file"; then
		yes=$((yes + 1))
		grep -q "^passed  $name " "$WORK/all" || fail "$name did not pass"
	else
		no=$((no + 1))
		grep -qE "^skipped  $name +0 s  [a-z]" "$WORK/all" || fail "$name was not skipped with a reason"
	fi
done
[ "$yes" -ge 3 ] || fail "only $yes scenarios are for physical nodes"
[ "$(tail -n 1 "$WORK/all")" = "$yes passed, 0 failed, $no skipped" ] || fail "another count"

say "a node that is not in order: the port waits for a subnet manager"
softib_set mlx5_0 state INIT
must 1 hw 10.0.0.50/24 bash /vm/hw memlock-small modes
grep -q '^failed  memlock-small ' "$WORK/out" || fail "no failure"
[ "$(tail -n 1 "$WORK/out")" = "0 passed, 1 failed, 1 skipped" ] || fail "another count"
