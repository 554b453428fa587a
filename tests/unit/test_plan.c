/* SPDX-License-Identifier: MIT */
#include "facts_build.h"

#include "agent/plan.h"

struct scene {
	struct np_facts facts;
	struct np_config cfg;
	struct np_err err;
};

static void begin(struct scene *s, const char *const *ips)
{
	fb_guide(&s->facts);
	fb_config(&s->cfg, ips);
	np_err_clear(&s->err);
}

static void end(struct scene *s)
{
	np_facts_done(&s->facts);
	np_config_done(&s->cfg);
}

static void set(struct scene *s, const char *section, const char *key, const char *value)
{
	if (np_config_set(&s->cfg, section, key, value, "x:1", &s->err) < 0)
		fail_msg("%s", s->err.message);
}

static void plans(struct scene *s, unsigned int parts, struct np_actions *out)
{
	if (np_plan_make(&s->cfg, &s->facts, parts, out, &s->err) < 0)
		fail_msg("%s", s->err.message);
}

static void refuses(struct scene *s, int error, const char *code, const char *part)
{
	struct np_actions untouched = { .n = 77 };

	assert_int_equal(np_plan_make(&s->cfg, &s->facts, NP_PLAN_ALL, &untouched, &s->err), error);
	assert_int_equal(untouched.n, 77);
	assert_string_equal(s->err.code, code);
	assert_true(s->err.hint[0]);
	if (!strstr(s->err.message, part))
		fail_msg("\"%s\" does not say \"%s\"", s->err.message, part);
}

static struct np_netdev *ib0(struct scene *s)
{
	return &s->facts.netdevs.v[0];
}

/* "netdev.mtu 65520 2044;..." */
static void spell(const struct np_actions *actions, struct np_buf *out)
{
	for (size_t i = 0; i < actions->n; i++) {
		char from[80], to[80];

		np_buf_printf(out, "%s %s>%s;", np_action_id(&actions->v[i]),
			      np_action_from(&actions->v[i], from, sizeof(from)),
			      np_action_to(&actions->v[i], to, sizeof(to)));
	}
}

static void spells(struct scene *s, unsigned int parts, const char *expected)
{
	np_auto_actions struct np_actions actions = { 0 };
	np_auto_buf struct np_buf text = { 0 };

	plans(s, parts, &actions);
	spell(&actions, &text);
	assert_string_equal(text.data ? text.data : "", expected);
}

/* ---- what is planned, in which order ---- */

static void test_guide(void **state)
{
	np_auto_actions struct np_actions actions = { 0 };
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	plans(&s, NP_PLAN_ALL, &actions);
	assert_int_equal(actions.n, 6);
	assert_string_equal(np_action_id(&actions.v[0]), "netdev.address_add");
	for (size_t i = 0; i < actions.n; i++)
		assert_int_equal(actions.v[i].status, NP_STATUS_PLANNED);
	for (size_t i = 1; i < actions.n; i++) {
		assert_string_equal(np_action_id(&actions.v[i]), "file.write");
		assert_false(actions.v[i].had_old);
	}
	assert_string_equal(actions.v[1].new_content.data, "NCCL_SOCKET_IFNAME=ib0\n");
	assert_string_equal(actions.v[1].user, "someone");
	assert_string_equal(actions.v[1].home, "/home/someone");
	assert_int_equal(actions.v[1].uid, 1000);
	assert_null(actions.v[2].user);
	end(&s);
}

static void test_order(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	ib0(&s)->flags &= ~(uint32_t)IFF_UP;
	set(&s, "netdev ib0", "mode", "connected");
	set(&s, "netdev ib0", "mtu", "65520");
	spells(&s, NP_PLAN_NETDEVS,
	       "netdev.mode datagram>connected;netdev.mtu 2044>65520;netdev.link down>up;"
	       "netdev.address_add >10.0.0.50/24;");
	end(&s);
}

/* 65520 is no MTU of datagram mode: neither on the way there nor on the way back */
static void test_order_to_datagram(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, NULL);
	ib0(&s)->mode = NP_IPOIB_CONNECTED;
	ib0(&s)->mtu = 65520;
	set(&s, "netdev ib0", "mode", "datagram");
	set(&s, "netdev ib0", "mtu", "2044");
	spells(&s, NP_PLAN_NETDEVS, "netdev.mtu 65520>2044;netdev.mode connected>datagram;");
	end(&s);
}

/* C32: where the address says that there is no connected mode, datagram stays, with
 * the MTU that it has; without an address nobody can tell, and it is tried */
