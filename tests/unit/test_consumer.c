/* SPDX-License-Identifier: MIT */
/* Files, units and lists as their consumers read them. */
#include <linux/rtnetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "agent/consumer_nccl.h"
#include "agent/consumer_ucx.h"
#include "agent/consumer_unit.h"

/* "A=1@2 B!@3": what is in force, with lines; ! is taken away */
static void assert_settings(const struct np_settings *list, const char *expected)
{
	np_auto_buf struct np_buf text = { 0 };

	np_buf_str(&text, "");
	for (size_t i = 0; i < list->n; i++) {
		const struct np_setting *s = &list->v[i];

		np_buf_printf(&text, "%s%s%s%s%s@%d", text.len ? " " : "",
			      s->state == NP_SETTING_TAKEN ? "" :
			      s->state == NP_SETTING_MAYBE ? "?" :
							     "-",
			      s->name, s->value ? "=" : "!", s->value ? s->value : "", s->line);
	}
	assert_string_equal(text.data, expected);
}

static void test_pam_env(void **state)
{
	static const struct {
		const char *text, *expected;
	} table[] = {
		{ "A=1\nB=2\n", "A=1@1 B=2@2" },
		{ "# x\n\n  export A=\"a b\" # c\nnonsense\nB='x", "A=a b@3 B=x@5" },
		{ "A=1\nA=", "A=1@1 A!@2" },
		{ "A-B=1\n=1\n1A=1\nA=b\"c\n", "A=b\"c@4" },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(table); i++) {
		np_auto_settings struct np_settings list = { 0 };

		np_settings_pam_env(&list, "f", table[i].text, strlen(table[i].text));
		assert_settings(&list, table[i].expected);
	}
}

static void test_env_file(void **state)
{
	static const struct {
		const char *text, *expected;
	} table[] = {
		{ "A=1\nB = x\n", "A=1@1" },
		{ "; c\n# c\\\nX=1\nA=a b  \nB=\"q  \" \n", "A=a b@4 B=q  @5" },
		{ "A=a\\\nb\nB='$x\\'\nC=\"\\\"\\x\"", "A=ab@1 B=$x\\@3 C=\"\\x@4" },
		{ "export A=1\nB=\n", "B=@2" },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(table); i++) {
		np_auto_settings struct np_settings list = { 0 };

		np_settings_env_file(&list, "f", table[i].text, strlen(table[i].text));
		assert_settings(&list, table[i].expected);
	}
}

static void test_environ(void **state)
{
	static const char data[] = "A=1\0B=\0A=2\0odd\0=x\0C=a=b";
	np_auto_settings struct np_settings list = { 0 };

	(void)state;
	np_settings_environ(&list, "f", data, sizeof(data) - 1);
	assert_settings(&list, "A=1@0 B=@0 C=a=b@0");
	assert_string_equal(np_settings_value(&list, "B"), "");
}

static void test_nccl_conf(void **state)
{
	static const char etc[] = "NCCL_SOCKET_IFNAME=ib0\nNCCL_DEBUG=WARN\n",
			  home[] = "#NCCL_DEBUG=A\nNCCL_DEBUG=INFO\nNCCL_DEBUG=TRACE\n B=1\n";
	np_auto_settings struct np_settings list = { 0 };
	const struct np_setting *s;

	(void)state;
	np_nccl_conf_settings(&list, "/etc/nccl.conf", etc, strlen(etc));
	np_nccl_conf_settings(&list, "/home/a/.nccl.conf", home, strlen(home));
	s = np_settings_find(&list, "NCCL_DEBUG", NULL);
	assert_string_equal(s->value, "INFO");
	assert_int_equal(s->line, 2);
	assert_string_equal(np_settings_value(&list, "NCCL_SOCKET_IFNAME"), "ib0");
}

