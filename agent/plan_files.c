/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "agent/consumer_nccl.h"
#include "agent/module_policy.h"
#include "agent/nccl_conf.h"
#include "agent/plan.h"

/* ---- NCCL ---- */

static int port_names(const struct np_config *cfg, const struct np_facts *facts, bool wanted_only,
		      struct np_strv *out)
{
	for (size_t i = 0; i < facts->cas.n; i++) {
		const struct np_ca *ca = &facts->cas.v[i];

		for (size_t p = 0; p < ca->n_ports; p++) {
			_cleanup_free_ char *name = NULL;

			if (wanted_only && np_port_role(cfg, ca, &ca->ports[p]) != NP_PORT_WANTED)
				continue;
			name = np_asprintf("%s:%d", ca->name, ca->ports[p].num);
			if (!name || np_strv_add(out, name) < 0)
				return -ENOMEM;
		}
	}
	np_strv_sort_natural(out);
	return 0;
}

/* "mlx5_0:1" is what is written: a CA that the admin names without a port stands for
 * its ACTIVE ports, or for port 1. Added to @out. */
static int with_port_numbers(const struct np_facts *facts, const char *list, struct np_buf *out)
{
	np_auto_strv struct np_strv parts = { 0 };
	size_t start;

	if (!list)
		return 0;
	np_buf_str(out, "");
	start = out->len;
	if (np_strv_split(&parts, list, ",") < 0)
		return -ENOMEM;
	for (size_t i = 0; i < parts.n; i++) {
		const struct np_ca *ca = np_cas_find(&facts->cas, parts.v[i]);
		size_t before = out->len;

		for (size_t p = 0; ca && p < ca->n_ports; p++)
			if (ca->ports[p].state == NP_PORT_ACTIVE)
				np_buf_printf(out, "%s%s:%d", out->len > start ? "," : "", ca->name,
					      ca->ports[p].num);
		if (out->len == before)
			np_buf_printf(out, "%s%s%s", out->len > start ? "," : "", parts.v[i],
				      ca ? ":1" : "");
	}
	return out->failed ? -ENOMEM : 0;
}

/* nodeprep writes CA:PORT in every place; people mostly leave the port out. */
static bool looks_like_ours(const char *value)
{
	value += strspn(value, "^=");
	do {
		size_t name = strcspn(value, ":,"), digits;

		if (name == 0 || value[name] != ':')
			return false;
		value += name + 1;
		digits = strspn(value, "0123456789");
		if (digits == 0)
			return false;
		value += digits;
	} while (*value++ == ',');
	return value[-1] == '\0';
}

/* Somebody's own list, which takes none of the ports that must not be used. */
static bool keeps_out(const struct np_config *cfg, const struct np_facts *facts, const char *value)
{
	for (size_t i = 0; i < facts->cas.n; i++) {
		const struct np_ca *ca = &facts->cas.v[i];

		for (size_t p = 0; p < ca->n_ports; p++)
			if (np_port_role(cfg, ca, &ca->ports[p]) != NP_PORT_WANTED &&
			    np_nccl_matches(value, ca->name, ca->ports[p].num))
				return false;
	}
	return true;
}

/* Whole names of what this node has: then those are meant, and not what NCCL's prefixes take
 * besides. Everything else ("mlx5", "=ib0", "^ib1") is NCCL's own language. */
static int split_names(const char *list, const struct np_strv *all, struct np_strv *out,
		       bool *whole)
{
	int r = np_strv_split(out, list, ",");

	*whole = out->n > 0 && *list != '^' && *list != '=';
	for (size_t i = 0; r == 0 && i < out->n; i++)
		*whole = *whole && np_strv_has(all, out->v[i]);
	return r;
}

/* [nccl] ib_hca, with the numbers of the ports, and exact where the names alone would take
 * other ports too. */
