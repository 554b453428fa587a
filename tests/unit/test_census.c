/* SPDX-License-Identifier: MIT */
/* The census of libraries: who gets which, and what is said of it. */
#include "agent/census_read.h"
#include "agent/shell_scan.h"
#include "judge_scene.h"

static struct np_library_file file(enum np_library_kind kind, const char *folder, const char *name,
				   const char *version)
{
	struct np_library_file f = { .kind = kind, .loadable = true };

	np_strcpy(f.folder, sizeof(f.folder), folder);
	np_strcpy(f.name, sizeof(f.name), name);
	np_strcpy(f.version, sizeof(f.version), version);
	return f;
}

static void add(struct np_census *c, const char *folder, const char *name, const char *version)
{
	struct np_library_file f;
	enum np_library_kind kind;
	bool loadable;

	assert_true(np_library_name(name, &kind, &loadable));
	f = file(kind, folder, name, version);
	f.loadable = loadable;
	assert_true(np_census_add(c, &f));
}

static void cache(struct np_census *c, const char *folder, const char *name)
{
	c->cache = realloc(c->cache, (c->n_cache + 1) * sizeof(*c->cache));
	assert_non_null(c->cache);
	memset(&c->cache[c->n_cache], 0, sizeof(*c->cache));
	np_strcpy(c->cache[c->n_cache].folder, 256, folder);
	np_strcpy(c->cache[c->n_cache++].name, 96, name);
}

static struct np_census_consumer *consumer(struct np_census *c, enum np_census_who who,
					   const char *name, const char *folder)
{
	struct np_census_consumer *one = np_census_consumer_add(c, who, name);

	assert_non_null(one);
	if (folder) {
		assert_int_equal(np_strv_add(&one->folders, folder), 0);
		strcpy(one->source, "/etc/profile.d/old.sh:1");
	}
	return one;
}

/* C9: in the loader cache, in LD_LIBRARY_PATH, in a wheel. */
static void c9(struct np_census *c, const char *in_path)
{
	struct np_library_file wheel =
		file(NP_LIBRARY_NCCL, "/v/site/nvidia/nccl/lib", "libnccl.so.2", "2.27.3");

	memset(c, 0, sizeof(*c));
	c->looked = c->cache_known = true;
	add(c, "/new", "libnccl.so.2", "2.28.3");
	add(c, "/old", "libnccl.so.2", in_path);
	strcpy(wheel.environment, "/v");
	assert_true(np_census_add(c, &wheel));
	cache(c, "/new", "libnccl.so.2");
	consumer(c, NP_CENSUS_SERVICES, "services", NULL);
	consumer(c, NP_CENSUS_LOGINS, "logins", "/old");
	assert_int_equal(np_census_settle(c), 0);
}

static const char *folder_of(const struct np_library_file *f)
{
	return f ? f->folder : "";
}

static void test_who_gets_which(void **state)
{
	np_auto_census struct np_census c;

	(void)state;
	c9(&c, "2.3.7");
	assert_int_equal(c.n_consumers, 3);
	assert_string_equal(c.consumers[2].name, "/v");
	assert_string_equal(folder_of(np_census_find(&c, &c.consumers[0], "libnccl.so.2", 0)),
			    "/new");
	assert_null(np_census_find(&c, &c.consumers[0], "libnccl.so.2", 1));
	assert_string_equal(folder_of(np_census_find(&c, &c.consumers[1], "libnccl.so.2", 0)),
			    "/old");
	assert_string_equal(folder_of(np_census_find(&c, &c.consumers[1], "libnccl.so.2", 1)),
			    "/new");
	assert_string_equal(folder_of(np_census_find(&c, &c.consumers[2], "libnccl.so.2", 0)),
			    "/v/site/nvidia/nccl/lib");
	assert_null(np_census_find(&c, &c.consumers[1], "libucp.so.0", 0));
	assert_int_equal(c.files[0].cached, NP_TRI_YES);
	assert_int_equal(c.files[1].cached, NP_TRI_NO);
}

static void test_rows(void **state)
{
	np_auto_census struct np_census c;
	np_auto_buf struct np_buf text = { 0 };
	json_t *rows, *hidden;

	(void)state;
	c9(&c, "2.3.7");
	rows = np_census_rows(&c);
	assert_int_equal(json_array_size(rows), 3);
	hidden = json_object_get(json_array_get(rows, 0), "hidden");
	assert_int_equal(json_array_size(hidden), 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(hidden, 0), "by")),
			    "/old/libnccl.so.2");
	np_census_rows_text(rows, &text);
	assert_non_null(strstr(text.data, "nccl 2.3.7: /old/libnccl.so.2\n"));
	assert_non_null(strstr(text.data, "hidden for logins by /old/libnccl.so.2\n"));
	json_decref(rows);
}

