/* outbound_test.c - requests to other hosts: which are sent, and what becomes of hostile answers. */
#include "outbound/outbound.h"
#include "base/cleanup.h"
#include "daemon/confine.h"
#include "outbound/process.h"
#include "tap.h"
#include "wire/sock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- targets ---- */

static const char *target_of(const char *url)
{
	static char text[400];
	struct outbound_target t;
	struct err e;

	if (outbound_target_parse(&t, url, &e) < 0)
		return "refused";
	snprintf(text, sizeof(text), "%s %u%s", t.host, t.port, t.mail ? " mail" : "");
	return text;
}

TEST(a_target_is_the_host_and_the_port_of_its_url)
{
	CHECK_STR(target_of("http://Example.ORG"), "example.org 80");
	CHECK_STR(target_of("https://example.org/a?b#c"), "example.org 443");
	CHECK_STR(target_of("https://example.org:8443?b"), "example.org 8443");
	CHECK_STR(target_of("http://[::1]:80/"), "::1 80");
	CHECK_STR(target_of("smtp://mail.example"), "mail.example 25 mail");
	CHECK_STR(target_of("smtps://mail.example"), "mail.example 465 mail");
}

TEST(urls_that_two_parsers_may_read_differently_are_refused)
{
	static const char *const bad[] = {
		"",
		"example.org",
		"file:///etc/passwd",
		"gopher://example.org/",
		"ftp://example.org/",
		"http://",
		"http:///path",
		"http://user@example.org/",
		"http://user:pass@example.org/",
		"http://example.org@10.0.0.1/",
		"http://example.org\\@10.0.0.1/",
		"http://example.org\r\nHost: x/",
		"http://example.org/a b",
		"http://example.org:99999/",
		"http://example.org:0/",
		"http://ex%61mple.org/",
		"http://\xc3\xa9xample.org/",
	};
	char longer[OUTBOUND_URL + 20] = "http://example.org/";

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		if (strcmp(target_of(bad[i]), "refused") != 0)
			printf("# %s\n", bad[i]);
		CHECK_STR(target_of(bad[i]), "refused");
	}
	memset(longer + strlen(longer), 'a', OUTBOUND_URL);
	longer[sizeof(longer) - 1] = 0;
	CHECK_STR(target_of(longer), "refused");
}

static int judged(const struct outbound_rules *r, const char *ip, int allow_private)
{
	struct outbound_target t = { .host = "name.example", .port = 443 };
	struct sockaddr_in four = { .sin_family = AF_INET };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct err e;

	if (inet_pton(AF_INET, ip, &four.sin_addr) == 1)
		return outbound_target_judge(r, &t, (struct sockaddr *)&four, sizeof(four),
					     allow_private, &e) == 0;
	inet_pton(AF_INET6, ip, &six.sin6_addr);
	return outbound_target_judge(r, &t, (struct sockaddr *)&six, sizeof(six), allow_private,
				     &e) == 0;
}

TEST(internal_addresses_need_a_rule_of_the_operator)
{
	struct net_rule allow, named, deny;
	struct outbound_rules none = { 0 }, range = { .allow = &allow, .nallow = 1 },
			      name = { .named = &named, .nnamed = 1 },
			      closed = { .deny = &deny, .ndeny = 1 };
	struct err e;

	CHECK(net_rule_parse_allow(&allow, "10.1.0.0/16", &e) == 0);
	CHECK(outbound_target_rule(&named, "https://name.example/hook", &e) == 0);
	CHECK(net_rule_parse(&deny, "8.8.8.0/24", &e) == 0);
	CHECK(judged(&none, "8.8.8.8", 0));
	CHECK(!judged(&closed, "8.8.8.8", 0));
	CHECK(judged(&closed, "9.9.9.9", 0));
	CHECK(!judged(&none, "10.1.2.3", 0));
	CHECK(!judged(&none, "10.1.2.3", 1));
	CHECK(!judged(&none, "127.0.0.1", 0));
	CHECK(!judged(&none, "::1", 0));
	CHECK(!judged(&none, "::ffff:10.1.2.3", 0));
	CHECK(judged(&range, "10.1.2.3", 0));
	CHECK(!judged(&range, "10.2.2.3", 0));
	/* A host of the settings may be internal, but only for requests about the settings. */
	CHECK(judged(&name, "10.1.2.3", 1));
	CHECK(!judged(&name, "10.1.2.3", 0));
	/* Never, whatever is allowed. */
	CHECK(!judged(&name, "169.254.169.254", 1));
	CHECK(!judged(&name, "64:ff9b::a01:203", 1));
}

