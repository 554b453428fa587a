/* SPDX-License-Identifier: MIT */
/* What libraries say of themselves, told from bytes: real ones and broken ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "agent/census_read.h"
#include "base/file.h"
#include "census_bytes.h"

/* ---- names ---- */

static void test_names(void **state)
{
	static const struct {
		const char *name;
		int kind; /* -1: none */
		bool loadable;
		const char *version;
	} cases[] = {
		{ "libnccl.so.2", NP_LIBRARY_NCCL, true, "" },
		{ "libnccl.so", NP_LIBRARY_NCCL, false, "" },
		{ "libnccl.so.2.28.3", NP_LIBRARY_NCCL, false, "2.28.3" },
		{ "libnccl.so.1", NP_LIBRARY_NCCL, true, "" },
		{ "libnccl_static.a", NP_LIBRARY_NCCL_STATIC, false, "" },
		{ "nccl.h", NP_LIBRARY_NCCL_HEADER, false, "" },
		{ "libucp.so.0.0.0", NP_LIBRARY_UCP, false, "" },
		{ "libuct.so.0", NP_LIBRARY_UCT, true, "" },
		{ "libgdrapi.so.2.4", NP_LIBRARY_GDRAPI, false, "2.4" },
		{ "libnccl.so.2.", -1, false, "" },
		{ "libnccl.so.2x", -1, false, "" },
		{ "libnccl.so.x", -1, false, "" },
		{ "libnccl-net.so", -1, false, "" },
		{ "libuct_ib.so.0", -1, false, "" },
		{ "xlibnccl.so.2", -1, false, "" },
		{ "", -1, false, "" },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		enum np_library_kind kind = NP_LIBRARY_FOLDER;
		bool loadable, known = np_library_name(cases[i].name, &kind, &loadable);
		char version[40] = "";

		assert_int_equal(known ? (int)kind : -1, cases[i].kind);
		assert_int_equal(loadable, cases[i].loadable);
		if (known)
			np_library_name_version(cases[i].name, kind, version, sizeof(version));
		assert_string_equal(version, cases[i].version);
	}
}

static void test_packages(void **state)
{
	static const struct {
		const char *name;
		bool conda;
		int kind;
		const char *version;
	} cases[] = {
		{ "nvidia_nccl_cu12-2.28.3.dist-info", false, NP_LIBRARY_NCCL, "2.28.3" },
		{ "libucx_cu12-1.18.1.post1.dist-info", false, NP_LIBRARY_UCP, "1.18.1" },
		{ "ucx_py_cu12-0.42.0.dist-info", false, NP_LIBRARY_UCX_PY, "0.42.0" },
		{ "ucxx-0.46.0.dist-info", false, NP_LIBRARY_UCXX, "0.46.0" },
		{ "distributed_ucxx_cu13-0.52.0a15.dist-info", false, NP_LIBRARY_DISTRIBUTED_UCXX,
		  "0.52.0" },
		{ "ucx_py-0.29.0-py3.11.egg-info", false, NP_LIBRARY_UCX_PY, "0.29.0" },
		{ "nccl-2.28.3.1-hb9d8e2f_0.json", true, NP_LIBRARY_NCCL, "2.28.3.1" },
		{ "ucx-1.18.0-hfb8ada1_0.json", true, NP_LIBRARY_UCT, "1.18.0" },
		{ "ucx-py-0.41.0-py312_0.json", true, NP_LIBRARY_UCX_PY, "0.41.0" },
		{ "gdrcopy-2.5.1-h0_0.json", true, NP_LIBRARY_GDRAPI, "2.5.1" },
		{ "distributed-ucxx-0.46.0-py312_0.json", true, NP_LIBRARY_DISTRIBUTED_UCXX,
		  "0.46.0" },
		{ "nvidia_nccl_cux-2.28.3.dist-info", false, -1, "" },
		{ "nvidia_nccl-.dist-info", false, -1, "" },
		{ "nvidia_nccl.dist-info", false, -1, "" },
		{ "ucxx-0.46.0", false, -1, "" },
		{ "ucx-proc-1.0-gpu.json", true, -1, "" },
		{ "nccl.json", true, -1, "" },
		{ "nccl-2.28.json", true, -1, "" },
		{ "nccl-1234567890123456789012345678901234567890.1-x.json", true, -1, "" },
		{ "-1-2.json", true, -1, "" },
		{ "history", true, -1, "" },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct np_packages p = { 0 }, none = { 0 };
		bool known = np_package_take(cases[i].name, cases[i].conda, &p);

		assert_int_equal(known, cases[i].kind >= 0);
		if (known)
			assert_string_equal(np_package_version(&p,
							       (enum np_library_kind)cases[i].kind),
					    cases[i].version);
		else
			assert_memory_equal(&p, &none, sizeof(p));
	}
}

