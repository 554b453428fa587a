/* SPDX-License-Identifier: MIT */
/* What the undo comes to: runs on a node in memory, whole and killed, with people at work in
 * between, and the way back. */
#include "world.h"

#include "agent/nccl_conf.h"
#include "agent/record.h"
#include "agent/revert_plan.h"

#define ALL SIZE_MAX

/* ---- steps ---- */

static void plan_apply(struct world *w, const char *const (*keys)[3], const char *const *ips,
		       struct np_actions *out)
{
	np_auto_facts struct np_facts facts = { 0 };
	struct np_err err = { 0 };
	struct np_config cfg;

	fb_config(&cfg, ips);
	for (; keys && (*keys)[0]; keys++)
		assert_int_equal(
			np_config_set(&cfg, (*keys)[0], (*keys)[1], (*keys)[2], "x:1", &err), 0);
	cfg.force = true;
	assert_int_equal(np_config_finish(&cfg, &err), 0);
	world_facts(w, &facts);
	if (np_plan_make(&cfg, &facts, NP_PLAN_NETDEVS | NP_PLAN_FILES, out, &err) < 0)
		fail_msg("%s", err.message);
	np_config_done(&cfg);
}

static void plan_revert(struct world *w, const struct np_actions *base, struct np_actions *out,
			struct np_checks *checks)
{
	np_auto_now struct np_now now = { 0 };
	struct np_err err = { 0 };

	world_now(w, &now);
	assert_int_equal(np_revert_plan(base, &now, out, checks, &err), 0);
}

static void merge(struct np_actions *base, const struct np_actions *run)
{
	struct np_err err = { 0 };

	assert_int_equal(np_record_merge(base, run, &err), 0);
}

/* What is known of a run that was killed. */
static void merge_killed(struct world *w, struct np_actions *base, const struct np_actions *run)
{
	np_auto_actions struct np_actions net = { 0 };
	np_auto_now struct np_now now = { 0 };

	world_now(w, &now);
	assert_int_equal(np_actions_net(run, &now, &net), 0);
	merge(base, &net);
}

static void apply_once(struct world *w, const char *const (*keys)[3], const char *const *ips,
		       struct np_actions *base)
{
	np_auto_actions struct np_actions run = { 0 };

	plan_apply(w, keys, ips, &run);
	world_run_all(w, &run, ALL);
	merge(base, &run);
}

static void explain(const char *what, const struct np_actions *list)
{
	char from[160], to[160];

	print_message("%s\n", what);
	for (size_t i = 0; i < list->n; i++)
		print_message("  %s %s: %s -> %s\n", np_action_id(&list->v[i]),
			      np_action_target(&list->v[i]),
			      np_action_from(&list->v[i], from, sizeof(from)),
			      np_action_to(&list->v[i], to, sizeof(to)));
}

/* Returns how many things were kept; fails where the revert is not done in one go. */
static size_t revert(struct world *w, struct np_actions *base)
{
	np_auto_actions struct np_actions run = { 0 };
	np_auto_actions struct np_actions again = { 0 };
	np_auto_now struct np_now now = { 0 };
	struct np_checks checks = { 0 }, kept = { 0 };
	size_t n;

	plan_revert(w, base, &run, &checks);
	world_run_all(w, &run, ALL);
	plan_revert(w, base, &again, &kept);
	if (again.n) {
		explain("changes", base);
		explain("taken back", &run);
		explain("left", &again);
		fail_msg("the revert is not done in one go");
	}
	merge(base, &run);
	world_now(w, &now);
	assert_int_equal(np_actions_net(base, &now, base), 0);
	n = kept.n;
	np_checks_done(&checks);
	np_checks_done(&kept);
	return n;
}

/* ---- worlds ---- */

static void fresh(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->mtu = 2044;
	w->mode = NP_IPOIB_DATAGRAM;
}

static void set_file(struct world *w, const char *path, const char *text)
{
	struct world_file *f = world_file(w, path);

	f->present = text != NULL;
	snprintf(f->text, sizeof(f->text), "%s", text ? text : "");
}

static void add_addr(struct world *w, const char *text)
{
	struct np_netdev_addr addr = { .inet = fb_inet(text), .scope = RT_SCOPE_UNIVERSE };

	addr.has_broadcast = np_inet_broadcast(&addr.inet, addr.broadcast);
	assert_int_equal(kernel_add(&w->k, &addr), 0);
}