/* ---- messages ---- */

static int checked(const struct outbound_message *m)
{
	struct err e;

	return outbound_message_check(m, &e) == 0;
}

TEST(header_lines_with_a_newline_are_refused)
{
	static const char *const bad[] = { "A: b\r\nC: d", "A: b\nC: d", "A b",    ": b",
					   "A B: c",       "A: \x80",    "A\n: b", "" };
	struct outbound_message m = { .url = "http://example.org", .headers = { "A: b" } };

	CHECK(checked(&m));
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		m.headers[0] = bad[i];
		CHECK(!checked(&m));
	}
}

TEST(methods_bodies_and_time_limits_are_checked)
{
	struct outbound_message m = { .url = "http://example.org", .method = "PUT" };

	CHECK(checked(&m));
	m.method = "GET /x HTTP/1.1\r\n";
	CHECK(!checked(&m));
	m.method = "CONNECT";
	CHECK(!checked(&m));
	m.method = NULL;
	m.body = "\xff";
	m.body_len = 1;
	CHECK(!checked(&m));
	m.body = "a";
	m.body_len = (size_t)OUTBOUND_BODY + 1;
	CHECK(!checked(&m));
	m.body_len = 1;
	m.timeout_ms = OUTBOUND_TIMEOUT_MOST_MS + 1;
	CHECK(!checked(&m));
}

TEST(mail_addresses_with_a_newline_or_a_bracket_are_refused)
{
	static const char *const bad[] = { "a",     "@b",      "a@",    "a@b\r\nRCPT TO:<c@d>",
					   "<a@b>", "a@b,c@d", "a b@c", "" };
	struct outbound_message m = { .url = "smtp://mail.example",
				      .from = "a@b",
				      .to = { "c@d" },
				      .body = "x",
				      .body_len = 1 };

	CHECK(checked(&m));
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		m.to[0] = bad[i];
		CHECK(!checked(&m));
	}
	m.to[0] = "c@d";
	m.from = "a@b>\r\n";
	CHECK(!checked(&m));
	m.from = "a@b";
	m.user = "u";
	CHECK(!checked(&m)); /* without a password */
	m.password = "p";
	CHECK(checked(&m));
	m.url = "http://mail.example";
	CHECK(!checked(&m));
}

/* ---- the process, and a server that is hostile ---- */

