/* SPDX-License-Identifier: MIT */
/* Any facts and any configuration: the plan, the judgement and the report hold
 * together, and the address actions work in the model of the kernel. */
#include "tests/unit/kernel_addr.h"

#include "agent/journal.h"
#include "agent/judge.h"
#include "agent/plan.h"
#include "agent/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "does not hold: %s\n", #condition); \
			abort(); \
		} \
	} while (0)

struct input {
	const uint8_t *data, *end;
};

static unsigned int take(struct input *in, unsigned int n)
{
	return in->data < in->end ? *in->data++ % n : 0;
}

static void take_text(struct input *in, char *out, size_t size)
{
	size_t len = take(in, (unsigned int)size);

	for (size_t i = 0; i < len; i++) {
		out[i] = (char)take(in, 256);
		if (!out[i])
			out[i] = '0';
	}
	out[len] = '\0';
}

static void take_name(struct input *in, char *out, size_t size)
{
	static const char *const names[] = { "ib0", "ib1", "ib0.8001", "ibs1", "ib01", "eth0" };
	unsigned int i = take(in, NP_ARRAY_SIZE(names) + 1);

	if (i < NP_ARRAY_SIZE(names))
		np_strcpy(out, size, names[i]);
	else
		take_text(in, out, size);
}

static void take_inet(struct input *in, char *out, size_t size)
{
	if (take(in, 5) == 0)
		snprintf(out, size, "fd00::%x/%d", 1 + take(in, 4), take(in, 2) ? 64 : 48);
	else
		snprintf(out, size, "10.0.%u.%u/%u", take(in, 2), 50 + take(in, 6),
			 16 + take(in, 17));
}

static void take_ports(struct input *in, struct np_facts *facts)
{
	static const char *const rates[] = { FB_EDR, "25 Gb/sec (1X EDR)", "",
					     "400 Gb/sec (4X NDR)" };

	for (unsigned int n = take(in, 6); n > 0; n--) {
		struct np_port *port;
		struct np_ca *ca;
		char name[16];

		snprintf(name, sizeof(name), "mlx5_%u", take(in, 12));
		ca = fb_ca(facts, name);
		ca->node_type = (enum np_node_type)take(in, 8);
		ca->management_only = take(in, 8) == 1;
		port = fb_port(ca, 1 + (int)take(in, 2), (enum np_port_state)take(in, 6),
			       (enum np_phys_state)take(in, 8), rates[take(in, 4)]);
		port->link_layer = (enum np_link_layer)take(in, 4);
		port->lid = take(in, 3);
		port->has_lid = take(in, 2);
	}
}

static void take_addrs(struct input *in, struct np_netdev *dev)
{
	struct kernel k = { .promote = take(in, 2) };

	for (unsigned int n = take(in, 8); n > 0; n--) {
		struct np_netdev_addr addr = { .scope = RT_SCOPE_UNIVERSE };
		char text[64];

		take_inet(in, text, sizeof(text));
		addr.inet = fb_inet(text);
		if (kernel_add(&k, &addr) < 0)
			continue;
	}
	dev->promote_secondaries = k.promote ? NP_TRI_YES : (enum np_tri)take(in, 2);
	for (size_t i = 0; i < k.n; i++)
		*FB_ADD(dev->addrs, dev->n_addrs) = k.v[i];
}

static void take_netdevs(struct input *in, struct np_facts *facts)
{
	int n = 1 + (int)take(in, 3);

	for (int i = 0; i < n; i++) {
		struct np_netdev *dev;
		char name[IFNAMSIZ], ca[16];

		take_name(in, name, sizeof(name));
		if (!*name || np_netdevs_find(&facts->netdevs, name))
			continue; /* the kernel has a name once */
		snprintf(ca, sizeof(ca), "mlx5_%u", take(in, 12));
		dev = fb_netdev(facts, name, 3 + i, ca);
		dev->type = take(in, 4) ? 32 : 1;
		dev->flags = take(in, 2) ? IFF_UP | IFF_RUNNING : take(in, 2) ? IFF_UP : 0;
		dev->mode = (enum np_ipoib_mode)take(in, 3);
		dev->mtu = take(in, 2) ? 65520 : 2044;
		take_addrs(in, dev);
	}
	if (take(in, 2))
		fb_route(facts, take(in, 2) ? NULL : "10.0.0.0/20", 3 + (int)take(in, 3), "eth1");
}