static const struct np_check *one(const struct np_checks *checks, const char *code)
{
	const struct np_check *found = NULL;

	for (size_t i = 0; i < checks->n; i++) {
		if (strcmp(checks->v[i].code, code) != 0)
			continue;
		assert_null(found);
		found = &checks->v[i];
	}
	return found;
}

static void test_c9_is_judged(void **state)
{
	static const struct {
		const char *in_path, *floor;
		int too_old; /* a status, or -1 */
		int shadow;
	} cases[] = {
		{ "2.3.7", "2.4", NP_CHECK_FAIL, NP_CHECK_WARN },
		{ "2.4", "2.4", -1, NP_CHECK_WARN },
		{ "2.4.8", "2.4", -1, NP_CHECK_WARN },
		{ "2.18.1", "2.4", -1, NP_CHECK_WARN },
		{ "2.18.1", "2.20", NP_CHECK_FAIL, NP_CHECK_WARN },
		{ "2.30.0", "2.4", -1, NP_CHECK_OK },
		{ "2.28.3", "2.4", -1, -1 },
		{ "", "2.4", -1, NP_CHECK_WARN },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		np_auto_census struct np_census c;
		struct np_checks checks = { 0 };
		struct np_config cfg;
		const struct np_check *check;

		np_config_init(&cfg);
		assert_string_equal(cfg.nccl_version_min, "2.4");
		strcpy(cfg.nccl_version_min, cases[i].floor);
		c9(&c, cases[i].in_path);
		np_judge_census(&cfg, &c, &checks);
		check = one(&checks, "nccl.library_too_old");
		assert_int_equal(check ? (int)check->status : -1, cases[i].too_old);
		if (check) {
			assert_string_equal(check->target, "/old/libnccl.so.2");
			assert_non_null(strstr(check->message, "used by logins"));
		}
		check = one(&checks, "library.shadowing");
		assert_int_equal(check ? (int)check->status : -1, cases[i].shadow);
		if (check)
			assert_non_null(strstr(check->message, "/etc/profile.d/old.sh:1"));
		assert_null(one(&checks, "library.not_in_cache"));
		np_checks_done(&checks);
		np_config_done(&cfg);
	}
}

/* Old ones that nobody of the system gets: less bad, or nothing. */
static void test_old_ones_elsewhere(void **state)
{
	static const struct {
		const char *folder, *name;
		int status;
		const char *said;
	} cases[] = {
		{ "/usr/lib", "libnccl.so.2", NP_CHECK_WARN, "behind another, of services" },
		{ "/usr/lib", "libnccl.so.2.3.7", NP_CHECK_WARN, "lies on the search path" },
		{ "/usr/local/lib", "libnccl.so.2.3.7", NP_CHECK_WARN, "lies on the search path" },
		{ "/opt/site/lib", "libnccl.so.2", -1, NULL },
		{ "/usr/include", "nccl.h", -1, NULL },
		{ "/usr/lib", "libnccl_static.a", -1, NULL },
		{ "/home/alice/x", "libnccl.so.2", NP_CHECK_WARN, "used by user alice" },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		np_auto_census struct np_census c = { .looked = true, .cache_known = true };
		struct np_checks checks = { 0 };
		const struct np_check *check;
		struct np_config cfg;

		np_config_init(&cfg);
		assert_int_equal(np_strv_add(&c.standard, "/usr/lib"), 0);
		assert_int_equal(np_strv_add(&c.listed, "/usr/local/lib"), 0);
		add(&c, "/new", "libnccl.so.2", "2.28.3");
		cache(&c, "/new", "libnccl.so.2");
		add(&c, cases[i].folder, cases[i].name, "2.3.7");
		consumer(&c, NP_CENSUS_SERVICES, "services", NULL);
		consumer(&c, NP_CENSUS_USER, "user alice", "/home/alice/x");
		assert_int_equal(np_census_settle(&c), 0);
		np_judge_census(&cfg, &c, &checks);
		check = one(&checks, "nccl.library_too_old");
		assert_int_equal(check ? (int)check->status : -1, cases[i].status);
		if (check)
			assert_non_null(strstr(check->message, cases[i].said));
		np_checks_done(&checks);
		np_config_done(&cfg);
	}
}

