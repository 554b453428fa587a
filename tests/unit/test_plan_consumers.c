/* SPDX-License-Identifier: MIT */
/* NCCL's files where they would mislead: C3, C8, and homes that shadow /etc/nccl.conf; and
 * UCX's modulefile in the place of its scripts. */
#include "facts_build.h"

#include "agent/judge.h"
#include "agent/plan.h"

struct scene {
	struct np_facts facts;
	struct np_config cfg;
	struct np_actions actions;
	struct np_checks checks;
	struct np_err err;
};

static void begin(struct scene *s)
{
	memset(s, 0, sizeof(*s));
	fb_guide(&s->facts);
	fb_config(&s->cfg, FB_LIST("10.0.0.50/24"));
}

static void end(struct scene *s)
{
	np_actions_done(&s->actions);
	np_checks_done(&s->checks);
	np_facts_done(&s->facts);
	np_config_done(&s->cfg);
}

static void set(struct scene *s, const char *section, const char *key, const char *value)
{
	if (np_config_set(&s->cfg, section, key, value, "x:1", &s->err) < 0)
		fail_msg("%s", s->err.message);
}

/* The planned content of a file, "(removed)", or NULL: it stays as it is. */
static const char *planned(struct scene *s, const char *path)
{
	np_actions_done(&s->actions);
	if (np_config_finish(&s->cfg, &s->err) < 0 ||
	    np_plan_make(&s->cfg, &s->facts, NP_PLAN_FILES, &s->actions, &s->err) < 0)
		fail_msg("%s", s->err.message);
	for (size_t i = 0; i < s->actions.n; i++)
		if (strcmp(s->actions.v[i].path, path) == 0)
			return s->actions.v[i].has_new ? s->actions.v[i].new_content.data :
							 "(removed)";
	return NULL;
}

static bool plans(struct scene *s, const char *path)
{
	return planned(s, path);
}

static const struct np_check *judge(struct scene *s, const char *code)
{
	np_auto_selection struct np_selection sel = { 0 };

	assert_int_equal(np_config_finish(&s->cfg, &s->err), 0);
	assert_int_equal(np_select(&s->cfg, &s->facts, &sel, &s->err), 0);
	np_checks_done(&s->checks);
	np_judge_consumers(&s->cfg, &s->facts, &sel, &s->checks);
	for (size_t i = 0; i < s->checks.n; i++)
		if (strcmp(s->checks.v[i].code, code) == 0)
			return &s->checks.v[i];
	return NULL;
}

static struct np_target_file *file(struct scene *s, enum np_file_role role)
{
	for (size_t i = 0; i < s->facts.n_files; i++)
		if (s->facts.files[i].role == role)
			return &s->facts.files[i].file;
	fail();
	return NULL;
}

static void present(struct scene *s, enum np_file_role role, const char *text)
{
	struct np_target_file *f = file(s, role);

	f->status = NP_TARGET_PRESENT;
	np_buf_done(&f->content);
	np_buf_str(&f->content, text);
}

#define HOME "/home/someone/.nccl.conf"
#define ETC  "/etc/nccl.conf"

static void test_no_such_interface(void **state)
{
	const struct np_check *check;
	struct scene s;

	(void)state;
	begin(&s);
	set(&s, "nccl", "socket_ifname", "eth0,eth1");
	set(&s, "nccl", "ib_hca", "^mlx5_9");
	assert_string_equal(np_plan_ifname_refused(&s.cfg, &s.facts, NULL), "nccl.matches_nothing");
	assert_false(plans(&s, ETC) || plans(&s, HOME));
	check = judge(&s, "nccl.matches_nothing");
	assert_non_null(check);
	assert_int_equal(check->status, NP_CHECK_FAIL);
	assert_non_null(strstr(check->message, "ib0"));
	/* one is here, without an address */
	fb_netdev(&s.facts, "eth1", 9, "");
	assert_false(plans(&s, ETC));
	assert_non_null(judge(&s, "nccl.no_address"));
	fb_addr(&s.facts.netdevs.v[1], "192.0.2.1/24", 0);
	assert_true(plans(&s, ETC) && plans(&s, HOME));
	assert_null(judge(&s, "nccl.no_address"));
	end(&s);
	/* what is about to get its address will do, and so does an exclusion */
	begin(&s);
	set(&s, "nccl", "socket_ifname", "=ib0");
	assert_true(plans(&s, ETC));
	set(&s, "nccl", "socket_ifname", "^eth7");
	assert_true(plans(&s, ETC));
	end(&s);
}

