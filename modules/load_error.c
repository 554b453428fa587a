/* SPDX-License-Identifier: MIT */
/* Which of the known failures it is. Pure: errno, kernel log line and what the
 * lookup knows go in, code, message and hint come out. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "modules/lookup.h"
#include "modules/private.h"

/* ---- before the kernel is asked ---- */

static void list_text(const struct np_strv *list, char *out, size_t size)
{
	size_t len = 0;

	out[0] = '\0';
	for (size_t i = 0; i < list->n && len < size; i++)
		len += (size_t)snprintf(out + len, size - len, "%s%s", i ? ", " : "", list->v[i]);
}

static void hint_rebuild(const struct np_kmod_lookup *l, struct np_err *err)
{
	if (*l->dkms)
		np_err_hint(err, "%s%s%srun: dkms install %s -k %s",
			    l->headers ? "" : "install the headers of kernel ",
			    l->headers ? "" : l->kernel, l->headers ? "" : ", then ", l->dkms,
			    l->kernel);
	else if (np_starts_with(l->name, "gdrdrv"))
		np_err_hint(err, "install gdrcopy's kernel module (gdrdrv-dkms) for kernel %s",
			    l->kernel);
	else if (np_starts_with(l->name, "nvidia"))
		np_err_hint(err, "install the NVIDIA driver for kernel %s", l->kernel);
	else
		np_err_hint(err,
			    "install the modules package of kernel %s (linux-modules-extra, "
			    "kernel-modules-extra) or the vendor's driver for it",
			    l->kernel);
}

static int missing(const struct np_kmod_lookup *l, struct np_err *err)
{
	char kernels[256];

	list_text(&l->other_kernels, kernels, sizeof(kernels));
	if (l->not_indexed) {
		np_err_set(err, -ENOENT, "module.missing",
			   "%s: %s is there, but depmod has not seen it", l->name, l->path);
		np_err_hint(err, "run: depmod -a %s", l->kernel);
	} else if (l->tree_missing) {
		np_err_set(err, -ENOENT, "module.missing",
			   "%s: no modules of the running kernel %s are installed%s%s", l->name,
			   l->kernel, *kernels ? "; they have it: " : "", kernels);
		np_err_hint(err,
			    "boot a kernel that is installed, or install the modules of %s; "
			    "in a container, mount /lib/modules or load it on the host",
			    l->kernel);
	} else {
		np_err_set(err, -ENOENT, "module.missing", "%s: not there for kernel %s%s%s",
			   l->name, l->kernel, *kernels ? ", only for " : "", kernels);
		hint_rebuild(l, err);
	}
	return -ENOENT;
}

static const char *said_by(const struct np_kmod_lookup *l)
{
	return *l->said_by ? l->said_by : "modprobe.d or the kernel command line";
}

int np_kmod_loadable(const struct np_kmod_lookup *l, bool ignore_blacklist, struct np_err *err)
{
	if (l->builtin)
		return 0;
	if (l->blacklisted && !ignore_blacklist) {
		np_err_set(err, -EPERM, "module.blacklisted", "%s is blacklisted by %s", l->name,
			   said_by(l));
		np_err_hint(err, "take it off that list, or tell nodeprep to load it all the same");
		return -EPERM;
	}
	if (l->install_command) {
		char shown[128];

		np_err_set(err, -EPERM, "module.install_command",
			   "%s has an install command in %s, which is not run: %s", l->name,
			   said_by(l), np_printable(l->install_command, shown, sizeof(shown)));
		np_err_hint(err, "remove that line, or load %s by hand with modprobe", l->name);
		return -EPERM;
	}
	return l->available ? 0 : missing(l, err);
}

