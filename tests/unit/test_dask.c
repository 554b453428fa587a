/* SPDX-License-Identifier: MIT */
#include "facts_build.h"

#include "agent/dask_files.h"
#include "agent/judge.h"
#include "agent/plan.h"

#define YAML "/etc/dask/nodeprep.yaml"
#define ENV  "/etc/nodeprep/dask.env"

struct scene {
	struct np_facts facts;
	struct np_config cfg;
	struct np_actions actions;
	struct np_checks checks;
	struct np_err err;
};

static void set(struct scene *s, const char *key, const char *value)
{
	const char *dot = strchr(key, '.');
	char section[32] = "dask";

	if (dot)
		snprintf(section, sizeof(section), "%.*s", (int)(dot - key), key);
	if (np_config_set(&s->cfg, section, dot ? dot + 1 : key, value, "x:1", &s->err) < 0)
		fail_msg("%s", s->err.message);
}

static void begin(struct scene *s, const char *const *ips)
{
	memset(s, 0, sizeof(*s));
	fb_guide(&s->facts);
	fb_config(&s->cfg, ips);
	set(s, "enabled", "yes");
}

static void end(struct scene *s)
{
	np_actions_done(&s->actions);
	np_checks_done(&s->checks);
	np_facts_done(&s->facts);
	np_config_done(&s->cfg);
}

static void plan(struct scene *s)
{
	np_actions_done(&s->actions);
	if (np_config_finish(&s->cfg, &s->err) < 0 ||
	    np_plan_make(&s->cfg, &s->facts, NP_PLAN_ALL, &s->actions, &s->err) < 0)
		fail_msg("%s", s->err.message);
}

/* NULL: no action; "": it is removed. */
static const char *content(const struct scene *s, const char *path)
{
	for (size_t i = 0; i < s->actions.n; i++)
		if (s->actions.v[i].kind == NP_ACTION_FILE && np_streq(s->actions.v[i].path, path))
			return s->actions.v[i].has_new ? s->actions.v[i].new_content.data : "";
	return NULL;
}

static void says(const struct scene *s, const char *path, const char *part)
{
	const char *text = content(s, path);

	if (!text || !strstr(text, part))
		fail_msg("%s: \"%s\" is not in \"%s\"", path, part, text ? text : "(none)");
}

static void says_not(const struct scene *s, const char *path, const char *part)
{
	const char *text = content(s, path);

	if (!text || strstr(text, part))
		fail_msg("%s: \"%s\" is in \"%s\"", path, part, text ? text : "(none)");
}

/* The lines of the file that are no comment. */
static void is(const struct scene *s, const char *path, const char *wanted)
{
	np_auto_buf struct np_buf plain = { 0 };
	const char *line = content(s, path);

	assert_non_null(line);
	while (*line) {
		size_t len = strcspn(line, "\n");

		if (len && line[strspn(line, " ")] != '#')
			np_buf_add(&plain, line, len + 1);
		line += len + (line[len] == '\n');
	}
	assert_string_equal(plain.data, wanted);
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
	np_buf_str(&f->content, text);
}

/* ---- the files ---- */

static void test_defaults(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	plan(&s);
	is(&s, YAML,
	   "distributed-ucxx:\n"
	   "  tcp: true\n"
	   "  infiniband: true\n"
	   "  rdmacm: true\n"
	   "  cuda-copy: false\n"
	   "  create-cuda-context: false\n"
	   "distributed:\n"
	   "  comm:\n"
	   "    ucx:\n"
	   "      tcp: true\n"
	   "      infiniband: true\n"
	   "      rdmacm: true\n"
	   "      cuda-copy: false\n"
	   "      create-cuda-context: false\n"
	   "  worker:\n"
	   "    multiprocessing-method: forkserver\n");
	is(&s, ENV,
	   "NODEPREP_DASK_PROTOCOL=ucx\n"
	   "NODEPREP_DASK_INTERFACE=ib0\n"
	   "NODEPREP_DASK_PORT=8786\n"
	   "UCX_TLS=rc,tcp,sm,self\n"
	   "UCX_MAX_RNDV_RAILS=1\n"
	   "UCX_SOCKADDR_TLS_PRIORITY=rdmacm,tcp\n");
	/* nobody's settings are explained who has not made them */
	says_not(&s, YAML, "pool-size");
	says_not(&s, YAML, "timeout");
	end(&s);
}

