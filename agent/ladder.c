/* SPDX-License-Identifier: MIT */
#include "agent/ladder.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const np_rung_names[] = { "umad",	  "verbs",     "rc",	   "tcp",
				      "cuda",	  "cuda_copy", "cuda_ipc", "gdrapi",
				      "gdr_copy", "gdr_rdma",  "nccl",	   NULL };

struct maker {
	const struct np_config *cfg;
	const struct np_facts *facts;
	const struct np_selection *sel;
	const struct np_strv *rungs;
	const struct np_rdma_users *users;
	bool force;
	struct np_ladder *out;
};

static struct np_ladder_step *add(struct maker *m, const char *rung, const char *device)
{
	struct np_ladder_step *v = reallocarray(m->out->v, m->out->n + 1, sizeof(*v));

	if (!v)
		return NULL;
	m->out->v = v;
	v += m->out->n++;
	memset(v, 0, sizeof(*v));
	v->rung = rung;
	np_strcpy(v->device, sizeof(v->device), device);
	return v;
}

static void skip(struct np_ladder_step *step, const char *code, const char *hint, const char *fmt,
		 ...) __attribute__((format(printf, 4, 5)));
static void skip(struct np_ladder_step *step, const char *code, const char *hint, const char *fmt,
		 ...)
{
	va_list args;

	np_strcpy(step->code, sizeof(step->code), code);
	np_strcpy(step->hint, sizeof(step->hint), hint);
	va_start(args, fmt);
	vsnprintf(step->message, sizeof(step->message), fmt, args);
	va_end(args);
}

static bool is_wanted(const struct maker *m, const char *rung)
{
	return m->rungs->n == 0 || np_strv_has(m->rungs, rung);
}

/* ---- ports ---- */

typedef int (*port_fn)(struct maker *m, const char *rung, const struct np_ca *ca,
		       const struct np_port *port, const char *name);

/* Calls @fn for each wanted port; none at all is one step that skips. */
static int each_port(struct maker *m, const char *rung, const char *no_port, port_fn fn)
{
	struct np_ladder_step *none;
	size_t n = 0;

	for (size_t i = 0; i < m->facts->cas.n; i++) {
		const struct np_ca *ca = &m->facts->cas.v[i];

		for (size_t p = 0; p < ca->n_ports; p++) {
			char name[80];

			if (np_port_role(m->cfg, ca, &ca->ports[p]) != NP_PORT_WANTED)
				continue;
			n++;
			snprintf(name, sizeof(name), "%s:%d", ca->name, ca->ports[p].num);
			if (fn(m, rung, ca, &ca->ports[p], name) < 0)
				return -ENOMEM;
		}
	}
	if (n > 0)
		return 0;
	none = add(m, rung, "");
	if (none)
		skip(none, no_port, "load the driver of the adapter", "no InfiniBand port to try");
	return none ? 0 : -ENOMEM;
}

static int add_umad(struct maker *m, const char *rung, const struct np_ca *ca,
		    const struct np_port *port, const char *name)
{
	struct np_ladder_step *step = add(m, rung, name);

	(void)ca;
	(void)port;
	if (!step)
		return -ENOMEM;
	step->as_root = true;
	return 0;
}

/* Somebody's job: bandwidth is not ours to take. */
static const struct np_rdma_user *user_of(const struct maker *m, const char *ca)
{
	for (size_t i = 0; m->users && !m->force && i < m->users->n; i++)
		if (np_streq(m->users->v[i].ca, ca))
			return &m->users->v[i];
	return NULL;
}

static void skip_unusable(struct maker *m, struct np_ladder_step *step, const char *code,
			  const struct np_ca *ca, const struct np_port *port)
{
	const struct np_rdma_user *user = user_of(m, ca->name);
	char command[4 * NP_COMM_SIZE];

	if (!np_port_usable(m->cfg, ca, port))
		skip(step, code, "bring the port to ACTIVE first",
		     "the port is not usable, so there is no data path to try");
	else if (user)
		skip(step, "selftest.busy", "try again when the job has ended, or with --force",
		     "%s is in use: %u queue pairs of process %u (%s)", ca->name, user->queue_pairs,
		     user->pid,
		     user->command[0] ? np_printable(user->command, command, sizeof(command)) :
					"unknown");
}

