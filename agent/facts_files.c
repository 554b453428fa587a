/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/facts.h"
#include "base/child.h"
#include "base/trust.h"
#include "base/user.h"

static struct np_file_fact *add_file(struct np_facts *facts, enum np_file_role role)
{
	struct np_file_fact *v = reallocarray(facts->files, facts->n_files + 1, sizeof(*v));

	if (!v)
		return NULL;
	facts->files = v;
	v += facts->n_files++;
	memset(v, 0, sizeof(*v));
	v->role = role;
	return v;
}

const struct np_file_fact *np_facts_file(const struct np_facts *facts, enum np_file_role role)
{
	for (size_t i = 0; i < facts->n_files; i++)
		if (facts->files[i].role == role)
			return &facts->files[i];
	return NULL;
}

static int add_home(struct np_facts *facts, const char *name, struct np_err *err)
{
	np_auto_user struct np_user user = { 0 };
	struct np_file_fact *fact;
	int r = np_user_by_name(name, &user, err);

	if (r < 0)
		return r;
	/* two names of one home */
	for (size_t i = 0; i < facts->n_files; i++)
		if (facts->files[i].file.uid == user.uid &&
		    np_streq(facts->files[i].file.home, user.home))
			return 0;
	fact = add_file(facts, NP_ROLE_NCCL_HOME);
	if (!fact || np_target_file_init_home(&fact->file, user.name, user.uid, user.gid, user.home,
					      ".nccl.conf") < 0)
		return np_err_nomem(err);
	return 0;
}

static int observe_homes(const struct np_config *cfg, struct np_facts *facts, struct np_err *err)
{
	_cleanup_free_ struct np_target_file **files = NULL;
	int r = 0;

	for (size_t i = 0; i < cfg->users.n && r == 0; i++)
		r = add_home(facts, cfg->users.v[i], err);
	if (r < 0)
		return r;
	files = calloc(facts->n_files + 1, sizeof(void *));
	for (size_t i = 0; files && i < facts->n_files; i++)
		files[i] = &facts->files[i].file;
	if (!files || np_target_homes_read(files, facts->n_files, true) < 0)
		return np_err_nomem(err);
	/* homes that were left out must not be taken for unreadable ones */
	if (np_interrupted())
		return np_err_set(err, -EINTR, "internal.interrupted", "interrupted by a signal");
	return 0;
}

static void refuse(struct np_target_file *f, const char *hint, const char *what, const char *why)
{
	f->status = NP_TARGET_REFUSED;
	f->num = -EPERM;
	snprintf(f->reason, sizeof(f->reason), "%s%s", what, why);
	np_strcpy(f->hint, sizeof(f->hint), hint);
}

/* Its place is the site's choice: nobody but root may write there, and what somebody else
 * has written stays. */
static int observe_modulefile(struct np_facts *facts, enum np_file_role role, const char *path,
			      struct np_err *err)
{
	struct np_file_fact *fact = add_file(facts, role);
	char which[NP_UCX_MODULEFILE_MAX + 1], shown[100];
	struct np_target_file *f;

	if (!fact || np_target_file_init_etc(&fact->file, path) < 0)
		return np_err_nomem(err);
	f = &fact->file;
	np_target_file_read(f);
	if (np_path_trusted(path, which, sizeof(which)) == -EPERM)
		refuse(f, "give it to root alone, or set [ucx] modulefile to a folder that is so",
		       np_printable(which, shown, sizeof(shown)),
		       " can be changed by others than root");
	else if (f->status == NP_TARGET_PRESENT && !np_ucx_is_ours(f->content.data))
		refuse(f, "set [ucx] modulefile to a file of its own, or remove this one", "",
		       "nodeprep did not write it");
	return 0;
}

static int observe_modulefiles(const struct np_config *cfg, struct np_facts *facts,
			       struct np_err *err)
{
	const struct np_file_fact *env = np_facts_file(facts, NP_ROLE_UCX_ENV);
	_cleanup_free_ char *old = NULL;
	int r = 0;

	if (env && env->file.status == NP_TARGET_PRESENT)
		old = np_ucx_env_modulefile(env->file.content.data, env->file.content.len);
	if (cfg->ucx_modulefile)
		r = observe_modulefile(facts, NP_ROLE_MODULEFILE, cfg->ucx_modulefile, err);
	if (r == 0 && old && !np_streq(old, cfg->ucx_modulefile))
		r = observe_modulefile(facts, NP_ROLE_MODULEFILE_OLD, old, err);
	return r;
}

int np_facts_observe_files(const struct np_config *cfg, struct np_facts *facts, struct np_err *err)
{
	static const struct {
		enum np_file_role role;
		const char *path;
	} etc[] = {
		{ NP_ROLE_NCCL_ETC, "/etc/nccl.conf" },
		{ NP_ROLE_PROFILE_SH, "/etc/profile.d/nodeprep-ucx.sh" },
		{ NP_ROLE_PROFILE_CSH, "/etc/profile.d/nodeprep-ucx.csh" },
		{ NP_ROLE_UCX_ENV, "/etc/nodeprep/ucx.env" },
		{ NP_ROLE_MODULES_LOAD, "/etc/modules-load.d/nodeprep.conf" },
		{ NP_ROLE_MODPROBE, "/etc/modprobe.d/nodeprep.conf" },
		{ NP_ROLE_LIMITS, NP_LIMITS_OURS },
		{ NP_ROLE_DASK_YAML, "/etc/dask/nodeprep.yaml" },
		{ NP_ROLE_DASK_ENV, "/etc/nodeprep/dask.env" },
	};

	int r = observe_homes(cfg, facts, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < NP_ARRAY_SIZE(etc); i++) {
		struct np_file_fact *fact = add_file(facts, etc[i].role);

		if (!fact || np_target_file_init_etc(&fact->file, etc[i].path) < 0)
			return np_err_nomem(err);
		np_target_file_read(&fact->file);
	}
	return observe_modulefiles(cfg, facts, err);
}
