/* SPDX-License-Identifier: MIT */
/* Which addresses of a plan another node is asked about, and what follows. */
#include "facts_build.h"

#include "probe_fabric.h"

#include "agent/plan.h"
#include "agent/probe_addresses.h"
#include "base/child.h"

struct scene {
	struct np_facts facts;
	struct np_config cfg;
	struct np_checks checks;
	struct np_actions planned;
};

/* ib0 as the guide has it, but able to send; wanted are @ips. */
static void begin(struct scene *s, const char *const *ips, const struct np_netdev *like)
{
	struct np_netdev *dev;

	fb_guide(&s->facts);
	fb_config(&s->cfg, ips);
	dev = &s->facts.netdevs.v[0];
	dev->hwaddr_len = like->hwaddr_len;
	dev->hwbroadcast_len = like->hwbroadcast_len;
	memcpy(dev->hwaddr, like->hwaddr, sizeof(dev->hwaddr));
	memcpy(dev->hwbroadcast, like->hwbroadcast, sizeof(dev->hwbroadcast));
	dev->ifindex = like->ifindex;
	dev->flags = like->flags;
	s->cfg.wait_s = 0;
}

static void plan(struct scene *s)
{
	np_actions_done(&s->planned);
	if (np_plan_make(&s->cfg, &s->facts, NP_PLAN_NETDEVS, &s->planned, &err) < 0)
		fail_msg("%s", err.message);
}

static int probe(struct scene *s)
{
	plan(s);
	return np_probe_planned(&s->cfg, &s->facts, &s->planned, &s->checks, &err);
}

/* The answer may be late on a machine that is busy with other things. */
static int probe_taken(struct scene *s)
{
	int r = 0;

	for (int i = 0; i < 20 && r == 0; i++) {
		np_actions_done(&s->planned);
		np_checks_done(&s->checks);
		r = probe(s);
	}
	return r;
}

static void end(struct scene *s)
{
	np_facts_done(&s->facts);
	np_config_done(&s->cfg);
	np_checks_done(&s->checks);
	np_actions_done(&s->planned);
}

static void set(struct scene *s, const char *section, const char *key, const char *value)
{
	assert_int_equal(np_config_set(&s->cfg, section, key, value, "x:1", &err), 0);
}

static const char *const ip50[] = { "10.0.0.50/24", NULL };
static const struct np_netdev sender = { .ifindex = 4, .hwaddr_len = 20, .hwbroadcast_len = 20 };

/* "netdev.mode;netdev.link;" of what is done before asking */
static void keeps(struct scene *s, const char *want)
{
	np_auto_buf struct np_buf ids = { 0 };

	plan(s);
	np_probe_keep_links(&s->facts, &s->planned);
	for (size_t i = 0; i < s->planned.n; i++)
		np_buf_printf(&ids, "%s;", np_action_id(&s->planned.v[i]));
	assert_string_equal(ids.len ? ids.data : "", want);
}

static void only_what_is_down_is_brought_up_first(void **state)
{
	struct scene s = { 0 };
	struct np_netdev *dev;

	(void)state;
	begin(&s, ip50, &sender);
	dev = &s.facts.netdevs.v[0];
	dev->mode = NP_IPOIB_DATAGRAM;
	dev->hwaddr[0] = 0x80;
	set(&s, "netdev ib0", "mode", "connected");
	keeps(&s, "netdev.mode;netdev.link;");
	/* up: asked before anything is touched */
	dev->flags = IFF_UP;
	keeps(&s, "");
	/* nothing to be asked: no hardware address, or the address is here */
	dev->flags = 0;
	dev->hwbroadcast_len = 0;
	keeps(&s, "");
	dev->hwbroadcast_len = 20;
	fb_addr(dev, "10.0.0.50/16", 0);
	keeps(&s, "");
	end(&s);
}

/* Another netdev that is down and gets no new IPv4 address stays so. */
static void others_stay_down(void **state)
{
	static const char *const ips[] = { "10.0.0.50/24", "ib1=fd00::1/64", NULL };
	struct scene s = { 0 };
	struct np_netdev *ib1;

	(void)state;
	begin(&s, ips, &sender);
	ib1 = fb_netdev(&s.facts, "ib1", 5, "mlx5_1");
	ib1->flags = 0;
	ib1->hwaddr_len = ib1->hwbroadcast_len = 20;
	plan(&s);
	assert_int_equal(s.planned.n, 4);
	np_probe_keep_links(&s.facts, &s.planned);
	assert_int_equal(s.planned.n, 1);
	assert_string_equal(s.planned.v[0].ifname, "ib0");
	end(&s);
}

static void taken_by_another_node(void **state)
{
	static const char *const ips[] = { "10.0.0.52/24", "10.0.0.50/24", NULL };
	struct fabric f = { .answer = REPLY OTHER IP50 OWN NO_IP, .after = 1 };
	struct scene s = { 0 };

	(void)state;
	begin_fabric(&f);
	begin(&s, ips, &f.dev);
	assert_int_equal(probe_taken(&s), -EADDRINUSE);
	end_fabric(&f);
	assert_string_equal(err.code, "netdev.address_in_use");
	assert_string_equal(err.message, "address 10.0.0.50 is in use on the fabric: port GUID "
					 "506b:4b03:00f5:ce9d answered on ib0");
	assert_non_null(strstr(err.hint, "0x506b4b0300f5ce9d"));
	assert_non_null(strstr(err.hint, "--no-probe"));
	assert_int_equal(s.checks.n, 0);
	end(&s);
}