static int dependency_error(const struct np_kmod_failure *f, struct np_err *err)
{
	if (f->stage == NP_KMOD_STAGE_BLACKLIST) {
		np_err_set(err, -EPERM, "module.blacklisted", "%s needs %s, which is blacklisted",
			   f->name, f->module);
		np_err_hint(err, "take %s off the list in modprobe.d", f->module);
		return -EPERM;
	}
	if (f->stage == NP_KMOD_STAGE_COMMAND) {
		np_err_set(
			err, -EPERM, "module.install_command",
			"%s needs %s, which has an install command in modprobe.d, which is not run",
			f->name, f->module);
		np_err_hint(err, "remove that line, or load %s by hand with modprobe", f->module);
		return -EPERM;
	}
	np_err_set(err, -ENOENT, "module.missing", "%s needs %s, which has no file for kernel %s",
		   f->name, f->module, f->lookup->kernel);
	np_err_hint(err, "run: depmod -a %s; or install the package of %s", f->lookup->kernel,
		    f->module);
	return -ENOENT;
}

/* ---- the kernel said no ---- */

static bool logged(const struct np_kmod_failure *f, const char *text)
{
	return strstr(f->log, text) != NULL;
}

static bool key_refused(const struct np_kmod_failure *f)
{
	switch (f->num) {
	case EKEYREJECTED:
	case ENOKEY:
	case EKEYEXPIRED:
	case EKEYREVOKED:
	case EBADMSG:
	case ENOPKG:
		return true;
	default:
		return logged(f, " is rejected") || logged(f, "module loading is restricted") ||
		       (f->num == EPERM && f->locked_down);
	}
}

/* "6.1.0-57-amd64 SMP preempt mod_unload modversions": the first word is the release. */
static bool other_release(const struct np_kmod_failure *f)
{
	const char *magic = f->lookup->vermagic, *kernel = f->lookup->kernel;
	size_t len = strcspn(magic, " ");

	return len && strcmp(f->name, f->module) == 0 &&
	       (strlen(kernel) != len || strncmp(magic, kernel, len) != 0);
}

static int refused(const struct np_kmod_failure *f, struct np_err *err)
{
	const struct np_kmod_lookup *l = f->lookup;

	if (f->num == ENOSYS) {
		np_err_set(err, -ENOSYS, "module.unsupported",
			   "%s: this kernel is built without loadable modules", f->module);
		np_err_hint(err, "boot a kernel with loadable modules, or one with %s built in",
			    f->module);
	} else if (f->num == EPERM && f->modules_disabled) {
		np_err_set(err, -EPERM, "module.modules_disabled",
			   "%s: kernel.modules_disabled is 1: nothing can be loaded until reboot",
			   f->module);
		np_err_hint(err,
			    "name %s in modules-load.d, so that it is loaded before the "
			    "switch is set, and reboot",
			    f->module);
	} else if (f->num == EPERM && !f->may_load) {
		np_err_set(err, -EPERM, "privilege.module",
			   "%s: loading modules needs the capability CAP_SYS_MODULE", f->module);
		np_err_hint(err, "run as root outside of containers, or load %s on the host",
			    f->module);
	} else if (key_refused(f)) {
		np_err_set(err, -f->num, "module.key_rejected",
			   "%s: the kernel does not accept its signature: %s", f->module,
			   strerror(f->num));
		np_err_hint(err,
			    "sign %s with a key that this machine trusts (mokutil --import), "
			    "or turn Secure Boot off",
			    f->module);
	} else if (logged(f, "version magic") ||
		   (f->num == ENOEXEC &&
		    (logged(f, "disagrees about version of symbol") || other_release(f)))) {
		np_err_set(err, -ENOEXEC, "module.vermagic",
			   "%s was built for another kernel: %s, here is %s", f->module,
			   strcmp(f->name, f->module) == 0 && *l->vermagic ? l->vermagic : "?",
			   l->kernel);
		hint_rebuild(l, err);
	} else {
		return 0;
	}
	return err ? err->num : -f->num;
}