static void host_send(int fd, const char *text)
{
	(void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* Without an end, until the client closes. */
static void host_flood(int fd, const char *line)
{
	while (send(fd, line, strlen(line), MSG_NOSIGNAL) > 0)
		;
}

static void host_mail(int fd)
{
	char in[4096];
	int data = 0;
	ssize_t n;

	host_send(fd, "220 mail\r\n");
	while ((n = recv(fd, in, sizeof(in) - 1, 0)) > 0) {
		in[n] = 0;
		if (strncmp(in, "DATA", 4) == 0) {
			host_send(fd, "354 send it\r\n");
			data = 1;
		} else if (data && !strstr(in, ".\r\n")) {
			continue;
		} else if (strstr(in, "<hang@b.example>")) {
			continue;
		} else if (strncmp(in, "MAIL", 4) == 0 && !strstr(in, "<a@b.example>")) {
			host_send(fd, "550 not this one\r\n");
		} else if (strncmp(in, "RCPT", 4) == 0 || strncmp(in, "MAIL", 4) == 0 ||
			   strncmp(in, "EHLO", 4) == 0 || data) {
			host_send(fd, "250 well\r\n");
			data = 0;
		} else if (strncmp(in, "QUIT", 4) == 0) {
			return;
		}
	}
}

static void host_answer(int fd, uint16_t port)
{
	char in[8192] = "", out[256];
	size_t len = 0;
	ssize_t n;

	while (!strstr(in, "\r\n\r\n") && (n = recv(fd, in + len, sizeof(in) - 1 - len, 0)) > 0)
		in[len += (size_t)n] = 0;
	if (strstr(in, " /hang ")) {
		while (recv(fd, in, sizeof(in), 0) > 0)
			;
	} else if (strstr(in, " /big ")) {
		host_send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n");
		host_flood(fd, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
	} else if (strstr(in, " /headers ")) {
		host_send(fd, "HTTP/1.1 200 OK\r\n");
		host_flood(fd, "X-More: 0123456789abcdef0123456789abcdef0123456789abcdef\r\n");
	} else if (strstr(in, " /redirect ")) {
		snprintf(out, sizeof(out),
			 "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%u/secret\r\n"
			 "Content-Length: 0\r\n\r\n",
			 port);
		host_send(fd, out);
	} else if (strstr(in, " /bytes ")) {
		host_send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na\xff\x80");
	} else if (strstr(in, " /nothing ")) {
		return;
	} else if (strstr(in, "X-Test: yes") && strstr(in, "PUT /echo ")) {
		host_send(fd, "HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\nwell");
	} else {
		host_send(fd, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
	}
}

/* A process that serves each connection in a child. */
static pid_t host_start(uint16_t *out_port, int mail)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), in;
	pid_t pid;

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, 64) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		abort();
	*out_port = ntohs(at.sin_port);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		signal(SIGCHLD, SIG_IGN);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also if a check fails before world_end() */
		setpgid(0, 0);
		while ((in = accept(fd, NULL, NULL)) >= 0) {
			if (fork() == 0) {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				if (mail)
					host_mail(in);
				else
					host_answer(in, *out_port);
				_exit(0);
			}
			close(in);
		}
		_exit(0);
	}
	setpgid(pid, pid);
	close(fd);
	return pid;
}

static int test_walls(void *ctx, struct err *e)
{
	uid_t uid = geteuid() == 0 ? 64173 : (uid_t)-1;

	(void)ctx;
	return confine_enter_outbound(uid, uid, e);
}

static struct world {
	struct loop loop;
	struct outbound *client;
	pid_t process, host, mail;
	int supervisor;
	uint16_t port, mail_port;
	unsigned connections;
	int no_process;
	/* the last answer */
	int over, status, cut, failed;
	char text[OUTBOUND_ANSWER + 100];
	struct err error;
	struct timer limit;
} world;

static void world_start_process(void)
{
	static struct net_rule allow;
	struct outbound_conf conf = { .rules = { .allow = &allow, .nallow = 1 },
				      .authorities = "" };
	int pair[2];
	struct err e;

	if (net_rule_parse_allow(&allow, "127.0.0.1/32", &e) < 0 || sock_pair(pair, &e) < 0)
		abort();
	fflush(NULL);
	world.process = fork();
	if (world.process == 0) {
		close(pair[0]);
		_exit(outbound_main(&conf, pair[1], test_walls, NULL));
	}
	close(pair[1]);
	world.supervisor = pair[0];
}

static void world_need(void *user)
{
	struct frame head = sock_head(WIRE_OUTBOUND_CONNECT, 0);
	int pair[2];
	struct err e;

	(void)user;
	if (world.no_process)
		return;
	if (!world.process)
		world_start_process();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0 ||
	    sock_send(world.supervisor, &head, sizeof(head), NULL, 0, &pair[0], 1, &e) < 0)
		abort();
	close(pair[0]);
	world.connections++;
	outbound_connect(world.client, pair[1]);
}

static void world_late(struct timer *t)
{
	(void)t;
	loop_stop(&world.loop);
}

static void world_begin(void)
{
	struct err e;

	world = (struct world){ .supervisor = -1 };
	world.host = host_start(&world.port, 0);
	world.mail = host_start(&world.mail_port, 1);
	if (loop_init(&world.loop, &e) < 0 ||
	    outbound_new(&world.client, &world.loop, world_need, NULL, &e) < 0)
		abort();
	timer_init(&world.limit, &world.loop, world_late);
}

static void world_end(void)
{
	outbound_free(world.client);
	timer_fini(&world.limit);
	loop_fini(&world.loop);
	own_close_fd(&world.supervisor);
	if (world.process)
		waitpid(world.process, NULL, 0);
	kill(-world.host, SIGKILL);
	kill(-world.mail, SIGKILL);
	waitpid(world.host, NULL, 0);
	waitpid(world.mail, NULL, 0);
}

