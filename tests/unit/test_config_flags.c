/* SPDX-License-Identifier: MIT */
#include "facts_build.h"

#include <fcntl.h>
#include <unistd.h>

#include "agent/config.h"

static char path[] = "/tmp/test_config_flags.XXXXXX";

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	close(fd);
	return fd < 0;
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

/* Reads @text as a file. @err may be NULL: then it must be right. */
static int read_bytes(struct np_config *cfg, const char *text, size_t len, struct np_err *err)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC), r;
	struct np_err own;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	close(fd);
	np_err_clear(&own);
	r = np_config_read(cfg, path, err ? err : &own);
	if (r < 0 && !err)
		fail_msg("%s", own.message);
	return r;
}

static void read_text(struct np_config *cfg, const char *text)
{
	np_config_init(cfg);
	assert_int_equal(read_bytes(cfg, text, strlen(text), NULL), 0);
}

/* ---- --ip and --ifname against the files ---- */

static void add_ips(struct np_config *cfg, const char *const *ips)
{
	for (; *ips; ips++)
		assert_int_equal(np_config_add_ip(cfg, *ips, NULL), 0);
}

static void test_named_ip_replaces(void **state)
{
	struct np_config cfg;

	(void)state;
	read_text(&cfg, "[netdev ib0]\naddress = 10.0.0.1/24 10.0.0.2/24\nmtu = 2044\n"
			"[netdev ib1]\naddress = 10.0.1.1/24\n");
	add_ips(&cfg, FB_LIST("ib0=10.0.0.50/24", "ib0=10.0.0.51/24", "ib2=10.0.2.1/24"));
	assert_int_equal(np_config_finish(&cfg, NULL), 0);
	assert_int_equal(cfg.n_netdevs, 3);
	assert_int_equal(cfg.netdevs[0].n_addrs, 2);
	assert_int_equal(cfg.netdevs[0].addrs[0].bytes[3], 50);
	assert_int_equal(cfg.netdevs[0].mtu, 2044); /* the rest of the section holds */
	assert_true(cfg.netdevs[0].from_flags);
	assert_int_equal(cfg.netdevs[1].n_addrs, 1);
	assert_string_equal(cfg.netdevs[2].name, "ib2");
	np_config_done(&cfg);
}

/* The very address that the file has, or another length of it, is no contradiction. */
static void test_unnamed_ip_over_file(void **state)
{
	static const char *const ips[] = { "10.0.0.50/24", "10.0.0.50/16", "10.0.0.60/24" };

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(ips); i++) {
		struct np_config cfg;
		struct np_err err;

		np_err_clear(&err);
		read_text(&cfg, "[netdev ib0]\naddress = 10.0.0.50/24\n");
		add_ips(&cfg, FB_LIST(ips[i]));
		if (np_config_finish(&cfg, &err) < 0)
			fail_msg("%s: %s", ips[i], err.message);
		np_config_done(&cfg);
	}
}

static void test_ifname(void **state)
{
	struct np_config cfg;

	(void)state;
	/* gives --ip its name, */
	np_config_init(&cfg);
	strcpy(cfg.ifname, "ib7");
	add_ips(&cfg, FB_LIST("10.0.0.50/24"));
	assert_int_equal(np_config_finish(&cfg, NULL), 0);
	assert_int_equal(cfg.n_netdevs, 1);
	assert_string_equal(cfg.netdevs[0].name, "ib7");
	np_config_done(&cfg);
	/* stands for itself, */
	np_config_init(&cfg);
	strcpy(cfg.ifname, "ib7");
	assert_int_equal(np_config_finish(&cfg, NULL), 0);
	assert_int_equal(cfg.n_netdevs, 1);
	assert_int_equal(cfg.netdevs[0].n_addrs, 0);
	np_config_done(&cfg);
	/* and joins what the files and a named --ip say of that netdev */
	read_text(&cfg,
		  "[netdev ib6]\nmtu = 2044\n[netdev ib7]\naddress = 10.0.0.1/24\nmtu=2044\n");
	strcpy(cfg.ifname, "ib7");
	add_ips(&cfg, FB_LIST("10.0.0.50/24", "10.0.0.51/24", "ib7=10.0.0.52/24"));
	assert_int_equal(np_config_finish(&cfg, NULL), 0);
	assert_int_equal(cfg.n_netdevs, 2);
	assert_string_equal(cfg.netdevs[1].name, "ib7");
	assert_int_equal(cfg.netdevs[1].n_addrs, 3);
	assert_int_equal(cfg.netdevs[1].mtu, 2044);
	np_config_done(&cfg);
}

static void test_bad_ip_flags(void **state)
{
	static const char *const texts[] = {
		"=10.0.0.1/24", "abcdefghijklmnop=10.0.0.1/24", "ib0=", "ib0", "",
		"ib0=10.0.0.1", "ib0=ib1=10.0.0.1/24"
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(texts); i++) {
		struct np_config cfg;
		struct np_err err;

		np_err_clear(&err);
		np_config_init(&cfg);
		assert_int_equal(np_config_add_ip(&cfg, texts[i], &err), -EINVAL);
		assert_string_equal(err.code, "usage.address");
		assert_non_null(strstr(err.message, "--ip"));
		assert_int_equal(cfg.n_netdevs, 0);
		np_config_done(&cfg);
	}
}

static void test_duplicates(void **state)
{
	static const struct {
		const char *file;
		const char *ips[4];
	} cases[] = {
		{ "", { "10.0.0.50/24", "10.0.0.50/24" } },
		{ "", { "10.0.0.50/24", "10.0.0.50/16" } },
		{ "", { "10.0.0.50/24", "ib1=10.0.0.50/24" } },
		{ "", { "ib0=10.0.0.50/24", "ib1=10.0.0.50/24" } },
		{ "",
		  { "ib0=10.0.0.1/24", "ib1=10.0.1.1/24", "ib0=fd00::1/64", "ib1=fd00::1/48" } },
		{ "[netdev ib0]\naddress = 10.0.0.1/24, 10.0.0.1/24\n", { NULL } },
		{ "[netdev ib0]\naddress = 10.0.0.1/24\n[netdev ib1]\naddress=10.0.0.1/24\n",
		  { NULL } },
		{ "[netdev ib1]\naddress = 10.0.0.1/24\n", { "ib0=10.0.0.1/24" } },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct np_config cfg;
		struct np_err err;

		np_err_clear(&err);
		read_text(&cfg, cases[i].file);
		for (size_t k = 0; k < 4 && cases[i].ips[k]; k++)
			assert_int_equal(np_config_add_ip(&cfg, cases[i].ips[k], &err), 0);
		if (np_config_finish(&cfg, &err) != -EINVAL)
			fail_msg("case %zu was taken", i);
		assert_string_equal(err.code, "usage.address");
		assert_non_null(strstr(err.message, "twice"));
		np_config_done(&cfg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_named_ip_replaces),
		cmocka_unit_test(test_unnamed_ip_over_file),
		cmocka_unit_test(test_ifname),
		cmocka_unit_test(test_bad_ip_flags),
		cmocka_unit_test(test_duplicates),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
