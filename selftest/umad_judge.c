/* SPDX-License-Identifier: MIT */
#include "selftest/umad_judge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* "4X EDR"; what is not known is "?" */
static const char *link_str(unsigned int width, unsigned int speed, char out[16])
{
	int lanes = np_width_lanes(width);

	if (lanes)
		snprintf(out, 16, "%dX %s", lanes, speed ? np_speed_str(speed) : "?");
	else
		snprintf(out, 16, "?X %s", speed ? np_speed_str(speed) : "?");
	return out;
}

static void describe_sm(const struct np_umad_view *view, struct np_buf *out)
{
	if (!view->info.sm_lid)
		np_buf_printf(out, ", no SM lid");
	else if (view->sm_answered)
		np_buf_printf(out, ", SM lid 0x%x is %s (priority %u)", view->info.sm_lid,
			      np_sm_state_str(view->sm.state), view->sm.priority);
	else
		np_buf_printf(out, ", SM lid 0x%x%s", view->info.sm_lid,
			      view->sm_asked ? " does not answer" : "");
}

void np_umad_describe(const struct np_umad_view *view, char *out, size_t size)
{
	const struct np_port_info *info = &view->info;
	np_auto_buf struct np_buf text = { 0 };
	char active[16], supported[16], enabled[16];

	link_str(info->width_active, info->speed_active, active);
	link_str(info->width_supported, info->speed_supported, supported);
	link_str(info->width_enabled, info->speed_enabled, enabled);
	np_buf_printf(&text, "%s, %s", np_port_state_str(info->state),
		      np_phys_state_str(info->phys_state));
	if (info->phys_state == NP_PHYS_LINKUP)
		np_buf_printf(&text, ", %s of %s supported", active, supported);
	else
		np_buf_printf(&text, ", %s supported", supported);
	if (!np_streq(enabled, supported))
		np_buf_printf(&text, " and %s enabled", enabled);
	if (info->lid)
		np_buf_printf(&text, ", lid 0x%x", info->lid);
	describe_sm(view, &text);
	np_strcpy(out, size, text.data ? text.data : "");
}

static int differs(const struct np_ca *ca, const struct np_port *port, const char *what,
		   const char *kernel, const char *itself, struct np_err *err)
{
	np_err_set(err, -EBADMSG, "selftest.umad.mismatch",
		   "%s of port %s:%d: the kernel shows %s, the port itself says %s", what, ca->name,
		   port->num, kernel, itself);
	np_err_hint(err, "reload the HCA's driver; update its firmware and driver if that comes "
			 "back");
	return -EBADMSG;
}

static int number_differs(const struct np_ca *ca, const struct np_port *port, const char *what,
			  uint64_t kernel, uint64_t itself, struct np_err *err)
{
	char a[32], b[32];

	if (kernel == itself)
		return 0;
	snprintf(a, sizeof(a), "0x%" PRIx64, kernel);
	snprintf(b, sizeof(b), "0x%" PRIx64, itself);
	return differs(ca, port, what, a, b, err);
}

static int link_differs(const struct np_ca *ca, const struct np_port *port,
			const struct np_port_info *info, struct np_err *err)
{
	unsigned int speed = np_speed_parse(port->speed);
	int lanes = np_width_lanes(info->width_active);
	bool other = (port->width && lanes && port->width != lanes) ||
		     (speed && info->speed_active && speed != info->speed_active);
	char kernel[16], itself[16];

	if (!other)
		return 0;
	snprintf(kernel, sizeof(kernel), "%dX %s", port->width, port->speed);
	return differs(ca, port, "link", kernel,
		       link_str(info->width_active, info->speed_active, itself), err);
}

