/* SPDX-License-Identifier: MIT */
/*
 * render_modload [--ignore-blacklist] [--timeout MS] load NAME [OPTIONS]
 * render_modload lookup NAME
 * render_modload gdrdrv [MAJOR MODE]      (with arguments: makes /dev/gdrdrv)
 * render_modload driver
 *
 * Drives modules/ for scenarios in the VM: one JSON object on stdout. Exit 0 when
 * the call succeeded, 1 when it failed (the object then has "code"), 2 for usage.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/child.h"
#include "modules/gdrdrv.h"
#include "modules/load.h"
#include "modules/lookup.h"
#include "modules/module.h"

static const char *separator = "{";

static void put_text(const char *key, const char *value)
{
	printf("%s\"%s\": \"", separator, key);
	for (; *value; value++)
		printf(strchr("\"\\", *value) ? "\\%c" : "%c", *value);
	printf("\"");
	separator = ", ";
}

static void put_number(const char *key, int64_t value)
{
	printf("%s\"%s\": %" PRId64, separator, key, value);
	separator = ", ";
}

static void put_bool(const char *key, bool value)
{
	printf("%s\"%s\": %s", separator, key, value ? "true" : "false");
	separator = ", ";
}

static void put_list(const char *key, const struct np_strv *list)
{
	printf("%s\"%s\": [", separator, key);
	for (size_t i = 0; i < list->n; i++)
		printf("%s\"%s\"", i ? ", " : "", list->v[i]);
	printf("]");
	separator = ", ";
}

static int finish(int r, const struct np_err *err)
{
	put_number("result", r);
	if (r < 0) {
		put_text("code", err->code);
		put_text("message", err->message);
		put_text("hint", err->hint);
	}
	printf("}\n");
	return r < 0;
}

static int render_load(const char *name, const char *options, int timeout_ms, bool ignore)
{
	const struct np_kmod_load_spec spec = { .name = name,
						.options = options,
						.timeout_ms = timeout_ms,
						.ignore_blacklist = ignore };
	np_auto_kmod_load_result struct np_kmod_load_result result = { 0 };
	struct np_err err = { 0 };
	struct np_kmod now;
	int64_t start = np_now_ms();
	int r = np_kmod_load(&spec, &result, &err);

	put_text("name", name);
	put_bool("loaded_now", result.loaded_now);
	put_list("also_loaded", &result.also_loaded);
	put_text("module", result.module);
	put_number("load_errno", result.load_errno);
	put_text("log_line", result.log_line);
	put_bool("abandoned", result.abandoned > 0);
	put_number("ms", np_now_ms() - start);
	np_kmod_observe(name, &now);
	put_text("state", np_kmod_state_str(now.state));
	return finish(r, &err);
}

static int render_lookup(const char *name)
{
	np_auto_kmod_lookup struct np_kmod_lookup l = { 0 };
	struct np_err err = { 0 };
	int r = np_kmod_look_up(name, &l, &err);

	if (r == 0) {
		put_text("name", l.name);
		put_text("kernel", l.kernel);
		put_bool("builtin", l.builtin);
		put_bool("available", l.available);
		put_bool("not_indexed", l.not_indexed);
		put_text("path", l.path ? l.path : "");
		put_text("origin", np_kmod_origin_str(l.origin));
		put_text("vendor", l.vendor);
		put_text("version", l.version);
		put_text("license", l.license);
		put_text("vermagic", l.vermagic);
		put_list("params", &l.params);
		put_list("softdeps", &l.softdeps);
		put_bool("blacklisted", l.blacklisted);
		put_text("install_command", l.install_command ? l.install_command : "");
		put_text("said_by", l.said_by);
		put_list("other_kernels", &l.other_kernels);
		put_text("dkms", l.dkms);
		put_bool("headers", l.headers);
		r = np_kmod_loadable(&l, false, &err);
	}
	return finish(r, &err);
}

static int render_gdrdrv(const char *major_text, const char *mode_text)
{
	static const char *const words[] = { "unchanged", "created", "replaced", "adjusted" };
	struct np_err err = { 0 };
	struct np_gdrdrv g;
	int r = 0;

	if (major_text) {
		enum np_gdrdrv_made made = NP_GDRDRV_UNCHANGED;
		struct np_file_attr attr;
		uint64_t node_major = 0, mode = 0;

		np_gdrdrv_default_attr(&attr);
		if (np_parse_u64(major_text, 10, 4095, &node_major) < 0 ||
		    (mode_text && np_parse_u64(mode_text, 8, 0777, &mode) < 0))
			return 2;
		if (mode_text)
			attr.mode = (mode_t)mode;
		r = np_gdrdrv_make_node((int)node_major, &attr, &made, &err);
		put_text("made", words[made]);
	}
	np_gdrdrv_observe(&g);
	put_number("major", g.major);
	put_bool("node_exists", g.node_exists);
	put_bool("node_matches", g.node_matches);
	put_number("mode", g.node.mode);
	put_number("open_errno", g.open_errno);
	put_number("handshake_errno", g.handshake_errno);
	put_number("driver_version", g.driver_version);
	put_number("min_library_version", g.min_library_version);
	put_bool("usable", g.usable);
	put_number("persistent_mapping", g.persistent_mapping);
	put_text("built_for", np_gpu_flavour_str(g.built_for));
	return finish(r, &err);
}

static int render_driver(void)
{
	struct np_err err = { 0 };
	struct np_gpu_driver d;
	int r;

	np_gpu_driver_observe(&d);
	r = np_gpu_driver_look_up(&d, &err);
	put_bool("loaded", d.loaded);
	put_text("flavour", np_gpu_flavour_str(d.flavour));
	put_text("version", d.version);
	put_bool("installed", d.installed);
	put_text("installed_flavour", np_gpu_flavour_str(d.installed_flavour));
	put_text("installed_version", d.installed_version);
	return finish(r, &err);
}

int main(int argc, char **argv)
{
	uint64_t timeout_ms = 30000;
	bool ignore = false;
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (strcmp(argv[i], "--ignore-blacklist") == 0)
			ignore = true;
		else if (strcmp(argv[i], "--timeout") != 0 || ++i >= argc ||
			 np_parse_u64(argv[i], 10, 3600000, &timeout_ms) < 0)
			return 2;
	}
	if (i + 1 < argc && strcmp(argv[i], "load") == 0)
		return render_load(argv[i + 1], i + 2 < argc ? argv[i + 2] : NULL, (int)timeout_ms,
				   ignore);
	if (i + 1 < argc && strcmp(argv[i], "lookup") == 0)
		return render_lookup(argv[i + 1]);
	if (i < argc && strcmp(argv[i], "gdrdrv") == 0)
		return render_gdrdrv(i + 1 < argc ? argv[i + 1] : NULL,
				     i + 2 < argc ? argv[i + 2] : NULL);
	if (i < argc && strcmp(argv[i], "driver") == 0)
		return render_driver();
	fprintf(stderr, "usage: render_modload load|lookup NAME, gdrdrv, driver\n");
	return 2;
}
