/* SPDX-License-Identifier: MIT */
#include "agent/in_use.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define LNET_MAX   (1024 * 1024)
#define MOUNTS_MAX (16 * 1024 * 1024)

/* ---- LNET ---- */

/* Its own place since Lustre 2.8, and the one before that. Which of the network's own
 * drivers are loaded says whether a netdev can be used at all. */
static int observe_lnet(struct np_lnet *lnet)
{
	static const char *const places[] = { "/sys/kernel/debug/lnet/nis", "/proc/sys/lnet/nis" };
	static const char *const drivers[] = { "/sys/module/ksocklnd", "/sys/module/ko2iblnd" };
	np_auto_buf struct np_buf text = { 0 };
	int why = -ENOENT;

	for (size_t i = 0; i < NP_ARRAY_SIZE(drivers); i++)
		lnet->driver |= access(drivers[i], F_OK) == 0;
	for (size_t i = 0; i < NP_ARRAY_SIZE(places) && !lnet->known; i++) {
		int r = np_file_read_at(AT_FDCWD, places[i], LNET_MAX, &text);

		if (r == -ENOMEM)
			return r;
		lnet->known = r == 0;
		if (r != -ENOENT)
			why = r;
	}
	if (lnet->known)
		return np_lnet_parse(text.data, &lnet->nids);
	np_strcpy(lnet->reason, sizeof(lnet->reason), strerror(-why));
	return 0;
}

/* ---- NFS ---- */

static int observe_nfs(struct np_netlink *nl, struct np_nfs_mounts *nfs, struct np_err *err)
{
	np_auto_buf struct np_buf text = { 0 };
	int r = np_file_read_at(AT_FDCWD, "/proc/self/mountinfo", MOUNTS_MAX, &text);

	if (r < 0) {
		np_err_set(err, r, "plan.in_use_unknown", "cannot read /proc/self/mountinfo: %s",
			   strerror(-r));
		np_err_hint(err, "mount /proc, or run it with --force");
		return r;
	}
	if (np_nfs_mounts_parse(text.data, nfs) < 0)
		return np_err_nomem(err);
	for (size_t i = 0; i < nfs->n && r == 0; i++)
		if (nfs->v[i].server.family)
			r = np_route_lookup(nl, &nfs->v[i].server, &nfs->v[i].ifindex,
					    &nfs->v[i].src, err);
	return r;
}

/* ---- TCP, and who has what open ---- */

static bool is_touched(const struct np_tcp *tcp, void *arg)
{
	const struct np_touched_list *touched = arg;

	for (size_t i = 0; i < touched->n; i++)
		if (np_touches_addr(&touched->v[i], &tcp->local, tcp->ifindex))
			return true;
	return false;
}

struct search {
	struct np_usage *usage;
	bool devices; /* and who has the GPUs' memory open */
};

