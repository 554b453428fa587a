/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "agent/ucx_env.h"

const char *const np_ucx_profile_names[] = {
	[NP_UCX_STANDARD] = "standard", [NP_UCX_GUIDE] = "guide", [NP_UCX_DASK] = "dask",
	[NP_UCX_AUTO] = "auto",		[NP_UCX_OFF] = "off",	  NULL,
};

int np_ucx_profile_parse(const char *s, enum np_ucx_profile *out)
{
	for (int i = 0; np_ucx_profile_names[i]; i++) {
		if (np_streq(s, np_ucx_profile_names[i])) {
			*out = (enum np_ucx_profile)i;
			return 0;
		}
	}
	return -EINVAL;
}

const char *np_ucx_profile_str(enum np_ucx_profile p)
{
	return np_ucx_profile_names[p];
}

static bool name_ok(const char *name)
{
	static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

	return name[0] >= 'A' && name[0] <= 'Z' && strspn(name, all) == strlen(name);
}

/* What is safe between quotes in sh and csh and bare in a systemd file. */
static bool value_ok(const char *value)
{
	static const char all[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,:=^/+-";

	return value[0] && strspn(value, all) == strlen(value);
}

static int add(struct np_env *env, const char *name, const char *value, struct np_err *err)
{
	struct np_env_var *grown;
	char shown[120];

	if (!value)
		return np_err_nomem(err);
	if (!value_ok(value)) {
		np_err_set(err, -EINVAL, "ucx.value_invalid", "%s cannot be set to \"%s\"", name,
			   np_printable(value, shown, sizeof(shown)));
		np_err_hint(err,
			    "use letters, digits and _.,:=^/+- only, and at least one of them");
		return -EINVAL;
	}
	grown = realloc(env->v, (env->n + 1) * sizeof(*grown));
	if (!grown)
		return np_err_nomem(err);
	env->v = grown;
	np_strcpy(grown[env->n].name, sizeof(grown[env->n].name), name);
	grown[env->n].value = strdup(value);
	if (!grown[env->n].value)
		return np_err_nomem(err);
	env->n++;
	return 0;
}

static int add_tls(const struct np_ucx_input *in, struct np_env *env, struct np_err *err)
{
	const char *gdr = in->gdr_copy ? ",gdr_copy" : "";
	_cleanup_free_ char *value = NULL;

	if (in->tls)
		return add(env, "UCX_TLS", in->tls, err);
	switch (in->profile) {
	case NP_UCX_STANDARD:
		value = np_asprintf("rc,cuda_copy,cuda_ipc%s,tcp,sm,self", gdr);
		break;
	case NP_UCX_GUIDE:
		value = np_asprintf("rc,cuda_copy,cuda_ipc%s", gdr);
		break;
	case NP_UCX_DASK:
		value = np_asprintf("rc,tcp,cuda_copy,cuda_ipc%s", gdr);
		break;
	case NP_UCX_AUTO:
		return add(env, "UCX_TLS", "all", err);
	case NP_UCX_OFF:
		return 0;
	}
	return add(env, "UCX_TLS", value, err);
}

void np_ucx_net_devices(const struct np_ucx_input *in, struct np_buf *out)
{
	bool any_hca = in->hca_ports && in->hca_ports->n > 0;
	/* tcp has no device without the netdev (and Dask hangs); the guide's list has
	 * no tcp, but a list of nothing would be an error in UCX */
	bool netdev = in->netdev && (in->profile != NP_UCX_GUIDE || !any_hca);

	for (size_t i = 0; any_hca && i < in->hca_ports->n; i++)
		np_buf_printf(out, "%s%s", i ? "," : "", in->hca_ports->v[i]);
	if (netdev)
		np_buf_printf(out, "%s%s", any_hca ? "," : "", in->netdev);
}

static int add_net_devices(const struct np_ucx_input *in, struct np_env *env, struct np_err *err)
{
	np_auto_buf struct np_buf value = { 0 };

	if (in->net_devices)
		return add(env, "UCX_NET_DEVICES", in->net_devices, err);
	if (in->profile == NP_UCX_AUTO)
		return 0;
	np_ucx_net_devices(in, &value);
	if (value.failed)
		return np_err_nomem(err);
	return value.len ? add(env, "UCX_NET_DEVICES", value.data, err) : 0;
}

bool np_ucx_is_older(const char *version, const char *wanted)
{
	return version && *version && np_natural_cmp(version, wanted) < 0;
}

bool np_ucx_is_since(const char *version, const char *wanted)
{
	return version && *version && np_natural_cmp(version, wanted) >= 0;
}

/* Dask-CUDA's manual set-up with InfiniBand. "rdmacm" alone would drop UCX's own
 * fallback, so tcp stays behind it. */
static int add_dask(const struct np_ucx_input *in, struct np_env *env, struct np_err *err)
{
	static const struct {
		const char *name, *value;
		const char *default_since; /* NULL: UCX's default is another */
	} vars[] = {
		{ "UCX_MAX_RNDV_RAILS", "1", NULL },
		{ NP_UCX_WHOLE_ALLOC, "cuda", NP_UCX_WHOLE_ALLOC_SINCE },
		{ "UCX_SOCKADDR_TLS_PRIORITY", "rdmacm,tcp", NULL },
	};

	for (size_t i = 0; i < NP_ARRAY_SIZE(vars); i++) {
		int r = 0;

		if (!vars[i].default_since || !np_ucx_is_since(in->version, vars[i].default_since))
			r = add(env, vars[i].name, vars[i].value, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int np_ucx_env(const struct np_ucx_input *in, struct np_env *out, struct np_err *err)
{
	struct np_env env = { 0 };
	int r = 0;

	if (in->profile != NP_UCX_OFF) {
		r = add_tls(in, &env, err);
		if (r == 0)
			r = add_net_devices(in, &env, err);
		if (r == 0 && in->profile == NP_UCX_DASK)
			r = add_dask(in, &env, err);
	}
	if (r < 0) {
		np_env_done(&env);
		return r;
	}
	np_env_done(out);
	*out = env;
	return 0;
}

void np_env_done(struct np_env *env)
{
	if (!env)
		return;
	for (size_t i = 0; i < env->n; i++)
		free(env->v[i].value);
	free(env->v);
	env->v = NULL;
	env->n = 0;
}

#define MARK "Written by nodeprep"

/* What the files have in common. No apostrophe, quote or backquote in the comments: csh
 * is picky even there. */
struct form {
	const char *magic;   /* the first line, or "" */
	const char *comment; /* what starts one */
	const char *about;   /* further comment lines */
	const char *before;  /* what comes before the variables */
	const char *each;    /* one variable: '@' is its name, '%' its value */
};

static int render(const struct np_env *env, const struct form *form, struct np_buf *out)
{
	const char *c = form->comment;
	struct np_buf text = { 0 };

	np_buf_printf(
		&text,
		"%s"
		"%s " MARK "; changes made here are lost. To change the values, edit\n"
		"%s the [ucx] section of /etc/nodeprep/nodeprep.conf and run: nodeprep apply\n"
		"%s",
		form->magic, c, c, form->about);
	if (env->n == 0)
		np_buf_printf(&text, "%s Nothing is set: profile = off.\n", c);
	else
		np_buf_str(&text, form->before);
	for (size_t i = 0; i < env->n; i++) {
		const struct np_env_var *var = &env->v[i];

		if (!name_ok(var->name) || !var->value || !value_ok(var->value)) {
			np_buf_done(&text);
			return -EINVAL;
		}
		for (const char *f = form->each; *f; f++) {
			if (*f == '@')
				np_buf_str(&text, var->name);
			else if (*f == '%')
				np_buf_str(&text, var->value);
			else
				np_buf_add(&text, f, 1);
		}
	}
	if (text.failed) {
		np_buf_done(&text);
		return -ENOMEM;
	}
	np_buf_done(out);
	*out = text;
	return 0;
}

int np_ucx_render_sh(const struct np_env *env, struct np_buf *out)
{
	static const struct form form = {
		"", "#",
		"# A value that is set already, an empty one too, is kept. For POSIX shells.\n", "",
		"if [ \"${@+set}\" != set ]; then\n"
		"\t@='%'\n"
		"\texport @\n"
		"fi\n"
	};

	return render(env, &form, out);
}

int np_ucx_render_csh(const struct np_env *env, struct np_buf *out)
{
	static const struct form form = {
		"", "#",
		"# A value that is set already, an empty one too, is kept. For csh and tcsh.\n", "",
		"if ( ! $?@ ) setenv @ '%'\n"
	};

	return render(env, &form, out);
}

/* modulefile(4): without it neither tool takes a file for one of its own */
#define MODULE_MAGIC "#%Module1.0\n"
#define MODULE_SAYS  "UCX variables for the fabric of this node"

/* The condition has to hold at unload too, which is what takes the value away. */
int np_ucx_render_modulefile(const struct np_env *env, const char *path, struct np_buf *out)
{
	static const struct form tcl = {
		MODULE_MAGIC, "#",
		"# A value that is set already, an empty one too, is kept, at unload as well. For\n"
		"# Environment Modules and Lmod.\n"
		"module-whatis \"" MODULE_SAYS "\"\n",
		"",
		"if { ![info exists env(@)] || $env(@) eq \"%\" } {\n"
		"\tsetenv @ \"%\"\n"
		"}\n"
	};
	static const struct form lua = {
		"", "--",
		"-- A value that is set already, an empty one too, is kept, at unload as well. For\n"
		"-- Lmod.\n"
		"whatis(\"" MODULE_SAYS "\")\n",
		"local function default(name, value)\n"
		"\tlocal now = os.getenv(name)\n"
		"\tif now == nil or now == value then\n"
		"\t\tsetenv(name, value)\n"
		"\tend\n"
		"end\n",
		"default(\"@\", \"%\")\n"
	};

	return render(env, np_ucx_modulefile_is_lua(path) ? &lua : &tcl, out);
}

bool np_ucx_modulefile_is_lua(const char *path)
{
	size_t len = strlen(path);

	return len > 4 && strcmp(path + len - 4, ".lua") == 0;
}

bool np_ucx_is_ours(const char *text)
{
	if (np_starts_with(text, MODULE_MAGIC))
		text += strlen(MODULE_MAGIC);
	return np_starts_with(text, "# " MARK) || np_starts_with(text, "-- " MARK);
}

/* In ucx.env, which is there whenever a modulefile is: what was written where. */
#define MODULEFILE_LINE "# The same as a modulefile: "

int np_ucx_render_env(const struct np_env *env, const char *modulefile, struct np_buf *out)
{
	_cleanup_free_ char *about =
		np_asprintf("# For systemd units: EnvironmentFile=-/etc/nodeprep/ucx.env. A later\n"
			    "# EnvironmentFile= wins over it; it wins over Environment=.\n"
			    "%s%s%s",
			    modulefile ? MODULEFILE_LINE : "", modulefile ? modulefile : "",
			    modulefile ? "\n" : "");
	const struct form form = { "", "#", about, "", "@=%\n" };

	return about ? render(env, &form, out) : -ENOMEM;
}

char *np_ucx_env_modulefile(const char *text, size_t len)
{
	const size_t n = strlen(MODULEFILE_LINE);
	const char *end = text + len;

	for (const char *line = text; line < end;) {
		const char *next = memchr(line, '\n', (size_t)(end - line));
		size_t size = (size_t)((next ? next : end) - line);

		if (size > n && memcmp(line, MODULEFILE_LINE, n) == 0) {
			char *path = strndup(line + n, size - n);

			if (path && np_ucx_modulefile_ok(path))
				return path;
			free(path);
			return NULL;
		}
		line += size + 1;
	}
	return NULL;
}

/* Where other programs, or nodeprep itself, take what they find for their own. */
static bool is_taken(const char *path, const char *name)
{
	static const char *const folders[] = { "/etc",
					       "/etc/nodeprep",
					       "/etc/nodeprep/conf.d",
					       "/etc/profile.d",
					       "/etc/security",
					       "/etc/security/limits.d",
					       "/etc/modprobe.d",
					       "/etc/modules-load.d",
					       "/etc/dask" },
				 *const below[] = { "/var/lib/nodeprep/", "/run/nodeprep/",
						    "/proc/", "/sys/", "/dev/" };

	for (size_t i = 0; i < NP_ARRAY_SIZE(folders); i++)
		if ((size_t)(name - path) == strlen(folders[i]) && np_starts_with(path, folders[i]))
			return true;
	for (size_t i = 0; i < NP_ARRAY_SIZE(below); i++)
		if (np_starts_with(path, below[i]))
			return true;
	return false;
}

bool np_ucx_modulefile_ok(const char *path)
{
	const char *name = strrchr(path, '/');
	static const char all[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_.,=+-";

	/* neither tool lists a file whose name starts with a dot */
	return path[0] == '/' && name[1] && name[1] != '.' && strcmp(name, "/.lua") != 0 &&
	       strlen(path) <= NP_UCX_MODULEFILE_MAX && strspn(path, all) == strlen(path) &&
	       !strstr(path, "/../") && !strstr(path, "/./") && !strstr(path, "//") &&
	       !is_taken(path, name);
}
