/* SPDX-License-Identifier: MIT */
/* Who uses what a plan would cut. Pure. */
#include <stdio.h>
#include <string.h>

#include "agent/in_use.h"

#define HINT_JOB "run it again when that has ended, or now with --force"

static void add(struct np_checks *out, const struct np_touched *t, const char *code,
		const char *hint, const char *message)
{
	np_checks_add(out, t->is_node ? "module" : "netdev", np_touched_name(t), NP_CHECK_WARN,
		      code, hint, "%s", message);
}

static bool has_code(const struct np_checks *out, const struct np_touched *t, const char *code)
{
	for (size_t i = 0; i < out->n; i++)
		if (np_streq(out->v[i].code, code) &&
		    np_streq(out->v[i].target, np_touched_name(t)))
			return true;
	return false;
}

/* "process 4711 (python3)": names of processes are anybody's. */
static const char *process_text(pid_t pid, const char *command, char *out, size_t size)
{
	char shown[4 * NP_COMM_SIZE];

	snprintf(out, size, "process %d (%s)", (int)pid,
		 command[0] ? np_printable(command, shown, sizeof(shown)) : "unknown");
	return out;
}

/* ---- RDMA ---- */

/* A queue pair without a port so far may get any; so may one of a CA whose port of the netdev
 * is not known. */
static bool touches_ports(const struct np_touched *t, const char *ca, uint64_t ports)
{
	for (size_t i = 0; i < t->n_ports; i++) {
		int port = t->ports[i].port;

		if (strcmp(t->ports[i].ca, ca) == 0 &&
		    (port <= 0 || port >= 64 || (ports & NP_RDMA_NO_PORT_YET) ||
		     (ports & (1ull << port))))
			return true;
	}
	return false;
}

static void judge_queue_pairs(const struct np_touched *t, const struct np_rdma_users *users,
			      struct np_checks *out)
{
	for (size_t i = 0; i < users->n; i++) {
		const struct np_rdma_user *u = &users->v[i];
		char who[96], text[256];

		if (!touches_ports(t, u->ca, u->ports))
			continue;
		snprintf(text, sizeof(text), "%s is in use by %s: %u queue pair%s on %s",
			 np_touched_name(t),
			 process_text((pid_t)u->pid, u->command, who, sizeof(who)), u->queue_pairs,
			 u->queue_pairs == 1 ? "" : "s", u->ca);
		add(out, t, "netdev.in_use", HINT_JOB, text);
	}
}

struct kernel_words {
	const char *modules[2];
	const char *code, *what, *hint;
};

static const struct kernel_words *kernel_words(const char *module)
{
	static const struct kernel_words known[] = {
		{ { "ko2iblnd", NULL },
		  "netdev.in_use_by_lnet",
		  "LNET",
		  "unmount Lustre and stop LNET first (lustre_rmmod), or run it with --force" },
		{ { "rpcrdma", "svcrdma" },
		  "netdev.in_use_by_nfs",
		  "NFS over RDMA",
		  "unmount it, or stop the server, first; or run it with --force" },
		{ { NULL, NULL }, "netdev.in_use", "the kernel", HINT_JOB },
	};
	const struct kernel_words *w = known;

	while (w->modules[0] && !np_streq(w->modules[0], module) &&
	       !np_streq(w->modules[1], module))
		w++;
	return w;
}

/* A connection has an address, which can be compared; what has none stands on the port. */
static void judge_kernel(const struct np_touched *t, const struct np_rdma_users *users,
			 struct np_checks *out)
{
	for (size_t i = 0; i < users->n_kernel; i++) {
		const struct np_rdma_kernel_user *u = &users->kernel[i];
		const struct kernel_words *w = kernel_words(u->module);
		char shown[4 * sizeof(u->module)], text[256];

		if (u->src.family ? !np_touches_addr(t, &u->src, 0) :
				    !touches_ports(t, u->ca, u->ports))
			continue;
		/* it was named better */
		if (!np_streq(w->code, "netdev.in_use") && has_code(out, t, w->code))
			continue;
		snprintf(text, sizeof(text), "%s is in use by %s (module %s): %u %s%s on %s",
			 np_touched_name(t), w->what, np_printable(u->module, shown, sizeof(shown)),
			 u->count, u->by_cm ? "connection" : "queue pair", u->count == 1 ? "" : "s",
			 u->ca);
		add(out, t, w->code, w->hint, text);
	}
}

/* ---- LNET ---- */

static void judge_lnet(const struct np_touched *t, const struct np_lnet *lnet,
		       struct np_checks *out)
{
	const struct kernel_words *w = kernel_words("ko2iblnd");
	char shown[200], text[256];

	if (!lnet->known && lnet->driver) {
		snprintf(text, sizeof(text),
			 "%s may be in use by LNET: it is loaded, and its NIDs cannot be read (%s)",
			 np_touched_name(t), lnet->reason);
		add(out, t, w->code, w->hint, text);
	}
	for (size_t i = 0; i < lnet->nids.n; i++) {
		struct np_inet addr;

		if (!np_lnet_nid_addr(lnet->nids.v[i], &addr) || !np_touches_addr(t, &addr, 0))
			continue;
		snprintf(text, sizeof(text), "%s is in use by LNET: NID %s", np_touched_name(t),
			 np_printable(lnet->nids.v[i], shown, sizeof(shown)));
		add(out, t, w->code, w->hint, text);
	}
}