static void test_the_cache_is_judged(void **state)
{
	np_auto_census struct np_census c = { .looked = true, .cache_known = true };
	struct np_checks checks = { 0 };
	const struct np_check *check;
	struct np_config cfg;

	(void)state;
	np_config_init(&cfg);
	assert_int_equal(np_strv_add(&c.standard, "/usr/lib"), 0);
	assert_int_equal(np_strv_add(&c.listed, "/usr/lib"), 0);
	assert_int_equal(np_strv_add(&c.listed, "/usr/local/lib"), 0);
	/* found without the cache; for those that name it; not found */
	add(&c, "/usr/lib", "libucp.so.0", "1.13.1");
	add(&c, "/opt/hpcx/lib", "libucp.so.0", "1.18.0");
	add(&c, "/usr/local/lib", "libgdrapi.so.2", "2.5");
	cache(&c, "/gone", "libnccl.so.2");
	/* of the names of a file one has a row */
	cache(&c, "/usr/lib", "libucp.so");
	consumer(&c, NP_CENSUS_SERVICES, "services", NULL);
	assert_int_equal(np_census_settle(&c), 0);
	np_judge_census(&cfg, &c, &checks);
	check = one(&checks, "library.not_in_cache");
	assert_non_null(check);
	assert_string_equal(check->target, "/usr/local/lib/libgdrapi.so.2");
	check = one(&checks, "library.stale_cache");
	assert_non_null(check);
	assert_string_equal(check->target, "/gone/libnccl.so.2");
	assert_int_equal(checks.n, 2);
	np_checks_done(&checks);
	/* a cache that cannot be read says nothing; no census, no check */
	c.cache_known = false;
	c.n_cache = 0;
	assert_int_equal(np_census_settle(&c), 0);
	np_judge_census(&cfg, &c, &checks);
	assert_int_equal(checks.n, 0);
	c.looked = false;
	cache(&c, "/gone", "libnccl.so.2");
	np_judge_census(&cfg, &c, &checks);
	assert_int_equal(checks.n, 0);
	np_config_done(&cfg);
}

static void test_ucx_belongs_together(void **state)
{
	np_auto_census struct np_census c = { .looked = true };
	struct np_library_file uct = file(NP_LIBRARY_UCT, "/u/lib", "libuct.so.0", "");
	struct np_library_file ucp = file(NP_LIBRARY_UCP, "/u/lib", "libucp.so.0", "1.18.0");

	(void)state;
	uct.verbs = NP_TRI_YES;
	uct.cuda = NP_TRI_NO;
	ucp.mt = NP_TRI_YES;
	assert_true(np_census_add(&c, &uct));
	assert_true(np_census_add(&c, &ucp));
	/* the same file by another way is no second one */
	assert_true(np_census_add(&c, &ucp));
	assert_int_equal(c.n, 2);
	assert_int_equal(np_census_settle(&c), 0);
	assert_string_equal(c.files[0].version, "1.18.0");
	assert_string_equal(c.files[0].version_by, "libucp");
	assert_int_equal(c.files[0].mt, NP_TRI_YES);
	assert_int_equal(c.files[1].verbs, NP_TRI_YES);
	assert_int_equal(c.files[1].cuda, NP_TRI_NO);
	assert_int_equal(c.files[1].gdr_copy, NP_TRI_UNKNOWN);
}

static void test_there_is_a_bound(void **state)
{
	np_auto_census struct np_census c = { .looked = true };
	json_t *rows, *last;
	char folder[32];

	(void)state;
	for (int i = 0; i < NP_CENSUS_FILES_MAX + 5; i++) {
		struct np_library_file f;

		snprintf(folder, sizeof(folder), "/f%d", i);
		f = file(NP_LIBRARY_NCCL, folder, "libnccl.so.2", "2.28.3");
		assert_int_equal(np_census_add(&c, &f), i < NP_CENSUS_FILES_MAX);
	}
	assert_int_equal(c.n, NP_CENSUS_FILES_MAX);
	assert_true(c.cut);
	/* and the bound is told */
	rows = np_census_rows(&c);
	last = json_array_get(rows, NP_CENSUS_FILES_MAX);
	assert_int_equal(json_array_size(rows), NP_CENSUS_FILES_MAX + 1);
	assert_string_equal(json_string_value(json_object_get(last, "kind")), "folder");
	assert_non_null(strstr(json_string_value(json_object_get(last, "problem")), "more than"));
	json_decref(rows);
}

/* ---- a login ---- */

static int no_read(void *arg, const char *path, struct np_buf *out)
{
	const char *text = arg;

	if (!np_streq(path, "/etc/profile"))
		return -ENOENT;
	np_buf_str(out, text);
	return 0;
}

static int no_exists(void *arg, const char *path)
{
	(void)arg;
	(void)path;
	return 0;
}

static int no_list(void *arg, const char *path, struct np_strv *out)
{
	(void)arg;
	(void)path;
	(void)out;
	return 0;
}

