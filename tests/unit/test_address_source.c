/* SPDX-License-Identifier: MIT */
#include "facts_build.h"

#include <sys/utsname.h>

#include "agent/address_resolve.h"

static struct np_address_source parse(const char *text)
{
	struct np_address_source src = { 0 };
	const char *expected;

	if (np_address_source_parse(text, &src, &expected) < 0)
		fail_msg("%s: expected %s", text, expected);
	assert_string_equal(src.text, text);
	return src;
}

/* ---- how a source is written ---- */

static void test_parse(void **state)
{
	struct np_address_source src = parse("hosts:%h-ib0.%%%H/24");

	(void)state;
	assert_int_equal(src.kind, NP_SOURCE_HOSTS);
	assert_string_equal(src.subject, "%h-ib0.%%%H");
	assert_int_equal(src.prefix_len, 24);
	assert_int_equal(parse("hosts:a/128").prefix_len, 128);
	src = parse("map:/etc/nodeprep/a:b");
	assert_int_equal(src.kind, NP_SOURCE_MAP);
	assert_string_equal(src.subject, "/etc/nodeprep/a:b");
	src = parse("offset:eth0:1:10.128.0.0/9");
	assert_int_equal(src.kind, NP_SOURCE_OFFSET);
	assert_string_equal(src.subject, "eth0:1");
	assert_int_equal(src.prefix.prefix_len, 9);
	parse("offset:abcdefghijklmno:10.0.0.0/31");
}

static void test_parse_refuses(void **state)
{
	static const char *const texts[] = {
		"hosts:",
		"hosts:/24",
		"hosts:a",
		"hosts:a/",
		"hosts:a/0",
		"hosts:a/129",
		"hosts:a/+1",
		"hosts:a b/24",
		"hosts:%x/24",
		"hosts:%/24",
		"hosts:a/b/24",
		"hosts:$(id)/24",
		"map:",
		"map:/",
		"map:nodes",
		"map:./nodes",
		"map:/etc/\x1b[2J",
		"map:/etc/\xc3\xa4",
		"offset:",
		"offset:eth0",
		"offset:eth0:",
		"offset::10.0.0.0/16",
		"offset:eth0:10.0.0.0",
		"offset:eth0:10.0.0.1/16",
		"offset:eth0:10.0.0.0/0",
		"offset:eth0:10.0.0.0/32",
		"offset:eth0:10.0.0.0/33",
		"offset:eth0:fd00::/64",
		"offset:a/b:10.0.0.0/16",
		"offset:abcdefghijklmnop:10.0.0.0/16",
		"offset:eth0:10.0.0.0/16x",
		"offset:eth0:host/16",
		"dhcp:eth0",
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(texts); i++) {
		struct np_address_source src = { .prefix_len = 77 };
		const char *expected = NULL;

		if (np_address_source_parse(texts[i], &src, &expected) != -EINVAL)
			fail_msg("%s was taken", texts[i]);
		assert_int_equal(src.prefix_len, 77);
		if (np_is_address_source(texts[i])) /* the form of its own kind */
			assert_true(strncmp(expected, texts[i], strcspn(texts[i], ":")) == 0);
	}
	assert_false(np_is_address_source("dhcp:eth0"));
	assert_false(np_is_address_source("fd00::1/64"));
	assert_true(np_is_address_source("map:"));
}

static void test_names(void **state)
{
	static const struct {
		const char *text, *node, *name; /* NULL: refused */
	} cases[] = {
		{ "hosts:%h-ib0/24", "node01", "node01-ib0" },
		{ "hosts:%h-ib0/24", "node01.example.org", "node01-ib0" },
		{ "hosts:%H/24", "node01.example.org", "node01.example.org" },
		{ "hosts:ib.%h.%H/24", "n.x", "ib.n.n.x" },
		{ "hosts:%h%%/24", "n", NULL },
		{ "hosts:%h/24", "10", NULL }, /* the resolver takes it for 0.0.0.10 */
		{ "hosts:%h/24", "0x7f", NULL },
		{ "hosts:10.0.0.1/24", "n", NULL },
		{ "hosts:%h/24", ".x", NULL },
		{ "hosts:%H/24", "a b", NULL },
		{ "hosts:%H/24", "a\n", NULL },
	};
	char full[65], name[NP_HOST_NAME_LEN], text[80];
	struct np_address_source src;
	struct np_err err;

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		int r;

		src = parse(cases[i].text);
		r = np_address_source_name(&src, cases[i].node, name, &err);
		if (cases[i].name) {
			assert_int_equal(r, 0);
			assert_string_equal(name, cases[i].name);
		} else {
			assert_int_equal(r, -EINVAL);
			assert_string_equal(err.code, "address.hosts_name");
		}
	}
	/* longer than a name may be */
	memset(full, 'x', 64);
	full[64] = '\0';
	snprintf(text, sizeof(text), "hosts:%%H%%H%%H%%H/24");
	src = parse(text);
	assert_int_equal(np_address_source_name(&src, full, name, &err), -EINVAL);
	src = parse("hosts:%H%H%H/24");
	assert_int_equal(np_address_source_name(&src, full, name, &err), 0);
	assert_true(np_host_name_is_own("localhost1"));
	for (const char *const *own = FB_LIST("", "(none)", "localhost", "localhost.localdomain");
	     *own; own++)
		assert_false(np_host_name_is_own(*own));
}