static bool same_files(const struct world *a, const struct world *b)
{
	for (size_t i = 0; i < WORLD_FILES; i++)
		if (a->files[i].present != b->files[i].present ||
		    strcmp(a->files[i].text, b->files[i].text) != 0)
			return false;
	return true;
}

/* The same addresses, each with its broadcast address; with @order primaries too. */
static bool same_addrs(const struct world *a, const struct world *b, bool order)
{
	if (a->k.n != b->k.n)
		return false;
	for (size_t i = 0; i < a->k.n; i++) {
		const struct np_netdev_addr *x = &a->k.v[i], *y = NULL;

		for (size_t j = 0; j < b->k.n; j++)
			if (np_inet_equal(&x->inet, &b->k.v[j].inet))
				y = &b->k.v[j];
		if (!y || x->has_broadcast != y->has_broadcast ||
		    (x->has_broadcast && memcmp(x->broadcast, y->broadcast, 4) != 0) ||
		    (order && is_secondary(x) != is_secondary(y)))
			return false;
	}
	return true;
}

static void is_back(const struct world *start, const struct world *w, bool order, size_t kept)
{
	if (!same_files(start, w))
		fail_msg("files differ");
	if (!same_addrs(start, w, order)) {
		for (int i = 0; i < 2; i++)
			for (size_t k = 0; k < (i ? w : start)->k.n; k++) {
				char text[NP_INET_STRLEN];

				print_message("%s %s\n", i ? "is" : "was",
					      np_inet_str(&(i ? w : start)->k.v[k].inet, text));
			}
		fail_msg("addresses differ");
	}
	assert_int_equal(start->mtu, w->mtu);
	assert_int_equal(start->mode, w->mode);
	/* a link with somebody's address on it stays up */
	if (kept == 0)
		assert_int_equal(start->up, w->up);
	else
		assert_true(w->up && start->k.n > 0);
}

/* ---- the property, for any start and any wishes ---- */

static const char *const texts[] = { NULL,
				     "",
				     "NCCL_DEBUG=WARN\n",
				     "NCCL_SOCKET_IFNAME=eth0\n",
				     "# x\nNCCL_IB_HCA=mlx5_9\nNCCL_SOCKET_IFNAME=eth0\nA=b",
				     "NCCL_SOCKET_IFNAME=a\nNCCL_SOCKET_IFNAME=b\n" };

static void random_start(struct world *w, uint64_t *seed)
{
	fresh(w);
	w->up = fb_random(seed) % 2;
	w->k.promote = fb_random(seed) % 2;
	w->mode = fb_random(seed) % 2 ? NP_IPOIB_DATAGRAM : NP_IPOIB_CONNECTED;
	w->mtu = w->mode == NP_IPOIB_CONNECTED ? 65520 : fb_random(seed) % 2 ? 2044 : 1500;
	for (uint32_t n = fb_random(seed) % 5; n > 0; n--) {
		struct np_netdev_addr addr = { .scope = RT_SCOPE_UNIVERSE };
		char text[40];

		if (fb_random(seed) % 4)
			snprintf(text, sizeof(text), "10.0.%u.%u/%u", fb_random(seed) % 2,
				 50 + fb_random(seed) % 4, 16 + 8 * (fb_random(seed) % 2));
		else
			snprintf(text, sizeof(text), "fd00::%u/64", 50 + fb_random(seed) % 4);
		addr.inet = fb_inet(text);
		if (fb_random(seed) % 3)
			addr.has_broadcast = np_inet_broadcast(&addr.inet, addr.broadcast);
		(void)!kernel_add(&w->k, &addr);
	}
	for (size_t i = 0; i < WORLD_FILES; i++)
		set_file(w, world_paths[i],
			 texts[fb_random(seed) % (i < 2 ? NP_ARRAY_SIZE(texts) : 3)]);
}

static void random_plan(struct world *w, uint64_t *seed, struct np_actions *out)
{
	static const char *const all[][3] = {
		{ "netdev ib0", "mode", "connected" }, { "netdev ib0", "mode", "datagram" },
		{ "netdev ib0", "mtu", "2044" },       { "netdev ib0", "mtu", "1500" },
		{ "netdev ib0", "exclusive", "yes" },  { "nccl", "scope", "home" },
		{ "ucx", "profile", "off" },	       { "dask", "enabled", "yes" },
		{ "ports", "ignore", "mlx5_2:1" },
	};
	static const char *const ips[] = { "10.0.0.50/24", "10.0.0.51/16", "fd00::50/48",
					   "10.0.1.52/24" };
	const char *keys[4][3] = { { NULL } }, *wanted[3] = { NULL };
	size_t n = 0;

	for (uint32_t k = fb_random(seed) % 3; k > 0; k--, n++)
		memcpy(keys[n], all[fb_random(seed) % NP_ARRAY_SIZE(all)], sizeof(keys[n]));
	wanted[0] = ips[fb_random(seed) % 2];
	if (fb_random(seed) % 2)
		wanted[1] = ips[2 + fb_random(seed) % 2];
	plan_apply(w, (const char *const(*)[3])keys, wanted, out);
}

