/* SPDX-License-Identifier: MIT */
/* C31, C38: what the versions of libraries and UCX's transports mean for the node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "judge_scene.h"

static void add_transport(struct scene *s, const char *name, bool missing, bool built)
{
	struct np_libraries *l = &s->facts.libraries;
	struct np_library_transport *t = &l->transports[l->n_transports++];

	np_strcpy(t->name, sizeof(t->name), name);
	t->missing = missing;
	t->built = built;
	np_strcpy(t->reason, sizeof(t->reason), built ? "its module cannot be loaded" : "none");
}

/* The guide's node; libraries as Debian's UCX is there, with @gpus. */
static void begin_node(struct scene *s, bool gpu)
{
	begin_guide(s, FB_LIST("10.0.0.50/24"));
	if (gpu)
		fb_gpu(&s->facts);
	s->facts.libraries.asked = s->facts.libraries.known = true;
	strcpy(s->facts.libraries.ucx_path, "/usr/lib/libucp.so.0.0.0");
	strcpy(s->facts.libraries.ucx_version, "1.13.1");
	add_transport(s, "rc", false, true);
	add_transport(s, "cuda_copy", true, false);
	add_transport(s, "cuda_ipc", true, false);
	add_transport(s, "gdr_copy", true, false);
	add_transport(s, "tcp", false, true);
}

static size_t libraries(const struct scene *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->checks.n; i++)
		n += strcmp(s->checks.v[i].id, "library") == 0;
	return n;
}

static void cuda_is_missing_where_there_is_a_gpu(void **state)
{
	struct scene s;

	(void)state;
	begin_node(&s, true);
	judge(&s);
	says(has(&s, "cuda_copy", "ucx.transport_missing", NP_CHECK_WARN), "libucp.so.0.0.0");
	says(has(&s, "cuda_ipc", "ucx.transport_missing", NP_CHECK_WARN), "built without");
	/* without gdrdrv it is not in the list, so nobody misses it */
	assert_int_equal(libraries(&s), 2);
	s.facts.gdrdrv.usable = true;
	judge(&s);
	has(&s, "gdr_copy", "ucx.transport_missing", NP_CHECK_WARN);
	assert_int_equal(libraries(&s), 3);
	end(&s);
	begin_node(&s, false);
	judge(&s);
	assert_int_equal(libraries(&s), 0);
	end(&s);
}

static void rc_is_missing_where_there_is_an_hca(void **state)
{
	struct scene s;

	(void)state;
	begin_node(&s, false);
	s.facts.libraries.transports[0].missing = true;
	s.facts.libraries.transports[0].built = false;
	judge(&s);
	says(has(&s, "rc", "ucx.transport_missing", NP_CHECK_WARN), "built without");
	assert_int_equal(libraries(&s), 1);
	s.facts.libraries.transports[0].built = true;
	judge(&s);
	says(has(&s, "rc", "ucx.transport_missing", NP_CHECK_WARN), "cannot be loaded");
	end(&s);
}

static void only_what_ucx_tls_lists(void **state)
{
	static const struct {
		const char *tls;
		size_t n;
	} cases[] = {
		{ "tcp,sm,self", 0 }, { "rc,tcp", 1 },	 { "rc_x,tcp", 1 },   { "ib,tcp", 1 },
		{ "cuda_copy", 1 },   { "cuda,tcp", 3 }, { "^rc", 0 },	      { "all", 0 },
		{ "gdr_copy,ib", 2 }, { "rcx", 0 },	 { "rc,rc_mlx5", 1 },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct scene s;

		begin_node(&s, true);
		s.facts.libraries.transports[0].missing = true;
		set(&s, "ucx", "tls", cases[i].tls);
		s.cfg.ucx.tls = s.cfg.ucx_tls;
		judge(&s);
		if (libraries(&s) != cases[i].n)
			fail_msg("%s: %zu", cases[i].tls, libraries(&s));
		end(&s);
	}
	{
		struct scene s;

		begin_node(&s, true);
		set(&s, "ucx", "profile", "off");
		judge(&s);
		assert_int_equal(libraries(&s), 0);
		end(&s);
	}
}

static void nobody_was_asked_or_answered(void **state)
{
	struct scene s;

	(void)state;
	begin_node(&s, true);
	s.facts.libraries.asked = s.facts.libraries.known = false;
	judge(&s);
	assert_int_equal(libraries(&s), 0);
	s.facts.libraries.asked = true;
	np_err_set(&s.facts.libraries.err, -2, "selftest.not_installed", "no program");
	judge(&s);
	has(&s, "ucx", "selftest.not_installed", NP_CHECK_UNKNOWN);
	assert_int_equal(libraries(&s), 1);
	end(&s);
}

static void dmabuf_instead_of_gdrdrv(void **state)
{
	struct scene s;

	(void)state;
	begin_node(&s, true);
	fb_kmod(&s.facts, "gdrdrv", NP_KMOD_ABSENT);
	s.facts.libraries.cuda = 13030;
	s.facts.libraries.gdrapi = 2 << 16 | 6;
	strcpy(s.facts.libraries.gdrapi_path, "/usr/lib/libgdrapi.so.2.6");
	judge(&s);
	says(has(&s, "gdrdrv", "gdrcopy.dmabuf", NP_CHECK_OK), "13.3");
	says(find(&s, "gdrdrv", "gdrcopy.dmabuf"), "2.6 (/usr/lib/libgdrapi.so.2.6)");
	assert_null(find(&s, "gdrdrv", "module.missing"));
	/* it is in UCX_TLS then, and missed */
	has(&s, "gdr_copy", "ucx.transport_missing", NP_CHECK_WARN);
	/* who requires gdrdrv wants gdrdrv */
	set(&s, "module gdrdrv", "require", "yes");
	judge(&s);
	has(&s, "gdrdrv", "module.missing", NP_CHECK_FAIL);
	assert_null(find(&s, "gdrdrv", "gdrcopy.dmabuf"));
	end(&s);
}