static void taken_by_a_port_of_this_node(void **state)
{
	struct fabric f = { .answer = REPLY OTHER IP50 OWN NO_IP, .after = 1 };
	struct scene s = { 0 };

	(void)state;
	begin_fabric(&f);
	begin(&s, ip50, &f.dev);
	s.facts.cas.v[1].ports[0].guid = OTHER_GUID;
	assert_int_equal(probe_taken(&s), -EADDRINUSE);
	end_fabric(&f);
	assert_non_null(strstr(err.hint, "mlx5_1:1 of this node"));
	end(&s);
}

static void what_nobody_has_is_free(void **state)
{
	struct fabric f = { 0 };
	struct scene s = { 0 };

	(void)state;
	begin_fabric(&f);
	begin(&s, ip50, &f.dev);
	assert_int_equal(probe(&s), 0);
	end_fabric(&f);
	assert_int_equal(f.asked, 2);
	assert_int_equal(s.checks.n, 0);
	end(&s);
}

/* No packet and no time for a plan without a new IPv4 address. */
static void what_is_here_is_not_asked_for(void **state)
{
	static const char *const ips[] = { "10.0.0.50/24", "fd00::1/64", NULL };
	struct fabric f = { .answer = REPLY OTHER IP50 OWN NO_IP, .after = 1 };
	struct scene s = { 0 };

	(void)state;
	begin_fabric(&f);
	begin(&s, ips, &f.dev);
	/* a wrong length: the plan adds 10.0.0.50/24 all the same */
	fb_addr(&s.facts.netdevs.v[0], "10.0.0.50/16", 0);
	assert_int_equal(probe(&s), 0);
	assert_true(s.planned.n >= 3);
	/* all as wanted: an empty plan */
	s.facts.netdevs.v[0].addrs[0].inet = fb_inet("10.0.0.50/24");
	assert_true(np_inet_broadcast(&s.facts.netdevs.v[0].addrs[0].inet,
				      s.facts.netdevs.v[0].addrs[0].broadcast));
	fb_addr(&s.facts.netdevs.v[0], "fd00::1/64", 0);
	assert_int_equal(probe(&s), 0);
	assert_int_equal(s.planned.n, 0);
	end_fabric(&f);
	assert_int_equal(f.asked, 0);
	assert_int_equal(s.checks.n, 0);
	end(&s);
}

static void not_possible_is_told(struct fabric *f, struct scene *s, const char *why)
{
	np_checks_done(&s->checks);
	assert_int_equal(probe(s), 0);
	assert_int_equal(f->asked, 0);
	assert_int_equal(s->checks.n, 1);
	assert_string_equal(s->checks.v[0].code, "netdev.not_probed");
	assert_string_equal(s->checks.v[0].target, "ib0");
	assert_int_equal(s->checks.v[0].status, NP_CHECK_SKIP);
	if (!strstr(s->checks.v[0].message, why) || !strstr(s->checks.v[0].message, "10.0.0.50"))
		fail_msg("\"%s\" does not say \"%s\"", s->checks.v[0].message, why);
}

static void what_cannot_be_asked(void **state)
{
	struct fabric f = { .answer = REPLY OTHER IP50 OWN NO_IP, .after = 1 };
	struct scene s = { 0 };

	(void)state;
	begin_fabric(&f);
	begin(&s, ip50, &f.dev);
	set_carrier(f.fd, 0);
	s.facts.netdevs.v[0].flags = IFF_UP;
	not_possible_is_told(&f, &s, "no carrier");
	s.facts.netdevs.v[0].hwaddr_len = 0;
	not_possible_is_told(&f, &s, "no hardware address");
	end_fabric(&f);
	end(&s);
}

static void *carrier_later(void *arg)
{
	int on = 1;

	usleep(100 * 1000);
	ioctl(*(int *)arg, TUNSETCARRIER, &on);
	return NULL;
}

/* Up a moment ago, by the facts without carrier yet. */
static void a_carrier_that_comes_is_waited_for(void **state)
{
	struct fabric f = { .answer = REPLY OTHER IP50 OWN NO_IP, .after = 1 };
	struct scene s = { 0 };
	pthread_t thread;

	(void)state;
	begin_fabric(&f);
	begin(&s, ip50, &f.dev);
	set_carrier(f.fd, 0);
	s.facts.netdevs.v[0].flags = IFF_UP;
	s.cfg.wait_s = 30;
	assert_int_equal(pthread_create(&thread, NULL, carrier_later, &f.fd), 0);
	assert_int_equal(probe_taken(&s), -EADDRINUSE);
	pthread_join(thread, NULL);
	end_fabric(&f);
	end(&s);
}

/* As long as for a subnet manager would be too long. */
static void a_carrier_that_does_not_come_is_not(void **state)
{
	struct fabric f = { 0 };
	struct scene s = { 0 };
	int64_t start = np_now_ms();

	(void)state;
	begin_fabric(&f);
	begin(&s, ip50, &f.dev);
	set_carrier(f.fd, 0);
	s.facts.netdevs.v[0].flags = IFF_UP;
	s.cfg.wait_s = 3600;
	not_possible_is_told(&f, &s, "no carrier");
	assert_true(np_now_ms() - start < 30000);
	end_fabric(&f);
	end(&s);
}

#define IN_NET(test) cmocka_unit_test_setup_teardown(test, fresh_net, close_net)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_is_down_is_brought_up_first),
		cmocka_unit_test(others_stay_down),
		IN_NET(taken_by_another_node),
		IN_NET(taken_by_a_port_of_this_node),
		IN_NET(what_nobody_has_is_free),
		IN_NET(what_is_here_is_not_asked_for),
		IN_NET(what_cannot_be_asked),
		IN_NET(a_carrier_that_comes_is_waited_for),
		IN_NET(a_carrier_that_does_not_come_is_not),
	};

	need_namespaces("test_probe_addresses");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
