/* SPDX-License-Identifier: MIT */
#include "facts_build.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/config.h"

static char path[] = "/tmp/test_config.XXXXXX";

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

/* The text is refused at @line, with @code, and the message says @part. */
static void refused_bytes(const char *text, size_t len, int line, const char *code,
			  const char *part)
{
	char where[sizeof(path) + 16];
	struct np_config cfg;
	struct np_err err;

	np_err_clear(&err);
	np_config_init(&cfg);
	if (read_bytes(&cfg, text, len, &err) != -EINVAL)
		fail_msg("taken: %s", text);
	snprintf(where, sizeof(where), "%s:%d: ", path, line);
	if (!np_starts_with(err.message, where) || strcmp(err.code, code) != 0 ||
	    !strstr(err.message, part))
		fail_msg("\"%s\": [%s] %s (not line %d, %s, \"%s\")", text, err.code, err.message,
			 line, code, part);
	np_config_done(&cfg);
}

static void refused(const char *text, int line, const char *code, const char *part)
{
	refused_bytes(text, strlen(text), line, code, part);
}

/* ---- what is taken ---- */

static void test_defaults(void **state)
{
	struct np_config cfg;

	(void)state;
	read_text(&cfg, "# nothing\n\n; either\n[ports]\n");
	assert_int_equal(cfg.n_netdevs, 0);
	assert_int_equal(cfg.wait_s, 30);
	assert_int_equal(cfg.nccl_scope, NP_NCCL_BOTH);
	assert_int_equal(cfg.ucx.profile, NP_UCX_STANDARD);
	assert_int_equal(cfg.port_devices.n + cfg.port_ignore.n + cfg.n_modules + cfg.users.n, 0);
	assert_true(cfg.min_rate_gbps == 0);
	assert_null(cfg.nccl_socket_ifname);
	assert_null(cfg.ucx_tls);
	assert_false(cfg.force);
	assert_int_equal(cfg.files.n, 1);
	assert_string_equal(cfg.files.v[0], path);
	np_config_done(&cfg);
}

static void test_netdev_keys(void **state)
{
	struct np_config cfg;
	struct np_want_netdev *ib0;

	(void)state;
	read_text(&cfg, "[netdev ib0]\naddress = 10.0.0.50/24, fd00::50/64\naddress = 10.1.0.1/16\n"
			"match = mlx5_1:1\nmode = connected\nmtu = 65520\nexclusive = yes\n"
			"[netdev ib1]\nmatch = 506b:4b03:00f5:ce9c\nmtu=576\n"
			"[netdev ib2]\nmatch = 0x506b4b0300f5ce9c\nmode = datagram\n"
			"[netdev ib3]\nmatch = auto\nmode = keep\nmtu = keep\nexclusive = off\n"
			"[netdev ib4]\nmatch = mlx5_bond_0\n"
			"[netdev ib0]\naddress = 10.2.0.1/16\n");
	assert_int_equal(cfg.n_netdevs, 5);
	ib0 = &cfg.netdevs[0];
	assert_string_equal(ib0->name, "ib0");
	assert_int_equal(ib0->n_addrs, 4);
	assert_int_equal(ib0->addrs[1].family, AF_INET6);
	assert_int_equal(ib0->addrs[3].bytes[1], 2);
	assert_int_equal(ib0->match, NP_MATCH_PORT);
	assert_string_equal(ib0->match_ca, "mlx5_1");
	assert_int_equal(ib0->match_port, 1);
	assert_int_equal(ib0->mode, NP_IPOIB_CONNECTED);
	assert_int_equal(ib0->mtu, 65520);
	assert_true(ib0->exclusive);
	assert_false(ib0->from_flags);
	assert_int_equal(cfg.netdevs[1].match, NP_MATCH_GUID);
	assert_true(cfg.netdevs[1].match_guid == 0x506b4b0300f5ce9c);
	assert_int_equal(cfg.netdevs[1].mtu, 576);
	assert_true(cfg.netdevs[2].match_guid == 0x506b4b0300f5ce9c);
	assert_int_equal(cfg.netdevs[2].mode, NP_IPOIB_DATAGRAM);
	assert_int_equal(cfg.netdevs[3].match, NP_MATCH_AUTO);
	assert_int_equal(cfg.netdevs[3].mode, NP_IPOIB_MODE_UNKNOWN);
	assert_int_equal(cfg.netdevs[3].mtu, 0);
	assert_int_equal(cfg.netdevs[4].match_port, 0);
	np_config_done(&cfg);
}

