/* SPDX-License-Identifier: MIT */
#include "agent/privileges.h"

#include "base/confine.h"

/* Reads other users' files and processes (owners of queue pairs and sockets), becomes a
 * user or nobody in a child and ends that child, gives the self-test the limits of a login,
 * lists queue pairs; asks NIS servers that answer low ports alone. */
#define OBSERVE \
	(NP_CAP(DAC_OVERRIDE) | NP_CAP(DAC_READ_SEARCH) | NP_CAP(SYS_PTRACE) | NP_CAP(SETUID) | \
	 NP_CAP(SETGID) | NP_CAP(KILL) | NP_CAP(SYS_RESOURCE) | NP_CAP(NET_ADMIN) | \
	 NP_CAP(NET_BIND_SERVICE))

/* Files with the owner and mode that they had; the node of gdrdrv is put back by MKNOD. Not
 * SYS_ADMIN: a security module that is running lets root label files without it. What that
 * leaves out is in SECURITY.md. */
#define FILES (NP_CAP(CHOWN) | NP_CAP(FOWNER) | NP_CAP(FSETID))
#define UNDO  (OBSERVE | FILES | NP_CAP(MKNOD))

/* Modules with the kernel's word on them (SYSLOG), and ARP by a packet socket. */
#define LOAD   (NP_CAP(SYS_MODULE) | NP_CAP(SYSLOG))
#define CHANGE (UNDO | LOAD | NP_CAP(NET_RAW))

#define EVERYTHING UINT64_MAX

static uint64_t needed(const struct np_cli *cli)
{
	if (cli->root)
		return OBSERVE | FILES;
	switch (cli->verb->bit) {
	case NP_VERB_SELFTEST:
		/* the rungs are to have what root has */
		return cli->as_root || cli->run_as ? EVERYTHING : OBSERVE;
	case NP_VERB_PLAN:
	case NP_VERB_CHECK:
	case NP_VERB_SHOW:
		return OBSERVE;
	default:
		return cli->dry_run ? OBSERVE : CHANGE;
	}
}

void np_privileges_begin(const struct np_cli *cli)
{
	np_no_new_privs();
	np_caps_keep(needed(cli) | (cli->root ? NP_CAP(SYS_CHROOT) : 0));
}

void np_privileges_configured(const struct np_cli *cli)
{
	if (cli->root)
		np_caps_keep(needed(cli));
}

void np_privileges_settle(const struct np_actions *done)
{
	uint64_t keep = UNDO;

	/* of a killed revert that the run went on with: taking that back loads it again */
	for (size_t i = 0; i < done->n; i++)
		if (done->v[i].kind == NP_ACTION_MODULE && !done->v[i].to_value)
			keep |= LOAD;
	np_caps_keep(keep);
}

void np_privileges_end(void)
{
	np_caps_keep(0);
	np_confine(NP_CONFINE_REPORT);
}