static int add_holder(struct np_usage *usage, pid_t pid, uint64_t inode, const char *device)
{
	struct np_holder *v;

	for (size_t i = 0; i < usage->n_holders; i++)
		if (usage->holders[i].inode == inode &&
		    (inode ||
		     (usage->holders[i].pid == pid && np_streq(usage->holders[i].device, device))))
			return 0;
	v = reallocarray(usage->holders, usage->n_holders + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	usage->holders = v;
	v += usage->n_holders++;
	memset(v, 0, sizeof(*v));
	v->inode = inode;
	v->pid = pid;
	np_strcpy(v->device, sizeof(v->device), device);
	np_process_comm(pid, v->command);
	return 0;
}

/* "socket:[4711]" */
static bool socket_inode(const char *target, uint64_t *inode)
{
	char digits[24];
	size_t len;

	if (!np_starts_with(target, "socket:["))
		return false;
	len = strspn(target + 8, "0123456789");
	if (len >= sizeof(digits))
		return false;
	memcpy(digits, target + 8, len);
	digits[len] = '\0';
	return np_parse_u64(digits, 10, UINT64_MAX, inode) == 0;
}

/* A process that computes on a GPU has nvidia-uvm open; one that copies by gdrcopy its own. */
static int take_descriptor(pid_t pid, const char *target, void *arg)
{
	static const char *const devices[] = { "/dev/gdrdrv", "/dev/nvidia-uvm" };
	const struct search *search = arg;
	const struct np_tcp_list *tcp = &search->usage->tcp;
	uint64_t inode;

	for (size_t i = 0; i < NP_ARRAY_SIZE(devices) && search->devices; i++) {
		size_t len = strlen(devices[i]);

		/* the node may have been removed under it */
		if (np_starts_with(target, devices[i]) && (!target[len] || target[len] == ' '))
			return add_holder(search->usage, pid, 0, devices[i]);
	}
	if (!socket_inode(target, &inode) || inode == 0)
		return 0;
	for (size_t i = 0; i < tcp->n; i++)
		if (tcp->v[i].inode == inode)
			return add_holder(search->usage, pid, inode, "");
	return 0;
}

static int observe_holders(const struct np_touched_list *touched, struct np_usage *usage,
			   struct np_err *err)
{
	struct search search = { .usage = usage };
	int r = 0;

	for (size_t i = 0; i < touched->n; i++)
		search.devices |= touched->v[i].is_node;
	if (usage->tcp.n > 0 || search.devices)
		r = np_descriptors_each(take_descriptor, &search);
	/* whose they are is good to know, and no more than that; whether somebody computes on
	 * a GPU is told by nothing else */
	if (r == -ENOMEM)
		return np_err_nomem(err);
	if (r < 0 && search.devices) {
		np_err_set(err, r, "plan.in_use_unknown",
			   "cannot tell who has /dev/gdrdrv open: %s", strerror(-r));
		np_err_hint(err, "run it with --force");
		return r;
	}
	return 0;
}

int np_usage_observe(const struct np_touched_list *touched, struct np_usage *out,
		     struct np_err *err)
{
	np_auto_netlink struct np_netlink *nl = NULL;
	np_auto_usage struct np_usage usage = { 0 };
	int r = np_netlink_open(&nl, err);

	if (r == 0)
		r = np_rdma_users_observe(0, &usage.rdma, err);
	if (r == 0)
		r = np_tcp_observe(is_touched, (void *)(uintptr_t)touched, &usage.tcp, err);
	if (r == 0 && observe_lnet(&usage.lnet) < 0)
		r = np_err_nomem(err);
	if (r == 0)
		r = observe_nfs(nl, &usage.nfs, err);
	if (r == 0)
		r = observe_holders(touched, &usage, err);
	if (r < 0)
		return r;
	*out = usage;
	memset(&usage, 0, sizeof(usage));
	return 0;
}

void np_usage_done(struct np_usage *usage)
{
	if (!usage)
		return;
	np_rdma_users_done(&usage->rdma);
	np_tcp_list_done(&usage->tcp);
	np_strv_done(&usage->lnet.nids);
	free(usage->nfs.v);
	free(usage->holders);
	memset(usage, 0, sizeof(*usage));
}

/* ---- all of it ---- */

static bool is_told(const struct np_checks *checks, const struct np_check *c)
{
	for (size_t i = 0; i < checks->n; i++)
		if (np_streq(checks->v[i].code, c->code) &&
		    np_streq(checks->v[i].target, c->target) &&
		    np_streq(checks->v[i].message, c->message))
			return true;
	return false;
}

/* What is only unknown keeps nothing from being done, and is told. */
static size_t count_users(const struct np_checks *found, const struct np_check **first)
{
	size_t n = 0;

	for (size_t i = found->n; i-- > 0;) {
		if (found->v[i].status == NP_CHECK_UNKNOWN)
			continue;
		*first = &found->v[i];
		n++;
	}
	return n;
}

static int refuse(const struct np_touched_list *touched, const struct np_check *first, size_t n,
		  struct np_err *err)
{
	char change[160] = "the change", from[80], more[40] = "";

	for (size_t i = 0; i < touched->n; i++) {
		const struct np_action *a = touched->v[i].action;

		if (np_streq(np_touched_name(&touched->v[i]), first->target))
			snprintf(change, sizeof(change), "%s (now %s)", np_action_id(a),
				 np_action_from(a, from, sizeof(from)));
	}
	if (n > 1)
		snprintf(more, sizeof(more), " (and %zu more)", n - 1);
	np_err_set(err, -EBUSY, first->code, "%s%s; %s could cut that", first->message, more,
		   change);
	np_err_hint(err, "%s", first->hint);
	return -EBUSY;
}

static int observe(const struct np_actions *actions, struct np_netdevs *netdevs,
		   struct np_touched_list *touched, struct np_usage *usage, struct np_err *err)
{
	np_auto_netlink struct np_netlink *nl = NULL;
	int r = np_netlink_open(&nl, err);

	if (r == 0)
		r = np_netdevs_observe_all(nl, NP_NETDEV_BASIC, netdevs, err);
	if (r == 0 && np_touched_make(actions, netdevs, touched) < 0)
		r = np_err_nomem(err);
	return r < 0 ? r : np_usage_observe(touched, usage, err);
}

int np_in_use_check(const struct np_actions *actions, bool force, struct np_checks *checks,
		    struct np_err *err)
{
	np_auto(np_netdevs_done) struct np_netdevs netdevs = { 0 };
	np_auto_touched struct np_touched_list touched = { 0 };
	np_auto_usage struct np_usage usage = { 0 };
	np_auto(np_checks_done) struct np_checks found = { 0 };
	const struct np_check *first = NULL;
	size_t n;
	int r;

	if (!np_any_may_cut(actions))
		return 0;
	r = observe(actions, &netdevs, &touched, &usage, err);
	if (r == -ENOMEM || (r < 0 && !force))
		return r;
	if (r < 0) {
		np_checks_add(&found, "plan", "node", NP_CHECK_UNKNOWN, "plan.in_use_unknown",
			      err->hint, "%s", err->message);
		np_err_clear(err);
	} else {
		np_in_use_judge(&touched, &usage, &found);
	}
	if (found.failed)
		return np_err_nomem(err);
	n = count_users(&found, &first);
	if (n > 0 && !force)
		return refuse(&touched, first, n, err);
	for (size_t i = 0; i < found.n; i++) {
		const struct np_check *c = &found.v[i];

		if (!is_told(checks, c))
			np_checks_add(checks, c->id, c->target, c->status, c->code, c->hint, "%s",
				      c->message);
	}
	return 0;
}
