# shellcheck shell=bash disable=SC2016 # jq has its own $
# SPDX-License-Identifier: MIT
# The kernel is locked down, as it is with Secure Boot (C23): an unsigned module is refused,
# and the message has the kernel's own line. Debian's own load. No HCA here: it is unsigned.
# boot: lockdown
# kernel: lockdown=integrity
# seconds: 150
# hw: no, it needs a kernel that is locked down

# shellcheck source=/dev/null
. "${VM_LIB:-/vm/lib.sh}"
mount -t securityfs securityfs /sys/kernel/security
grep -qF "[integrity]" /sys/kernel/security/lockdown || fail "this boot is not locked down"
install_module gdrdrv gdrdrv
want_module gdrdrv "require = yes"
want_module ib_umad "require = yes"
nodeprep_json 1 apply --no-selftest
holds '[.checks[] | select(.target == "gdrdrv") | .status + " " + .code] == ["fail module.key_rejected"]'
said_once gdrdrv "unsigned module loading is restricted; see man kernel_lockdown.7"
hint_has gdrdrv "Secure Boot"
must 1 test -e /sys/module/gdrdrv
check_is ok module.loaded ib_umad

say "without securityfs the kernel's line still tells"
umount /sys/kernel/security
nodeprep_json 1 apply --no-selftest
check_is fail module.key_rejected gdrdrv "module loading is restricted"
