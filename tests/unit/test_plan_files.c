/* SPDX-License-Identifier: MIT */
#include "facts_build.h"

#include "agent/nccl_conf.h"
#include "agent/plan.h"

struct scene {
	struct np_facts facts;
	struct np_config cfg;
	struct np_actions actions;
	struct np_err err;
};

static void begin(struct scene *s, const char *const *ips)
{
	memset(s, 0, sizeof(*s));
	fb_guide(&s->facts);
	fb_config(&s->cfg, ips);
}

static void end(struct scene *s)
{
	np_actions_done(&s->actions);
	np_facts_done(&s->facts);
	np_config_done(&s->cfg);
}

static void set(struct scene *s, const char *section, const char *key, const char *value)
{
	if (np_config_set(&s->cfg, section, key, value, "x:1", &s->err) < 0)
		fail_msg("%s", s->err.message);
}

static void plan(struct scene *s)
{
	np_actions_done(&s->actions);
	if (np_config_finish(&s->cfg, &s->err) < 0 ||
	    np_plan_make(&s->cfg, &s->facts, NP_PLAN_FILES, &s->actions, &s->err) < 0)
		fail_msg("%s", s->err.message);
}

/* The planned content of the file whose path ends so; NULL: no action. */
static const char *content(const struct scene *s, const char *end_of_path)
{
	for (size_t i = 0; i < s->actions.n; i++) {
		const struct np_action *a = &s->actions.v[i];
		size_t len = strlen(a->path), want = strlen(end_of_path);

		if (len >= want && strcmp(a->path + len - want, end_of_path) == 0)
			return a->has_new ? a->new_content.data : "(removed)";
	}
	return NULL;
}

static void says(const struct scene *s, const char *end_of_path, const char *part)
{
	const char *text = content(s, end_of_path);

	if (!text || !strstr(text, part))
		fail_msg("%s: \"%s\" is not in \"%s\"", end_of_path, part, text ? text : "(none)");
}

static void says_not(const struct scene *s, const char *end_of_path, const char *part)
{
	const char *text = content(s, end_of_path);

	if (text && strstr(text, part))
		fail_msg("%s: \"%s\" is in \"%s\"", end_of_path, part, text);
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
	f->attr = (struct np_file_attr){ .mode = 0640, .uid = 7, .gid = 8 };
}

/* ---- NCCL ---- */

static void test_nccl_plain_and_exact(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	plan(&s);
	assert_string_equal(content(&s, "/etc/nccl.conf"), "NCCL_SOCKET_IFNAME=ib0\n");
	assert_string_equal(content(&s, "/home/someone/.nccl.conf"), "NCCL_SOCKET_IFNAME=ib0\n");
	/* C1 */
	assert_int_equal(np_strv_add(&s.facts.netdev_names, "ib0.8001"), 0);
	plan(&s);
	assert_string_equal(content(&s, "/etc/nccl.conf"), "NCCL_SOCKET_IFNAME==ib0\n");
	end(&s);
}

/* A netdev without an address is no use to NCCL, a link-local one is none. */
static void test_nccl_needs_address(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, NULL);
	fb_addr(&s.facts.netdevs.v[0], "fe80::1/64", 0)->scope = RT_SCOPE_LINK;
	plan(&s);
	assert_null(content(&s, "/etc/nccl.conf"));
	says_not(&s, "ucx.env", "ib0");
	fb_addr(&s.facts.netdevs.v[0], "10.0.0.7/24", 0);
	plan(&s);
	says(&s, "/etc/nccl.conf", "NCCL_SOCKET_IFNAME=ib0\n");
	says(&s, "ucx.env", ",ib0");
	end(&s);
}

/* C2, C36, C37: what must not be used is kept out by name */
static void test_nccl_ib_hca(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	set(&s, "ports", "ignore", "mlx5_3:1");
	plan(&s);
	says(&s, "/etc/nccl.conf", "NCCL_IB_HCA=mlx5_0:1,mlx5_1:1,mlx5_2:1\n");
	fb_active(&s.facts, "mlx5_10");
	s.facts.cas.v[4].management_only = true;
	plan(&s);
	says(&s, "/etc/nccl.conf", "NCCL_IB_HCA==mlx5_0:1,mlx5_1:1,mlx5_2:1\n");
	/* a port that is merely down NCCL skips by itself */
	s.facts.cas.v[1].ports[0].state = NP_PORT_DOWN;
	plan(&s);
	says(&s, "/etc/nccl.conf", "NCCL_IB_HCA==mlx5_0:1,mlx5_1:1,mlx5_2:1\n");
	end(&s);
}

