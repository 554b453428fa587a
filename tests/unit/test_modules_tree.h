/* SPDX-License-Identifier: MIT */
#ifndef NP_TEST_MODULES_TREE_H
#define NP_TEST_MODULES_TREE_H

/*
 * A made-up root with /lib/modules, modprobe.d and DKMS sources, and real (if empty)
 * module files: objects with a .modinfo section and symbols, which libkmod and depmod
 * read like any other. Lies in the tree of fake_sys.h.
 */
#include "tests/unit/fake_sys.h"

#include "modules/kmod_lib.h"

#define RELEASE "6.1.0-99-test"

static char fake_root[64];
static const struct np_kmod_place fake_place = { .root = fake_root, .release = RELEASE };

static void run_or_fail(const char *command)
{
	if (system(command) != 0)
		fail_msg("failed: %s", command);
}

/* A file relative to the root. */
__attribute__((format(printf, 2, 3))) static void put_file(const char *text, const char *fmt, ...)
{
	char path[300];
	va_list args;

	va_start(args, fmt);
	vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	put(text, "root/%s", path);
}

/* @path below /lib/modules/RELEASE; @info: "a=1|b=2" of .modinfo; it exports @provides
 * and needs @needs (NULL = nothing). */
static void put_module(const char *release, const char *path, const char *info,
		       const char *provides, const char *needs)
{
	char source[1024], text[512], command[1200];
	size_t len = 0;

	for (const char *c = info; *c && len + 3 < sizeof(text); c++) {
		if (*c == '|')
			text[len++] = '\\';
		text[len++] = *c == '|' ? '0' : *c;
	}
	text[len] = '\0';
	snprintf(source, sizeof(source),
		 "#define IN(s) __attribute__((section(s), used))\n"
		 "static const char info[] IN(\".modinfo\") = \"%s\";\n%s%s%s\n%s%s%s%s%s",
		 text, provides ? "static const char sym[] IN(\"__ksymtab_strings\") = \"" : "",
		 provides ? provides : "", provides ? "\";" : "", needs ? "extern int " : "",
		 needs ? needs : "", needs ? "; int *p = &" : "", needs ? needs : "",
		 needs ? ";" : "");
	put_file(source, "lib/modules/%s/%s.c", release, path);
	snprintf(command, sizeof(command),
		 "cd %s/lib/modules/%s && gcc -c -o %s.ko %s.c && rm %s.c", fake_root, release,
		 path, path, path);
	run_or_fail(command);
}

static void index_modules(const char *release)
{
	char command[400];

	snprintf(command, sizeof(command),
		 "cd %s/lib/modules/%s && touch modules.order modules.builtin "
		 "modules.builtin.modinfo && PATH=/usr/sbin:/sbin:$PATH depmod -b %s %s",
		 fake_root, release, fake_root, release);
	run_or_fail(command);
}

static int set_up_modules(void **state)
{
	int r = set_up(state);

	(void)lay_over; /* not every program that includes this needs it */
	snprintf(fake_root, sizeof(fake_root), "%s/root", tree);
	return r;
}

#endif