static void test_property_whole_runs(void **state)
{
	uint64_t seed = 20261130;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		np_auto_actions struct np_actions base = { 0 };
		struct world w, start;
		uint32_t runs = 1 + fb_random(&seed) % 3;
		size_t kept;

		random_start(&w, &seed);
		start = w;
		for (uint32_t r = 0; r < runs; r++) {
			np_auto_actions struct np_actions run = { 0 };

			random_plan(&w, &seed, &run);
			world_run_all(&w, &run, ALL);
			merge(&base, &run);
		}
		kept = revert(&w, &base);
		is_back(&start, &w, runs == 1, kept);
		/* nothing of it is remembered, but a link that stayed up */
		if (base.n != kept)
			explain("still remembered", &base);
		assert_int_equal(base.n, kept);
	}
}

/* Killed at any point, gone on with by the next run, or taken back; and a revert that is
 * killed itself. */
static void test_property_killed(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		np_auto_actions struct np_actions base = { 0 };
		np_auto_actions struct np_actions killed = { 0 };
		np_auto_actions struct np_actions half = { 0 };
		struct np_checks checks = { 0 };
		struct world w, start;
		size_t kept;

		random_start(&w, &seed);
		start = w;
		random_plan(&w, &seed, &killed);
		world_run_all(&w, &killed, fb_random(&seed) % (killed.n + 1));
		for (size_t k = 0; k < killed.n; k++)
			killed.v[k].status = NP_STATUS_DONE; /* as the journal has it */
		merge_killed(&w, &base, &killed);
		if (fb_random(&seed) % 2) {
			np_auto_actions struct np_actions next = { 0 };

			random_plan(&w, &seed, &next);
			world_run_all(&w, &next, ALL);
			merge(&base, &next);
		}
		plan_revert(&w, &base, &half, &checks);
		np_checks_done(&checks);
		world_run_all(&w, &half, fb_random(&seed) % (half.n + 1));
		for (size_t k = 0; k < half.n; k++)
			half.v[k].status = NP_STATUS_DONE;
		merge_killed(&w, &base, &half);
		kept = revert(&w, &base);
		is_back(&start, &w, false, kept);
	}
}

/* Somebody adds an address and a line, before or between: both stay, and ours go. */
static void test_property_people(void **state)
{
	uint64_t seed = 99;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		np_auto_actions struct np_actions base = { 0 };
		struct world w, start;
		struct world_file *f;
		bool late = fb_random(&seed) % 2, had_line;
		struct np_inet theirs = fb_inet("10.0.0.200/24");

		random_start(&w, &seed);
		start = w;
		for (int r = 0; r < 2; r++) {
			np_auto_actions struct np_actions run = { 0 };

			random_plan(&w, &seed, &run);
			world_run_all(&w, &run, ALL);
			merge(&base, &run);
			if (r != late)
				continue;
			/* behind all that is there */
			f = world_file(&w, "/etc/nccl.conf");
			f->present = true;
			snprintf(f->text + strlen(f->text), 64, "%sTHEIRS=1\n",
				 *f->text && f->text[strlen(f->text) - 1] != '\n' ? "\n" : "");
			if (!late)
				continue;
			add_addr(&w, "10.0.0.200/24");
		}
		revert(&w, &base);
		f = world_file(&w, "/etc/nccl.conf");
		assert_true(f->present);
		had_line = strstr(f->text, "THEIRS=1\n") != NULL;
		assert_true(had_line);
		for (size_t k = 0; k < 2; k++) {
			const char *key = k ? "NCCL_IB_HCA" : "NCCL_SOCKET_IFNAME";
			const char *before = world_file(&start, "/etc/nccl.conf")->text;
			_cleanup_free_ char *was = np_nccl_conf_get(before, strlen(before), key);
			_cleanup_free_ char *is = np_nccl_conf_get(f->text, strlen(f->text), key);

			assert_true(np_streq(was, is));
		}
		if (!late)
			continue;
		assert_true(kernel_has(&w.k, &theirs));
		assert_true(w.up);
		for (size_t k = 0; k < start.k.n; k++)
			assert_true(kernel_has(&w.k, &start.k.v[k].inet));
		assert_int_equal(w.k.n, start.k.n + 1);
	}
}

