/* SPDX-License-Identifier: MIT */
/* The planned address actions, run in a model of the kernel. */
#include "kernel_addr.h"

#include "agent/plan.h"

/* ---- one scene: a netdev, what is wanted of it ---- */

struct scene {
	struct kernel k, start;
	struct np_want_netdev want;
	struct np_inet wanted[8];
	enum np_tri promote_seen; /* what the plan is told of the sysctl */
};

static void plan_of(const struct scene *s, const struct kernel *k, struct np_actions *out)
{
	struct np_netdev_addr addrs[MAX_ADDRS];
	struct np_netdev dev = { .ifindex = 3, .name = "ib0", .type = 32, .addrs = addrs };
	struct np_selected_netdev sel = {
		.dev = &dev, .want = &s->want, .addrs = s->wanted, .n_addrs = s->want.n_addrs
	};
	struct np_err err;

	np_err_clear(&err);
	memcpy(addrs, k->v, sizeof(addrs));
	dev.n_addrs = k->n;
	dev.promote_secondaries = s->promote_seen;
	assert_int_equal(np_plan_addresses(&sel, out, &err), 0);
}

static bool is_wanted(const struct scene *s, const struct np_inet *inet)
{
	for (size_t i = 0; i < s->want.n_addrs; i++)
		if (np_inet_same_addr(&s->wanted[i], inet))
			return true;
	return false;
}

static bool is_exact(const struct scene *s, const struct np_inet *inet)
{
	for (size_t i = 0; i < s->want.n_addrs; i++)
		if (np_inet_equal(&s->wanted[i], inet))
			return true;
	return false;
}

static void explain(const struct scene *s, const struct np_actions *actions)
{
	char text[NP_INET_STRLEN];

	print_message("promote %d seen %d exclusive %d\n", s->start.promote, s->promote_seen,
		      s->want.exclusive);
	for (size_t i = 0; i < s->start.n; i++)
		print_message("  has  %s%s\n", np_inet_str(&s->start.v[i].inet, text),
			      is_secondary(&s->start.v[i]) ? " secondary" : "");
	for (size_t i = 0; i < s->want.n_addrs; i++)
		print_message("  want %s\n", np_inet_str(&s->wanted[i], text));
	for (size_t i = 0; i < actions->n; i++)
		print_message("  %s %s\n", np_action_id(&actions->v[i]),
			      np_inet_str(&actions->v[i].addr.inet, text));
}