static void test_no_connected_mode(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, NULL);
	set(&s, "netdev ib0", "mode", "connected");
	set(&s, "netdev ib0", "mtu", "65520");
	ib0(&s)->hwaddr_len = 20;
	ib0(&s)->hwaddr[0] = 0x00;
	spells(&s, NP_PLAN_NETDEVS, "");
	ib0(&s)->hwaddr[0] = 0x80;
	spells(&s, NP_PLAN_NETDEVS, "netdev.mode datagram>connected;netdev.mtu 2044>65520;");
	ib0(&s)->hwaddr_len = 0;
	spells(&s, NP_PLAN_NETDEVS, "netdev.mode datagram>connected;netdev.mtu 2044>65520;");
	end(&s);
}

static void test_keep(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, NULL);
	set(&s, "netdev ib0", "mode", "keep");
	set(&s, "netdev ib0", "mtu", "keep");
	spells(&s, NP_PLAN_NETDEVS, "");
	set(&s, "netdev ib0", "mode", "datagram");
	set(&s, "netdev ib0", "mtu", "2044");
	spells(&s, NP_PLAN_NETDEVS, "");
	ib0(&s)->mode = NP_IPOIB_MODE_UNKNOWN; /* unknown is not fine */
	spells(&s, NP_PLAN_NETDEVS, "netdev.mode unknown>datagram;");
	end(&s);
}

/* Nothing asked of the netdev: it is left as it is, also when it is down. */
static void test_nothing_asked(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, NULL);
	ib0(&s)->flags = 0;
	spells(&s, NP_PLAN_NETDEVS, "");
	end(&s);
}

static void test_several_netdevs(void **state)
{
	np_auto_actions struct np_actions actions = { 0 };
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24", "ib1=10.0.1.50/24"));
	fb_netdev(&s.facts, "ib1", 4, "mlx5_1");
	plans(&s, NP_PLAN_NETDEVS, &actions);
	assert_int_equal(actions.n, 2);
	assert_string_equal(actions.v[0].ifname, "ib0");
	assert_int_equal(actions.v[0].ifindex, 3);
	assert_string_equal(actions.v[1].ifname, "ib1");
	assert_int_equal(actions.v[1].ifindex, 4);
	end(&s);
}

static void test_parts(void **state)
{
	np_auto_actions struct np_actions netdevs = { 0 };
	np_auto_actions struct np_actions files = { 0 };
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	plans(&s, NP_PLAN_NETDEVS, &netdevs);
	assert_int_equal(netdevs.n, 1);
	plans(&s, NP_PLAN_FILES, &files);
	assert_int_equal(files.n, 5);
	for (size_t i = 0; i < files.n; i++)
		assert_int_equal(files.v[i].kind, NP_ACTION_FILE);
	spells(&s, 0, "");
	end(&s);
}

/* ---- what is refused ---- */

/* C25 */
static void test_address_in_use(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24", "10.0.0.51/24"));
	fb_owner(&s.facts, "10.0.0.50/24", NULL);
	fb_owner(&s.facts, "10.0.0.51/24", "eth1");
	refuses(&s, -EADDRINUSE, "netdev.address_in_use",
		"address 10.0.0.51 is already on eth1 of this node");
	s.cfg.force = true; /* force is for the route alone */
	refuses(&s, -EADDRINUSE, "netdev.address_in_use", "eth1");
	s.facts.addrs[1].owner.local = false;
	spells(&s, NP_PLAN_NETDEVS,
	       "netdev.address_add >10.0.0.50/24;netdev.address_add >10.0.0.51/24;");
	end(&s);
}

/* C28 */
static void test_default_route(void **state)
{
	static const char *const refused[][3] = { { "mtu", "4092", "netdev.mtu" },
						  { "mode", "connected", "netdev.mode" },
						  { "address", "10.0.0.50/24",
						    "netdev.address_del" } };

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(refused); i++) {
		np_auto_actions struct np_actions actions = { 0 };
		struct scene s;

		begin(&s, NULL);
		fb_addr(ib0(&s), "10.0.0.50/16", 0);
		fb_route(&s.facts, "10.0.0.0/16", 3, "ib0");
		set(&s, "netdev ib0", refused[i][0], refused[i][1]);
		plans(&s, NP_PLAN_NETDEVS, &actions);
		np_actions_done(&actions);
		fb_route(&s.facts, NULL, 2, "eth0"); /* somebody else's */
		plans(&s, NP_PLAN_NETDEVS, &actions);
		np_actions_done(&actions);
		fb_route(&s.facts, NULL, 3, "ib0");
		refuses(&s, -EBUSY, "netdev.cuts_default_route", refused[i][2]);
		s.cfg.force = true;
		plans(&s, NP_PLAN_NETDEVS, &actions);
		assert_true(actions.n > 0);
		end(&s);
	}
}