static void test_ucx_conf(void **state)
{
	np_auto(np_checks_done) struct np_checks notes = { 0 };
	np_auto_settings struct np_settings list = { 0 };
	np_auto_buf struct np_buf text = { 0 };
	static const char plain[] = "\xef\xbb\xbfUCX_TLS = rc ; c\n# x\n;y\nUCX_LOG_LEVEL:info\n"
				    "UCX_TLS=tcp;self\n  more\n[Grace]\nCPU model = x\n";

	(void)state;
	np_ucx_conf_settings(&list, "f", plain, strlen(plain), &notes);
	assert_settings(&list, "UCX_TLS=rc@1 UCX_LOG_LEVEL=info@4 UCX_TLS=tcp;self@5 "
			       "UCX_TLS=more@6 ?CPU model=x@8");
	assert_int_equal(notes.n, 0);
	np_settings_done(&list);
	/* cut at 199 bytes; what is behind is a line of its own */
	np_buf_str(&text, "UCX_A=");
	while (text.len < 199)
		np_buf_str(&text, "x");
	np_buf_str(&text, "UCX_B=1\n");
	np_ucx_conf_settings(&list, "f", text.data, text.len, &notes);
	assert_int_equal(list.n, 2);
	assert_int_equal(strlen(list.v[0].value), 199 - 6);
	assert_string_equal(list.v[1].name, "UCX_B");
	assert_int_equal(list.v[1].line, 1);
	assert_int_equal(notes.n, 1);
	assert_string_equal(notes.v[0].code, "ucx.line_too_long");
}

