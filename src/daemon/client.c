/* client.c - `atoll`: a small executable for the command line, so that a command starts fast.
 * It needs libc and nothing else, and is linked statically where the build allows. The daemon,
 * the keeper and everything that needs OpenSSL, SQLite or the resolver are in atolld, an
 * executable in the same folder. This one replaces itself with it for every command that is not
 * in its table, and for addresses with a host name or TLS. See docs/architecture.md, "Two
 * executables". */
#include "base/cleanup.h"
#include "cli/build_info.h"
#include "commands/dispatch.h"
#include "daemon/command_table.h"
#include "jail/feature.h"
#include "daemon/config_checks.h"
#include "daemon/endpoint.h"

#include <build_stamp.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct build_info build = BUILD_STAMP;
static const struct command *const commands[] = { COMMAND_TABLE(COMMAND_ROW, COMMAND_LEFT_OUT)
							  NULL };

/* The path of atolld in the folder of this executable. An upgrade may have replaced this file
 * since it was started. */
static int client_find_daemon(char out[PATH_MAX])
{
	static const char gone[] = " (deleted)", name[] = "atolld";
	ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - sizeof(name) - 1);
	char *slash;

	if (n <= 0)
		return -1;
	out[n] = 0;
	if ((size_t)n > sizeof(gone) && !strcmp(out + n - (sizeof(gone) - 1), gone))
		out[(size_t)n - (sizeof(gone) - 1)] = 0;
	slash = strrchr(out, '/');
	if (!slash)
		return -1;
	strcpy(slash + 1, name);
	return 0;
}

static __attribute__((noreturn)) void client_hand_over(const struct cli *cli)
{
	char path[PATH_MAX] = "/proc/self/exe";
	struct cli_error t;

	if (client_find_daemon(path) == 0)
		execv(path, cli->argv);
	cli_error_what(&t, "failed", "cannot start %.200s", path);
	cli_error_why(&t, "%s", strerror(errno));
	cli_error_hint(&t, "why", "atoll is two files, atoll and atolld, in one folder");
	cli_error_hint(&t, "install", "make install   (copies both)");
	exit(cli_error_print(&t, cli->json, STATUS_OURS));
}

/* The client reads the settings file for the daemon's address; atolld checks the rest of it. */
int config_check_tool(const char *text, struct err *e)
{
	(void)text, (void)e;
	return 0;
}

int config_check_set(const char *text, struct err *e)
{
	(void)text, (void)e;
	return 0;
}

int config_check_tier(const char *text, struct err *e)
{
	(void)text;
	(void)e;
	return 0;
}

int config_check_minimum(const char *text, struct err *e)
{
	(void)text;
	(void)e;
	return 0;
}

int main(int argc, char **argv)
{
	struct cli cli = { .argv = argv,
			   .commands = commands,
			   .build = &build,
			   .layers = layer_names(),
			   .reach = endpoint_find,
			   .hand_over = client_hand_over };

	if (dispatch_fill_stdio() < 0)
		return STATUS_OURS;
	return dispatch_main(&cli, argc, argv);
}