static int configured_hcas(const struct np_config *cfg, const struct np_facts *facts, char **out)
{
	np_auto_strv struct np_strv named = { 0 };
	np_auto_strv struct np_strv all = { 0 };
	np_auto_buf struct np_buf list = { 0 };
	size_t prefix = strspn(cfg->nccl_ib_hca, "^=");
	bool whole;
	int r;

	np_buf_add(&list, cfg->nccl_ib_hca, prefix);
	if (with_port_numbers(facts, cfg->nccl_ib_hca + prefix, &list) < 0 ||
	    port_names(cfg, facts, false, &all) < 0 ||
	    split_names(list.data, &all, &named, &whole) < 0)
		return -ENOMEM;
	/* all ports there are: NULL, and the list says it as well */
	r = whole ? np_nccl_hca_value(&named, &all, out) : 0;
	if (r == 0 && !*out)
		*out = strdup(list.data);
	return r == 0 && !*out ? -ENOMEM : r;
}

/* Ports that must not be used by their role (management, ignored, Ethernet) have to
 * be kept out by name; a port that is merely down NCCL skips by itself. */
static int ib_hca_value(const struct np_config *cfg, const struct np_facts *facts,
			const struct np_buf *old, bool *drop, char **out)
{
	np_auto_strv struct np_strv wanted = { 0 };
	np_auto_strv struct np_strv all = { 0 };
	_cleanup_free_ char *present = NULL;
	int r;

	*out = NULL;
	*drop = false;
	if (cfg->nccl_ib_hca)
		return configured_hcas(cfg, facts, out);
	if (port_names(cfg, facts, true, &wanted) < 0 || port_names(cfg, facts, false, &all) < 0)
		return -ENOMEM;
	if (wanted.n == 0)
		return 0;
	present = np_nccl_conf_get(old->data ? old->data : "", old->len, "NCCL_IB_HCA");
	/* somebody's own line, which takes nothing that it must not: left as it is */
	if (present && !looks_like_ours(present) && keeps_out(cfg, facts, present))
		return 0;
	r = np_nccl_hca_value(&wanted, &all, out);
	/* nothing to keep out any more: a line of ours goes */
	*drop = r == 0 && !*out && present;
	return r;
}

static int ifname_value(const struct np_config *cfg, const struct np_facts *facts,
			const struct np_selection *sel, char **out)
{
	np_auto_strv struct np_strv names = { 0 };
	bool whole;

	*out = NULL;
	if (cfg->nccl_socket_ifname) {
		if (split_names(cfg->nccl_socket_ifname, &facts->netdev_names, &names, &whole) < 0)
			return -ENOMEM;
		if (whole)
			*out = np_nccl_ifname_value(&names, &facts->netdev_names);
		if (!*out)
			*out = strdup(cfg->nccl_socket_ifname);
		return *out ? 0 : -ENOMEM;
	}
	if (!np_consumer_netdev(sel))
		return 0;
	if (np_strv_add(&names, np_consumer_netdev(sel)) < 0)
		return -ENOMEM;
	*out = np_nccl_ifname_value(&names, &facts->netdev_names);
	return *out ? 0 : -errno;
}

/* It has an address that NCCL can use, or gets one. */
static bool gets_address(const struct np_facts *facts, const struct np_selection *sel,
			 const char *name)
{
	const struct np_netdev *dev = np_netdevs_find(&facts->netdevs, name);

	for (size_t i = 0; sel && i < sel->n_netdevs; i++)
		if (sel->netdevs[i].n_addrs > 0 && np_streq(sel->netdevs[i].dev->name, name))
			return true;
	return !dev || np_netdev_addressed(dev);
}