static void test_all_keys_on_a_gpu_node(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	fb_gpu(&s.facts);
	s.facts.libraries.nvlink = NP_TRI_YES;
	set(&s, "scheduler_address", "head-ib0:8800");
	set(&s, "rmm_pool_size", "24 GiB");
	set(&s, "connect_timeout", "60");
	set(&s, "prefix", "/opt/rapids");
	set(&s, "find_forks", "yes");
	plan(&s);
	is(&s, YAML,
	   "distributed-ucxx:\n"
	   "  tcp: true\n"
	   "  infiniband: true\n"
	   "  rdmacm: true\n"
	   "  cuda-copy: true\n"
	   "  nvlink: true\n"
	   "  create-cuda-context: true\n"
	   "  connect-timeout: 60\n"
	   "  rmm:\n"
	   "    pool-size: 25769803776 # bytes: 24 GiB\n"
	   "distributed:\n"
	   "  comm:\n"
	   "    timeouts:\n"
	   "      connect: 60s\n"
	   "    ucx:\n"
	   "      tcp: true\n"
	   "      infiniband: true\n"
	   "      rdmacm: true\n"
	   "      cuda-copy: true\n"
	   "      nvlink: true\n"
	   "      create-cuda-context: true\n"
	   "      connect-timeout: 60\n"
	   "  rmm:\n"
	   "    pool-size: 25769803776 # bytes: 24 GiB\n"
	   "  worker:\n"
	   "    multiprocessing-method: forkserver\n");
	/* what a value means, and which version never reads it */
	says(&s, YAML, "# pool-size: GPU memory");
	says(&s, YAML, "seems frozen");
	says(&s, YAML, "never read this key");
	is(&s, ENV,
	   "NODEPREP_DASK_PROTOCOL=ucx\n"
	   "NODEPREP_DASK_INTERFACE=ib0\n"
	   "NODEPREP_DASK_PORT=8800\n"
	   "NODEPREP_DASK_SCHEDULER=ucx://head-ib0:8800\n"
	   "PATH=/opt/rapids/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
	   "UCX_MAX_RNDV_RAILS=1\n"
	   "UCX_SOCKADDR_TLS_PRIORITY=rdmacm,tcp\n"
	   "UCXPY_CONNECT_TIMEOUT=60\n"
	   "UCX_IB_FORK_INIT=n\n");
	says(&s, ENV, "ibv_fork_init() was disabled or failed");
	end(&s);
}

static void test_nvlink(void **state)
{
	static const struct {
		const char *asked;
		enum np_tri nvml;
		const char *line; /* NULL: nothing is written */
	} cases[] = {
		{ "auto", NP_TRI_UNKNOWN, NULL },
		{ "auto", NP_TRI_NO, "nvlink: false\n" },
		{ "auto", NP_TRI_YES, "nvlink: true\n" },
		{ "yes", NP_TRI_NO, "nvlink: true\n" },
		{ "yes", NP_TRI_UNKNOWN, "nvlink: true\n" },
		{ "no", NP_TRI_YES, "nvlink: false\n" },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct scene s;

		begin(&s, FB_LIST("10.0.0.50/24"));
		fb_gpu(&s.facts);
		set(&s, "nvlink", cases[i].asked);
		s.facts.libraries.nvlink = cases[i].nvml;
		plan(&s);
		if (cases[i].line)
			says(&s, YAML, cases[i].line);
		else
			says_not(&s, YAML, "nvlink: true"), says_not(&s, YAML, "nvlink: false");
		end(&s);
	}
}

