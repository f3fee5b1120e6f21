/* addr_test.c - listening addresses: parsing, binding, errors. */
#include "daemon/addr.h"
#include "base/cleanup.h"
#include "forked.h"
#include "tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/stat.h>

static const char *parsed(const char *text)
{
	static struct addr a;
	static struct err e;

	return addr_parse(&a, text, &e) < 0 ? e.msg : a.text;
}

TEST(an_address_is_parsed_and_printed)
{
	const struct {
		const char *text, *again;
	} rows[] = {
		{ "127.0.0.1:7070", "127.0.0.1:7070" },
		{ "0.0.0.0:0", "0.0.0.0:0" },
		{ "[::1]:7070", "[::1]:7070" },
		{ "[0:0:0:0:0:0:0:1]:7070", "[::1]:7070" },
		{ "[::]:65535", "[::]:65535" },
		{ "[fe80::1%lo]:7070", "[fe80::1%lo]:7070" },
		{ ":7070", ":7070" },
		{ "localhost:7070", "127.0.0.1:7070" },
		{ "unix:/run/a.sock", "unix:/run/a.sock" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK_STR(parsed(rows[i].text), rows[i].again);
		CHECK_STR(parsed(rows[i].again), rows[i].again);
	}
}

TEST(an_invalid_address_is_rejected_with_an_example)
{
	const struct {
		const char *text, *why;
	} rows[] = {
		{ "", "has no port" },
		{ "7070", "has no port" },
		{ "127.0.0.1", "has no port" },
		{ "127.0.0.1:", "has a port that is not 0 to 65535" },
		{ "127.0.0.1:x", "has a port that is not 0 to 65535" },
		{ "127.0.0.1:65536", "has a port that is not 0 to 65535" },
		{ "127.0.0.1:-1", "has a port that is not 0 to 65535" },
		{ "127.0.0.1:+1", "has a port that is not 0 to 65535" },
		{ "127.0.0.1:7070x", "has a port that is not 0 to 65535" },
		{ "127.0.0.1:99999999999999999999", "has a port that is not 0 to 65535" },
		{ "::1:7070", "has an IPv6 address without brackets" },
		{ "[::1:7070", "has no port" },
		{ "[::1]7070", "has no port" },
		{ "[]:7070", "has no address" },
		{ "[127.0.0.1]:7070", "has no address" },
		{ "[fe80::1%nothere]:7070", "has no address" },
		{ "256.0.0.1:7070", "has no address" },
		{ "127.1:7070", "has no address" },
		{ "0x7f.0.0.1:7070", "has no address" },
		{ "example.org:7070", "only localhost is known" },
		{ "unix:", "has no absolute path" },
		{ "unix:a.sock", "has no absolute path" },
		{ "unix:@abstract", "has no absolute path" },
		{ " 127.0.0.1:7070", "has a blank or a control character" },
		{ "127.0.0.1:7070\n", "has a blank or a control character" },
		{ "unix:/a\x1b[2J", "has a blank or a control character" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		if (!strstr(parsed(rows[i].text), rows[i].why))
			printf("# '%s': %s\n", rows[i].text, parsed(rows[i].text));
		CHECK(strstr(parsed(rows[i].text), rows[i].why));
		CHECK(strstr(parsed(rows[i].text), "write it like 127.0.0.1:7070"));
	}
}

TEST(a_path_that_does_not_fit_into_an_address_is_refused)
{
	char text[200] = "unix:/";

	memset(text + 6, 'x', 107);
	CHECK(strstr(parsed(text), "108 bytes of path; at most 107 fit"));
	text[6 + 106] = 0;
	CHECK_STR(parsed(text), text);
}

static int try_listen(const char *text, struct err *e)
{
	struct addr a;

	return addr_parse(&a, text, e) < 0 ? -1 : addr_listen(&a, 16, e);
}

static int connects(int listener)
{
	struct sockaddr_storage to;
	socklen_t len = sizeof(to);
	auto_fd int fd = -1;

	if (getsockname(listener, (struct sockaddr *)&to, &len) < 0)
		return 0;
	fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return connect(fd, (struct sockaddr *)&to, len) == 0;
}

TEST(port_0_chooses_a_free_port_that_can_be_queried)
{
	struct err e = { 0 };
	auto_fd int fd = try_listen("127.0.0.1:0", &e);
	struct addr a;

	CHECK(fd >= 0);
	CHECK_INT(addr_of(fd, &a, &e), 0);
	CHECK(!strncmp(a.text, "127.0.0.1:", 10) && strcmp(a.text, "127.0.0.1:0") != 0);
	CHECK(connects(fd));
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC && (fcntl(fd, F_GETFL) & O_NONBLOCK));
}

TEST(a_wildcard_address_accepts_both_ip_versions)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct err e = { 0 };
	auto_fd int fd = try_listen(":0", &e), client = -1;
	struct addr a;

	CHECK(fd >= 0);
	CHECK_INT(addr_of(fd, &a, &e), 0);
	to.sin_port = htons((uint16_t)atoi(strrchr(a.text, ':') + 1));
	client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_INT(connect(client, (struct sockaddr *)&to, sizeof(to)), 0);
}