#define HOLDS(condition) \
	do { \
		if (!(condition)) { \
			explain(s, &actions); \
			fail_msg("does not hold: %s", #condition); \
		} \
	} while (0)

static void run_forward(struct scene *s)
{
	np_auto_actions struct np_actions actions = { 0 };
	np_auto_actions struct np_actions again = { 0 };

	s->start = s->k;
	plan_of(s, &s->k, &actions);
	for (size_t i = 0; i < actions.n; i++) {
		HOLDS(actions.v[i].ifindex == 3 && strcmp(actions.v[i].ifname, "ib0") == 0);
		HOLDS(kernel_run(&s->k, &actions.v[i]) == 0);
		for (size_t w = 0; w < s->want.n_addrs; w++)
			HOLDS(s->wanted[w].family == AF_INET6 ||
			      !kernel_has_any_length(&s->start, &s->wanted[w]) ||
			      kernel_has_any_length(&s->k, &s->wanted[w]));
	}
	for (size_t w = 0; w < s->want.n_addrs; w++)
		HOLDS(kernel_has(&s->k, &s->wanted[w]));
	for (size_t i = 0; i < s->k.n; i++) /* none with another length */
		HOLDS(!is_wanted(s, &s->k.v[i].inet) || is_exact(s, &s->k.v[i].inet));
	for (size_t i = 0; i < s->start.n; i++)
		HOLDS(is_wanted(s, &s->start.v[i].inet) ||
		      kernel_has(&s->k, &s->start.v[i].inet) ==
			      (!s->want.exclusive || s->start.v[i].scope == RT_SCOPE_LINK));
	/* nothing but what was there or is wanted */
	for (size_t i = 0; i < s->k.n; i++)
		HOLDS(is_wanted(s, &s->k.v[i].inet) || kernel_has(&s->start, &s->k.v[i].inet));
	plan_of(s, &s->k, &again);
	HOLDS(again.n == 0);
}

/* The inverses, last first, give back the same addresses with the same primary ones;
 * stopped anywhere. */
static void run_back(struct scene *s)
{
	np_auto_actions struct np_actions actions = { 0 };

	s->start = s->k;
	plan_of(s, &s->k, &actions);
	for (size_t stop = 0; stop <= actions.n; stop++) {
		struct kernel k = s->start;

		for (size_t i = 0; i < stop; i++)
			HOLDS(kernel_run(&k, &actions.v[i]) == 0);
		for (size_t i = stop; i-- > 0;) {
			struct np_action undo = { 0 };
			int r = np_action_invert(&actions.v[i], &undo);

			HOLDS(r == 0 && kernel_run(&k, &undo) == 0);
			np_action_done(&undo);
		}
		HOLDS(k.n == s->start.n);
		for (size_t i = 0; i < k.n; i++) {
			char text[NP_INET_STRLEN];

			np_inet_str(&k.v[i].inet, text);
			HOLDS(kernel_has(&s->start, &k.v[i].inet));
			HOLDS(kernel_is_primary(&k, text) == kernel_is_primary(&s->start, text));
		}
	}
}

static void has(struct scene *s, const char *text)
{
	struct np_netdev_addr addr = { .inet = fb_inet(text), .scope = RT_SCOPE_UNIVERSE };

	addr.has_broadcast = np_inet_broadcast(&addr.inet, addr.broadcast);
	assert_int_equal(kernel_add(&s->k, &addr), 0);
}

static void wants(struct scene *s, const char *text)
{
	s->wanted[s->want.n_addrs++] = fb_inet(text);
}

/* ---- the cases ---- */

static void test_empty_netdev(void **state)
{
	struct scene s = { .promote_seen = NP_TRI_NO };
	np_auto_actions struct np_actions actions = { 0 };

	(void)state;
	wants(&s, "10.0.0.50/24");
	wants(&s, "fd00::50/64");
	plan_of(&s, &s.k, &actions);
	assert_int_equal(actions.n, 2);
	assert_int_equal(actions.v[0].kind, NP_ACTION_ADDR_ADD);
	assert_true(actions.v[0].addr.has_broadcast);
	assert_memory_equal(actions.v[0].addr.broadcast, "\x0a\x00\x00\xff", 4);
	assert_int_equal(actions.v[0].addr.scope, RT_SCOPE_UNIVERSE);
	assert_int_equal(actions.v[0].addr.inet.prefix_len, 24);
	assert_int_equal(actions.v[1].addr.inet.family, AF_INET6);
	assert_false(actions.v[1].addr.has_broadcast);
	run_forward(&s);
}

/* /31 and /32 have no broadcast address (RFC 3021) */
static void test_no_broadcast(void **state)
{
	static const char *const texts[] = { "10.0.0.50/31", "10.0.0.50/32" };

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(texts); i++) {
		struct scene s = { .promote_seen = NP_TRI_NO };
		np_auto_actions struct np_actions actions = { 0 };

		wants(&s, texts[i]);
		plan_of(&s, &s.k, &actions);
		assert_int_equal(actions.n, 1);
		assert_false(actions.v[0].addr.has_broadcast);
	}
}

static void test_nothing_asked(void **state)
{
	struct scene s = { .want.exclusive = true };
	np_auto_actions struct np_actions actions = { 0 };

	(void)state;
	has(&s, "10.0.0.50/24");
	plan_of(&s, &s.k, &actions);
	assert_int_equal(actions.n, 0);
}

