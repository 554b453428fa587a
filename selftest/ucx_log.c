/* SPDX-License-Identifier: MIT */
#include "selftest/ucx_log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Not in every distribution's package; without it UCX's own writer stays. */
#if defined(__has_include)
#if __has_include("ucs/debug/log_def.h")
#include <ucs/debug/log_def.h>
#define HAVE_UCS_LOG 1
#endif
#endif

#include "base/str.h"

/* A message that comes again and again is shown no more often than this. */
#define SHOWN_MAX 40u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* UCX has a thread of its own */
static char first[320];
static unsigned int shown;
static atomic_bool memlock;

#ifdef HAVE_UCS_LOG
static void show(ucs_log_level_t level, const char *text)
{
	if (level <= UCS_LOG_LEVEL_WARN && shown++ >= SHOWN_MAX) {
		if (shown == SHOWN_MAX + 1)
			fprintf(stderr, "ucx: more messages are not shown\n");
		return;
	}
	fprintf(stderr, "ucx: %s: %s\n", ucs_log_level_names[level], text);
}

__attribute__((format(printf, 6, 0))) static ucs_log_func_rc_t
on_message(const char *file, unsigned int line, const char *function, ucs_log_level_t level,
	   const ucs_log_component_config_t *component, const char *message, va_list args)
{
	char text[1024], printable[1200];

	(void)file;
	(void)line;
	(void)function;
	(void)component;
	vsnprintf(text, sizeof(text), message, args);
	np_printable(np_strip(text), printable, sizeof(printable));
	/* the words of UCX's verbs code when ibv_reg_mr gives ENOMEM */
	if (level <= UCS_LOG_LEVEL_ERROR && strstr(printable, "max locked memory"))
		memlock = true;
	pthread_mutex_lock(&lock);
	show(level, printable);
	if (level <= UCS_LOG_LEVEL_ERROR && !first[0])
		np_strcpy(first, sizeof(first), printable);
	pthread_mutex_unlock(&lock);
	return UCS_LOG_FUNC_RC_STOP;
}
#endif

void np_ucx_log_start(void)
{
	pthread_mutex_lock(&lock);
	first[0] = '\0';
	shown = 0;
	pthread_mutex_unlock(&lock);
	memlock = false;
#ifdef HAVE_UCS_LOG
	static bool pushed;

	if (!pushed)
		ucs_log_push_handler(on_message);
	pushed = true;
#endif
}

const char *np_ucx_log_first(void)
{
	return first;
}

bool np_ucx_log_memlock(void)
{
	return memlock;
}