const char *np_plan_ifname_refused(const struct np_config *cfg, const struct np_facts *facts,
				   const struct np_selection *sel)
{
	const char *value = cfg->nccl_socket_ifname;
	np_auto_strv struct np_strv names = { 0 };
	bool any = false, whole;

	/* what is excluded may be absent; one letter is no value to NCCL */
	if (!value || *value == '^' || strlen(value) < 2)
		return NULL;
	if (split_names(value, &facts->netdev_names, &names, &whole) < 0)
		whole = false;
	for (size_t i = 0; i < facts->netdev_names.n; i++) {
		const char *name = facts->netdev_names.v[i];

		if (whole ? !np_strv_has(&names, name) : !np_nccl_matches(value, name, -1))
			continue;
		any = true;
		if (gets_address(facts, sel, facts->netdev_names.v[i]))
			return NULL;
	}
	return any ? "nccl.no_address" : "nccl.matches_nothing";
}

/* C8: nodes whose interfaces differ may share this home, and nobody has asked for it. */
static bool is_shared_home(const struct np_config *cfg, const struct np_file_fact *fact)
{
	return fact->role == NP_ROLE_NCCL_HOME && fact->file.network_fs &&
	       cfg->nccl_scope == NP_NCCL_BOTH && np_streq(cfg->implied_user, fact->file.user);
}

static int nccl_content(const struct np_config *cfg, const struct np_facts *facts,
			const struct np_selection *sel, const struct np_file_fact *fact,
			bool *wanted, struct np_buf *content, struct np_err *err)
{
	bool home = fact->role == NP_ROLE_NCCL_HOME;
	_cleanup_free_ char *ifname = NULL;
	_cleanup_free_ char *hca = NULL;
	struct np_nccl_key keys[2];
	bool drop_hca = false;
	size_t n = 0;
	int r;

	*wanted = cfg->nccl_scope == NP_NCCL_BOTH ||
		  cfg->nccl_scope == (home ? NP_NCCL_HOME : NP_NCCL_SYSTEM);
	if (is_shared_home(cfg, fact) || np_plan_ifname_refused(cfg, facts, sel))
		*wanted = false;
	if (!*wanted)
		return 0;
	r = ifname_value(cfg, facts, sel, &ifname);
	if (r == 0)
		r = ib_hca_value(cfg, facts, &fact->file.content, &drop_hca, &hca);
	if (r == -ENOMEM)
		return np_err_nomem(err);
	if (r < 0) {
		np_err_set(
			err, r, "nccl.value_invalid",
			"the names of this node's netdevs and ports cannot be written as a list of NCCL");
		np_err_hint(err, "set [nccl] socket_ifname and ib_hca, or [nccl] scope = off");
		return r;
	}
	if (ifname)
		keys[n++] = (struct np_nccl_key){ "NCCL_SOCKET_IFNAME", ifname };
	if (hca || drop_hca)
		keys[n++] = (struct np_nccl_key){ "NCCL_IB_HCA", hca };
	*wanted = n > 0;
	if (!*wanted)
		return 0;
	return np_nccl_conf_edit(fact->file.content.data ? fact->file.content.data : "",
				 fact->file.content.len, keys, n, content, err);
}

/* ---- UCX ---- */

int np_plan_ucx_env(const struct np_config *cfg, const struct np_facts *facts,
		    const struct np_selection *sel, bool *wanted, struct np_env *env,
		    struct np_err *err)
{
	np_auto_strv struct np_strv ports = { 0 };
	np_auto_buf struct np_buf devices = { 0 };
	struct np_ucx_input input = cfg->ucx;

	if (np_usable_ports(cfg, facts, &ports) < 0 ||
	    with_port_numbers(facts, input.net_devices, &devices) < 0)
		return np_err_nomem(err);
	if (input.net_devices)
		input.net_devices = devices.data;
	input.hca_ports = &ports;
	input.netdev = np_consumer_netdev(sel);
	/* a node without GPUs is not asked each time, and a plan must not depend on that */
	input.version = np_has_gpu(facts) ? facts->libraries.ucx_version : NULL;
	input.gdr_copy = facts->gdrdrv.usable || np_gdr_dmabuf_usable(facts);
	/* no fabric at all: nothing to say to UCX, unless the admin says it */
	*wanted = cfg->ucx.profile != NP_UCX_OFF &&
		  (ports.n > 0 || input.netdev || input.tls || input.net_devices);
	return *wanted ? np_ucx_env(&input, env, err) : 0;
}