static void test_other_keys(void **state)
{
	struct np_config cfg;

	(void)state;
	read_text(&cfg, "[ports]\ndevices = mlx5_0:1 mlx5_1,mlx5_2\nignore = mlx5_3:1\n"
			"min_rate = 100 Gb/sec\nwait = 0\n"
			"[module gdrdrv]\nrequire = yes\n[module nvidia]\nrequire = no\n"
			"[module gdrdrv]\nrequire = auto\n"
			"[nccl]\nscope = home\nusers = alice, bob\nusers = carol\n"
			"socket_ifname = =ib0\nib_hca = ^=mlx5_4:1\n"
			"[ucx]\nprofile = dask\ntls = rc,tcp\nnet_devices = mlx5_0:1\n"
			"[limits]\nmemlock = 64 GiB\ngroup = hpc\n[watch]\nx = y\n"
			"[netdev ib0]\npkey = 0x8001\n");
	assert_int_equal(cfg.port_devices.n, 3);
	assert_string_equal(cfg.port_devices.v[1], "mlx5_1");
	assert_string_equal(cfg.port_ignore.v[0], "mlx5_3:1");
	assert_true(cfg.min_rate_gbps == 100);
	assert_int_equal(cfg.wait_s, 0);
	assert_int_equal(cfg.n_modules, 2);
	assert_int_equal(cfg.modules[0].require, NP_REQUIRE_AUTO); /* the last word */
	assert_int_equal(cfg.modules[1].require, NP_REQUIRE_NO);
	assert_int_equal(cfg.nccl_scope, NP_NCCL_HOME);
	assert_int_equal(cfg.users.n, 3);
	assert_string_equal(cfg.nccl_socket_ifname, "=ib0");
	assert_string_equal(cfg.nccl_ib_hca, "^=mlx5_4:1");
	assert_int_equal(cfg.ucx.profile, NP_UCX_DASK);
	assert_true(cfg.memlock == UINT64_C(64) << 30 && !cfg.memlock_keep);
	assert_string_equal(cfg.limits_group, "hpc");
	assert_int_equal(cfg.warnings.n, 2);
	assert_non_null(strstr(cfg.warnings.v[0], "[watch] x"));
	assert_int_equal(np_config_finish(&cfg, NULL), 0);
	assert_string_equal(cfg.ucx.tls, "rc,tcp");
	assert_string_equal(cfg.ucx.net_devices, "mlx5_0:1");
	np_config_done(&cfg);
}

/* What editors do to files, and what inih allows. */
static void test_forms(void **state)
{
	static const char *const texts[] = {
		"\xef\xbb\xbf[ports]\r\nwait = 5\r\n", /* byte order mark, CRLF */
		"[ports]\nwait=5",		       /* no newline at the end */
		"[ports]\nwait : 5 ; why\n",
		"[ports] ; a comment that is longer than a section name may ever be, by far\nwait=5",
		"[ ports ]\n\twait = 5\n",
		"[ports]\nwait = 4\nwait = 5\n",
		"[netdev ib0]\n  mtu = keep\n  mode = keep\n  [ports]\n  wait = 5\n",
		"[module\tgdrdrv ]\nrequire = no\n[ports]\nwait = 5",
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(texts); i++) {
		struct np_config cfg;

		read_text(&cfg, texts[i]);
		assert_int_equal(cfg.wait_s, 5);
		np_config_done(&cfg);
	}
}

static void test_continued_list(void **state)
{
	struct np_config cfg;

	(void)state;
	read_text(&cfg, "[ports]\ndevices = mlx5_0,\n   mlx5_1\n\n# x\n\tmlx5_2\n");
	assert_int_equal(cfg.port_devices.n, 3);
	np_config_done(&cfg);
}