static int add_rc(struct maker *m, const char *rung, const struct np_ca *ca,
		  const struct np_port *port, const char *name)
{
	struct np_ladder_step *step = add(m, rung, name);

	if (!step)
		return -ENOMEM;
	skip_unusable(m, step, "selftest.rc.port_not_active", ca, port);
	return 0;
}

/* Each port with itself, and with the next one that can be used: round the ring. */
static int add_verbs(struct maker *m, const char *rung, const struct np_ca *ca,
		     const struct np_port *port, const char *name)
{
	np_auto_strv struct np_strv usable = { 0 };
	struct np_ladder_step *step = add(m, rung, name);
	const char *next = NULL;

	if (!step)
		return -ENOMEM;
	skip_unusable(m, step, "selftest.verbs.port_not_active", ca, port);
	if (step->code[0])
		return 0;
	if (np_usable_ports(m->cfg, m->facts, &usable) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < usable.n; i++)
		if (np_streq(usable.v[i], name) && usable.n > 1)
			next = usable.v[(i + 1) % usable.n];
	/* two ports make one pair */
	if (!next || (usable.n == 2 && np_streq(usable.v[1], name)))
		return 0;
	step = add(m, rung, name);
	if (!step)
		return -ENOMEM;
	np_strcpy(step->peer, sizeof(step->peer), next);
	return 0;
}

/* ---- the netdev ---- */

static bool any_ipoib(const struct np_facts *facts)
{
	for (size_t i = 0; i < facts->netdevs.n; i++)
		if (np_netdev_is_ipoib(&facts->netdevs.v[i]))
			return true;
	return false;
}

static int add_tcp(struct maker *m)
{
	const struct np_netdev *dev = m->sel->primary;
	struct np_ladder_step *step = add(m, "tcp", dev ? dev->name : "");

	if (!step)
		return -ENOMEM;
	step->is_netdev = true;
	for (size_t i = 0; dev && i < dev->n_addrs; i++) {
		char address[NP_INET_STRLEN];

		if (dev->addrs[i].scope == RT_SCOPE_LINK)
			continue;
		np_strcpy(step->address, sizeof(step->address),
			  np_inet_addr_str(&dev->addrs[i].inet, address));
		return 0;
	}
	if (dev)
		skip(step, "selftest.tcp.no_address",
		     "give it an address: nodeprep apply --ip ADDR/LEN",
		     "the IPoIB netdev has no IP address");
	else if (any_ipoib(m->facts))
		skip(step, "selftest.tcp.no_address", "name it with --ifname",
		     "several IPoIB netdevs could be meant");
	else
		skip(step, "selftest.tcp.no_address",
		     "load ib_ipoib where IP over InfiniBand is wanted",
		     "no IPoIB netdev on this node");
	return 0;
}

/* ---- GPUs ---- */

static int add_no_gpu(struct maker *m, const char *rung)
{
	struct np_ladder_step *step = add(m, rung, "");

	if (step)
		skip(step, "selftest.no_gpu", "none is needed where no GPU job runs",
		     "no NVIDIA GPU on this node");
	return step ? 0 : -ENOMEM;
}

static int add_gpus(struct maker *m, const char *rung)
{
	struct np_ladder_step *step;
	size_t n = 0;

	for (size_t i = 0; i < m->facts->gpus.n; i++) {
		if (np_gpu_is_given_away(&m->facts->gpus.v[i]))
			continue;
		n++;
		step = add(m, rung, m->facts->gpus.v[i].pci_address);
		if (!step)
			return -ENOMEM;
		step->each_gpu = true;
	}
	return n ? 0 : add_no_gpu(m, rung);
}

static const struct np_gpu *nearest_gpu(const struct np_facts *facts, const struct np_ca *ca)
{
	const struct np_gpu *found = NULL;

	for (size_t i = 0; i < facts->gpus.n; i++) {
		const struct np_gpu *gpu = &facts->gpus.v[i];

		if (np_gpu_is_given_away(gpu))
			continue;
		if (!found ||
		    (found->numa_node != ca->numa_node && gpu->numa_node == ca->numa_node))
			found = gpu;
	}
	return found;
}