/* ---- one by one ---- */

static void test_edited_files(void **state)
{
	np_auto_actions struct np_actions base = { 0 };
	np_auto_actions struct np_actions run = { 0 };
	struct np_checks checks = { 0 };
	struct world w;

	(void)state;
	fresh(&w);
	set_file(&w, "/etc/nccl.conf", "NCCL_SOCKET_IFNAME=eth0\nNCCL_DEBUG=WARN");
	apply_once(&w, NULL, FB_LIST("10.0.0.50/24"), &base);
	/* a comment in ours alone, a line in the shared one, a value of a key of ours */
	strcat(world_file(&w, "/etc/nodeprep/ucx.env")->text, "# mine\n");
	set_file(&w, "/etc/nccl.conf", "# theirs\nNCCL_SOCKET_IFNAME=ib0\nNCCL_DEBUG=INFO\nX=1");
	set_file(&w, "/home/someone/.nccl.conf", "NCCL_SOCKET_IFNAME=ib7\n");
	set_file(&w, "/etc/profile.d/nodeprep-ucx.sh", NULL);
	plan_revert(&w, &base, &run, &checks);
	world_run_all(&w, &run, ALL);
	assert_string_equal(world_file(&w, "/etc/nccl.conf")->text,
			    "# theirs\nNCCL_SOCKET_IFNAME=eth0\nNCCL_DEBUG=INFO\nX=1");
	assert_non_null(strstr(world_file(&w, "/etc/nodeprep/ucx.env")->text, "# mine\n"));
	assert_string_equal(world_file(&w, "/home/someone/.nccl.conf")->text,
			    "NCCL_SOCKET_IFNAME=ib7\n");
	assert_false(world_file(&w, "/etc/profile.d/nodeprep-ucx.sh")->present);
	assert_int_equal(checks.n, 2);
	for (size_t i = 0; i < checks.n; i++) {
		assert_string_equal(checks.v[i].code, "revert.edited");
		assert_int_equal(checks.v[i].status, NP_CHECK_WARN);
	}
	np_checks_done(&checks);
}

/* A file that nodeprep did not make is not removed with our last line. */
static void test_empty_file(void **state)
{
	np_auto_actions struct np_actions base = { 0 };
	struct world w;

	(void)state;
	fresh(&w);
	set_file(&w, "/etc/nccl.conf", "");
	apply_once(&w, NULL, FB_LIST("10.0.0.50/24"), &base);
	assert_int_equal(revert(&w, &base), 0);
	assert_true(world_file(&w, "/etc/nccl.conf")->present);
	assert_string_equal(world_file(&w, "/etc/nccl.conf")->text, "");
	assert_false(world_file(&w, "/home/someone/.nccl.conf")->present);
}

static void test_changed_settings(void **state)
{
	static const char *const keys[][3] = { { "netdev ib0", "mtu", "1500" }, { NULL } };
	np_auto_actions struct np_actions base = { 0 };
	struct world w;

	(void)state;
	fresh(&w);
	apply_once(&w, keys, FB_LIST("10.0.0.50/24"), &base);
	assert_int_equal(w.mtu, 1500);
	w.mtu = 1400;
	assert_int_equal(revert(&w, &base), 1);
	assert_int_equal(w.mtu, 1400);
	assert_false(w.up);
	assert_int_equal(w.k.n, 0);
}

/* The wish of somebody between two runs is what there was before. */
static void test_rebase(void **state)
{
	static const char *const keys[][3] = { { "netdev ib0", "mtu", "1500" }, { NULL } };
	np_auto_actions struct np_actions base = { 0 };
	struct world w;

	(void)state;
	fresh(&w);
	apply_once(&w, keys, FB_LIST("10.0.0.50/24"), &base);
	w.mtu = 1400;
	apply_once(&w, keys, FB_LIST("10.0.0.50/24"), &base);
	assert_int_equal(w.mtu, 1500);
	assert_int_equal(revert(&w, &base), 0);
	assert_int_equal(w.mtu, 1400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_property_whole_runs),
		cmocka_unit_test(test_property_killed),
		cmocka_unit_test(test_property_people),
		cmocka_unit_test(test_edited_files),
		cmocka_unit_test(test_empty_file),
		cmocka_unit_test(test_changed_settings),
		cmocka_unit_test(test_rebase),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
