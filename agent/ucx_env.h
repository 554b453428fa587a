/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_UCX_ENV_H
#define NP_AGENT_UCX_ENV_H

#include "base/str.h"

/* The UCX profiles of nodeprep.conf(5) as variables, and the files that carry
 * them. Pure: no I/O. */

/* From this version on it is UCX's own default. */
#define NP_UCX_WHOLE_ALLOC	 "UCX_MEMTYPE_REG_WHOLE_ALLOC_TYPES"
#define NP_UCX_WHOLE_ALLOC_SINCE "1.12"

enum np_ucx_profile { NP_UCX_STANDARD, NP_UCX_GUIDE, NP_UCX_DASK, NP_UCX_AUTO, NP_UCX_OFF };

/* Returns 0 or -EINVAL. */
int np_ucx_profile_parse(const char *s, enum np_ucx_profile *out) np_must_check;
const char *np_ucx_profile_str(enum np_ucx_profile p);
extern const char *const np_ucx_profile_names[]; /* NULL-terminated */

struct np_ucx_input {
	enum np_ucx_profile profile;
	const struct np_strv *hca_ports; /* "mlx5_0:1", usable ones, natural order */
	const char *netdev;		 /* the IPoIB netdev, NULL = none */
	bool gdr_copy;			 /* gdr_copy is usable here */
	const char *tls;		 /* [ucx] tls, NULL = by profile */
	const char *net_devices;	 /* [ucx] net_devices, NULL = by profile */
	const char *version;		 /* of the packaged UCX, "1.13.1"; NULL or "" = unknown */
};

struct np_env_var {
	char name[48];
	char *value;
};

struct np_env {
	struct np_env_var *v;
	size_t n;
};

/* The variables of a profile; one that this UCX has by default is left out (contents of @out
 * replaced; empty for off). @tls and
 * @net_devices win over every profile but off. Without a usable HCA port
 * UCX_NET_DEVICES is the netdev alone; without that too it is left out. An empty
 * value, or one with a character outside [A-Za-z0-9_.,:=^/+-], is refused: -EINVAL
 * with message (code "ucx.value_invalid"). Returns 0 or a negative errno. */
int np_ucx_env(const struct np_ucx_input *in, struct np_env *out, struct np_err *err) np_must_check;
void np_env_done(struct np_env *env);

/* Is UCX @version known to be older than @wanted, or as new as that? "1.9.0" is older than
 * "1.12". Both are false where @version is NULL or "". */
bool np_ucx_is_older(const char *version, const char *wanted);
bool np_ucx_is_since(const char *version, const char *wanted);

/* Adds to @out the UCX_NET_DEVICES of HCA ports and netdev, as the profile lists them;
 * nothing where there is neither. Out of memory is in @out. */
void np_ucx_net_devices(const struct np_ucx_input *in, struct np_buf *out);

/* The text of each file (contents of @out replaced). A value that the user has
 * already set wins, an empty one too; sourcing twice changes nothing; nothing is
 * printed. Without variables it is a comment. Returns 0, -ENOMEM, or -EINVAL for a
 * variable that np_ucx_env would have refused. */
int np_ucx_render_sh(const struct np_env *env, struct np_buf *out) np_must_check;
int np_ucx_render_csh(const struct np_env *env, struct np_buf *out) np_must_check;
/* For a systemd EnvironmentFile=. With @modulefile it says where that is; NULL = none. */
int np_ucx_render_env(const struct np_env *env, const char *modulefile,
		      struct np_buf *out) np_must_check;
/* For environment modules: Lua where @path ends in ".lua" (Lmod alone reads that), else
 * Tcl, which Environment Modules and Lmod read. Unloading takes away what loading set. */
int np_ucx_render_modulefile(const struct np_env *env, const char *path,
			     struct np_buf *out) np_must_check;
bool np_ucx_modulefile_is_lua(const char *path);

/* Is it one of these texts? The folder of a modulefile is the site's. */
bool np_ucx_is_ours(const char *text);

#define NP_UCX_MODULEFILE_MAX 160
/* Is @path one that [ucx] modulefile takes? */
bool np_ucx_modulefile_ok(const char *path);
/* The modulefile that a text of np_ucx_render_env names. NULL: none, or no memory. The
 * caller frees. */
char *np_ucx_env_modulefile(const char *text, size_t len) np_must_check;

#endif