static void test_cuda_context(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	set(&s, "create_cuda_context", "yes");
	plan(&s);
	says(&s, YAML, "create-cuda-context: true");
	fb_gpu(&s.facts);
	set(&s, "create_cuda_context", "no");
	plan(&s);
	says(&s, YAML, "create-cuda-context: false");
	says(&s, YAML, "cuda-copy: true");
	end(&s);
}

/* UCX chooses; what must be said all the same is the CUDA context. */
static void test_automatic(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	fb_gpu(&s.facts);
	set(&s, "ucx.profile", "auto");
	plan(&s);
	is(&s, YAML,
	   "distributed-ucxx:\n"
	   "  create-cuda-context: true\n"
	   "distributed:\n"
	   "  comm:\n"
	   "    ucx:\n"
	   "      create-cuda-context: true\n"
	   "  worker:\n"
	   "    multiprocessing-method: forkserver\n");
	says_not(&s, ENV, "UCX_");
	end(&s);
}

static void test_tcp(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	set(&s, "protocol", "tcp");
	set(&s, "scheduler_address", "10.0.0.1");
	set(&s, "connect_timeout", "20");
	set(&s, "rmm_pool_size", "1 GiB");
	plan(&s);
	is(&s, YAML,
	   "distributed:\n"
	   "  comm:\n"
	   "    timeouts:\n"
	   "      connect: 20s\n"
	   "  worker:\n"
	   "    multiprocessing-method: forkserver\n");
	is(&s, ENV,
	   "NODEPREP_DASK_PROTOCOL=tcp\n"
	   "NODEPREP_DASK_INTERFACE=ib0\n"
	   "NODEPREP_DASK_PORT=8786\n"
	   "NODEPREP_DASK_SCHEDULER=tcp://10.0.0.1:8786\n");
	end(&s);
}

/* "cuda" in UCX_TLS makes Dask ask for a CUDA context, which a head node cannot give. */
static void test_ucx_tls_without_gpu(void **state)
{
	static const struct {
		const char *tls, *line; /* NULL: what ucx.env says stays */
	} cases[] = {
		{ "rc,cuda_copy,cuda_ipc,gdr_copy,tcp", "UCX_TLS=rc,tcp\n" },
		{ "cuda,rc", "UCX_TLS=rc\n" },
		{ "rc,tcp", NULL },
		{ "all", NULL },
		{ "^cuda", NULL },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct scene s;

		begin(&s, FB_LIST("10.0.0.50/24"));
		set(&s, "ucx.tls", cases[i].tls);
		plan(&s);
		if (cases[i].line)
			says(&s, ENV, cases[i].line);
		else
			says_not(&s, ENV, "UCX_TLS=");
		end(&s);
	}
}

/* ---- when ---- */

static void test_only_with_an_ipv4_address(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, NULL);
	plan(&s);
	assert_null(content(&s, YAML));
	assert_null(content(&s, ENV));
	/* what is there stays: the address may be on its way */
	present(&s, NP_ROLE_DASK_YAML, "x\n");
	plan(&s);
	assert_null(content(&s, YAML));
	end(&s);

	begin(&s, FB_LIST("fd00::50/64"));
	plan(&s);
	assert_null(content(&s, YAML));
	end(&s);

	/* the address that is there, or that comes in this run, before the file */
	begin(&s, NULL);
	fb_addr(&s.facts.netdevs.v[0], "10.0.0.7/24", 0);
	plan(&s);
	assert_non_null(content(&s, YAML));
	end(&s);
	begin(&s, FB_LIST("10.0.0.50/24"));
	plan(&s);
	assert_int_equal(s.actions.v[0].kind, NP_ACTION_ADDR_ADD);
	assert_non_null(content(&s, YAML));
	end(&s);

	/* one that the run takes away does not count */
	begin(&s, NULL);
	fb_addr(&s.facts.netdevs.v[0], "10.0.0.7/24", 0);
	assert_int_equal(
		np_config_set(&s.cfg, "netdev ib0", "address", "fd00::50/64", "x:1", &s.err), 0);
	assert_int_equal(np_config_set(&s.cfg, "netdev ib0", "exclusive", "yes", "x:1", &s.err), 0);
	plan(&s);
	assert_null(content(&s, YAML));
	end(&s);
}