static void take_files(struct input *in, struct np_facts *facts)
{
	fb_all_files(facts);
	for (size_t i = 0; i < facts->n_files; i++) {
		struct np_target_file *f = &facts->files[i].file;
		char text[64];

		f->status = (enum np_target_status)take(in, 4);
		take_text(in, text, sizeof(text));
		if (f->status == NP_TARGET_PRESENT)
			np_buf_str(&f->content, text);
	}
}

static void take_limits(struct input *in, struct np_facts *facts)
{
	static const char *const paths[] = { NP_LIMITS_CONF, NP_LIMITS_DIR "/a\x1b.conf",
					     NP_LIMITS_OURS, NP_LIMITS_DIR "/zz.conf" };
	static const char *const lines[] = {
		"* - memlock unlimited\n", "* soft memlock 64\n", "@hpc hard memlock 9\n",
		"root - memlock 5\n",	   "carol -\n",		  "* memlock\n"
	};

	facts->limits.looked = facts->cas.n > 0 && take(in, 4);
	facts->limits.group_known = take(in, 2);
	facts->limits.refuses_login = take(in, 4) == 1;
	for (size_t i = 0; i < NP_ARRAY_SIZE(paths); i++) {
		np_auto_buf struct np_buf text = { 0 };
		char other[32];

		for (unsigned int n = take(in, 4); n > 0; n--)
			np_buf_str(&text, lines[take(in, NP_ARRAY_SIZE(lines))]);
		take_text(in, other, sizeof(other));
		np_buf_printf(&text, "%s - memlock 7\n", other);
		if (take(in, 2))
			MUST(np_limit_texts_add(&facts->limits.texts, paths[i], text.data,
						text.len) == 0);
	}
	if (take(in, 2)) {
		struct np_service *service = FB_ADD(facts->services.v, facts->services.n);

		take_text(in, service->name, sizeof(service->name));
		np_strcpy(service->comm, sizeof(service->comm), service->name);
		service->is_unit = take(in, 2);
		service->memlock.soft = take(in, 2) ? NP_UNLIMITED : 65536;
	}
}

static void take_config(struct input *in, struct np_config *cfg)
{
	static const struct {
		const char *section, *key, *value;
	} keys[] = { { "netdev ib0", "mode", "connected" }, { "netdev ib0", "mode", "datagram" },
		     { "netdev ib0", "mtu", "2044" },	    { "netdev ib0", "exclusive", "yes" },
		     { "netdev ib1", "match", "mlx5_1" },   { "netdev ib0", "match", "auto" },
		     { "ports", "devices", "mlx5_1" },	    { "ports", "ignore", "mlx5_2:1" },
		     { "ports", "min_rate", "100" },	    { "nccl", "scope", "home" },
		     { "ucx", "profile", "off" },	    { "ucx", "profile", "dask" },
		     { "module gdrdrv", "require", "yes" }, { "limits", "memlock", "64 KiB" },
		     { "limits", "memlock", "keep" },	    { "limits", "group", "hpc" },
		     { "dask", "enabled", "yes" },	    { "dask", "interface", "ib1" },
		     { "dask", "connect_timeout", "60" },   { "dask", "nvlink", "yes" } };

	np_config_init(cfg);
	for (unsigned int n = take(in, 6); n > 0; n--) {
		unsigned int i = take(in, NP_ARRAY_SIZE(keys));

		MUST(np_config_set(cfg, keys[i].section, keys[i].key, keys[i].value, "x:1", NULL) ==
		     0);
	}
	for (unsigned int n = take(in, 4); n > 0; n--) {
		char text[80], name[IFNAMSIZ] = "", inet[64];

		if (take(in, 2))
			take_name(in, name, sizeof(name));
		take_inet(in, inet, sizeof(inet));
		snprintf(text, sizeof(text), "%s%s%s", name, *name ? "=" : "", inet);
		(void)!np_config_add_ip(cfg, text, NULL);
	}
	cfg->force = take(in, 2);
}