/* An old restriction is widened once nothing has to be kept out any more. */
static void test_nccl_ib_hca_widened(void **state)
{
	_cleanup_free_ char *value = NULL;
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	present(&s, NP_ROLE_NCCL_ETC, "NCCL_SOCKET_IFNAME=ib0\nNCCL_IB_HCA=mlx5_0:1\n");
	plan(&s);
	assert_non_null(content(&s, "/etc/nccl.conf"));
	value = np_nccl_conf_get(content(&s, "/etc/nccl.conf"),
				 strlen(content(&s, "/etc/nccl.conf")), "NCCL_IB_HCA");
	for (int i = 0; i < 4; i++) {
		char name[32];

		snprintf(name, sizeof(name), "mlx5_%d", i);
		assert_true(np_nccl_matches(value, name, 1));
	}
	end(&s);
}

/* A list that somebody wrote is kept, as long as it keeps out what must be. */
static void test_nccl_own_list(void **state)
{
	static const struct {
		const char *list;
		bool kept;
	} cases[] = { { "mlx5_0,mlx5_1", true }, { "=mlx5_0", true },
		      { "^mlx5_3", true },	 { "^=mlx5_3", true },
		      { "mlx5", false },	 { "^mlx5_0", false },
		      { "mlx5_3", false },	 { "mlx5_0:1", false },
		      { "=mlx5_0:1", false },	 { "", false } };

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		char text[160], line[80];
		struct scene s;

		begin(&s, FB_LIST("10.0.0.50/24"));
		set(&s, "ports", "ignore", "mlx5_3");
		snprintf(line, sizeof(line), "NCCL_IB_HCA=%s\n", cases[i].list);
		snprintf(text, sizeof(text), "NCCL_SOCKET_IFNAME=ib0\n%s", line);
		present(&s, NP_ROLE_NCCL_ETC, text);
		plan(&s);
		if (cases[i].kept != (content(&s, "/etc/nccl.conf") == NULL))
			fail_msg("%s: %s", cases[i].list, content(&s, "/etc/nccl.conf"));
		if (!cases[i].kept)
			says(&s, "/etc/nccl.conf", "NCCL_IB_HCA=mlx5_0:1,mlx5_1:1,mlx5_2:1\n");
		end(&s);
	}
}

static void test_nccl_given_values(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, NULL);
	set(&s, "nccl", "socket_ifname", "eth0,eth1");
	set(&s, "nccl", "ib_hca", "^mlx5_9");
	fb_addr(fb_netdev(&s.facts, "eth1", 9, ""), "192.0.2.1/24", 0);
	plan(&s);
	assert_string_equal(content(&s, "/etc/nccl.conf"),
			    "NCCL_SOCKET_IFNAME=eth0,eth1\nNCCL_IB_HCA=^mlx5_9\n");
	end(&s);
}

/* C6, C39: the other bytes are kept, and what is right is not written */
static void test_nccl_shared_file(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	present(&s, NP_ROLE_NCCL_ETC,
		"# vendor\r\nNCCL_TOPO_FILE=/x\nNCCL_SOCKET_IFNAME=eth0\n a=b");
	plan(&s);
	assert_string_equal(content(&s, "/etc/nccl.conf"),
			    "# vendor\r\nNCCL_TOPO_FILE=/x\nNCCL_SOCKET_IFNAME=ib0\n a=b");
	for (size_t i = 0; i < s.actions.n; i++) {
		const struct np_action *a = &s.actions.v[i];

		if (strcmp(a->path, "/etc/nccl.conf") != 0)
			continue;
		assert_true(a->had_old && a->has_new);
		assert_int_equal(a->attr.mode, 0640);
		assert_int_equal(a->attr.uid, 7);
		assert_true(np_starts_with(a->old_content.data, "# vendor"));
	}
	present(&s, NP_ROLE_NCCL_ETC, "NCCL_TOPO_FILE=/x\nNCCL_SOCKET_IFNAME=ib0\n");
	plan(&s);
	assert_null(content(&s, "/etc/nccl.conf"));
	end(&s);
}

