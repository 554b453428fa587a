# shellcheck shell=bash disable=SC2016 # jq has its own $
# SPDX-License-Identifier: MIT
# The kernel takes signed modules only (C23): neither an unsigned one nor one of a key that it
# does not know is loaded, and the message has the kernel's own line. Debian's own load.
# The software HCA is unsigned too: this node has none.
# boot: signed-only
# kernel: module.sig_enforce=1
# seconds: 150
# hw: no, it needs a kernel that takes signed modules only

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
[ "$(cat /sys/module/module/parameters/sig_enforce)" = Y ] || fail "this boot takes unsigned modules"
# rejected LINE
rejected() {
	nodeprep_json 1 apply --no-selftest
	holds '[.checks[] | select(.target == "gdrdrv") | .status + " " + .code] == ["fail module.key_rejected"]'
	said_once gdrdrv "Key was rejected by service"
	said_once gdrdrv "$1"
	hint_has gdrdrv "mokutil --import"
	must 1 test -e /sys/module/gdrdrv
}
want_module gdrdrv "require = yes"
want_module ib_umad "require = yes"

say "no signature"
install_module gdrdrv gdrdrv
rejected "Loading of unsigned module is rejected"
check_is ok module.loaded ib_umad

say "signed by a stranger"
install_module gdrdrv-stranger gdrdrv
rejected "Loading of module with unavailable key is rejected"