static void test_longest_line(void **state)
{
	struct np_config cfg;
	char text[400];

	(void)state;
	for (int len = 190; len <= 206; len++) {
		int used = snprintf(text, sizeof(text), "[ucx]\ntls = ");

		memset(text + used, 'x', (size_t)len - 6);
		strcpy(text + 6 + len, "\n");
		assert_int_equal(strlen(text), 6 + len + 1);
		if (len > 198) {
			refused(text, 2, "config.line_too_long", "198 bytes");
			continue;
		}
		read_text(&cfg, text);
		assert_int_equal(strlen(cfg.ucx_tls), len - 6);
		np_config_done(&cfg);
	}
}

/* ---- what is refused ---- */

static void test_unknown_names(void **state)
{
	(void)state;
	refused("[ports]\nwiat = 5\n", 2, "config.unknown_key", "did you mean \"wait\"?");
	refused("\n\n[portz]\nwait = 5\n", 3, "config.unknown_section", "did you mean \"ports\"?");
	refused("[portz]\n", 1, "config.unknown_section", "\"portz\"; did you mean"); /* no key */
	refused("[netdev ib0]\nadress = 10.0.0.1/24\n", 2, "config.unknown_key",
		"did you mean \"address\"?");
	refused("[module gdrdrvv]\nrequire = yes\n", 1, "config.unknown_section",
		"did you mean \"gdrdrv\"?");
	refused("[ports]\nxyzzyxyzzy = 5\n", 2, "config.unknown_key", "unknown key \"xyzzyxyzzy\"");
	refused("[netdev]\naddress = 10.0.0.1/24\n", 1, "config.unknown_section", "needs a name");
	refused("[ports x]\nwait = 5\n", 1, "config.unknown_section", "takes no name");
	refused("[netdev abcdefghijklmnop]\nmtu=keep\n", 1, "config.bad_value",
		"at most 15 characters");
	refused("[netdev a/b]\nmtu=keep\n", 1, "config.bad_value", "no slash");
	refused("wait = 5\n", 1, "config.syntax", "before any [section]");
	refused("[]\nwait = 5\n", 1, "config.unknown_section", "unknown section \"\"");
	refused("[ports]\nwait = 5\n[ports\n", 3, "config.syntax", "without its ]");
	refused("[ports]\nnonsense\n", 2, "config.syntax", "neither [section]");
}