static void test_offset(void **state)
{
	static const struct {
		const char *nic, *prefix, *result; /* NULL: does not fit */
	} cases[] = {
		{ "192.168.3.7/16", "10.0.0.0/16", "10.0.3.7/16" },
		{ "192.168.3.7/24", "10.0.0.0/16", "10.0.0.7/16" },
		{ "192.168.3.7/16", "10.0.0.0/22", "10.0.3.7/22" },
		{ "192.168.3.7/16", "10.0.0.0/23", NULL },
		{ "192.168.4.0/16", "10.0.0.0/22", NULL },
		{ "192.168.0.7/16", "10.0.0.0/29", "10.0.0.7/29" },
		{ "192.168.0.8/16", "10.0.0.0/29", NULL },
		{ "192.168.0.7/32", "10.0.0.0/16", "10.0.0.0/16" },
		{ "192.168.0.7/31", "10.0.0.0/31", "10.0.0.1/31" },
		{ "172.31.255.254/12", "11.64.0.0/12", "11.79.255.254/12" },
		{ "9.8.7.6/0", "128.0.0.0/1", "137.8.7.6/1" },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct np_inet nic = fb_inet(cases[i].nic), out = { 0 }, want;
		char text[80];
		struct np_address_source src;
		struct np_err err;
		int r;

		snprintf(text, sizeof(text), "offset:eth0:%s", cases[i].prefix);
		src = parse(text);
		r = np_address_source_offset(&src, &nic, &out, &err);
		if (!cases[i].result) {
			assert_int_equal(r, -EINVAL);
			assert_string_equal(err.code, "address.offset_no_fit");
			assert_non_null(strstr(err.message, cases[i].nic));
			assert_int_equal(out.family, 0);
			continue;
		}
		want = fb_inet(cases[i].result);
		assert_int_equal(r, 0);
		assert_true(np_inet_equal(&out, &want));
	}
}

/* ---- into the configuration ---- */

struct scene {
	struct np_facts facts;
	struct np_config cfg;
	struct np_err err;
};

static void begin(struct scene *s, const char *address)
{
	struct np_netdev *eth0;

	memset(s, 0, sizeof(*s));
	np_config_init(&s->cfg);
	assert_int_equal(np_config_set(&s->cfg, "netdev ib0", "address", address, "f:1", &s->err),
			 0);
	fb_netdev(&s->facts, "ib0", 2, "mlx5_0");
	eth0 = fb_netdev(&s->facts, "eth0", 3, "");
	eth0->type = 1;
	fb_addr(eth0, "169.254.0.9/16", 0)->scope = RT_SCOPE_LINK;
	fb_addr(eth0, "fd00::9/64", 0);
	fb_addr(eth0, "192.168.0.9/24", IFA_F_SECONDARY);
	fb_addr(eth0, "192.168.3.7/16", 0);
	fb_addr(eth0, "172.16.0.8/16", 0);
}

static void end(struct scene *s)
{
	np_facts_done(&s->facts);
	np_config_done(&s->cfg);
}

static void has(const struct np_want_netdev *want, const char *const *addresses)
{
	char text[NP_INET_STRLEN];
	size_t n = 0;

	for (; addresses[n]; n++) {
		assert_true(n < want->n_addrs);
		assert_string_equal(np_inet_str(&want->addrs[n], text), addresses[n]);
	}
	assert_int_equal(want->n_addrs, n);
}

static void test_order(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, "offset:eth0:10.1.0.0/16 10.0.0.5/24,offset:eth0:10.2.0.0/16,"
		  "offset:eth0:10.3.0.0/16,10.0.0.6/24 offset:eth0:10.4.0.0/16");
	for (int run = 0; run < 2; run++) { /* a second one changes nothing */
		assert_int_equal(np_address_sources_resolve(&s.cfg, &s.facts, &s.err), 0);
		has(&s.cfg.netdevs[0], FB_LIST("10.1.3.7/16", "10.0.0.5/24", "10.2.3.7/16",
					       "10.3.3.7/16", "10.0.0.6/24", "10.4.3.7/16"));
	}
	/* the run goes on as it began */
	s.facts.netdevs.v[1].n_addrs = 0;
	assert_int_equal(np_address_sources_resolve(&s.cfg, &s.facts, &s.err), 0);
	assert_string_equal(s.cfg.netdevs[0].sources[0].by, "eth0, 192.168.3.7/16");
	end(&s);
}