static void test_header(void **state)
{
	static const char real[] = "/* c */\n#define NCCL_MAJOR 2\n#define NCCL_MINOR\t28\n"
				   "#define NCCL_PATCH  3\n#define NCCL_SUFFIX \"\"\n";
	char version[40] = "";

	(void)state;
	assert_true(np_nccl_header_version(real, strlen(real), version, sizeof(version)));
	assert_string_equal(version, "2.28.3");
	for (size_t n = 0; n < strlen(real) - 24; n++)
		assert_false(np_nccl_header_version(real, n, version, sizeof(version)));
}

static void test_nccl_version(void **state)
{
	static const struct {
		const char *text, *version;
	} cases[] = {
		{ "x NCCL version 2.28.3+cuda12.9", "2.28.3" },
		{ "NCCL version 2.3.7+cuda9.0", "2.3.7" },
		{ "NCCL version %d.%d\nNCCL version 2.19.4 compiled", "2.19.4" },
		{ "NCCL version 2.28", "" },
		{ "NCCL version 2.28.3", "" }, /* cut off: there may be more digits */
		{ "NCCL version 123456.1.1+", "" },
		{ "NCCL version ", "" },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		char version[40] = "";
		bool found = np_nccl_version_in(cases[i].text, strlen(cases[i].text), version,
						sizeof(version));

		assert_int_equal(found, cases[i].version[0] != 0);
		assert_string_equal(version, cases[i].version);
	}
}

static void test_dpkg(void **state)
{
	static const char status[] =
		"Package: libnccl2\nStatus: x\nVersion: 2.28.3-1+cuda12.9\n\nPackage: libgdrapi\n"
		"Depends: libnccl2\nVersion: 1:2.4.4-1\n\nPackage: ucx\nVersion: beta\n\n"
		"Package: libucx0\n\nPackage: other\nVersion: 9\n";
	static const struct {
		const char *package, *version;
	} cases[] = {
		{ "libnccl2", "2.28.3" }, { "libgdrapi", "2.4.4" }, { "ucx", "" },
		{ "libucx0", "" },	  { "libnccl", "" },	    { "", "" },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		char version[40] = "";

		assert_int_equal(np_dpkg_version_in(status, strlen(status), cases[i].package,
						    version, sizeof(version)),
				 cases[i].version[0] != 0);
		assert_string_equal(version, cases[i].version);
	}
}

/* ---- ELF ---- */

#define TEXT(s) s, sizeof(s)

