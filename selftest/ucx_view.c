/* SPDX-License-Identifier: MIT */
#include "selftest/ucx_view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

#include "base/log.h"
#include "selftest/ucx_build.h"

#define TEXT(x)	 TEXT_(x)
#define TEXT_(x) #x

const char *np_ucx_built_against(void)
{
	return TEXT(UCP_API_MAJOR) "." TEXT(UCP_API_MINOR);
}

bool np_ucx_is_exact(unsigned int major, unsigned int minor)
{
	return major == UCP_API_MAJOR && minor == UCP_API_MINOR;
}

struct np_ucx_md *np_ucx_view_add_md(struct np_ucx_view *view)
{
	struct np_ucx_md *v = reallocarray(view->mds, view->n_mds + 1, sizeof(*v));

	if (!v)
		return NULL;
	view->mds = v;
	v += view->n_mds++;
	memset(v, 0, sizeof(*v));
	return v;
}

struct np_ucx_transport *np_ucx_view_add_transport(struct np_ucx_view *view)
{
	struct np_ucx_transport *v =
		reallocarray(view->transports, view->n_transports + 1, sizeof(*v));

	if (!v)
		return NULL;
	view->transports = v;
	v += view->n_transports++;
	memset(v, 0, sizeof(*v));
	return v;
}

void np_ucx_view_done(struct np_ucx_view *view)
{
	if (!view)
		return;
	np_strv_done(&view->components);
	free(view->mds);
	free(view->transports);
	memset(view, 0, sizeof(*view));
}

/* ---- what UCP prints ---- */

/* "md 3  :  component 6  cma": the number after @word at *@at; moves behind it. */
static bool take_number(char **at, const char *word, size_t max, size_t *out)
{
	char *start = *at + strspn(*at, " "), *end;
	uint64_t value;
	char last;
	int r;

	if (!np_starts_with(start, word))
		return false;
	start += strlen(word);
	start += strspn(start, " ");
	end = start + strspn(start, "0123456789");
	last = *end;
	*end = '\0';
	r = np_parse_u64(start, 10, max, &value);
	*end = last;
	if (r < 0)
		return false;
	*at = end;
	*out = (size_t)value;
	return true;
}

static int take_md(char *at, struct np_ucx_view *view)
{
	struct np_ucx_md *md;
	size_t component;

	if (!take_number(&at, "component", view->components.n - 1, &component))
		return 0;
	md = np_ucx_view_add_md(view);
	if (!md)
		return -ENOMEM;
	np_strcpy(md->component, sizeof(md->component), view->components.v[component]);
	np_strcpy(md->name, sizeof(md->name), np_strip(at));
	return 0;
}

static int take_resource(char *at, struct np_ucx_view *view)
{
	char *name = strstr(at, "flags "), *slash;
	struct np_ucx_transport *transport;
	size_t md;

	if (!name || !take_number(&at, "md", view->n_mds - 1, &md))
		return 0;
	name = np_strip(name + strlen("flags "));
	name += strcspn(name, " "); /* "a-" */
	name = np_strip(name);
	slash = strchr(name, '/');
	if (!slash)
		return 0;
	*slash = '\0';
	transport = np_ucx_view_add_transport(view);
	if (!transport)
		return -ENOMEM;
	np_strcpy(transport->name, sizeof(transport->name), name);
	np_strcpy(transport->device, sizeof(transport->device), slash + 1);
	np_strcpy(transport->md, sizeof(transport->md), view->mds[md].name);
	return 0;
}

/* "#     component 4  :  ib", each list from 0 up */
static int take_line(char *line, struct np_ucx_view *view)
{
	char *colon = strchr(line, ':');
	size_t number;

	if (*line != '#' || !colon)
		return 0;
	line++;
	if (take_number(&line, "component", 1 << 10, &number))
		return number == view->components.n ?
			       np_strv_add(&view->components, np_strip(colon + 1)) :
			       0;
	if (view->components.n && take_number(&line, "md", 1 << 10, &number))
		return number == view->n_mds ? take_md(colon + 1, view) : 0;
	if (view->n_mds && take_number(&line, "resource", 1 << 10, &number))
		return take_resource(colon + 1, view);
	return 0;
}

int np_ucx_view_parse(const char *text, struct np_ucx_view *view)
{
	_cleanup_free_ char *copy = strdup(text);
	int r = copy ? 0 : -ENOMEM;

	for (char *rest = copy, *line; r == 0 && (line = strsep(&rest, "\n"));)
		r = take_line(line, view);
	return r;
}

static int ask_ucp(struct np_ucx_view *view, struct np_err *err)
{
	const ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AM,
	};
	_cleanup_free_ char *text = NULL;
	ucp_context_h context;
	size_t size = 0;
	ucs_status_t status = ucp_init(&params, NULL, &context);
	FILE *stream;

	if (status != UCS_OK) {
		np_debug("ucp_init: %s", ucs_status_string(status));
		return 0;
	}
	stream = open_memstream(&text, &size);
	if (stream)
		ucp_context_print_info(context, stream);
	ucp_cleanup(context);
	if (!stream || fclose(stream) != 0 || np_ucx_view_parse(text, view) < 0)
		return np_err_nomem(err);
	return 0;
}

int np_ucx_view_make(bool brief, struct np_ucx_view *view, struct np_err *err)
{
	_cleanup_free_ char *real = NULL;
	unsigned int major, minor, release;
	int r = 0;

	memset(view, 0, sizeof(*view));
	ucp_get_version(&major, &minor, &release);
	snprintf(view->version, sizeof(view->version), "%u.%u.%u", major, minor, release);
	real = realpath(np_ucx_library(), NULL);
	np_strcpy(view->path, sizeof(view->path), real ? real : np_ucx_library());
	view->exact = np_ucx_is_exact(major, minor) && np_ucx_of_one_piece();
	if (view->exact)
		r = np_ucx_view_ask_uct(brief, view);
	else if (!brief)
		r = ask_ucp(view, err);
	if (r < 0) {
		np_ucx_view_done(view);
		return np_err_nomem(err);
	}
	return 0;
}