static void test_failures(void **state)
{
	static const struct {
		const char *address, *code;
		int number;
	} cases[] = {
		{ "10.0.0.1/24,offset:eth0:10.0.0.0/24", "address.offset_no_fit", -EADDRNOTAVAIL },
		{ "offset:eth0:127.0.0.0/16", "address.unusable", -EADDRNOTAVAIL },
		{ "offset:eth0:10.0.0.0/16,10.0.3.7/24", "netdev.asked_twice", -EADDRNOTAVAIL },
		{ "hosts:10.0.0.1/24", "address.hosts_name", -EADDRNOTAVAIL },
		{ "map:/no/such/map", "address.map_unreadable", -EADDRNOTAVAIL },
		{ "offset:ib0:10.0.0.0/16", "address.offset_no_address", -EADDRNOTAVAIL },
		{ "offset:eth7:10.0.0.0/16", "address.offset_no_netdev", -EADDRNOTAVAIL },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct np_address_source *src;
		struct utsname node;
		struct scene s;

		/* on a machine without a name that is said instead */
		assert_int_equal(uname(&node), 0);
		if (np_starts_with(cases[i].address, "map:") && !np_host_name_is_own(node.nodename))
			continue;
		begin(&s, cases[i].address);
		src = &s.cfg.netdevs[0].sources[0];
		assert_int_equal(np_address_sources_resolve(&s.cfg, &s.facts, &s.err),
				 cases[i].number);
		assert_int_equal(s.err.num, cases[i].number);
		assert_string_equal(s.err.code, cases[i].code);
		assert_true(np_starts_with(s.err.message, "f:1: [netdev ib0] address = "));
		assert_non_null(strstr(s.err.message, src->text));
		assert_true(s.err.hint[0] && src->failure[0] && !src->resolved);
		/* one that only shows goes on */
		assert_int_equal(np_address_sources_try(&s.cfg, &s.facts, NULL), 0);
		end(&s);
	}
}

/* The first host part of a /16 that is 0. */
static void test_network_address(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, "offset:eth0:10.0.0.0/16");
	s.facts.netdevs.v[1].addrs[3].inet = fb_inet("192.168.3.7/32");
	assert_int_equal(np_address_sources_resolve(&s.cfg, &s.facts, &s.err), -EADDRNOTAVAIL);
	assert_string_equal(s.err.code, "address.unusable");
	assert_non_null(strstr(s.err.message, "192.168.3.7/32"));
	assert_non_null(strstr(s.err.message, "network address"));
	end(&s);
}

/* --ip without a name is for ib0 here: what the file says of ib0 is not asked. */
static void test_overridden(void **state)
{
	struct scene s;

	(void)state;
	for (int named = 0; named < 2; named++) {
		begin(&s, "offset:eth9:10.0.0.0/16");
		fb_netdev(&s.facts, "ib1", 4, "mlx5_1");
		assert_int_equal(np_config_set(&s.cfg, "netdev ib1", "address",
					       "offset:eth0:10.1.0.0/16", "f:2", &s.err),
				 0);
		assert_int_equal(np_config_add_ip(&s.cfg, named ? "ib0=10.0.0.5/24" : "10.0.0.5/24",
						  &s.err),
				 0);
		assert_int_equal(np_config_finish(&s.cfg, &s.err), 0);
		assert_int_equal(np_address_sources_resolve(&s.cfg, &s.facts, &s.err), 0);
		has(&s.cfg.netdevs[1], FB_LIST("10.1.3.7/16"));
		end(&s);
	}
	/* for ib1: ib0 still needs its own */
	begin(&s, "offset:eth9:10.0.0.0/16");
	assert_int_equal(np_config_add_ip(&s.cfg, "ib1=10.0.0.5/24", &s.err), 0);
	fb_netdev(&s.facts, "ib1", 4, "mlx5_1");
	assert_int_equal(np_address_sources_resolve(&s.cfg, &s.facts, &s.err), -EADDRNOTAVAIL);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),		cmocka_unit_test(test_parse_refuses),
		cmocka_unit_test(test_names),		cmocka_unit_test(test_offset),
		cmocka_unit_test(test_order),		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_network_address), cmocka_unit_test(test_overridden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