static void test_nccl_scope(void **state)
{
	static const struct {
		const char *scope;
		bool home, etc;
	} cases[] = { { "both", true, true },
		      { "home", true, false },
		      { "system", false, true },
		      { "off", false, false } };

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct scene s;

		begin(&s, FB_LIST("10.0.0.50/24"));
		set(&s, "nccl", "scope", cases[i].scope);
		plan(&s);
		assert_int_equal(content(&s, "/.nccl.conf") != NULL, cases[i].home);
		assert_int_equal(content(&s, "/etc/nccl.conf") != NULL, cases[i].etc);
		assert_non_null(content(&s, "ucx.env"));
		end(&s);
	}
}

/* A name that means something in NCCL's lists is an error of its own, not of memory. */
static void test_nccl_impossible_name(void **state)
{
	struct np_actions none = { 0 };
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	strcpy(s.facts.netdevs.v[0].name, "ib,0");
	assert_int_equal(np_config_finish(&s.cfg, &s.err), 0);
	assert_int_equal(np_plan_make(&s.cfg, &s.facts, NP_PLAN_ALL, &none, &s.err), -EINVAL);
	assert_string_equal(s.err.code, "nccl.value_invalid");
	end(&s);
}

/* ---- UCX ---- */

static void test_ucx_profiles(void **state)
{
	static const struct {
		const char *profile, *tls, *devices;
	} cases[] = {
		{ "standard", "UCX_TLS=rc,cuda_copy,cuda_ipc,tcp,sm,self\n",
		  "UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,ib0\n" },
		{ "guide", "UCX_TLS=rc,cuda_copy,cuda_ipc\n",
		  "UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1\n" },
		{ "dask", "UCX_TLS=rc,tcp,cuda_copy,cuda_ipc\n", ",ib0\n" },
		{ "auto", "UCX_TLS=all\n", "UCX_TLS" },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct scene s;

		begin(&s, FB_LIST("10.0.0.50/24"));
		set(&s, "ucx", "profile", cases[i].profile);
		plan(&s);
		says(&s, "ucx.env", cases[i].tls);
		says(&s, "ucx.env", cases[i].devices);
		assert_non_null(content(&s, "nodeprep-ucx.sh"));
		assert_non_null(content(&s, "nodeprep-ucx.csh"));
		end(&s);
	}
}

/* The version counts where it is known at each plan: on nodes with GPUs. */
static void test_ucx_dask_by_version(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	set(&s, "ucx", "profile", "dask");
	strcpy(s.facts.libraries.ucx_version, "1.13.1");
	plan(&s);
	says(&s, "ucx.env", "UCX_MEMTYPE_REG_WHOLE_ALLOC_TYPES=cuda\n");
	fb_gpu(&s.facts);
	plan(&s);
	says_not(&s, "ucx.env", "UCX_MEMTYPE_REG_WHOLE_ALLOC_TYPES");
	says(&s, "ucx.env", "UCX_MAX_RNDV_RAILS=1\n");
	strcpy(s.facts.libraries.ucx_version, "1.11.2");
	plan(&s);
	says(&s, "ucx.env", "UCX_MEMTYPE_REG_WHOLE_ALLOC_TYPES=cuda\n");
	end(&s);
}

static void test_gdr_copy(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	s.facts.gdrdrv.usable = true;
	plan(&s);
	says(&s, "ucx.env", "UCX_TLS=rc,cuda_copy,cuda_ipc,gdr_copy,tcp,sm,self\n");
	end(&s);
}

/* libgdrapi's dma-buf backend stands in for gdrdrv */
static void test_gdr_copy_by_dmabuf(void **state)
{
	static const struct {
		uint32_t library;
		int cuda;
		enum np_gpu_flavour flavour;
		bool gpu, usable;
	} cases[] = {
		{ 2 << 16 | 6, 13030, NP_GPU_FLAVOUR_OPEN, true, true },
		{ 2 << 16 | 6, 13030, NP_GPU_FLAVOUR_UNKNOWN, true, true },
		{ 3 << 16, 14000, NP_GPU_FLAVOUR_OPEN, true, true },
		{ 2 << 16 | 5, 13030, NP_GPU_FLAVOUR_OPEN, true, false },
		{ 2 << 16 | 6, 13020, NP_GPU_FLAVOUR_OPEN, true, false },
		{ 2 << 16 | 6, 0, NP_GPU_FLAVOUR_OPEN, true, false },
		{ 0, 13030, NP_GPU_FLAVOUR_OPEN, true, false },
		{ 2 << 16 | 6, 13030, NP_GPU_FLAVOUR_PROPRIETARY, true, false },
		{ 2 << 16 | 6, 13030, NP_GPU_FLAVOUR_OPEN, false, false },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct scene s;

		begin(&s, FB_LIST("10.0.0.50/24"));
		if (cases[i].gpu)
			fb_gpu(&s.facts);
		s.facts.gpu_driver.flavour = cases[i].flavour;
		s.facts.libraries = (struct np_libraries){ .asked = true,
							   .known = true,
							   .cuda = cases[i].cuda,
							   .gdrapi = cases[i].library };
		plan(&s);
		says(&s, "ucx.env",
		     cases[i].usable ? "UCX_TLS=rc,cuda_copy,cuda_ipc,gdr_copy,tcp,sm,self\n" :
				       "UCX_TLS=rc,cuda_copy,cuda_ipc,tcp,sm,self\n");
		end(&s);
	}
}