static void test_dask(void **state)
{
	static const struct {
		const char *text;
		int line;
	} table[] = {
		{ "distributed:\n  comm:\n    ucx:\n      tcp: true\n", 4 },
		{ "distributed-ucxx:\n\n  # c\n  infiniband: true\n", 4 },
		{ "distributed:\n  comm:\n    ucx: {tcp: true}\n", 3 },
		{ "distributed:\n  comm:\n    ucx:\n    tls: x\n", 0 },
		{ "distributed:\n  worker:\n    memory: 1\n#ucx:\n#  tcp: 1\n", 0 },
		{ "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(table); i++)
		assert_int_equal(np_dask_ucx_line(table[i].text, strlen(table[i].text)),
				 table[i].line);
}

/* ---- units ---- */

static void test_unit(void **state)
{
	static const char fragment[] =
		"[Unit]\nEnvironment=X=1\n[Service]\nEnvironment=A=1 \"B=b c\" 'C=d'\\\n  D=%i\n"
		"EnvironmentFile=-/etc/x.env\nUser=alice\nWorkingDirectory=-%h/w\n"
		"LimitMEMLOCK=infinity\n# Environment=Z=1\nUnsetEnvironment=A\n",
			  dropin[] = "[Service]\nEnvironment=A=2\nEnvironmentFile=\n"
				     "EnvironmentFile=/etc/%p.env\nPassEnvironment=UCX_TLS X\n";
	const struct np_unit_names names = { "dask-worker@3.service", "node01", "/root" };
	struct np_unit unit = { 0 };

	(void)state;
	np_unit_parse(&unit, &names, "u", fragment, strlen(fragment));
	np_unit_parse(&unit, &names, "d", dropin, strlen(dropin));
	assert_false(unit.failed);
	assert_settings(&unit.env, "A=1@4 B=b c@4 C=d@4 D=3@4 A=2@2");
	assert_int_equal(unit.n_files, 1);
	assert_string_equal(unit.files[0].path, "/etc/dask-worker.env");
	assert_false(unit.files[0].may_lack);
	assert_int_equal(unit.files[0].line, 4);
	assert_string_equal(unit.user, "alice");
	assert_string_equal(unit.directory, "/root/w");
	assert_string_equal(unit.memlock, "infinity");
	assert_int_equal(unit.memlock_line, 9);
	assert_settings(&unit.unset, "A!@11");
	assert_int_equal(unit.pass.n, 2);
	np_unit_done(&unit);
}

static void test_unit_reset(void **state)
{
	static const char text[] = "[Service]\nEnvironment=A=1\nEnvironment=\nEnvironment=B=%%x\n";
	static const char defaults[] = "[Manager]\nDefaultEnvironment=UCX_TLS=rc\n";
	const struct np_unit_names names = { "a.service", NULL, NULL };
	struct np_unit unit = { 0 };

	(void)state;
	np_unit_parse_defaults(&unit, "s", defaults, strlen(defaults));
	np_unit_parse(&unit, &names, "u", text, strlen(text));
	assert_settings(&unit.env, "-UCX_TLS=rc@2 -A=1@2 B=%x@4");
	np_unit_done(&unit);
}

/* ---- on a node ---- */

static struct np_netdev_addr v4 = { .inet = { .family = AF_INET, .prefix_len = 24 } };
static struct np_netdev_addr link_local = { .inet = { .family = AF_INET6, .prefix_len = 64 },
					    .scope = RT_SCOPE_LINK };

static void make_node(struct np_facts *facts, struct np_netdev devs[4], struct np_ca *ca,
		      struct np_port ports[2])
{
	static const char *const names[] = { "lo", "eth0", "ib0", "ib0.8001" };

	memset(facts, 0, sizeof(*facts));
	memset(devs, 0, 4 * sizeof(*devs));
	for (int i = 0; i < 4; i++) {
		np_strcpy(devs[i].name, sizeof(devs[i].name), names[i]);
		devs[i].flags = IFF_UP | IFF_RUNNING | (i == 0 ? IFF_LOOPBACK : 0);
		devs[i].type = i >= 2 ? 32 : 1;
		devs[i].addrs = i == 3 ? &link_local : &v4;
		devs[i].n_addrs = 1;
	}
	memset(ca, 0, sizeof(*ca));
	memset(ports, 0, 2 * sizeof(*ports));
	np_strcpy(ca->name, sizeof(ca->name), "mlx5_0");
	ports[0].num = 1;
	ports[0].state = NP_PORT_ACTIVE;
	ports[1].num = 2;
	ports[1].state = NP_PORT_DOWN;
	ca->ports = ports;
	ca->n_ports = 2;
	facts->netdevs.v = devs;
	facts->netdevs.n = 4;
	facts->cas.v = ca;
	facts->cas.n = 1;
}

static void assert_list(const struct np_strv *list, const char *expected)
{
	np_auto_buf struct np_buf text = { 0 };

	np_buf_str(&text, "");
	for (size_t i = 0; i < list->n; i++)
		np_buf_printf(&text, "%s%s", i ? " " : "", list->v[i]);
	assert_string_equal(text.data, expected);
}

static void assert_codes(const struct np_checks *checks, const char *expected)
{
	np_auto_buf struct np_buf text = { 0 };

	np_buf_str(&text, "");
	for (size_t i = 0; i < checks->n; i++)
		np_buf_printf(&text, "%s%s", i ? " " : "", checks->v[i].code);
	assert_string_equal(text.data, expected);
}

static void test_ifname(void **state)
{
	static const struct {
		const char *value, *matches, *codes;
	} table[] = {
		{ NULL, "ib0", "" },
		{ "i", "ib0", "" },
		{ "ib0", "ib0", "" },
		{ "eth,ib", "eth0 ib0", "" },
		{ "^ib,lo", "eth0", "" },
		{ "=ib0.8001", "", "nccl.no_address" },
		{ "ibs22f0", "", "nccl.matches_nothing" },
		{ "=ib", "", "nccl.matches_nothing" },
	};
	struct np_netdev devs[4];
	struct np_port ports[2];
	struct np_facts facts;
	struct np_ca ca;

	(void)state;
	make_node(&facts, devs, &ca, ports);
	for (size_t i = 0; i < NP_ARRAY_SIZE(table); i++) {
		np_auto(np_checks_done) struct np_checks checks = { 0 };
		np_auto_strv struct np_strv matches = { 0 };

		assert_int_equal(
			np_nccl_judge_ifname(table[i].value, "t", &facts, &matches, &checks), 0);
		assert_list(&matches, table[i].matches);
		assert_codes(&checks, table[i].codes);
	}
}

static void test_hca(void **state)
{
	static const struct {
		const char *value, *matches, *codes;
	} table[] = {
		{ NULL, "mlx5_0:1", "" },
		{ "mlx5", "mlx5_0:1", "" },
		{ "mlx5_0:2", "", "nccl.matches_nothing" },
		{ "=mlx5", "", "nccl.matches_nothing" },
		{ "^mlx5_1", "mlx5_0:1", "" },
	};
	struct np_netdev devs[4];
	struct np_port ports[2];
	struct np_facts facts;
	struct np_ca ca;

	(void)state;
	make_node(&facts, devs, &ca, ports);
	for (size_t i = 0; i < NP_ARRAY_SIZE(table); i++) {
		np_auto(np_checks_done) struct np_checks checks = { 0 };
		np_auto_strv struct np_strv matches = { 0 };

		assert_int_equal(np_nccl_judge_hca(table[i].value, "t", &facts, &matches, &checks),
				 0);
		assert_list(&matches, table[i].matches);
		assert_codes(&checks, table[i].codes);
	}
}

static void test_ucx_values(void **state)
{
	static const struct {
		const char *tls, *devices, *matches, *codes;
	} table[] = {
		{ NULL, NULL, "mlx5_0:1 eth0 ib0", "" },
		{ "rc,tcp,sm,self", "mlx5_0:1,ib0", "mlx5_0:1 ib0", "" },
		{ "rc,tcp,sm,self", "mlx5_0:1", "mlx5_0:1", "ucx.tcp_unusable" },
		{ "rc,tcp,sm,self", "mlx5_0:1,ib0.8001", "mlx5_0:1",
		  "ucx.net_device_unusable ucx.tcp_unusable" },
		{ "rc,tcp,sm,self", "mlx5_0:1,lo", "mlx5_0:1",
		  "ucx.net_device_unusable ucx.tcp_unusable" },
		{ "rc,sm,self", "mlx5_0:1", "mlx5_0:1", "" },
		{ "rc,cuda_copy", "mlx5_0:1", "mlx5_0:1", "ucx.no_shared_memory" },
		{ "all", "mlx5_0:2,mlx5_0,mlx5_9:1", "",
		  "ucx.net_device_unusable ucx.net_device_unusable ucx.net_device_unusable" },
		{ "^tcp", "^ib0", "mlx5_0:1 eth0", "" },
		{ "tcp,sm,self", "^ib0,eth0", "mlx5_0:1", "ucx.tcp_unusable" },
		{ "tcp,sm,self", "all", "mlx5_0:1 eth0 ib0", "" },
	};
	struct np_netdev devs[4];
	struct np_port ports[2];
	struct np_facts facts;
	struct np_ca ca;

	(void)state;
	make_node(&facts, devs, &ca, ports);
	for (size_t i = 0; i < NP_ARRAY_SIZE(table); i++) {
		np_auto(np_checks_done) struct np_checks checks = { 0 };
		np_auto_strv struct np_strv matches = { 0 };

		assert_int_equal(np_ucx_judge_net_devices(table[i].devices, "t", &facts, &matches,
							  &checks),
				 0);
		np_ucx_judge_tls(table[i].tls, table[i].devices, "t", &facts, &checks);
		assert_list(&matches, table[i].matches);
		assert_codes(&checks, table[i].codes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pam_env),	   cmocka_unit_test(test_env_file),
		cmocka_unit_test(test_environ),	   cmocka_unit_test(test_nccl_conf),
		cmocka_unit_test(test_ucx_conf),   cmocka_unit_test(test_dask),
		cmocka_unit_test(test_unit),	   cmocka_unit_test(test_unit_reset),
		cmocka_unit_test(test_ifname),	   cmocka_unit_test(test_hca),
		cmocka_unit_test(test_ucx_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