static void unknown_symbol(const struct np_kmod_failure *f, struct np_err *err)
{
	np_err_set(err, -f->num, "module.unknown_symbol", "%s: a symbol is %s%s", f->module,
		   logged(f, "disagrees") || logged(f, "err -22") ? "of another version" :
								    "unknown to this kernel",
		   *f->log ? "" : ", or its init found something missing");
	if (logged(f, "nvidia_p2p") || logged(f, "proprietary module nvidia") ||
	    strcmp(f->module, "gdrdrv") == 0)
		np_err_hint(err,
			    "build %s again for the GPU driver that is installed: one built "
			    "for the open driver does not load beside the proprietary one",
			    f->module);
	else
		np_err_hint(err,
			    "use one stack: %s and the modules it needs come from different "
			    "builds, or one of them is gone; then run depmod -a",
			    f->module);
}

static void init_failed(const struct np_kmod_failure *f, struct np_err *err)
{
	np_err_set(err, -f->num, "module.init_failed", "%s: its init failed: %s", f->module,
		   strerror(f->num));
	np_err_hint(err,
		    f->num == ENODEV ? "check that the device %s drives is there: lspci" :
		    f->num == EPERM || f->num == EACCES ?
				       "look for a security module's denial of %s: journalctl -k" :
				       "look at the kernel log for %s: journalctl -k",
		    f->module);
}

static int insert_error(const struct np_kmod_failure *f, struct np_err *err)
{
	int r = refused(f, err);

	if (r < 0)
		return r;
	if (logged(f, "Unknown symbol") || logged(f, "GPL-only symbols") ||
	    logged(f, "disagrees about version of symbol") || logged(f, "does not import it") ||
	    (f->num == ENOENT && !*f->log)) {
		unknown_symbol(f, err);
	} else if (f->num == ENOEXEC) {
		np_err_set(err, -ENOEXEC, "module.format",
			   "%s: the file is no module for this kernel", f->module);
		np_err_hint(err, "install the package of %s again", f->module);
	} else if (logged(f, "invalid for parameter")) {
		np_err_set(err, -f->num, "module.option", "%s: a parameter's value is refused%s%s",
			   f->module, *f->options ? ": " : "", f->options);
		np_err_hint(err, "correct the options of %s: modinfo -p %s", f->module, f->module);
	} else {
		init_failed(f, err);
	}
	return -f->num;
}

static int timed_out(const struct np_kmod_failure *f, struct np_err *err)
{
	np_err_set(err, -ETIMEDOUT, "module.timeout",
		   f->in_kernel ? "%s: its init has not returned after %d ms and cannot be "
				  "stopped; it is left to itself" :
				  "%s: not loaded after %d ms",
		   f->module, f->timeout_ms);
	np_err_hint(err,
		    f->in_kernel ? "look at the kernel log for %s; a reboot clears it" :
				   "look whether /lib/modules can be read in time, for %s",
		    f->module);
	return -ETIMEDOUT;
}

int np_kmod_load_error(const struct np_kmod_failure *f, struct np_err *err)
{
	size_t len;
	int r;

	switch (f->stage) {
	case NP_KMOD_STAGE_MISSING:
	case NP_KMOD_STAGE_BLACKLIST:
	case NP_KMOD_STAGE_COMMAND:
		return dependency_error(f, err);
	case NP_KMOD_STAGE_INSERT:
		r = insert_error(f, err);
		break;
	case NP_KMOD_STAGE_TIMEOUT:
		r = timed_out(f, err);
		break;
	default:
		return np_err_set(err, f->num ? -f->num : -EIO, "internal.child",
				  "the process that loads %s ended without an answer", f->name);
	}
	if (err && strcmp(f->name, f->module) != 0)
		np_err_context(err, "%s needs %s", f->name, f->module);
	if (err && *f->log) {
		len = strlen(err->message);
		snprintf(err->message + len, sizeof(err->message) - len, "; kernel: %s", f->log);
	}
	return r;
}