static void test_bad_values(void **state)
{
	static const struct {
		const char *section, *line, *part;
	} cases[] = {
		{ "netdev ib0", "mtu = 575", "576 to 65520" },
		{ "netdev ib0", "mtu = 65521", "576 to 65520" },
		{ "netdev ib0", "mtu = -1", "576 to 65520" },
		{ "netdev ib0", "mode = Connected", "connected, datagram or keep" },
		{ "netdev ib0", "exclusive = perhaps", "yes or no" },
		{ "netdev ib0", "match = mlx5_0:0", "GUID" },
		{ "netdev ib0", "match = mlx5_0:256", "GUID" },
		{ "netdev ib0", "match =", "GUID" },
		{ "netdev ib0", "address = hosts:%h-ib0", "hosts:NAME/LEN" },
		{ "netdev ib0", "address = 10.0.0.1/24, map:nodes", "absolute path" },
		{ "netdev ib0", "address = offset:eth0", "offset:NETDEV:PREFIX/LEN" },
		{ "ports", "devices = mlx5_0:1;x,mlx5_1:1", "CA:PORT" },
		{ "ports", "ignore = ../x", "CA:PORT" },
		{ "ports", "min_rate = fast", "Gb/sec" },
		{ "ports", "min_rate = 100 MB/s", "Gb/sec" },
		{ "ports", "min_rate =", "Gb/sec" },
		{ "ports", "min_rate = 100 Gb/sec now", "Gb/sec" },
		{ "ports", "wait = 3601", "0 to 3600" },
		{ "ports", "wait = 1.5", "0 to 3600" },
		{ "module gdrdrv", "require = maybe", "auto, yes or no" },
		{ "module gdrdrv", "mode = 0999", "octal" },
		{ "module gdrdrv", "mode = 4755", "octal" },
		{ "module gdrdrv", "mode = rw", "octal" },
		{ "module gdrdrv", "group = a b", "name of a group" },
		{ "module gdrdrv", "ignore_blacklist = perhaps", "yes or no" },
		{ "module gdrdrv", "options = a=1 b=2\\", "at the end" },
		{ "module gdrdrv", "options = a=\x1b", "plain text" },
		{ "nccl", "scope = everywhere", "both, home" },
		{ "nccl", "socket_ifname = ib0 ib1", "without blanks" },
		{ "nccl", "ib_hca = mlx5_0\t", NULL }, /* the reader cuts that one */
		{ "nccl", "ib_hca =", "leave the key out" },
		{ "nccl", "socket_ifname = ib\xc3\xa4", "without blanks" },
		{ "ucx", "profile = fast", "standard, guide" },
		{ "ucx", "tls = $(id)", "only letters" },
		{ "ucx", "tls =", "leave the key out" },
		{ "ucx", "net_devices = \"mlx5_0:1\"", "only letters" },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		char text[200];

		snprintf(text, sizeof(text), "# one\n[%s]\n%s\n", cases[i].section, cases[i].line);
		if (cases[i].part) {
			refused(text, 3, "config.bad_value", cases[i].part);
		} else {
			struct np_config cfg;

			read_text(&cfg, text);
			assert_string_equal(cfg.nccl_ib_hca, "mlx5_0");
			np_config_done(&cfg);
		}
	}
	refused("[netdev ib0]\naddress = 10.0.0.1/24\naddress = 10.0.0.500/24\n", 3,
		"usage.address", "not an IPv4 or IPv6 address");
}

static void test_broken_files(void **state)
{
	char long_section[100];
	struct np_config cfg;
	struct np_err err;

	(void)state;
	refused_bytes("[ports]\nwait\0 = 5\n", 18, 2, "config.syntax", "NUL");
	for (int indent = 0; indent < 2; indent++) {
		memset(long_section, 'x', sizeof(long_section));
		memcpy(long_section, indent ? " [" : "[n", 2);
		strcpy(long_section + 70, "]\n");
		refused(long_section, 1, "config.line_too_long", "48 bytes");
	}
	np_err_clear(&err);
	np_config_init(&cfg);
	assert_int_equal(np_config_read(&cfg, "/no/such/file", &err), -ENOENT);
	assert_string_equal(err.code, "config.unreadable");
	assert_non_null(strstr(err.message, "/no/such/file"));
	assert_int_equal(np_config_load(&cfg, "/no/such/file", &err), -ENOENT);
	assert_int_equal(np_config_read(&cfg, "/tmp", &err), -EISDIR);
	/* a FIFO would make a boot wait for ever */
	assert_int_equal(mkfifo("/tmp/test_config.fifo", 0600), 0);
	assert_int_equal(np_config_read(&cfg, "/tmp/test_config.fifo", &err), -ENOTSUP);
	assert_string_equal(err.code, "config.unreadable");
	unlink("/tmp/test_config.fifo");
	np_config_done(&cfg);
}

/* ---- address sources ---- */