static void no_dmabuf(void **state)
{
	struct scene s;

	(void)state;
	begin_node(&s, true);
	fb_kmod(&s.facts, "gdrdrv", NP_KMOD_ABSENT);
	s.facts.libraries.cuda = 13020;
	s.facts.libraries.gdrapi = 2 << 16 | 6;
	judge(&s);
	has(&s, "gdrdrv", "module.missing", NP_CHECK_WARN);
	s.facts.libraries.cuda = 13030;
	s.facts.gpu_driver.flavour = NP_GPU_FLAVOUR_PROPRIETARY;
	judge(&s);
	has(&s, "gdrdrv", "module.missing", NP_CHECK_WARN);
	assert_null(find(&s, "gdrdrv", "gdrcopy.dmabuf"));
	end(&s);
}

/* Loaded and broken stays a warning; that there is another way is said too. */
static void dmabuf_beside_a_gdrdrv_that_does_not_answer(void **state)
{
	struct scene s;

	(void)state;
	begin_node(&s, true);
	fb_kmod(&s.facts, "gdrdrv", NP_KMOD_LIVE);
	s.facts.gdrdrv =
		(struct np_gdrdrv){ .major = 508, .open_errno = -1, .handshake_errno = -1 };
	s.facts.libraries.cuda = 13030;
	s.facts.libraries.gdrapi = 2 << 16 | 6;
	judge(&s);
	has(&s, "gdrdrv", "gdrcopy.node_missing", NP_CHECK_WARN);
	has(&s, "gdrdrv", "gdrcopy.dmabuf", NP_CHECK_OK);
	end(&s);
}

static void library_older_than_gdrdrv_takes(void **state)
{
	struct scene s;

	(void)state;
	begin_node(&s, true);
	fb_kmod(&s.facts, "gdrdrv", NP_KMOD_LIVE);
	s.facts.gdrdrv = (struct np_gdrdrv){ .major = 508,
					     .node_exists = true,
					     .node_matches = true,
					     .driver_version = 2 << 16 | 5,
					     .min_library_version = 2 << 16 | 4,
					     .usable = true };
	s.facts.libraries.gdrapi = 2 << 16 | 3;
	judge(&s);
	says(has(&s, "gdrapi", "gdrcopy.library_too_old", NP_CHECK_WARN), "2.3");
	says(find(&s, "gdrapi", "gdrcopy.library_too_old"), "2.4 that gdrdrv 2.5 takes");
	s.facts.libraries.gdrapi = 2 << 16 | 4;
	judge(&s);
	assert_null(find(&s, "gdrapi", "gdrcopy.library_too_old"));
	/* none at all: who brings UCX brings it */
	s.facts.libraries.gdrapi = 0;
	judge(&s);
	assert_null(find(&s, "gdrapi", "gdrcopy.library_too_old"));
	/* gdrdrv does not answer: nothing is known of what it takes */
	s.facts.libraries.gdrapi = 1;
	s.facts.gdrdrv.usable = false;
	judge(&s);
	assert_null(find(&s, "gdrapi", "gdrcopy.library_too_old"));
	end(&s);
}

static void a_ucx_too_old_to_choose(void **state)
{
	static const struct {
		const char *profile, *version;
		bool warned;
	} cases[] = { { "auto", "1.11.0", true },  { "auto", "1.9.0", true },
		      { "auto", "1.11.1", false }, { "auto", "1.13.1", false },
		      { "auto", "", false },	   { "dask", "1.11.0", false } };

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct scene s;

		begin_node(&s, true);
		set(&s, "ucx", "profile", cases[i].profile);
		strcpy(s.facts.libraries.ucx_version, cases[i].version);
		judge(&s);
		assert_int_equal(!!find(&s, "ucx", "ucx.too_old_for_auto"), cases[i].warned);
		if (cases[i].warned)
			says(has(&s, "ucx", "ucx.too_old_for_auto", NP_CHECK_WARN),
			     cases[i].version);
		/* the admin has chosen */
		set(&s, "ucx", "tls", "rc,tcp");
		judge(&s);
		assert_null(find(&s, "ucx", "ucx.too_old_for_auto"));
		end(&s);
	}
}

static void who_is_asked_when(void **state)
{
	struct scene s;

	(void)state;
	begin_node(&s, false);
	assert_false(np_libraries_matter(&s.facts, false));
	assert_true(np_libraries_matter(&s.facts, true));
	fb_gpu(&s.facts);
	assert_true(np_libraries_matter(&s.facts, false));
	/* a GPU of a virtual machine is not this node's */
	strcpy(s.facts.gpus.v[0].driver, "vfio-pci");
	assert_false(np_libraries_matter(&s.facts, false));
	end(&s);
	begin(&s);
	assert_false(np_libraries_matter(&s.facts, true));
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuda_is_missing_where_there_is_a_gpu),
		cmocka_unit_test(rc_is_missing_where_there_is_an_hca),
		cmocka_unit_test(only_what_ucx_tls_lists),
		cmocka_unit_test(nobody_was_asked_or_answered),
		cmocka_unit_test(dmabuf_instead_of_gdrdrv),
		cmocka_unit_test(a_ucx_too_old_to_choose),
		cmocka_unit_test(no_dmabuf),
		cmocka_unit_test(dmabuf_beside_a_gdrdrv_that_does_not_answer),
		cmocka_unit_test(library_older_than_gdrdrv_takes),
		cmocka_unit_test(who_is_asked_when),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
