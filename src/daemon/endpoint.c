/* endpoint.c - see endpoint.h. */
#include "daemon/endpoint.h"
#include "base/cleanup.h"
#include "daemon/addr.h"
#include "daemon/config.h"

#include <arpa/inet.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MACHINE_PORT = 7070 }; /* of serve.listen, unless it is set */

static int read_key(const char *path, char out[64], struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, 63);

	if (n < 0)
		return err_sys(e, "key_file %.120s", path);
	out[n] = 0;
	out[strcspn(out, " \r\n\t")] = 0;
	if (strncmp(out, "e2b_", 4) != 0 || strlen(out) != 44) {
		memset(out, 0, 64);
		return err_set(e, ERR_INVALID, "key_file %.120s: there is no key in it", path);
	}
	return 0;
}

static int find_key(const struct config *c, struct endpoint *out, struct err *e)
{
	const char *key = config_text(c, CONFIG_KEY), *file = config_text(c, CONFIG_KEY_FILE);

	if (key)
		snprintf(out->key, sizeof(out->key), "%s", key);
	else if (file)
		return read_key(file, out->key, e);
	return 0;
}

/* How a listening socket with this address, as /proc/net writes it, is reached at 127.0.0.1: 2 by that address,
 * 1 by any, 0 not. */
static int endpoint_rank(const char *address)
{
	char four[9], six[33];

	snprintf(four, sizeof(four), "%08X", htonl(INADDR_LOOPBACK));
	snprintf(six, sizeof(six), "0000000000000000%08X%s", htonl(0xffff), four);
	if (!strcmp(address, four) || !strcmp(address, six))
		return 2;
	return strspn(address, "0") == strlen(address);
}

/* The uid of the socket that a connection to this port of 127.0.0.1 reaches; -1: nothing listens
 * there. */
static int64_t endpoint_listener_uid(unsigned port)
{
	static const char *const files[] = { "/proc/net/tcp", "/proc/net/tcp6" };
	int64_t uid = -1;
	int best = 0;

	for (unsigned i = 0; i < ARRAY_LEN(files); i++) {
		FILE *f = fopen(files[i], "re");
		char line[512], address[33];
		unsigned local, state, owner;

		while (f && fgets(line, sizeof(line), f)) {
			int rank;

			if (sscanf(line, " %*d: %32[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %u",
				   address, &local, &state, &owner) != 4 ||
			    local != port || state != TCP_LISTEN)
				continue;
			rank = endpoint_rank(address);
			if (rank > best || (rank && rank == best && owner))
				uid = owner;
			best = rank > best ? rank : best;
		}
		if (f)
			fclose(f);
	}
	return uid;
}

/* Any user may listen on this port. The key is sent to root's daemon, or to one of this user,
 * only. */
static int endpoint_use_port(struct endpoint *out, struct err *e)
{
	int64_t uid = endpoint_listener_uid(MACHINE_PORT);

	if (uid > 0 && uid != geteuid())
		return err_set(
			e, ERR_DENIED,
			"port %d of this machine is served by uid %lld, not by root, and is not sent the key; set "
			"ATOLL_HOST=http://127.0.0.1:%d if that is the daemon",
			MACHINE_PORT, (long long)uid, MACHINE_PORT);
	snprintf(out->where, sizeof(out->where), "http://127.0.0.1:%d", MACHINE_PORT);
	return 0;
}

/* For a user without a setting: the daemon of the user's own run folder. Where none was ever started there, the
 * machine's daemon, over its socket if this user may open it, over its port if there is a key for it. */
static int reach_guess_host(struct endpoint *out, struct err *e)
{
	const char *machine = "/run/atoll/atoll.sock";

	if (geteuid() == 0 || access(out->where + strlen("unix:"), F_OK) == 0)
		return 0;
	if (access(machine, R_OK | W_OK) == 0)
		snprintf(out->where, sizeof(out->where), "unix:%s", machine);
	else if (out->key[0])
		return endpoint_use_port(out, e);
	return 0;
}

/* Called after the key is known, which decides between the daemons of a user and of the machine. */
static int find_host(const struct config *c, struct endpoint *out, struct err *e)
{
	const char *host = config_text(c, CONFIG_HOST), *socket = config_text(c, CONFIG_SOCKET);

	out->chosen = host != NULL;
	if (host) {
		if (strlen(host) >= sizeof(out->where))
			return err_set(e, ERR_INVALID, "host: an address of %zu bytes",
				       strlen(host));
		snprintf(out->where, sizeof(out->where), "%s", host);
		return 0;
	}
	if (!socket)
		return err_set(e, ERR_NOT_FOUND, "no address of a daemon; set ATOLL_HOST");
	snprintf(out->where, sizeof(out->where), "unix:%.280s", socket);
	if (c->values[CONFIG_SOCKET].from == FROM_DEFAULT &&
	    c->values[CONFIG_RUN].from == FROM_DEFAULT)
		return reach_guess_host(out, e);
	return 0;
}

int endpoint_find(struct endpoint *out, struct err *e)
{
	struct config_source src = { .client = 1 };
	struct config c;
	int rc;

	*out = (struct endpoint){ 0 };
	if (config_load(&c, &src, e) < 0)
		return -1;
	rc = find_key(&c, out, e) < 0 || find_host(&c, out, e) < 0 ? -1 : 0;
	config_fini(&c);
	return rc;
}

static unsigned endpoint_port_of(const struct addr *a)
{
	if (a->any.sa_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)&a->room)->sin_port);
	if (a->any.sa_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)&a->room)->sin6_port);
	return 0;
}

unsigned endpoint_listen_port(void)
{
	struct config_source src = { 0 };
	struct config c;
	struct addr addr;
	struct err e;
	unsigned port = 0;

	if (config_load(&c, &src, &e) < 0)
		return 0;
	for (const char *const *item = config_list(&c, CONFIG_LISTEN); *item && !port; item++)
		if (addr_parse(&addr, *item, &e) == 0)
			port = endpoint_port_of(&addr);
	config_fini(&c);
	return port;
}