/* Each port with a GPU of its NUMA node. */
static int add_gdr_rdma(struct maker *m, const char *rung, const struct np_ca *ca,
			const struct np_port *port, const char *name)
{
	const struct np_gpu *gpu = nearest_gpu(m->facts, ca);
	struct np_ladder_step *step = add(m, rung, name);

	if (!step)
		return -ENOMEM;
	skip_unusable(m, step, "selftest.gdr_rdma.port_not_active", ca, port);
	if (gpu)
		np_strcpy(step->gpu, sizeof(step->gpu), gpu->pci_address);
	return 0;
}

static bool any_gpu(const struct np_facts *facts)
{
	for (size_t i = 0; i < facts->gpus.n; i++)
		if (!np_gpu_is_given_away(&facts->gpus.v[i]))
			return true;
	return false;
}

static int add_rung(struct maker *m, const char *rung)
{
	if (strcmp(rung, "umad") == 0)
		return each_port(m, rung, "selftest.umad.no_device", add_umad);
	if (strcmp(rung, "verbs") == 0)
		return each_port(m, rung, "selftest.verbs.no_device", add_verbs);
	if (strcmp(rung, "rc") == 0)
		return each_port(m, rung, "selftest.rc.no_port", add_rc);
	if (strcmp(rung, "tcp") == 0)
		return add_tcp(m);
	if (!any_gpu(m->facts))
		return add_no_gpu(m, rung);
	if (strcmp(rung, "gdr_rdma") == 0)
		return each_port(m, rung, "selftest.gdr_rdma.no_port", add_gdr_rdma);
	if (strcmp(rung, "nccl") == 0)
		return add(m, rung, "") ? 0 : -ENOMEM;
	return add_gpus(m, rung);
}

int np_ladder_make(const struct np_config *cfg, const struct np_facts *facts,
		   const struct np_selection *sel, const struct np_strv *rungs,
		   const struct np_rdma_users *users, bool force, struct np_ladder *out,
		   struct np_err *err)
{
	struct np_ladder ladder = { 0 };
	struct maker m = { .cfg = cfg,
			   .facts = facts,
			   .sel = sel,
			   .rungs = rungs,
			   .users = users,
			   .force = force,
			   .out = &ladder };

	for (size_t i = 0; np_rung_names[i]; i++) {
		if (is_wanted(&m, np_rung_names[i]) && add_rung(&m, np_rung_names[i]) < 0) {
			np_ladder_done(&ladder);
			return np_err_nomem(err);
		}
	}
	*out = ladder;
	return 0;
}

void np_ladder_done(struct np_ladder *ladder)
{
	if (!ladder)
		return;
	free(ladder->v);
	memset(ladder, 0, sizeof(*ladder));
}

const char *np_ladder_label(const struct np_ladder_step *step, char out[168])
{
	snprintf(out, 168, "%s%s%s", step->device, step->peer[0] ? "-" : "", step->peer);
	return out;
}

/* ---- what stands on what ---- */

bool np_ladder_is_below(const char *rung, const char *device, const struct np_ladder_step *step)
{
	/* `whole`: a failure on any device is in the way */
	static const struct {
		const char *rung, *below;
		bool whole;
	} needs[] = {
		{ "verbs", "verbs", false },	 { "rc", "verbs", false },
		{ "cuda_copy", "cuda", false },	 { "cuda_ipc", "cuda", false },
		{ "gdrapi", "cuda", false },	 { "gdr_copy", "cuda", false },
		{ "gdr_copy", "gdrapi", false }, { "gdr_rdma", "verbs", false },
		{ "gdr_rdma", "cuda", false },	 { "nccl", "cuda", true },
	};

	for (size_t i = 0; i < NP_ARRAY_SIZE(needs); i++)
		if (np_streq(needs[i].rung, step->rung) && np_streq(needs[i].below, rung))
			return needs[i].whole || np_streq(device, step->device) ||
			       (step->gpu[0] && np_streq(device, step->gpu));
	return false;
}