static void test_login(void **state)
{
	static const struct {
		const char *script, *path, *prefixes;
	} cases[] = {
		/* a login starts with none */
		{ "export LD_LIBRARY_PATH=/a/lib:$LD_LIBRARY_PATH\n", "/a/lib", "" },
		{ "export LD_LIBRARY_PATH=/a${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\n"
		  "LD_LIBRARY_PATH=/b:$LD_LIBRARY_PATH\n",
		  "/b /a", "" },
		{ "LD_LIBRARY_PATH=/a\n", "", "" },
		{ "export LD_LIBRARY_PATH=/a;unset LD_LIBRARY_PATH\n", "", "" },
		/* relative ones, empty ones, and one that cannot be told */
		{ "export LD_LIBRARY_PATH=.::/a:lib:/a:$(where)/b:/c\n", "/a /c", "" },
		{ "export UCX_HOME=/u NCCL_HOME=n CUDA_HOME=/c\n", "", "/u /c" },
		{ "export NCCL_ROOT=/n\nexport LD_LIBRARY_PATH=$NCCL_ROOT/lib\n", "/n/lib", "/n" },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		const struct np_scan_files files = { .read = no_read,
						     .exists = no_exists,
						     .list = no_list,
						     .arg = (void *)cases[i].script };
		struct np_scan_spec spec = {
			.shell = NP_SHELL_BASH, .user = "u", .home = "/h", .files = &files
		};
		np_auto_settings struct np_settings env = { 0 };
		np_auto_census_login struct np_census_login login = { 0 };
		np_auto_strv struct np_strv path = { 0 }, prefixes = { 0 };

		assert_int_equal(np_shell_scan(&spec, "/etc/profile", true, &env), 0);
		assert_int_equal(np_census_login_take(&env, &login), 0);
		assert_int_equal(np_strv_split(&path, cases[i].path, " "), 0);
		assert_int_equal(np_strv_split(&prefixes, cases[i].prefixes, " "), 0);
		assert_int_equal(login.path.n, path.n);
		for (size_t k = 0; k < path.n; k++)
			assert_string_equal(login.path.v[k], path.v[k]);
		assert_int_equal(login.prefixes.n, prefixes.n);
		for (size_t k = 0; k < prefixes.n; k++)
			assert_true(np_strv_has(&login.prefixes, prefixes.v[k]));
		assert_int_equal(login.source[0] != 0, path.n != 0);
	}
}

static void test_ld_so_conf(void **state)
{
	static const char text[] = "# c\n/usr/local/lib\n include /etc/x\n/a # b\n/b=libc5\n"
				   "relative\n\t/c \n/a\n\n/d";
	static const char *const wanted[] = { "/usr/local/lib", "/a", "/b", "/c", "/d" };
	np_auto_strv struct np_strv out = { 0 };

	(void)state;
	assert_int_equal(np_ld_conf_folders(text, strlen(text), &out), 0);
	assert_int_equal(out.n, NP_ARRAY_SIZE(wanted));
	for (size_t i = 0; i < out.n; i++)
		assert_string_equal(out.v[i], wanted[i]);
}

static void test_config(void **state)
{
	static const char *const no_prefix[] = { "x", "../x", "/a/../b", "/a/.." };
	struct np_config cfg;

	(void)state;
	np_config_init(&cfg);
	assert_int_equal(np_config_set(&cfg, "libraries", "prefixes", "/a, /b", "f:1", NULL), 0);
	assert_int_equal(np_config_set(&cfg, "libraries", "prefixes", "/c", "f:2", NULL), 0);
	assert_int_equal(cfg.library_prefixes.n, 3);
	for (size_t i = 0; i < NP_ARRAY_SIZE(no_prefix); i++) {
		assert_int_equal(np_config_set(&cfg, "libraries", "prefixes", no_prefix[i], "f:1",
					       NULL),
				 -EINVAL);
		assert_int_equal(np_config_set(&cfg, "dask", "prefix", no_prefix[i], "f:1", NULL),
				 -EINVAL);
	}
	assert_int_equal(np_config_set(&cfg, "dask", "prefix", "/a/..b/c..", "f:1", NULL), 0);
	assert_int_equal(np_config_set(&cfg, "nccl", "version_min", "2.18", "f:1", NULL), 0);
	assert_string_equal(cfg.nccl_version_min, "2.18");
	for (const char *const *bad = (const char *const[]){ "", "2.", ".4", "2..4", "new",
							     "1234567890.12345", NULL };
	     *bad; bad++)
		assert_int_equal(np_config_set(&cfg, "nccl", "version_min", *bad, "f:1", NULL),
				 -EINVAL);
	np_config_done(&cfg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_gets_which),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_c9_is_judged),
		cmocka_unit_test(test_old_ones_elsewhere),
		cmocka_unit_test(test_the_cache_is_judged),
		cmocka_unit_test(test_ucx_belongs_together),
		cmocka_unit_test(test_there_is_a_bound),
		cmocka_unit_test(test_login),
		cmocka_unit_test(test_ld_so_conf),
		cmocka_unit_test(test_config),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