/* C24, under every setting of the sysctl and of what is known of it */
static void test_c24(void **state)
{
	(void)state;
	for (int promote = 0; promote <= 1; promote++) {
		for (int known = 0; known <= 1; known++) {
			struct scene s = { .k.promote = promote }, back;

			s.promote_seen = !known ? NP_TRI_UNKNOWN : promote ? NP_TRI_YES : NP_TRI_NO;
			has(&s, "10.0.0.50/16");
			has(&s, "10.0.0.51/24");
			wants(&s, "10.0.0.50/24");
			back = s;
			run_forward(&s);
			run_back(&back);
			assert_int_equal(s.k.n, 2);
			assert_true(kernel_is_primary(&s.k, "10.0.0.50/24"));
			assert_true(kernel_has(&s.k,
					       &(struct np_inet){ AF_INET, { 10, 0, 0, 51 }, 24 }));
		}
	}
}

/* Two addresses of one subnet get another length at once: neither is ever absent. */
static void test_two_lengths_at_once(void **state)
{
	struct scene s = { .promote_seen = NP_TRI_NO }, back;

	(void)state;
	has(&s, "10.0.0.50/16");
	has(&s, "10.0.0.51/16");
	has(&s, "10.0.0.99/16");
	wants(&s, "10.0.0.50/24");
	wants(&s, "10.0.0.51/24");
	back = s;
	run_forward(&s);
	run_back(&back);
	assert_true(kernel_is_primary(&s.k, "10.0.0.50/24"));
	assert_false(kernel_is_primary(&s.k, "10.0.0.51/24"));
}

/* A secondary that is wanted as it is, below a primary that has to go. */
static void test_wanted_secondary_is_kept(void **state)
{
	for (int exclusive = 0; exclusive <= 1; exclusive++) {
		struct scene s = { .promote_seen = NP_TRI_NO, .want.exclusive = exclusive }, back;

		(void)state;
		has(&s, "10.0.0.50/16");
		has(&s, "10.0.0.51/16");
		has(&s, "10.0.1.1/24");
		has(&s, "10.0.1.2/24");
		wants(&s, "10.0.0.50/24");
		wants(&s, "10.0.0.51/16");
		wants(&s, "10.0.1.2/24");
		back = s;
		run_forward(&s);
		run_back(&back);
	}
}

static void test_ipv6_length(void **state)
{
	struct scene s = { .promote_seen = NP_TRI_NO };
	np_auto_actions struct np_actions actions = { 0 };

	(void)state;
	has(&s, "fd00::50/48");
	wants(&s, "fd00::50/64");
	plan_of(&s, &s.k, &actions);
	assert_int_equal(actions.n, 2);
	assert_int_equal(actions.v[0].kind, NP_ACTION_ADDR_DEL);
	assert_int_equal(actions.v[1].kind, NP_ACTION_ADDR_ADD);
	run_forward(&s);
}

static void test_exclusive(void **state)
{
	struct scene s = { .promote_seen = NP_TRI_NO, .want.exclusive = true };

	(void)state;
	has(&s, "10.0.0.7/24");
	has(&s, "10.0.0.50/24");
	has(&s, "192.168.0.1/16");
	has(&s, "fd00::1/64");
	has(&s, "fe80::1/64");
	s.k.v[s.k.n - 1].scope = RT_SCOPE_LINK;
	wants(&s, "10.0.0.50/24");
	run_forward(&s);
	assert_int_equal(s.k.n, 2);
	assert_true(kernel_is_primary(&s.k, "10.0.0.50/24"));
	assert_true(kernel_has(&s.k, &s.start.v[s.start.n - 1].inet));
}

/* What a removal needs to be undone goes along: label, lifetime, metric, peer. */
static void test_attributes_kept(void **state)
{
	struct scene s = { .promote_seen = NP_TRI_NO };
	np_auto_actions struct np_actions actions = { 0 };
	bool seen = false;

	(void)state;
	has(&s, "10.0.0.50/16");
	has(&s, "10.0.0.51/24");
	for (size_t i = 0; i < s.k.n; i++) {
		if (s.k.v[i].inet.prefix_len != 24)
			continue;
		strcpy(s.k.v[i].label, "ib0:x");
		s.k.v[i].valid_s = 100;
		s.k.v[i].metric = 7;
	}
	wants(&s, "10.0.0.50/24");
	plan_of(&s, &s.k, &actions);
	for (size_t i = 0; i < actions.n; i++) {
		const struct np_netdev_addr *a = &actions.v[i].addr;

		if (a->inet.bytes[3] != 51)
			continue;
		seen = true;
		assert_string_equal(a->label, "ib0:x");
		assert_int_equal(a->valid_s, 100);
		assert_int_equal(a->metric, 7);
	}
	assert_true(seen);
}