static void world_done(struct outbound_request *r, const struct outbound_answer *a,
		       const struct err *e)
{
	(void)r;
	world.over = 1;
	world.failed = e != NULL;
	if (e)
		world.error = *e;
	if (a) {
		world.status = a->status;
		world.cut = a->cut;
		snprintf(world.text, sizeof(world.text), "%s", a->body);
	}
	loop_stop(&world.loop);
}

static void world_ask_url(struct outbound_message *m, const char *url)
{
	static struct outbound_request r;
	struct err e;

	m->url = url;
	r = (struct outbound_request){ .done = world_done };
	world.over = world.status = world.cut = world.failed = 0;
	CHECK(outbound_send(world.client, &r, m, &e) == 0);
	timer_set(&world.limit, 60000);
	loop_run(&world.loop);
	CHECK(world.over);
}

static void world_ask(struct outbound_message *m, const char *host, const char *path)
{
	char url[200];

	snprintf(url, sizeof(url), "http://%s:%u%s", host, world.port, path);
	world_ask_url(m, url);
}

TEST(a_request_gets_its_answer)
{
	struct outbound_message m = {
		.method = "PUT", .headers = { "X-Test: yes" }, .body = "{}", .body_len = 2
	};

	world_begin();
	world_ask(&m, "127.0.0.1", "/echo");
	CHECK(!world.failed);
	CHECK_INT(world.status, 201);
	CHECK_STR(world.text, "well");
	world_ask(&m, "127.0.0.1", "/bytes");
	CHECK_STR(world.text, "a\xef\xbf\xbd\xef\xbf\xbd");
	CHECK_INT(world.connections, 1);
	world_end();
}

TEST(an_answer_without_an_end_is_cut)
{
	struct outbound_message m = { .method = "GET" };

	world_begin();
	world_ask(&m, "127.0.0.1", "/big");
	CHECK(!world.failed);
	CHECK_INT(world.status, 200);
	CHECK(world.cut);
	CHECK_INT(strlen(world.text), OUTBOUND_ANSWER);
	world_ask(&m, "127.0.0.1", "/headers");
	CHECK(world.failed);
	world_end();
}

TEST(redirects_are_not_followed)
{
	struct outbound_message m = { .method = "GET" };

	world_begin();
	world_ask(&m, "127.0.0.1", "/redirect");
	CHECK(!world.failed);
	CHECK_INT(world.status, 302);
	world_end();
}

TEST(a_host_that_hangs_or_closes_is_an_error)
{
	struct outbound_message m = { .method = "GET", .timeout_ms = 200 };

	world_begin();
	world_ask(&m, "127.0.0.1", "/hang");
	CHECK(world.failed && strstr(world.error.msg, "did not answer within 200 ms"));
	m.timeout_ms = 0;
	world_ask(&m, "127.0.0.1", "/nothing");
	CHECK(world.failed && world.error.kind == ERR_SYS);
	world_end();
}

TEST(an_address_that_is_not_allowed_is_not_connected_to)
{
	static const char *const hosts[] = { "127.0.0.2", "[::1]", "10.255.255.1",
					     "169.254.169.254" };
	struct outbound_message m = { .method = "GET" };

	world_begin();
	for (unsigned i = 0; i < ARRAY_LEN(hosts); i++) {
		world_ask(&m, hosts[i], "/echo");
		CHECK(world.failed);
		CHECK(strstr(world.error.msg, "not public"));
		CHECK_INT(world.error.kind, ERR_INVALID);
	}
	world_end();
}

/* Other spellings of 127.0.0.2: refused as a host, unknown as a name, or judged after libcurl has read them. */
TEST(other_spellings_of_an_address_reach_nothing)
{
	static const char *const hosts[] = { "2130706434", "0x7f000002",         "0177.0.0.2",
					     "127.2",      "[::ffff:127.0.0.2]", "0.0.0.0" };
	struct outbound_request r = { .done = world_done };
	char url[200];
	struct err e;

	world_begin();
	for (unsigned i = 0; i < ARRAY_LEN(hosts); i++) {
		struct outbound_message m = { .method = "GET", .url = url };

		snprintf(url, sizeof(url), "http://%s:%u/echo", hosts[i], world.port);
		world.over = 0;
		if (outbound_send(world.client, &r, &m, &e) < 0)
			continue;
		timer_set(&world.limit, 60000);
		loop_run(&world.loop);
		CHECK(world.over && world.failed);
	}
	world_end();
}

