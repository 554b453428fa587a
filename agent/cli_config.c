/* SPDX-License-Identifier: MIT */
/* Defaults, files and flags become one configuration. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/cli.h"
#include "base/log.h"
#include "base/root.h"
#include "base/user.h"

/* Who gets a .nccl.conf without being named: whoever called sudo, else root. An
 * ordinary user who only looks is not asked to have one. */
static int add_invoking_user(const struct np_cli *cli, struct np_config *cfg, struct np_err *err)
{
	const char *sudo_user = geteuid() == 0 ? getenv("SUDO_USER") : NULL;
	np_auto_user struct np_user user = { 0 };

	if (!(sudo_user && *sudo_user && np_user_by_name(sudo_user, &user, NULL) == 0) &&
	    !(geteuid() == 0 && np_user_by_uid(geteuid(), &user, NULL) == 0))
		return 0;
	if (!np_strv_has(&cfg->users, user.name) && !np_strv_has(&cli->users, user.name))
		np_strcpy(cfg->implied_user, sizeof(cfg->implied_user), user.name);
	return np_strv_add(&cfg->users, user.name) < 0 ? np_err_nomem(err) : 0;
}

/* A user of the files whom the password database does not know (LDAP may come up
 * later) is a failed check; the node itself is no worse for it. */
static int sort_out_users(struct np_config *cfg)
{
	np_auto_strv struct np_strv known = { 0 };
	int r = 0;

	for (size_t i = 0; i < cfg->users.n && r == 0; i++) {
		np_auto_user struct np_user user = { 0 };
		bool found = np_user_by_name(cfg->users.v[i], &user, NULL) == 0;

		r = found ? np_strv_add(&known, user.name) :
			    np_strv_add(&cfg->unknown_users, cfg->users.v[i]);
	}
	np_strv_done(&cfg->users);
	cfg->users = known;
	memset(&known, 0, sizeof(known));
	return r;
}

static int add_users(const struct np_cli *cli, struct np_config *cfg, struct np_err *err)
{
	np_auto_strv struct np_strv all = { 0 };

	/* each once, in order; those that are there already were looked up */
	for (size_t i = 0; i < cfg->users.n; i++)
		if (!np_strv_has(&all, cfg->users.v[i]) && np_strv_add(&all, cfg->users.v[i]) < 0)
			return np_err_nomem(err);
	/* one that does not exist is a fault of the usage; show asks about a user, it does
	 * not give one a file */
	for (size_t i = 0; i < cli->users.n && cli->verb->bit != NP_VERB_SHOW; i++) {
		np_auto_user struct np_user user = { 0 };
		int r = np_user_by_name(cli->users.v[i], &user, err);

		if (r < 0)
			return r;
		if (!np_strv_has(&all, user.name) && np_strv_add(&all, user.name) < 0)
			return np_err_nomem(err);
	}
	np_strv_done(&cfg->users);
	cfg->users = all;
	memset(&all, 0, sizeof(all));
	return 0;
}

/* A file that --config names is one of this system; the image's own lies in its tree. From
 * there on this process sees the tree alone. Which users of its files have homes there is
 * for the node to see. */
static int load(const struct np_cli *cli, struct np_config *cfg, struct np_err *err)
{
	int r = 0;

	if (cli->root && !cli->config_path)
		r = np_root_enter(cli->root, err);
	if (r == 0)
		r = np_config_load(cfg, cli->config_path, err);
	if (r == 0 && cli->root && cli->config_path)
		r = np_root_enter(cli->root, err);
	if (r == 0 && cli->root)
		np_strv_done(&cfg->users);
	return r;
}

int np_cli_config(const struct np_cli *cli, struct np_config *cfg, struct np_err *err)
{
	int r = load(cli, cfg, err);

	if (r < 0)
		return r;
	r = sort_out_users(cfg);
	if (r < 0)
		return np_err_nomem(err);
	if (cli->ifname) {
		char shown[80];

		if (!*cli->ifname || !np_strcpy(cfg->ifname, sizeof(cfg->ifname), cli->ifname) ||
		    strpbrk(cli->ifname, "/ \t\n")) {
			np_err_set(
				err, -EINVAL, "usage.value",
				"--ifname \"%s\": not an interface name (1 to 15 characters, no blank, no slash)",
				np_printable(cli->ifname, shown, sizeof(shown)));
			np_err_hint(err, "see `ip link show type ipoib`");
			return -EINVAL;
		}
	}
	for (size_t i = 0; i < cli->ips.n; i++) {
		r = np_config_add_ip(cfg, cli->ips.v[i], err);
		if (r < 0)
			return r;
	}
	if (cli->timeout_s >= 0)
		cfg->wait_s = cli->timeout_s;
	cfg->force = cli->force;
	if (!cli->root)
		r = add_invoking_user(cli, cfg, err);
	if (r == 0)
		r = add_users(cli, cfg, err);
	if (r == 0)
		r = np_config_finish(cfg, err);
	for (size_t i = 0; r == 0 && i < cfg->warnings.n; i++)
		np_warning("%s", cfg->warnings.v[i]);
	return r;
}