/* ---- thousands of made-up lists ---- */

static void random_inet(uint64_t *random, char *text, size_t size)
{
	static const int lengths[] = { 16, 24, 24, 25, 30, 31, 32 };
	uint32_t r = fb_random(random);

	if (r % 5 == 0)
		snprintf(text, size, "fd00::%x/%d", 1 + (r >> 8) % 4, (r >> 16) % 2 ? 64 : 48);
	else
		snprintf(text, size, "10.0.%u.%u/%d", (r >> 8) % 8 ? 0U : 1U, 50 + (r >> 12) % 6,
			 lengths[(r >> 20) % NP_ARRAY_SIZE(lengths)]);
}

static void random_scene(uint64_t *random, struct scene *s)
{
	uint32_t n_has = fb_random(random) % 9, n_wants = 1 + fb_random(random) % 4;
	char text[64];

	memset(s, 0, sizeof(*s));
	s->k.promote = fb_random(random) % 2;
	s->promote_seen = fb_random(random) % 3 == 0 ? NP_TRI_UNKNOWN :
			  s->k.promote		     ? NP_TRI_YES :
						       NP_TRI_NO;
	s->want.exclusive = fb_random(random) % 3 == 0;
	while (n_has-- > 0) {
		struct np_netdev_addr addr = { .scope = RT_SCOPE_UNIVERSE };

		random_inet(random, text, sizeof(text));
		addr.inet = fb_inet(text);
		if (addr.inet.family == AF_INET6 && fb_random(random) % 2)
			addr.scope = RT_SCOPE_LINK;
		/* what is there already does not go in twice */
		if (kernel_add(&s->k, &addr) == 0 && fb_random(random) % 6 == 0)
			assert_int_equal(kernel_del(&s->k, &s->k.v[0].inet), 0);
	}
	while (n_wants-- > 0) {
		struct np_inet inet;

		random_inet(random, text, sizeof(text));
		inet = fb_inet(text);
		if (!is_wanted(s, &inet))
			s->wanted[s->want.n_addrs++] = inet;
	}
}

static void test_random_lists(void **state)
{
	uint64_t random = 0x9e3779b97f4a7c15;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct scene s, back;

		random_scene(&random, &s);
		back = s;
		run_forward(&s);
		run_back(&back);
	}
}

/* A corrected IPv4 address is the primary one of its subnet, unless a wanted one is. */
static void test_random_correction_is_primary(void **state)
{
	uint64_t random = 42;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		char text[NP_INET_STRLEN];
		struct scene s;

		random_scene(&random, &s);
		s.want.n_addrs = 1;
		if (s.wanted[0].family == AF_INET6 || !kernel_has_any_length(&s.k, &s.wanted[0]) ||
		    kernel_has(&s.k, &s.wanted[0]))
			continue;
		run_forward(&s);
		assert_true(kernel_is_primary(&s.k, np_inet_str(&s.wanted[0], text)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_netdev),
		cmocka_unit_test(test_no_broadcast),
		cmocka_unit_test(test_nothing_asked),
		cmocka_unit_test(test_c24),
		cmocka_unit_test(test_two_lengths_at_once),
		cmocka_unit_test(test_wanted_secondary_is_kept),
		cmocka_unit_test(test_ipv6_length),
		cmocka_unit_test(test_exclusive),
		cmocka_unit_test(test_attributes_kept),
		cmocka_unit_test(test_random_lists),
		cmocka_unit_test(test_random_correction_is_primary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