static void test_another_interface(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	fb_netdev(&s.facts, "ib1", 4, "mlx5_1");
	set(&s, "interface", "ib1");
	plan(&s);
	assert_null(content(&s, YAML));
	fb_addr(&s.facts.netdevs.v[1], "10.0.1.50/24", 0);
	plan(&s);
	says(&s, ENV, "NODEPREP_DASK_INTERFACE=ib1\n");
	end(&s);
}

static void test_a_name_that_cannot_be_written(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, NULL);
	set(&s, "ucx.profile", "off");
	set(&s, "nccl.scope", "off");
	np_strcpy(s.facts.netdevs.v[0].name, IFNAMSIZ, "ib0\"$x");
	fb_addr(&s.facts.netdevs.v[0], "10.0.0.7/24", 0);
	assert_int_equal(np_plan_make(&s.cfg, &s.facts, NP_PLAN_FILES, &s.actions, &s.err),
			 -EINVAL);
	assert_string_equal(s.err.code, "dask.value_invalid");
	end(&s);
}

static void test_removed_when_not_enabled(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	set(&s, "enabled", "no");
	plan(&s);
	assert_null(content(&s, YAML));
	assert_null(content(&s, ENV));
	present(&s, NP_ROLE_DASK_YAML, "x\n");
	present(&s, NP_ROLE_DASK_ENV, "x\n");
	plan(&s);
	assert_string_equal(content(&s, YAML), "");
	assert_string_equal(content(&s, ENV), "");
	end(&s);
}

static void test_right_content_is_left(void **state)
{
	struct scene s;
	char *text;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	plan(&s);
	text = strdup(content(&s, YAML));
	assert_non_null(text);
	present(&s, NP_ROLE_DASK_YAML, text);
	free(text);
	plan(&s);
	assert_null(content(&s, YAML));
	assert_non_null(content(&s, ENV));
	end(&s);
}

static size_t count(struct scene *s, const char *code)
{
	np_auto_selection struct np_selection sel = { 0 };
	size_t n = 0;

	np_checks_done(&s->checks);
	assert_int_equal(np_select(&s->cfg, &s->facts, &sel, &s->err), 0);
	np_judge(&s->cfg, &s->facts, &sel, &s->checks);
	for (size_t i = 0; i < s->checks.n; i++)
		n += np_streq(s->checks.v[i].code, code);
	return n;
}

static void test_judgement(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, NULL);
	assert_int_equal(count(&s, "dask.no_address"), 1);
	fb_addr(&s.facts.netdevs.v[0], "10.0.0.7/24", 0);
	assert_int_equal(count(&s, "dask.no_address"), 0);
	set(&s, "interface", "ib7");
	assert_int_equal(count(&s, "dask.no_address"), 1);
	set(&s, "enabled", "no");
	assert_int_equal(count(&s, "dask.no_address"), 0);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_all_keys_on_a_gpu_node),
		cmocka_unit_test(test_nvlink),
		cmocka_unit_test(test_cuda_context),
		cmocka_unit_test(test_automatic),
		cmocka_unit_test(test_tcp),
		cmocka_unit_test(test_ucx_tls_without_gpu),
		cmocka_unit_test(test_only_with_an_ipv4_address),
		cmocka_unit_test(test_another_interface),
		cmocka_unit_test(test_a_name_that_cannot_be_written),
		cmocka_unit_test(test_removed_when_not_enabled),
		cmocka_unit_test(test_right_content_is_left),
		cmocka_unit_test(test_judgement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