TEST(a_port_in_use_names_the_process_that_uses_it)
{
	struct err e = { 0 };
	auto_fd int fd = try_listen("127.0.0.1:0", &e);
	char who[64];
	struct addr a;

	CHECK(fd >= 0 && addr_of(fd, &a, &e) == 0);
	CHECK(try_listen(a.text, &e) < 0);
	CHECK_INT(e.kind, ERR_CONFLICT);
	snprintf(who, sizeof(who), "is in use by addr_test (pid %d)", (int)getpid());
	if (!strstr(e.msg, who))
		printf("# %s\n", e.msg);
	CHECK(strstr(e.msg, who));
}

TEST(an_address_of_another_machine_is_refused)
{
	struct err e = { 0 };

	CHECK(try_listen("192.0.2.1:7070", &e) < 0);
	CHECK_STR(e.msg, "192.0.2.1:7070 is not an address of this machine");
}

TEST_FORKED(a_low_port_names_the_missing_capability)
{
	struct err e = { 0 };
	int low = 0;
	FILE *f = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "r");

	if (f && fscanf(f, "%d", &low) != 1)
		low = 0;
	if (low <= 1)
		SKIP("every port is free for all here");
	if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
		SKIP("cannot change to an unprivileged uid");
	CHECK(try_listen("127.0.0.1:1", &e) < 0);
	CHECK_INT(e.kind, ERR_DENIED);
	CHECK(strstr(e.msg, "CAP_NET_BIND_SERVICE"));
}

static const char *in_folder(const char *name)
{
	static char path[ADDR_TEXT];
	const char *tmp = getenv("TMPDIR");

	snprintf(path, sizeof(path), "unix:%s/addr-%d-%s", tmp ? tmp : "/tmp", (int)getpid(), name);
	return path;
}

TEST(a_unix_socket_is_accessible_to_its_user_and_group)
{
	mode_t old = umask(0);
	const char *at = in_folder("mode");
	struct err e = { 0 };
	auto_fd int fd = try_listen(at, &e);
	struct stat st;

	umask(old);
	CHECK(fd >= 0);
	CHECK_INT(stat(at + 5, &st), 0);
	CHECK_INT(st.st_mode & 07777, 0660);
	CHECK(connects(fd));
	unlink(at + 5);
}

TEST(a_stale_socket_is_replaced_and_a_listening_one_is_not)
{
	const char *at = in_folder("stale");
	struct err e = { 0 };
	int fd = try_listen(at, &e);

	CHECK(fd >= 0);
	CHECK(try_listen(at, &e) < 0);
	CHECK_INT(e.kind, ERR_CONFLICT);
	CHECK(strstr(e.msg, "is in use"));
	CHECK(connects(fd));
	close(fd);
	fd = try_listen(at, &e);
	CHECK(fd >= 0);
	CHECK(connects(fd));
	close(fd);
	unlink(at + 5);
}

TEST(a_listening_socket_with_a_full_queue_is_not_stale)
{
	const char *at = in_folder("full");
	struct err e = { 0 };
	struct addr a;
	int fd, clients[8];

	CHECK_INT(addr_parse(&a, at, &e), 0);
	fd = addr_listen(&a, 0, &e);
	CHECK(fd >= 0);
	for (unsigned i = 0; i < ARRAY_LEN(clients); i++) {
		clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)!connect(clients[i], &a.any,
			       a.len); /* the last ones are rejected: it is full */
	}
	CHECK(try_listen(at, &e) < 0);
	CHECK_INT(e.kind, ERR_CONFLICT);
	for (unsigned i = 0; i < ARRAY_LEN(clients); i++)
		close(clients[i]);
	close(fd);
	unlink(at + 5);
}

TEST(a_file_that_is_no_socket_is_not_replaced)
{
	const char *at = in_folder("file");
	struct err e = { 0 };
	struct stat st;
	int fd = open(at + 5, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	close(fd);
	CHECK(try_listen(at, &e) < 0);
	CHECK(strstr(e.msg, "there is a file that is not a socket"));
	CHECK_INT(stat(at + 5, &st), 0);
	unlink(at + 5);
	CHECK(try_listen("unix:/nowhere/at/all.sock", &e) < 0);
	CHECK_INT(e.sys, ENOENT);
}
