/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_ERR_H
#define NP_BASE_ERR_H

/*
 * One error signature everywhere: a function returns 0 or a negative errno and
 * fills a caller-owned struct np_err. Storage is inline, so it works out of
 * memory; texts that do not fit are cut, never overrun.
 */
struct np_err {
	int num;	   /* negative errno, 0 = no error */
	char code[48];	   /* stable dotted name, listed in nodeprep-codes(7); "" = internal */
	char message[640]; /* what, where */
	char hint[320];	   /* imperative: how to fix it; "" = none */
};

/* Zeroes @err. NULL is allowed here and in every function below. */
void np_err_clear(struct np_err *err);

/* Sets number, code and message, drops an old hint. Returns @num (a negative
 * errno), so that `return np_err_set(err, -EINVAL, "x.y", "...")` reads well. */
int np_err_set(struct np_err *err, int num, const char *code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Sets the hint of an error already set. */
void np_err_hint(struct np_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "context: " in front of the message; for use on the way up. */
void np_err_context(struct np_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A bad word of the command line: code "usage", message @what "@word"; the hint names
 * @nearest, which may be NULL. Returns -EINVAL. */
int np_err_usage(struct np_err *err, const char *nearest, const char *what, const char *word);

/* -ENOMEM with its message. */
int np_err_nomem(struct np_err *err);

#endif