/* The modulefile is written in the place of the profile scripts. */
static bool is_other_way(const struct np_config *cfg, enum np_file_role role)
{
	bool script = role == NP_ROLE_PROFILE_SH || role == NP_ROLE_PROFILE_CSH;

	return role == NP_ROLE_MODULEFILE_OLD || (script && cfg->ucx_modulefile);
}

static int ucx_content(const struct np_config *cfg, const struct np_facts *facts,
		       const struct np_selection *sel, enum np_file_role role, bool *wanted,
		       struct np_buf *content, struct np_err *err)
{
	struct np_env env = { 0 };
	int r;

	*wanted = false;
	if (is_other_way(cfg, role))
		return 0;
	r = np_plan_ucx_env(cfg, facts, sel, wanted, &env, err);
	if (r < 0 || !*wanted)
		return r;
	if (role == NP_ROLE_PROFILE_SH)
		r = np_ucx_render_sh(&env, content);
	else if (role == NP_ROLE_PROFILE_CSH)
		r = np_ucx_render_csh(&env, content);
	else if (role == NP_ROLE_MODULEFILE)
		r = np_ucx_render_modulefile(&env, cfg->ucx_modulefile, content);
	else
		r = np_ucx_render_env(&env, cfg->ucx_modulefile, content);
	np_env_done(&env);
	return r < 0 ? np_err_nomem(err) : 0;
}

int np_plan_file_content(const struct np_config *cfg, const struct np_facts *facts,
			 const struct np_selection *sel, const struct np_file_fact *fact,
			 bool *wanted, struct np_buf *content, struct np_err *err)
{
	if (fact->role == NP_ROLE_NCCL_HOME || fact->role == NP_ROLE_NCCL_ETC)
		return nccl_content(cfg, facts, sel, fact, wanted, content, err);
	if (fact->role == NP_ROLE_MODULES_LOAD || fact->role == NP_ROLE_MODPROBE)
		return np_module_file_content(cfg, facts, fact->role, wanted, content) < 0 ?
			       np_err_nomem(err) :
			       0;
	if (fact->role == NP_ROLE_LIMITS)
		return np_limits_file_content(cfg, facts, fact, wanted, content) < 0 ?
			       np_err_nomem(err) :
			       0;
	if (fact->role == NP_ROLE_DASK_YAML || fact->role == NP_ROLE_DASK_ENV)
		return np_dask_file_content(cfg, facts, sel, fact->role, wanted, content, err);
	return ucx_content(cfg, facts, sel, fact->role, wanted, content, err);
}

/* ---- actions ---- */

static int add_file_action(const struct np_target_file *f, bool has_new, struct np_buf *content,
			   struct np_actions *out)
{
	struct np_action *a = np_actions_add(out, NP_ACTION_FILE);

	if (!a)
		return -ENOMEM;
	a->path = strdup(f->path);
	a->user = f->in_home ? strdup(f->user) : NULL;
	a->home = f->in_home ? strdup(f->home) : NULL;
	if (!a->path || (f->in_home && (!a->user || !a->home)))
		return -ENOMEM;
	a->uid = f->uid;
	a->gid = f->gid;
	a->had_old = f->status == NP_TARGET_PRESENT;
	a->has_new = has_new;
	a->attr = f->attr;
	np_buf_add(&a->old_content, f->content.data, f->content.len);
	if (has_new) {
		a->new_content = *content;
		memset(content, 0, sizeof(*content));
	}
	return a->old_content.failed || a->new_content.failed ? -ENOMEM : 0;
}

