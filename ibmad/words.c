/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "ibmad/ca.h"

const char *np_port_state_str(enum np_port_state s)
{
	switch (s) {
	case NP_PORT_DOWN:
		return "DOWN";
	case NP_PORT_INIT:
		return "INIT";
	case NP_PORT_ARMED:
		return "ARMED";
	case NP_PORT_ACTIVE:
		return "ACTIVE";
	case NP_PORT_ACTIVE_DEFER:
		return "ACTIVE_DEFER";
	case NP_PORT_UNKNOWN:
		break;
	}
	return "unknown";
}

const char *np_phys_state_str(enum np_phys_state s)
{
	switch (s) {
	case NP_PHYS_SLEEP:
		return "Sleep";
	case NP_PHYS_POLLING:
		return "Polling";
	case NP_PHYS_DISABLED:
		return "Disabled";
	case NP_PHYS_TRAINING:
		return "PortConfigurationTraining";
	case NP_PHYS_LINKUP:
		return "LinkUp";
	case NP_PHYS_ERROR_RECOVERY:
		return "LinkErrorRecovery";
	case NP_PHYS_TEST:
		return "Phy Test";
	case NP_PHYS_UNKNOWN:
		break;
	}
	return "unknown";
}

const char *np_link_layer_str(enum np_link_layer l)
{
	switch (l) {
	case NP_LL_INFINIBAND:
		return "InfiniBand";
	case NP_LL_ETHERNET:
		return "Ethernet";
	case NP_LL_OMNIPATH:
		return "Omni-Path";
	case NP_LL_UNKNOWN:
		break;
	}
	return "unknown";
}

/* Copies the digits at *s and moves on. Returns 0 or -EINVAL when there are none
 * or the number is above @max. */
static int take_number(const char **s, uint64_t max, uint64_t *out, size_t *digits)
{
	char text[20];
	size_t len = strspn(*s, "0123456789");

	if (len == 0 || len >= sizeof(text))
		return -EINVAL;
	memcpy(text, *s, len);
	text[len] = '\0';
	if (np_parse_u64(text, 10, max, out) < 0)
		return -EINVAL;
	*s += len;
	*digits = len;
	return 0;
}

/* "2.5 Gb/sec". No strtod: its decimal point depends on the locale. */
static int take_gbps(const char **s, double *out)
{
	uint64_t whole, fraction = 0;
	size_t digits;
	double scale = 1;

	if (take_number(s, 1000000, &whole, &digits) < 0)
		return -EINVAL;
	if (**s == '.') {
		(*s)++;
		if (take_number(s, 999999, &fraction, &digits) < 0)
			return -EINVAL;
		while (digits--)
			scale *= 10;
	}
	*s += strspn(*s, " ");
	if (!np_starts_with(*s, "Gb/sec"))
		return -EINVAL;
	*s += strlen("Gb/sec");
	*out = (double)whole + (double)fraction / scale;
	return 0;
}

/* Lane counts of LinkWidthActive, IBA 14.2.5.6 table 146 (2X by annex). */
static bool is_width(uint64_t lanes)
{
	return lanes == 1 || lanes == 2 || lanes == 4 || lanes == 8 || lanes == 12;
}

/* "(4X EDR)"; older kernels print no speed for SDR: "(4X)". */
static void take_width_and_speed(const char *s, int *width, char speed[8])
{
	static const char *const speeds[] = { "SDR", "DDR", "QDR", "FDR10", "FDR",
					      "EDR", "HDR", "NDR", "XDR" };
	uint64_t lanes;
	size_t digits, len;

	if (*s++ != '(' || take_number(&s, 99, &lanes, &digits) < 0 || *s++ != 'X')
		return;
	if (is_width(lanes))
		*width = (int)lanes;
	s += strspn(s, " ");
	len = strcspn(s, ")");
	for (size_t i = 0; i < NP_ARRAY_SIZE(speeds); i++)
		if (strlen(speeds[i]) == len && strncmp(speeds[i], s, len) == 0)
			np_strcpy(speed, 8, speeds[i]);
}

int np_rate_parse(const char *text, double *gbps, int *width, char speed[8])
{
	double rate = 0;
	int lanes = 0;
	char word[8] = "";

	if (!text || take_gbps(&text, &rate) < 0)
		return -EINVAL;
	text += strspn(text, " ");
	take_width_and_speed(text, &lanes, word);
	*gbps = rate;
	*width = lanes;
	np_strcpy(speed, 8, word);
	return 0;
}

static bool is_ca_name(const char *s, size_t len)
{
	if (len == 0 || len >= 64 || !isalnum((unsigned char)s[0]))
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] >= 0x80 ||
		    (!isalnum((unsigned char)s[i]) && !strchr("_-.", s[i])))
			return false;
	return true;
}

int np_port_name_parse(const char *text, char ca[64], int *port, struct np_err *err)
{
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);
	uint64_t number = 0;
	char shown[160];

	if (!is_ca_name(text, len)) {
		np_err_set(err, -EINVAL, "usage.port_name", "\"%s\" does not name a CA",
			   np_printable(text, shown, sizeof(shown)));
		np_err_hint(err, "name it as ibstat does, e.g. mlx5_0 or mlx5_0:1");
		return -EINVAL;
	}
	if (colon && (np_parse_u64(colon + 1, 10, 254, &number) < 0 || number == 0)) {
		np_err_set(err, -EINVAL, "usage.port_name",
			   "\"%s\" has no port number from 1 to 254 after the colon",
			   np_printable(text, shown, sizeof(shown)));
		np_err_hint(err, "ports count from 1, e.g. mlx5_0:1");
		return -EINVAL;
	}
	memcpy(ca, text, len);
	ca[len] = '\0';
	*port = (int)number;
	return 0;
}