static void test_sources(void **state)
{
	const struct np_want_netdev *ib0;
	struct np_config cfg;
	struct np_err err;
	char where[80];

	(void)state;
	read_text(&cfg, "[netdev ib0]\naddress = 10.0.0.1/24 hosts:%h-ib0/24,map:/etc/m\n"
			"address = 10.0.0.2/24, offset:eth0:10.9.0.0/16\n");
	assert_int_equal(cfg.n_netdevs, 1);
	ib0 = &cfg.netdevs[0];
	assert_int_equal(ib0->n_addrs, 2);
	assert_int_equal(ib0->n_sources, 3);
	assert_string_equal(ib0->sources[0].text, "hosts:%h-ib0/24");
	snprintf(where, sizeof(where), "%s:2", cfg.files.v[0]);
	assert_string_equal(ib0->sources[0].where, where);
	assert_int_equal(ib0->sources[0].at, 1);
	assert_int_equal(ib0->sources[1].at, 1);
	assert_int_equal(ib0->sources[2].at, 2);
	assert_string_equal(ib0->sources[2].subject, "eth0");
	/* --ip takes the place of all of them */
	np_err_clear(&err);
	assert_int_equal(np_config_add_ip(&cfg, "ib0=10.0.0.9/24", &err), 0);
	assert_int_equal(np_config_finish(&cfg, &err), 0);
	assert_int_equal(cfg.netdevs[0].n_addrs, 1);
	assert_int_equal(cfg.netdevs[0].n_sources, 0);
	np_config_done(&cfg);
	/* by way of --ifname too */
	read_text(&cfg, "[netdev ib0]\naddress = map:/etc/m\n");
	np_strcpy(cfg.ifname, sizeof(cfg.ifname), "ib0");
	assert_int_equal(np_config_add_ip(&cfg, "10.0.0.9/24", &err), 0);
	assert_int_equal(np_config_finish(&cfg, &err), 0);
	assert_int_equal(cfg.n_netdevs, 1);
	assert_int_equal(cfg.netdevs[0].n_addrs, 1);
	assert_int_equal(cfg.netdevs[0].n_sources, 0);
	np_config_done(&cfg);
}

/* ---- rows: what `show config` prints is a file that says the same ---- */

static void rows_text(const struct np_config *cfg, struct np_buf *out)
{
	struct np_config_row *rows = NULL;
	size_t n = 0;

	assert_int_equal(np_config_rows(cfg, &rows, &n), 0);
	for (size_t i = 0; i < n; i++)
		np_buf_printf(out, "[%s]\n%s = %s\n", rows[i].section, rows[i].key, rows[i].value);
	np_config_rows_free(rows, n);
}

static void test_rows_read_back(void **state)
{
	static const char *const texts[] = {
		"",
		"[netdev ib0]\naddress = 10.0.0.50/24, fd00::50/64\nmatch = mlx5_1:1\nmode = "
		"connected\nmtu = 65520\nexclusive = yes\n[netdev ib1]\nmatch = 0x506b4b0300f5ce9c\n"
		"[netdev ib2]\nmatch = auto\n[netdev ib3]\nmatch = mlx5_2\nmode = datagram\n",
		"[ports]\ndevices = mlx5_0:1 mlx5_1\nignore = mlx5_3:1\nmin_rate = 100\nwait = 0\n"
		"[module gdrdrv]\nrequire = yes\n[nccl]\nscope = off\nusers = alice bob\n"
		"socket_ifname = =ib0\nib_hca = mlx5_0:1\n[ucx]\nprofile = guide\ntls = rc\n"
		"net_devices = mlx5_0:1\n",
		"[netdev ib0]\naddress = map:/m, 10.0.0.50/24, hosts:%H/64, offset:e:10.0.0.0/8\n",
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(texts); i++) {
		np_auto_buf struct np_buf first = { 0 };
		np_auto_buf struct np_buf second = { 0 };
		struct np_config cfg;

		read_text(&cfg, texts[i]);
		rows_text(&cfg, &first);
		np_config_done(&cfg);
		read_text(&cfg, first.data);
		rows_text(&cfg, &second);
		np_config_done(&cfg);
		assert_string_equal(first.data, second.data);
		if (i == 1) {
			assert_non_null(strstr(first.data, "match = 0x506b4b0300f5ce9c\n"));
			assert_non_null(strstr(first.data, "address = 10.0.0.50/24,fd00::50/64\n"));
		}
		if (i == 3)
			assert_non_null(strstr(
				first.data,
				"address = map:/m,10.0.0.50/24,hosts:%H/64,offset:e:10.0.0.0/8\n"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),       cmocka_unit_test(test_netdev_keys),
		cmocka_unit_test(test_other_keys),     cmocka_unit_test(test_forms),
		cmocka_unit_test(test_continued_list), cmocka_unit_test(test_longest_line),
		cmocka_unit_test(test_unknown_names),  cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_broken_files),   cmocka_unit_test(test_rows_read_back),
		cmocka_unit_test(test_sources),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