static void test_small_ones(void **state)
{
	static const struct {
		enum np_library_kind kind;
		const char *text;
		size_t len;
		const char *version;
		enum np_tri verbs, cuda, mt;
	} cases[] = {
		{ NP_LIBRARY_NCCL, TEXT("a\0NCCL version 2.3.7+cuda9.0"), "2.3.7", 0, 0, 0 },
		/* bytes of a constant stand in front of the string */
		{ NP_LIBRARY_UCP,
		  TEXT("e\xcd\xcd"
		       "A1.13.1\0x"),
		  "1.13.1", 0, 0, 0 },
		{ NP_LIBRARY_UCP, TEXT("GLIBC_2.2.5\0/1.2.3\0v=3.4.5"), "", 0, 0, 0 },
		{ NP_LIBRARY_UCP,
		  TEXT("1.2.3\0"
		       "1.2.4"),
		  "", 0, 0, 0 },
		{ NP_LIBRARY_UCP, TEXT("1.2.3\0x\0001.2.4"), "", 0, 0, 0 },
		{ NP_LIBRARY_UCP, TEXT("1.2.3\0x\0001.2.3"), "1.2.3", 0, 0, 0 },
		{ NP_LIBRARY_UCP, TEXT("Configured with: %s\0\0--enable-mt --x\0001.18.0"),
		  "1.18.0", 0, 0, NP_TRI_YES },
		{ NP_LIBRARY_UCP, TEXT("Configured with: %s\0--prefix=/--x\0--enable-mt"), "", 0, 0,
		  NP_TRI_NO },
		{ NP_LIBRARY_UCP, TEXT("--enable-mt\0--enable-mt"), "", 0, 0, NP_TRI_UNKNOWN },
		{ NP_LIBRARY_UCT, TEXT("x\0:\0:cuda:ib:rdmacm:cma"), "", NP_TRI_YES, NP_TRI_YES,
		  0 },
		{ NP_LIBRARY_UCT, TEXT("x\0:cuda:cma"), "", NP_TRI_NO, NP_TRI_YES, 0 },
		{ NP_LIBRARY_UCT, TEXT("x\0:%d\0: a"), "", 0, 0, 0 },
		{ NP_LIBRARY_GDRAPI, TEXT("1.2.3\0NCCL version 2.3.7+"), "", 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct small_elf e;
		struct np_bytes b = np_bytes_data(&e, sizeof(e));
		struct np_elf elf;

		small_elf(&e, "libx.so.2", cases[i].text, cases[i].len);
		assert_int_equal(np_elf_read(&b, cases[i].kind, &elf), 0);
		assert_string_equal(elf.soname, "libx.so.2");
		assert_string_equal(elf.version, cases[i].version);
		assert_int_equal(elf.verbs, cases[i].verbs);
		assert_int_equal(elf.cuda, cases[i].cuda);
		assert_int_equal(elf.mt, cases[i].mt);
		assert_false(elf.other_machine);
	}
}

static void test_another_machine(void **state)
{
	struct small_elf e = { 0 };
	struct np_bytes b = np_bytes_data(&e, sizeof(e));
	struct np_elf elf;

	(void)state;
	small_elf(&e, "libx.so.2", TEXT("NCCL version 2.3.7+"));
	e.head.e_machine = EM_S390;
	assert_int_equal(np_elf_read(&b, NP_LIBRARY_NCCL, &elf), 0);
	assert_true(elf.other_machine);
	small_elf(&e, "libx.so.2", TEXT("NCCL version 2.3.7+"));
	e.head.e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(np_elf_read(&b, NP_LIBRARY_NCCL, &elf), 0);
	assert_true(elf.other_machine);
	assert_string_equal(elf.version, "");
}

/* Cut off anywhere, and with each byte of its headers turned over. */
static void test_broken_ones(void **state)
{
	struct small_elf whole, e;
	struct np_elf elf;

	(void)state;
	small_elf(&whole, "libx.so.2", TEXT("NCCL version 2.3.7+"));
	for (size_t n = 0; n < sizeof(whole); n++) {
		/* a copy of that length, so that the sanitizer sees a step over its end */
		_cleanup_free_ char *cut = malloc(n + 1);
		struct np_bytes b = np_bytes_data(cut, n);
		int r;

		assert_non_null(cut);
		memcpy(cut, &whole, n);
		r = np_elf_read(&b, NP_LIBRARY_NCCL, &elf);
		if (n < offsetof(struct small_elf, strings))
			assert_int_equal(r, -ENOEXEC);
	}
	for (size_t i = 0; i < offsetof(struct small_elf, text); i++)
		for (int value = 0; value < 4; value++) {
			static const unsigned char bytes[] = { 0x00, 0xff, 0x80, 0x7f };
			struct np_bytes b = np_bytes_data(&e, sizeof(e));

			e = whole;
			((unsigned char *)&e)[i] = bytes[value];
			(void)!np_elf_read(&b, NP_LIBRARY_NCCL, &elf);
			assert_true(strlen(elf.soname) < sizeof(elf.soname));
		}
}

/* What is loaded into this very program is read from its file. */
static int read_loaded(struct dl_phdr_info *info, size_t size, void *arg)
{
	int *n = arg;
	_cleanup_close_ int fd = open(info->dlpi_name, O_RDONLY | O_CLOEXEC);
	const char *slash = strrchr(info->dlpi_name, '/');
	struct np_elf elf;
	struct np_bytes b;
	struct stat st;

	(void)size;
	if (fd < 0 || !slash || fstat(fd, &st) < 0)
		return 0;
	b = np_bytes_fd(fd, (uint64_t)st.st_size);
	assert_int_equal(np_elf_read(&b, NP_LIBRARY_NCCL, &elf), 0);
	assert_false(elf.other_machine);
	/* the dynamic linker opened it by its soname */
	assert_string_equal(elf.soname, slash + 1);
	*n += 1;
	return 0;
}

static void test_real_ones(void **state)
{
	int n = 0;

	(void)state;
	dl_iterate_phdr(read_loaded, &n);
	assert_true(n > 3);
}

/* The UCX that nodeprep-selftest is built with says which one it is. */
static void test_real_ucx(void **state)
{
	const char *(*get_version)(void) = NULL;
	void *ucp = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
	_cleanup_close_ int fd = -1;
	struct link_map *map = NULL;
	struct np_elf elf;
	struct np_bytes b;
	struct stat st = { 0 };

	(void)state;
	if (!ucp) {
		print_message("no libucp.so.0: %s\n", dlerror());
		skip();
	}
	assert_int_equal(dlinfo(ucp, RTLD_DI_LINKMAP, &map), 0);
	fd = open(map->l_name, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	b = np_bytes_fd(fd, (uint64_t)st.st_size);
	assert_int_equal(np_elf_read(&b, NP_LIBRARY_UCP, &elf), 0);
	*(void **)&get_version = dlsym(ucp, "ucp_get_version_string");
	assert_non_null(get_version);
	assert_string_equal(elf.version, get_version());
	assert_string_equal(elf.soname, "libucp.so.0");
}

/* ---- the loader cache ---- */

struct seen {
	int n;
	char text[256];
};

static int see(const char *name, const char *path, void *arg)
{
	struct seen *s = arg;

	s->n++;
	if (strlen(s->text) + strlen(name) + strlen(path) + 3 < sizeof(s->text)) {
		strcat(s->text, name);
		strcat(s->text, "=");
		strcat(s->text, path);
		strcat(s->text, " ");
	}
	return 0;
}

#define BOTH "libnccl.so.2=/opt/x/libnccl.so.2 libucp.so.0=/lib/u "

static void test_cache(void **state)
{
	unsigned char data[512], old[1024] = { 0 };
	size_t len = small_cache(data);
	struct seen s = { 0 };
	const uint32_t n = 3;

	(void)state;
	assert_int_equal(np_ld_cache_each(data, len, see, &s), 0);
	assert_string_equal(s.text, BOTH);
	/* behind the old format, as glibc before 2.32 wrote it */
	memcpy(old, "ld.so-1.7.0", 11);
	memcpy(old + 12, &n, 4);
	memcpy(old + 56, data, len); /* 16 + 3 * 12, and the padding */
	memset(&s, 0, sizeof(s));
	assert_int_equal(np_ld_cache_each(old, 56 + len, see, &s), 0);
	assert_string_equal(s.text, BOTH);
}

static void test_broken_caches(void **state)
{
	unsigned char whole[512], data[512];
	size_t len = small_cache(whole);
	struct seen s = { 0 };

	(void)state;
	for (size_t n = 0; n < len; n++) {
		_cleanup_free_ unsigned char *cut = malloc(n + 1);

		assert_non_null(cut);
		memcpy(cut, whole, n);
		assert_int_equal(np_ld_cache_each(cut, n, see, &s), -EBADMSG);
	}
	for (size_t i = 0; i < len; i++) {
		memcpy(data, whole, len);
		data[i] = 0xff;
		(void)!np_ld_cache_each(data, len, see, &s);
	}
	memset(data, 0xff, sizeof(data));
	memcpy(data, "ld.so-1.7.0", 11);
	assert_int_equal(np_ld_cache_each(data, sizeof(data), see, &s), -EBADMSG);
}

static int find_libc(const char *name, const char *path, void *arg)
{
	if (!np_streq(name, "libc.so.6"))
		return 0;
	assert_int_equal(access(path, R_OK), 0);
	*(bool *)arg = true;
	return 1;
}

static void test_the_systems_cache(void **state)
{
	np_auto_buf struct np_buf data = { 0 };
	bool found = false;

	(void)state;
	if (np_file_read_at(AT_FDCWD, "/etc/ld.so.cache", 16 << 20, &data) < 0) {
		print_message("no /etc/ld.so.cache\n");
		skip();
	}
	assert_int_equal(np_ld_cache_each(data.data, data.len, find_libc, &found), 1);
	assert_true(found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_packages),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_nccl_version),
		cmocka_unit_test(test_dpkg),
		cmocka_unit_test(test_small_ones),
		cmocka_unit_test(test_another_machine),
		cmocka_unit_test(test_broken_ones),
		cmocka_unit_test(test_real_ones),
		cmocka_unit_test(test_real_ucx),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_broken_caches),
		cmocka_unit_test(test_the_systems_cache),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