int np_umad_mismatch(const struct np_umad_view *view, const struct np_ca *ca,
		     const struct np_port *port, struct np_err *err)
{
	const struct np_port_info *info = &view->info;
	int ret = 0;

	if (!ca || !port) {
		np_err_set(err, -ENODEV, "selftest.umad.gone",
			   "the HCA is gone from /sys/class/infiniband since its port answered");
		np_err_hint(err, "see who reloads its driver, and run again");
		return -ENODEV;
	}
	if (ca->node_guid && view->node.node_guid)
		ret = number_differs(ca, port, "node GUID", ca->node_guid, view->node.node_guid,
				     err);
	if (ret == 0)
		ret = number_differs(ca, port, "number", (uint64_t)port->num, (uint64_t)info->num,
				     err);
	if (ret == 0 && port->state != NP_PORT_UNKNOWN && port->state != info->state)
		ret = differs(ca, port, "state", np_port_state_str(port->state),
			      np_port_state_str(info->state), err);
	/* lids and rate of a port that is not ACTIVE are leftovers */
	if (ret < 0 || info->state != NP_PORT_ACTIVE)
		return ret;
	if (port->has_lid)
		ret = number_differs(ca, port, "lid", port->lid, info->lid, err);
	if (ret == 0 && port->has_sm_lid)
		ret = number_differs(ca, port, "SM lid", port->sm_lid, info->sm_lid, err);
	return ret < 0 ? ret : link_differs(ca, port, info, err);
}

static bool not_active(const struct np_umad_view *view, const char *device, const char *text,
		       struct np_err *err)
{
	const struct np_port_info *info = &view->info;

	if (info->state == NP_PORT_ACTIVE)
		return false;
	np_err_set(err, -ENETDOWN, "selftest.umad.not_active",
		   "port %s answers management, but is not ACTIVE: %s", device, text);
	if (info->phys_state == NP_PHYS_DISABLED)
		np_err_hint(err, "enable the port: ibportstate, or the switch at its other end");
	else
		np_err_hint(err, "%s",
			    info->phys_state == NP_PHYS_LINKUP ?
				    "start a subnet manager on this fabric" :
				    "check the cable and the port at its other end");
	return true;
}

static bool degraded(const struct np_umad_view *view, const char *device, const char *text,
		     struct np_err *err)
{
	const struct np_port_info *info = &view->info;
	unsigned int width = info->width_supported & info->width_enabled,
		     speed = info->speed_supported & info->speed_enabled;
	bool narrow =
		info->width_active && np_width_lanes(info->width_active) < np_width_lanes(width);
	/* the masks are in order of speed, and an active one has one bit */
	bool slow = info->speed_active && speed > (info->speed_active << 1) - 1;

	if (!narrow && !slow)
		return false;
	np_err_set(err, -EIO, "selftest.umad.degraded", "port %s runs %s than it can: %s", device,
		   narrow && slow ? "narrower and slower" :
		   narrow	  ? "narrower" :
				    "slower",
		   text);
	np_err_hint(err, "%s",
		    narrow ? "clean or replace the cable or transceiver; a lane of it is dead" :
			     "see what cable and switch port can do; replace what is slower");
	return true;
}

bool np_umad_warning(const struct np_umad_view *view, const char *device, const char *text,
		     struct np_err *err)
{
	if (not_active(view, device, text, err) || degraded(view, device, text, err))
		return true;
	if (!view->sm_asked)
		return false;
	if (!view->sm_answered) {
		np_err_set(err, -ETIMEDOUT, "selftest.umad.sm_silent",
			   "port %s answers management, but its subnet manager does not: %s",
			   device, text);
		np_err_hint(err, "see that the subnet manager runs (sminfo); a restart of this "
				 "port would not find one");
		return true;
	}
	if (view->sm.state == NP_SM_MASTER)
		return false;
	np_err_set(err, -EIO, "selftest.umad.sm_not_master",
		   "the subnet manager that port %s was given is no master: %s", device, text);
	np_err_hint(err, "see which subnet managers this fabric has (saquery -s), and their logs");
	return true;
}
