/* SPDX-License-Identifier: MIT */
/* Whether NCCL and UCX will take what nodeprep writes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/consumer_nccl.h"
#include "agent/consumer_ucx.h"
#include "agent/judge.h"
#include "agent/nccl_conf.h"
#include "agent/plan.h"

static const char *const keys[] = { "NCCL_SOCKET_IFNAME", "NCCL_IB_HCA" };

/* The content that the file has, or is about to get. False: it is not there. */
static bool content_of(const struct np_config *cfg, const struct np_facts *facts,
		       const struct np_selection *sel, const struct np_file_fact *fact,
		       struct np_buf *out, struct np_checks *checks)
{
	const struct np_target_file *f = &fact->file;
	bool wanted = false, touched = (f->status == NP_TARGET_PRESENT && !f->reason[0]) ||
				       f->status == NP_TARGET_ABSENT;

	if (touched && np_plan_file_content(cfg, facts, sel, fact, &wanted, out, NULL) == -ENOMEM)
		checks->failed = true;
	if (touched && wanted)
		return true;
	if (f->status != NP_TARGET_PRESENT)
		return false;
	np_buf_done(out);
	np_buf_add(out, f->content.data, f->content.len);
	checks->failed |= out->failed;
	return true;
}

static int line_of(const struct np_buf *text, const char *key)
{
	np_auto_settings struct np_settings list = { 0 };
	const struct np_setting *s;

	np_nccl_conf_settings(&list, "-", text->data ? text->data : "", text->len);
	s = np_settings_find(&list, key, NULL);
	return s ? s->line : 0;
}

static void judge_shadow(const struct np_target_file *home, const struct np_buf *own,
			 const struct np_buf *etc, const char *key, struct np_checks *out)
{
	_cleanup_free_ char *mine = np_nccl_conf_get(own->data ? own->data : "", own->len, key);
	_cleanup_free_ char *theirs = np_nccl_conf_get(etc->data ? etc->data : "", etc->len, key);
	char target[128];

	if (!mine || !theirs || np_streq(mine, theirs))
		return;
	snprintf(target, sizeof(target), "%.110s:%d", home->path, line_of(own, key));
	np_checks_add(out, "file", target, NP_CHECK_WARN, "nccl.shadowed",
		      "take the line out of the user's file, or make both alike",
		      "%s=%.80s wins for user %s over /etc/nccl.conf, which has %.80s", key, mine,
		      home->user, theirs);
}

static void judge_shadows(const struct np_config *cfg, const struct np_facts *facts,
			  const struct np_selection *sel, struct np_checks *out)
{
	const struct np_file_fact *etc = np_facts_file(facts, NP_ROLE_NCCL_ETC);
	np_auto_buf struct np_buf etc_content = { 0 };

	if (!etc || !content_of(cfg, facts, sel, etc, &etc_content, out))
		return;
	for (size_t i = 0; i < facts->n_files; i++) {
		np_auto_buf struct np_buf own = { 0 };

		if (facts->files[i].role != NP_ROLE_NCCL_HOME ||
		    !content_of(cfg, facts, sel, &facts->files[i], &own, out))
			continue;
		for (size_t k = 0; k < NP_ARRAY_SIZE(keys); k++)
			judge_shadow(&facts->files[i].file, &own, &etc_content, keys[k], out);
	}
}

/* C3: no file for an interface that is not here. */
static void judge_ifname(const struct np_config *cfg, const struct np_facts *facts,
			 const struct np_selection *sel, struct np_checks *out)
{
	const char *code = np_plan_ifname_refused(cfg, facts, sel);
	np_auto_buf struct np_buf names = { 0 };

	if (!code || cfg->nccl_scope == NP_NCCL_OFF)
		return;
	for (size_t i = 0; i < facts->netdevs.n; i++)
		if (np_netdev_is_ipoib(&facts->netdevs.v[i]))
			np_buf_printf(&names, "%s%s", names.len ? ", " : "",
				      facts->netdevs.v[i].name);
	np_checks_add(
		out, "file", "/etc/nccl.conf", NP_CHECK_FAIL, code,
		np_streq(code, "nccl.no_address") ?
			"give it an address, or correct [nccl] socket_ifname" :
			"correct [nccl] socket_ifname, or take it out",
		"not written: [nccl] socket_ifname = %.60s takes no interface %s; IPoIB interfaces: %.120s",
		cfg->nccl_socket_ifname,
		np_streq(code, "nccl.no_address") ? "that has an address" : "of this node",
		names.data ? names.data : "none");
}

/* What the admin has written himself; the profiles know what goes together. */
static void judge_ucx(const struct np_config *cfg, const struct np_facts *facts,
		      const struct np_selection *sel, struct np_checks *out)
{
	const char *tls = NULL, *devices = NULL;
	struct np_env env = { 0 };
	bool wanted = false;

	if (!cfg->ucx.net_devices && !cfg->ucx.tls)
		return;
	if (np_plan_ucx_env(cfg, facts, sel, &wanted, &env, NULL) == -ENOMEM)
		out->failed = true;
	for (size_t i = 0; i < env.n; i++) {
		if (np_streq(env.v[i].name, "UCX_TLS"))
			tls = env.v[i].value;
		if (np_streq(env.v[i].name, "UCX_NET_DEVICES"))
			devices = env.v[i].value;
	}
	/* an address that is about to come is as good as one */
	if (tls && devices && !np_ucx_tcp_has_device(tls, devices, sel, facts))
		np_ucx_tcp_unusable(devices,
				    cfg->ucx_modulefile ? cfg->ucx_modulefile :
							  "/etc/profile.d/nodeprep-ucx.sh",
				    out);
	np_env_done(&env);
}

void np_judge_consumers(const struct np_config *cfg, const struct np_facts *facts,
			const struct np_selection *sel, struct np_checks *out)
{
	judge_shadows(cfg, facts, sel, out);
	judge_ifname(cfg, facts, sel, out);
	judge_ucx(cfg, facts, sel, out);
}
