/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "agent/address_resolve.h"
#include "agent/cli.h"
#include "agent/consumer.h"
#include "agent/module_policy.h"
#include "agent/show.h"

static int check_nouns(const struct np_cli *cli, struct np_err *err)
{
	for (size_t i = 0; i < cli->args.n; i++) {
		const char *word = cli->args.v[i], *near;
		bool known = false;
		char shown[80];

		for (size_t n = 0; np_show_nouns[n]; n++)
			known |= np_streq(np_show_nouns[n], word);
		if (known)
			continue;
		near = np_nearest(word, np_show_nouns);
		np_err_set(err, -EINVAL, "usage.unknown", "show knows no \"%s\"%s%s%s",
			   np_printable(word, shown, sizeof(shown)),
			   near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
		np_err_hint(err, "see nodeprep show --help");
		return -EINVAL;
	}
	return 0;
}

/* Of nodeprep-selftest, which starts the GPUs' driver: a second or two for each GPU. */
#define LIBRARIES_TIMEOUT_S 60

static int ask_libraries(const struct np_cli *cli, const char *const *names, json_t **list,
			 struct np_result *result)
{
	return np_libraries_show(names,
				 1000 * (cli->timeout_s > 0 ? cli->timeout_s : LIBRARIES_TIMEOUT_S),
				 list, &result->error);
}

/* NVML alone tells of NVLink; it is asked once, and not where there is no GPU. */
static int add_topology(const struct np_cli *cli, const struct np_config *cfg,
			const struct np_facts *facts, struct np_result *result)
{
	const json_t *libraries = json_object_get(result->show, "libraries");
	json_t *asked = NULL;
	int r = 0;

	if (!libraries && np_has_gpu(facts))
		r = ask_libraries(cli, np_library_names_nvlink, &asked, result);
	if (r < 0)
		return r;
	r = np_show_add(result->show, "topology", cfg, facts, libraries ? libraries : asked);
	json_decref(asked);
	return r < 0 ? np_err_nomem(&result->error) : 0;
}

/* Every library that there is, beside those that a program gets here. */
static int add_census(const struct np_config *cfg, struct np_result *result)
{
	np_auto_census struct np_census census = { 0 };
	int r = np_census_look(cfg, &census, &result->error);

	if (r == 0 && json_object_set_new(result->show, "census", np_census_rows(&census)) < 0)
		r = np_err_nomem(&result->error);
	return r;
}

static int add_noun(const struct np_cli *cli, const struct np_config *cfg,
		    const struct np_facts *facts, const char *noun, struct np_result *result)
{
	json_t *list = NULL;
	int r;

	if (np_streq(noun, "topology"))
		return add_topology(cli, cfg, facts, result);
	if (!np_streq(noun, "libraries")) {
		r = np_show_add(result->show, noun, cfg, facts, NULL);
		return r < 0 ? np_err_nomem(&result->error) : 0;
	}
	r = ask_libraries(cli, np_library_names, &list, result);
	if (r == 0 && json_object_set_new(result->show, noun, list) < 0)
		r = np_err_nomem(&result->error);
	return r < 0 ? r : add_census(cfg, result);
}

static bool has_consumer(const struct np_cli *cli)
{
	return cli->users.n || cli->unit || cli->pid;
}

/* What a user, a unit or a process gets, as further rows of config. */
static int add_consumer(const struct np_cli *cli, const struct np_facts *facts,
			struct np_result *result)
{
	np_auto_consumer struct np_consumer consumer = { 0 };
	json_t *rows = json_object_get(result->show, "config");
	int r;

	if (cli->pid)
		r = np_consumer_process(cli->pid, &consumer, &result->error);
	else if (cli->unit)
		r = np_consumer_unit(cli->unit, &consumer, &result->error);
	else
		r = np_consumer_user(cli->users.v[0], &consumer, &result->error);
	if (r < 0) {
		json_decref(result->show);
		result->show = NULL;
		return np_verb_fail(result, r == -ENOMEM ? NP_EXIT_INTERNAL : NP_EXIT_REFUSED);
	}
	if (np_consumer_rows(&consumer, facts, rows) < 0) {
		np_err_nomem(&result->error);
		return np_verb_fail(result, NP_EXIT_INTERNAL);
	}
	return 0;
}

int np_verb_show(const struct np_cli *cli, struct np_config *cfg, struct np_result *result)
{
	np_auto_facts struct np_facts facts = { 0 };
	int r = check_nouns(cli, &result->error);

	if (r == 0 && has_consumer(cli) && cli->args.n && !np_strv_has(&cli->args, "config")) {
		r = np_err_set(&result->error, -EINVAL, "usage.value",
			       "--user, --unit and --pid are for show config");
		np_err_hint(&result->error, "write nodeprep show config");
	}

	if (r < 0)
		return np_verb_fail(result, NP_EXIT_USAGE);
	r = np_observe(cfg, NP_OBSERVE_ALL, &facts, &result->error);
	if (r < 0)
		return np_verb_fail(result, NP_EXIT_INTERNAL);
	if (cli->args.n == 0 || np_strv_has(&cli->args, "config")) {
		r = np_address_sources_try(cfg, &facts, &result->error);
		if (r < 0)
			return np_verb_fail(result, NP_EXIT_INTERNAL);
		np_err_clear(&result->error);
	}
	/* without libkmod what is on disk stays unknown */
	if ((cli->args.n == 0 || np_strv_has(&cli->args, "modules")) &&
	    np_kmods_look_up(&facts.kmods, NULL, NULL) == -ENOMEM) {
		np_err_nomem(&result->error);
		return np_verb_fail(result, NP_EXIT_INTERNAL);
	}
	if (cli->args.n == 0 || np_strv_has(&cli->args, "topology"))
		np_observe_pci(&facts);
	result->show = json_object();
	for (size_t i = 0; np_show_nouns[i] && r == 0; i++) {
		if (cli->args.n && !np_strv_has(&cli->args, np_show_nouns[i]))
			continue;
		r = add_noun(cli, cfg, &facts, np_show_nouns[i], result);
	}
	if (r < 0) {
		/* half of what was asked for is no answer */
		json_decref(result->show);
		result->show = NULL;
		return np_verb_fail(result, NP_EXIT_INTERNAL);
	}
	if (has_consumer(cli) && json_object_get(result->show, "config")) {
		r = add_consumer(cli, &facts, result);
		if (r < 0)
			return r;
	}
	/* facts are not judged here */
	result->converged = true;
	return 0;
}