/* ---- NFS ---- */

/* By the address it leaves with; where the kernel does not say, by the netdev. */
static bool goes_over(const struct np_touched *t, const struct np_nfs_mount *m)
{
	if (m->client.family && np_touches_addr(t, &m->client, m->ifindex))
		return true;
	if (m->src.family)
		return np_touches_addr(t, &m->src, m->ifindex);
	return m->ifindex && m->ifindex == t->action->ifindex;
}

static void judge_nfs(const struct np_touched *t, const struct np_nfs_mounts *nfs,
		      struct np_checks *out)
{
	for (size_t i = 0; i < nfs->n; i++) {
		const struct np_nfs_mount *m = &nfs->v[i];
		char text[320];

		/* the others are TCP connections, and told as such */
		if (!m->rdma || !goes_over(t, m))
			continue;
		snprintf(text, sizeof(text), "%s is in use by NFS over RDMA: %.100s from %.100s",
			 np_touched_name(t), m->where, m->source);
		add(out, t, "netdev.in_use_by_nfs", kernel_words("rpcrdma")->hint, text);
	}
}

/* ---- TCP ---- */

static const struct np_holder *holder_of(const struct np_usage *usage, const struct np_tcp *tcp)
{
	for (size_t i = 0; i < usage->n_holders && tcp->inode; i++)
		if (usage->holders[i].inode == tcp->inode)
			return &usage->holders[i];
	return NULL;
}

/* A connection that no process has open: NFS's, where it leads to the server of a mount. */
static const char *kernel_owner(const struct np_usage *usage, const struct np_tcp *tcp, char *out,
				size_t size)
{
	for (size_t i = 0; i < usage->nfs.n; i++) {
		const struct np_nfs_mount *m = &usage->nfs.v[i];

		if (m->rdma || !np_inet_same_addr(&m->server, &tcp->remote))
			continue;
		snprintf(out, size, "NFS (%.60s from %.60s)", m->where, m->source);
		return out;
	}
	snprintf(out, size, "the kernel, or a process that cannot be seen from here");
	return out;
}

/* Is the same process told with the same address by an earlier connection? */
static bool is_told(const struct np_usage *usage, size_t index)
{
	const struct np_tcp *tcp = &usage->tcp.v[index];
	const struct np_holder *holder = holder_of(usage, tcp);

	for (size_t i = 0; i < index; i++) {
		const struct np_holder *other = holder_of(usage, &usage->tcp.v[i]);

		if (np_inet_same_addr(&usage->tcp.v[i].local, &tcp->local) &&
		    (holder ? other && other->pid == holder->pid :
			      !other && np_inet_same_addr(&usage->tcp.v[i].remote, &tcp->remote)))
			return true;
	}
	return false;
}

static void judge_tcp(const struct np_touched *t, const struct np_usage *usage,
		      struct np_checks *out)
{
	for (size_t i = 0; i < usage->tcp.n; i++) {
		const struct np_tcp *tcp = &usage->tcp.v[i];
		const struct np_holder *holder = holder_of(usage, tcp);
		char who[160], text[320], local[NP_INET_STRLEN], remote[NP_INET_STRLEN];

		if (!np_touches_addr(t, &tcp->local, tcp->ifindex) || is_told(usage, i))
			continue;
		snprintf(text, sizeof(text),
			 "%s is in use by %s: TCP connection from %s port %u to %s port %u",
			 np_touched_name(t),
			 holder ? process_text(holder->pid, holder->command, who, sizeof(who)) :
				  kernel_owner(usage, tcp, who, sizeof(who)),
			 np_inet_addr_str(&tcp->local, local), tcp->local_port,
			 np_inet_addr_str(&tcp->remote, remote), tcp->remote_port);
		add(out, t, "netdev.in_use", HINT_JOB, text);
	}
	if (!usage->tcp.known)
		np_checks_add(out, "netdev", np_touched_name(t), NP_CHECK_UNKNOWN,
			      "plan.in_use_unknown", "load the module tcp_diag",
			      "the kernel does not list TCP connections, so that nobody knows who "
			      "uses %s",
			      np_touched_name(t));
}

/* ---- gdrdrv ---- */

static void judge_node(const struct np_touched *t, const struct np_usage *usage,
		       struct np_checks *out)
{
	for (size_t i = 0; i < usage->n_holders; i++) {
		const struct np_holder *h = &usage->holders[i];
		char who[96], text[256];

		if (h->inode)
			continue;
		snprintf(text, sizeof(text), "GPU memory is in use by %s, which has %s open",
			 process_text(h->pid, h->command, who, sizeof(who)), h->device);
		add(out, t, "gdrcopy.in_use", HINT_JOB, text);
	}
}

void np_in_use_judge(const struct np_touched_list *touched, const struct np_usage *usage,
		     struct np_checks *out)
{
	for (size_t i = 0; i < touched->n; i++) {
		const struct np_touched *t = &touched->v[i];

		if (t->is_node) {
			judge_node(t, usage, out);
			continue;
		}
		judge_lnet(t, &usage->lnet, out);
		judge_nfs(t, &usage->nfs, out);
		judge_queue_pairs(t, &usage->rdma, out);
		judge_kernel(t, &usage->rdma, out);
		judge_tcp(t, usage, out);
	}
}