/* What cuts nothing is allowed: another address, bringing it up, files. */
static void test_default_route_not_cut(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.51/24"));
	fb_addr(ib0(&s), "10.0.0.50/24", 0);
	fb_route(&s.facts, NULL, 3, "ib0");
	ib0(&s)->flags &= ~(uint32_t)IFF_UP;
	spells(&s, NP_PLAN_NETDEVS, "netdev.link down>up;netdev.address_add >10.0.0.51/24;");
	end(&s);
}

static void test_selection_is_refused(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("eth7=10.0.0.50/24"));
	refuses(&s, -ENODEV, "netdev.no_such_interface", "eth7");
	end(&s);
}

/* ---- pure, and empty in the end ---- */

/* Does to the facts what the actions would do to the node. */
static void pretend(struct np_facts *facts, const struct np_actions *actions)
{
	for (size_t i = 0; i < actions->n; i++) {
		const struct np_action *a = &actions->v[i];
		struct np_netdev *dev = &facts->netdevs.v[0];

		switch (a->kind) {
		case NP_ACTION_MODE:
			dev->mode = (enum np_ipoib_mode)a->to_value;
			break;
		case NP_ACTION_MTU:
			dev->mtu = a->to_value;
			break;
		case NP_ACTION_LINK:
			dev->flags |= IFF_UP;
			break;
		case NP_ACTION_ADDR_ADD:
			*FB_ADD(dev->addrs, dev->n_addrs) = a->addr;
			break;
		case NP_ACTION_ADDR_DEL:
		case NP_ACTION_MODULE:
		case NP_ACTION_GDRDRV_NODE:
			fail();
			break;
		case NP_ACTION_FILE:
			for (size_t f = 0; f < facts->n_files; f++) {
				struct np_target_file *file = &facts->files[f].file;

				if (strcmp(file->path, a->path) != 0)
					continue;
				file->status = NP_TARGET_PRESENT;
				np_buf_done(&file->content);
				np_buf_add(&file->content, a->new_content.data, a->new_content.len);
			}
			break;
		}
	}
}

static void test_second_plan_is_empty(void **state)
{
	static const char *const profiles[] = { "standard", "guide", "dask", "auto", "off" };

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(profiles); i++) {
		np_auto_actions struct np_actions actions = { 0 };
		struct scene s;

		begin(&s, FB_LIST("10.0.0.50/24"));
		ib0(&s)->flags &= ~(uint32_t)IFF_UP;
		set(&s, "netdev ib0", "mode", "connected");
		set(&s, "netdev ib0", "mtu", "65520");
		set(&s, "ucx", "profile", profiles[i]);
		set(&s, "ports", "ignore", "mlx5_3");
		plans(&s, NP_PLAN_ALL, &actions);
		assert_true(actions.n >= 5);
		pretend(&s.facts, &actions);
		spells(&s, NP_PLAN_ALL, "");
		end(&s);
	}
}

static void test_pure(void **state)
{
	np_auto_actions struct np_actions first = { 0 };
	np_auto_actions struct np_actions second = { 0 };
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	fb_addr(ib0(&s), "10.0.0.50/16", 0);
	fb_addr(ib0(&s), "10.0.0.51/24", 0);
	plans(&s, NP_PLAN_ALL, &first);
	setenv("NCCL_SOCKET_IFNAME", "eth0", 1);
	plans(&s, NP_PLAN_ALL, &second);
	assert_int_equal(first.n, second.n);
	for (size_t i = 0; i < first.n; i++) {
		json_t *a = np_action_encode(&first.v[i]), *b = np_action_encode(&second.v[i]);

		assert_true(a && b && json_equal(a, b));
		json_decref(a);
		json_decref(b);
	}
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_guide),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_order_to_datagram),
		cmocka_unit_test(test_no_connected_mode),
		cmocka_unit_test(test_keep),
		cmocka_unit_test(test_nothing_asked),
		cmocka_unit_test(test_several_netdevs),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_address_in_use),
		cmocka_unit_test(test_default_route),
		cmocka_unit_test(test_default_route_not_cut),
		cmocka_unit_test(test_selection_is_refused),
		cmocka_unit_test(test_second_plan_is_empty),
		cmocka_unit_test(test_pure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