/* C11, C17, C36, C37: neither of these in UCX_NET_DEVICES */
static void test_ucx_unusable_ports(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	s.facts.cas.v[0].ports[0].state = NP_PORT_DOWN;
	s.facts.cas.v[1].ports[0].state = NP_PORT_INIT;
	s.facts.cas.v[2].ports[0].link_layer = NP_LL_ETHERNET;
	fb_active(&s.facts, "mlx5_10");
	fb_active(&s.facts, "mlx5_8");
	s.facts.cas.v[5].management_only = true;
	plan(&s);
	says(&s, "ucx.env", "UCX_NET_DEVICES=mlx5_3:1,mlx5_10:1,ib0\n");
	set(&s, "ports", "ignore", "mlx5_3, mlx5_10");
	plan(&s);
	says(&s, "ucx.env", "UCX_NET_DEVICES=ib0\n");
	end(&s);
}

static void test_ucx_given_values(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, NULL);
	set(&s, "ucx", "tls", "rc,tcp");
	set(&s, "ucx", "net_devices", "mlx5_9:1");
	plan(&s);
	says(&s, "ucx.env", "UCX_TLS=rc,tcp\n");
	says(&s, "ucx.env", "UCX_NET_DEVICES=mlx5_9:1\n");
	end(&s);
}

/* No fabric: nothing to say, and what is there stays. */
static void test_no_fabric(void **state)
{
	struct np_facts facts = { 0 };
	struct scene s;

	(void)state;
	begin(&s, NULL);
	np_facts_done(&s.facts);
	s.facts = facts;
	fb_all_files(&s.facts);
	present(&s, NP_ROLE_UCX_ENV, "UCX_TLS=x\n");
	plan(&s);
	assert_int_equal(s.actions.n, 0);
	end(&s);
}

static void test_ucx_off(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	set(&s, "ucx", "profile", "off");
	present(&s, NP_ROLE_PROFILE_SH, "old\n");
	plan(&s);
	assert_string_equal(content(&s, "nodeprep-ucx.sh"), "(removed)");
	assert_null(content(&s, "nodeprep-ucx.csh"));
	assert_null(content(&s, "ucx.env"));
	assert_non_null(content(&s, "/etc/nccl.conf"));
	end(&s);
}

/* Refused and unreadable files are for the judgement: no action on them. */
static void test_hostile_files(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	file(&s, NP_ROLE_NCCL_HOME)->status = NP_TARGET_REFUSED;
	file(&s, NP_ROLE_NCCL_ETC)->status = NP_TARGET_UNKNOWN;
	plan(&s);
	assert_null(content(&s, "/.nccl.conf"));
	assert_null(content(&s, "/etc/nccl.conf"));
	assert_int_equal(s.actions.n, 3);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nccl_plain_and_exact),
		cmocka_unit_test(test_nccl_needs_address),
		cmocka_unit_test(test_nccl_ib_hca),
		cmocka_unit_test(test_nccl_ib_hca_widened),
		cmocka_unit_test(test_nccl_own_list),
		cmocka_unit_test(test_nccl_given_values),
		cmocka_unit_test(test_nccl_shared_file),
		cmocka_unit_test(test_nccl_scope),
		cmocka_unit_test(test_nccl_impossible_name),
		cmocka_unit_test(test_ucx_profiles),
		cmocka_unit_test(test_ucx_dask_by_version),
		cmocka_unit_test(test_gdr_copy),
		cmocka_unit_test(test_gdr_copy_by_dmabuf),
		cmocka_unit_test(test_ucx_unusable_ports),
		cmocka_unit_test(test_ucx_given_values),
		cmocka_unit_test(test_no_fabric),
		cmocka_unit_test(test_ucx_off),
		cmocka_unit_test(test_hostile_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