TEST(requests_of_a_process_that_ended_fail_and_the_next_ones_get_another_process)
{
	struct outbound_message m = { .method = "GET", .url = NULL };
	struct outbound_request r = { .done = world_done };
	char url[100];
	struct err e;

	world_begin();
	world_ask(&m, "127.0.0.1", "/redirect");
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/hang", world.port);
	m.url = url;
	world.over = 0;
	CHECK(outbound_send(world.client, &r, &m, &e) == 0);
	kill(world.process, SIGKILL);
	waitpid(world.process, NULL, 0);
	world.process = 0;
	own_close_fd(&world.supervisor);
	timer_set(&world.limit, 60000);
	loop_run(&world.loop);
	CHECK(world.over && world.failed);
	CHECK_STR(world.error.msg, "the outbound process ended");
	world_ask(&m, "127.0.0.1", "/redirect");
	CHECK_INT(world.status, 302);
	CHECK_INT(world.connections, 2);
	world_end();
}

TEST(a_cancelled_request_has_no_answer)
{
	struct outbound_message m = { .method = "GET" };
	struct outbound_request r = { .done = world_done };
	char url[100];
	struct err e;

	world_begin();
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/redirect", world.port);
	m.url = url;
	CHECK(outbound_send(world.client, &r, &m, &e) == 0);
	outbound_cancel(&r);
	outbound_cancel(&r);
	CHECK(!r.client);
	world_ask(&m, "127.0.0.1", "/none"); /* its answer alone arrives */
	CHECK_INT(world.status, 404);
	world_end();
}

TEST(more_requests_than_the_limit_are_refused)
{
	static struct outbound_request r[OUTBOUND_REQUESTS + 1];
	struct outbound_message m = { .url = "http://127.0.0.1/" };
	struct err e;

	world_begin();
	for (unsigned i = 0; i < OUTBOUND_REQUESTS; i++) {
		r[i].done = world_done;
		CHECK(outbound_send(world.client, &r[i], &m, &e) == 0);
	}
	CHECK(outbound_send(world.client, &r[OUTBOUND_REQUESTS], &m, &e) < 0);
	CHECK_INT(e.kind, ERR_LIMIT);
	world_end();
}

TEST(a_mail_is_delivered_or_its_refusal_reported)
{
	struct outbound_message m = { .from = "a@b.example",
				      .to = { "c@d.example" },
				      .body = "Subject: x\r\n\r\nhello\r\n",
				      .body_len = 21 };
	char url[100];

	world_begin();
	snprintf(url, sizeof(url), "smtp://127.0.0.1:%u", world.mail_port);
	world_ask_url(&m, url);
	CHECK(!world.failed);
	CHECK_INT(world.status, 250);
	m.from = "other@b.example";
	world_ask_url(&m, url);
	CHECK(world.failed);
	/* A password is not sent to a server without TLS. */
	m.from = "a@b.example";
	m.user = "u";
	m.password = "p";
	world_ask_url(&m, url);
	CHECK(world.failed);
	world_end();
}

/* libcurl would wait minutes for the answer to QUIT. */
TEST(a_mail_server_that_hangs_delays_no_other_request)
{
	struct outbound_message m = { .from = "hang@b.example",
				      .to = { "c@d.example" },
				      .body = "Subject: x\r\n\r\nhello\r\n",
				      .body_len = 21,
				      .timeout_ms = 200 },
				get = { .method = "GET", .timeout_ms = 20000 };
	char url[100];

	world_begin();
	snprintf(url, sizeof(url), "smtp://127.0.0.1:%u", world.mail_port);
	world_ask_url(&m, url);
	CHECK(world.failed && strstr(world.error.msg, "did not answer"));
	world_ask(&get, "127.0.0.1", "/none");
	CHECK_INT(world.status, 404);
	world_end();
}