static void test_shared_home(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	np_strcpy(s.cfg.implied_user, sizeof(s.cfg.implied_user), "someone");
	assert_true(plans(&s, HOME));
	/* nobody has named it, and other nodes may read it */
	file(&s, NP_ROLE_NCCL_HOME)->network_fs = true;
	assert_false(plans(&s, HOME));
	assert_true(plans(&s, ETC));
	set(&s, "nccl", "scope", "home");
	assert_true(plans(&s, HOME));
	end(&s);
	begin(&s);
	file(&s, NP_ROLE_NCCL_HOME)->network_fs = true;
	assert_true(plans(&s, HOME));
	end(&s);
}

static void test_shadowed(void **state)
{
	const struct np_check *check;
	struct scene s;

	(void)state;
	begin(&s);
	present(&s, NP_ROLE_NCCL_HOME, "A=1\nNCCL_SOCKET_IFNAME=eth0\n");
	present(&s, NP_ROLE_NCCL_ETC, "NCCL_SOCKET_IFNAME=ib0\n");
	/* it is about to be set right */
	assert_null(judge(&s, "nccl.shadowed"));
	set(&s, "nccl", "scope", "system");
	check = judge(&s, "nccl.shadowed");
	assert_non_null(check);
	assert_int_equal(check->status, NP_CHECK_WARN);
	assert_string_equal(check->target, HOME ":2");
	present(&s, NP_ROLE_NCCL_HOME, "NCCL_SOCKET_IFNAME=ib0\n");
	assert_null(judge(&s, "nccl.shadowed"));
	end(&s);
	/* against what is about to be written, and where the home cannot be */
	begin(&s);
	present(&s, NP_ROLE_NCCL_HOME, "NCCL_SOCKET_IFNAME=eth0\n");
	np_strcpy(file(&s, NP_ROLE_NCCL_HOME)->reason, 200, "kept");
	assert_non_null(judge(&s, "nccl.shadowed"));
	end(&s);
}

static void test_tcp(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	assert_null(judge(&s, "ucx.tcp_unusable"));
	set(&s, "ucx", "net_devices", "mlx5_0:1");
	assert_non_null(judge(&s, "ucx.tcp_unusable"));
	set(&s, "ucx", "tls", "rc,sm,self");
	assert_null(judge(&s, "ucx.tcp_unusable"));
	end(&s);
	begin(&s);
	set(&s, "ucx", "net_devices", "mlx5_0:1,ib0");
	assert_null(judge(&s, "ucx.tcp_unusable"));
	end(&s);
}

#define SH  "/etc/profile.d/nodeprep-ucx.sh"
#define ENV "/etc/nodeprep/ucx.env"

/* In the place of the scripts, which go as soon as it can come. */
static void test_modulefile(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	set(&s, "ucx", "modulefile", "/m/ucx.lua");
	fb_file(&s.facts, NP_ROLE_MODULEFILE, "/m/ucx.lua", NULL, NULL);
	fb_file(&s.facts, NP_ROLE_MODULEFILE_OLD, "/old/ucx", NULL, NULL);
	present(&s, NP_ROLE_PROFILE_SH, "old\n");
	present(&s, NP_ROLE_MODULEFILE_OLD, "old\n");
	assert_non_null(strstr(planned(&s, "/m/ucx.lua"), "default(\"UCX_TLS\", \"rc,"));
	assert_non_null(strstr(planned(&s, ENV), "# The same as a modulefile: /m/ucx.lua\n"));
	assert_string_equal(planned(&s, SH), "(removed)");
	assert_null(planned(&s, "/etc/profile.d/nodeprep-ucx.csh"));
	assert_string_equal(planned(&s, "/old/ucx"), "(removed)");
	file(&s, NP_ROLE_MODULEFILE)->status = NP_TARGET_REFUSED;
	assert_null(planned(&s, "/m/ucx.lua"));
	assert_null(planned(&s, SH));
	assert_null(planned(&s, "/old/ucx"));
	present(&s, NP_ROLE_MODULEFILE, "old\n");
	set(&s, "ucx", "profile", "off");
	assert_string_equal(planned(&s, "/m/ucx.lua"), "(removed)");
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_such_interface), cmocka_unit_test(test_shared_home),
		cmocka_unit_test(test_shadowed),	  cmocka_unit_test(test_tcp),
		cmocka_unit_test(test_modulefile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