/* What the plan does to the addresses of one netdev goes through, both ways. */
static void run_in_model(const struct np_netdev *dev, const struct np_actions *actions)
{
	struct kernel k = { .promote = dev->promote_secondaries == NP_TRI_YES, .n = dev->n_addrs };

	for (size_t i = 0; i < k.n; i++)
		k.v[i] = dev->addrs[i];
	for (size_t i = 0; i < actions->n; i++)
		if (actions->v[i].ifindex == dev->ifindex &&
		    (actions->v[i].kind == NP_ACTION_ADDR_ADD ||
		     actions->v[i].kind == NP_ACTION_ADDR_DEL))
			MUST(kernel_run(&k, &actions->v[i]) == 0);
	for (size_t i = actions->n; i-- > 0;) {
		struct np_action undo = { 0 };

		if (actions->v[i].ifindex != dev->ifindex)
			continue;
		MUST(np_action_invert(&actions->v[i], &undo) == 0);
		if (undo.kind == NP_ACTION_ADDR_ADD || undo.kind == NP_ACTION_ADDR_DEL)
			MUST(kernel_run(&k, &undo) == 0);
		np_action_done(&undo);
	}
	MUST(k.n == dev->n_addrs);
	for (size_t i = 0; i < k.n; i++)
		MUST(kernel_has(&k, &dev->addrs[i].inet));
}

static void check_journal(const struct np_actions *actions)
{
	const struct np_state_id me = { .machine = "0", .boot = "1" };
	struct np_journal journal = { .id = me, .run = "2", .actions = *actions };
	np_auto_journal struct np_journal back = { .run = "" };
	_cleanup_free_ char *text = np_journal_text(&journal);
	_cleanup_free_ char *again = NULL;
	struct np_err err;

	MUST(text && np_journal_parse(text, strlen(text), &me, &back, &err) == 0);
	MUST(back.actions.n == actions->n);
	again = np_journal_text(&back);
	MUST(again && strcmp(text, again) == 0);
}

static void check_report(const struct np_config *cfg, const struct np_facts *facts,
			 struct np_actions *actions)
{
	np_auto_result struct np_result result = { .verb = "check", .converged = true };
	np_auto_selection struct np_selection sel = { 0 };
	np_auto_buf struct np_buf text = { 0 };
	json_t *doc;

	if (np_select(cfg, facts, &sel, NULL) < 0)
		return;
	np_judge(cfg, facts, &sel, &result.checks);
	MUST(np_actions_move(&result.actions, actions) == 0);
	doc = np_report_json(&result);
	MUST(doc);
	json_decref(doc);
	np_report_text(&result, false, &text);
	np_report_prometheus(&result, &text);
	MUST(!text.failed);
	for (size_t i = 0; i < text.len; i++)
		MUST(text.data[i] == '\n' || (text.data[i] >= ' ' && text.data[i] <= '~'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, data + size };
	np_auto_facts struct np_facts facts = { 0 };
	np_auto_actions struct np_actions actions = { 0 };
	struct np_config cfg;
	struct np_err err = { 0 };

	take_config(&in, &cfg);
	take_netdevs(&in, &facts);
	take_ports(&in, &facts);
	take_files(&in, &facts);
	take_limits(&in, &facts);
	fb_kmod(&facts, "gdrdrv", (enum np_kmod_state)take(&in, 6));
	if (np_config_finish(&cfg, &err) == 0) {
		if (np_plan_make(&cfg, &facts, NP_PLAN_ALL, &actions, &err) < 0) {
			MUST(err.num < 0 && err.code[0] && err.message[0]);
			MUST(actions.n == 0);
		}
		for (size_t i = 0; i < facts.netdevs.n; i++)
			run_in_model(&facts.netdevs.v[i], &actions);
		check_journal(&actions);
		check_report(&cfg, &facts, &actions);
	}
	np_config_done(&cfg);
	return 0;
}