static bool is_leftover_of_ucx(const struct np_config *cfg, const struct np_facts *facts,
			       const struct np_file_fact *fact)
{
	const struct np_file_fact *modulefile = np_facts_file(facts, NP_ROLE_MODULEFILE);
	bool ucx = fact->role == NP_ROLE_PROFILE_SH || fact->role == NP_ROLE_PROFILE_CSH ||
		   fact->role == NP_ROLE_UCX_ENV || fact->role == NP_ROLE_MODULEFILE_OLD;

	if (fact->file.status != NP_TARGET_PRESENT)
		return false;
	if (fact->role == NP_ROLE_MODULEFILE)
		return cfg->ucx.profile == NP_UCX_OFF;
	/* what works stays as long as the other cannot come */
	if (modulefile && modulefile->file.status != NP_TARGET_PRESENT &&
	    modulefile->file.status != NP_TARGET_ABSENT)
		ucx = fact->role == NP_ROLE_UCX_ENV;
	return ucx && (cfg->ucx.profile == NP_UCX_OFF || is_other_way(cfg, fact->role));
}

/* A file that is nodeprep's own and no longer asked for. */
static bool is_leftover(const struct np_config *cfg, const struct np_facts *facts,
			const struct np_file_fact *fact)
{
	if (fact->role == NP_ROLE_MODULES_LOAD || fact->role == NP_ROLE_MODPROBE)
		return fact->file.status == NP_TARGET_PRESENT;
	if (fact->role == NP_ROLE_LIMITS)
		return cfg->memlock_keep && fact->file.status == NP_TARGET_PRESENT;
	if (fact->role == NP_ROLE_DASK_YAML || fact->role == NP_ROLE_DASK_ENV)
		return !cfg->dask.enabled && fact->file.status == NP_TARGET_PRESENT;
	return is_leftover_of_ucx(cfg, facts, fact);
}

static bool is_planned(const struct np_actions *actions, const struct np_target_file *f)
{
	for (size_t i = 0; i < actions->n; i++)
		if (actions->v[i].kind == NP_ACTION_FILE && np_streq(actions->v[i].path, f->path))
			return true;
	return false;
}

static int plan_file(const struct np_config *cfg, const struct np_facts *facts,
		     const struct np_selection *sel, const struct np_file_fact *fact,
		     struct np_actions *out, struct np_err *err)
{
	np_auto_buf struct np_buf content = { 0 };
	bool wanted = false;
	int r;

	/* refused and unreadable files are a matter of judgement, not of change; so
	 * is one that can be read and must not be replaced (a symlink in /etc) */
	if ((fact->file.status != NP_TARGET_PRESENT && fact->file.status != NP_TARGET_ABSENT) ||
	    fact->file.reason[0])
		return 0;
	r = np_plan_file_content(cfg, facts, sel, fact, &wanted, &content, err);
	if (r < 0)
		return r;
	if (!wanted && !is_leftover(cfg, facts, fact))
		return 0;
	/* the next run would refuse to read it: a matter of judgement, too */
	if (content.len > NP_TARGET_MAX)
		return 0;
	if (wanted && fact->file.status == NP_TARGET_PRESENT &&
	    np_buf_equal(&content, &fact->file.content))
		return 0;
	return add_file_action(&fact->file, wanted, &content, out) < 0 ? np_err_nomem(err) : 0;
}

int np_plan_modprobe_file(const struct np_config *cfg, const struct np_facts *facts,
			  struct np_actions *out, struct np_err *err)
{
	int r = 0;

	for (size_t i = 0; i < facts->n_files && r == 0; i++)
		if (facts->files[i].role == NP_ROLE_MODPROBE)
			r = plan_file(cfg, facts, NULL, &facts->files[i], out, err);
	return r;
}

int np_plan_files(const struct np_config *cfg, const struct np_facts *facts,
		  const struct np_selection *sel, struct np_actions *out, struct np_err *err)
{
	int r = 0;

	for (size_t i = 0; i < facts->n_files && r == 0; i++)
		if (!is_planned(out, &facts->files[i].file))
			r = plan_file(cfg, facts, sel, &facts->files[i], out, err);
	return r;
}
