/* SPDX-License-Identifier: MIT */
/* Prints one of the UCX files, for the tests that source it:
 * render_ucx sh|csh|env|tcl|lua PROFILE PORTS NETDEV yes|no   ("" = none) */
#include <stdio.h>
#include <string.h>

#include "agent/ucx_env.h"

static int render(const char *form, const struct np_env *env, struct np_buf *out)
{
	if (np_streq(form, "sh"))
		return np_ucx_render_sh(env, out);
	if (np_streq(form, "csh"))
		return np_ucx_render_csh(env, out);
	if (np_streq(form, "env"))
		return np_ucx_render_env(env, NULL, out);
	return np_ucx_render_modulefile(env, np_streq(form, "lua") ? "/x.lua" : "/x", out);
}

int main(int argc, char **argv)
{
	np_auto_strv struct np_strv ports = { 0 };
	np_auto_buf struct np_buf out = { 0 };
	struct np_ucx_input in = { .hca_ports = &ports };
	struct np_env env = { 0 };
	struct np_err err = { 0 };
	int r;

	if (argc != 6 || np_ucx_profile_parse(argv[2], &in.profile) < 0 ||
	    np_strv_split(&ports, argv[3], ",") < 0 || np_parse_bool(argv[5], &in.gdr_copy) < 0) {
		fprintf(stderr,
			"usage: render_ucx sh|csh|env|tcl|lua PROFILE PORTS NETDEV yes|no\n");
		return 2;
	}
	in.netdev = argv[4][0] ? argv[4] : NULL;
	r = np_ucx_env(&in, &env, &err);
	if (r == 0)
		r = render(argv[1], &env, &out);
	if (r < 0)
		fprintf(stderr, "render_ucx: %s\n", err.message);
	else
		fwrite(out.data, 1, out.len, stdout);
	np_env_done(&env);
	return r < 0;
}
