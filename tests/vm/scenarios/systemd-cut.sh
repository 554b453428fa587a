# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# The power ends in the middle of an apply, at three places, and of a revert: nothing is synced that nodeprep did not
# sync itself. After the boot each file is what it was or what it was to be, whole; the next apply goes on with it,
# nothing lies about, and revert leads back to before the first of them.
# boot: systemd-undo
# seconds: 120
# reboots: 4
# hw: no, its power is cut

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
state=/var/lib/nodeprep
# cut_when FILE COMMAND...: runs it, and cuts the power as soon as FILE is there
cut_when() {
	local file=$1
	shift
	[ ! -e "$file" ] || fail "$file is there before $*"
	expect_cut
	"$@" >/dev/null 2>&1 &
	until [ -e "$file" ]; do
		[ -d /proc/$! ] || fail "$* ended without $file"
	done
	cut_power
}
# each_file_is_whole [AT_LEAST]: those that the journal names have their old content or the new one. Its
# first version names none: the network comes first.
each_file_is_whole() {
	local n i path had
	n=$(jq '[.actions[] | select(.kind == "file")] | length' $state/journal.json)
	[ "$n" -ge "${1:-0}" ] || fail "the journal names $n files"
	for ((i = 0; i < n; i++)); do
		jq "[.actions[] | select(.kind == \"file\")][$i].file" $state/journal.json >"$WORK/file"
		path=$(jq -r .path "$WORK/file")
		had=$(jq -r .had_old "$WORK/file")
		jq -rj .old.text "$WORK/file" >"$WORK/old"
		jq -rj .new.text "$WORK/file" >"$WORK/new"
		if [ ! -e "$path" ]; then
			[ "$had" = false ] || fail "$path is gone"
			echo "absent $path"
		elif cmp -s "$WORK/new" "$path"; then
			echo "new $path"
		elif [ "$had" = true ] && cmp -s "$WORK/old" "$path"; then
			echo "old $path"
		else
			od -c "$path" | tail -n 20
			fail "$path is neither what it was nor what it was to be"
		fi
	done
}
converges() {
	nodeprep_json 0 apply --ip "$IP" --no-selftest
	holds '.ready and .changed'
	[ ! -e $state/journal.json ] || fail "the journal is still there"
	files_are ours
	no_leftovers
	nodeprep_json 0 apply --ip "$IP" --no-selftest
	holds '.changed == false'
}
leads_back() {
	nodeprep_json 0 revert
	holds '.ready'
	files_are before
	no_address
	no_leftovers
}
apply=(nodeprep apply --ip "$IP" --no-selftest)

say "stage $STAGE"
wait_for 30 test -e /sys/class/net/ib0
no_address
case $STAGE in
1)
	printf 'NCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME=eth0\n' >/etc/nccl.conf
	touch -d "2020-02-03 04:05:06" /etc/nccl.conf
	remember before
	nodeprep_json 0 "${apply[@]:1}"
	remember ours
	leads_back
	[ ! -e $state/record.json ] || fail "a record is left"
	cut_when $state/journal.json "${apply[@]}"
	;;
2)
	# it may have come before the name of the journal was on the disk
	[ ! -e $state/journal.json ] || each_file_is_whole
	converges
	leads_back
	cut_when /etc/nodeprep/ucx.env "${apply[@]}"
	;;
3)
	[ -e $state/journal.json ] || fail "files were written without a journal"
	each_file_is_whole 5
	leads_back
	cut_when $state/record.json "${apply[@]}"
	;;
4)
	[ ! -e $state/journal.json ] || each_file_is_whole
	converges
	cut_when $state/journal.json nodeprep revert
	;;
5)
	[ ! -e $state/journal.json ] || each_file_is_whole
	leads_back
	nodeprep_json 0 revert
	holds '.changed == false and .actions == []'
	;;
esac
