/* secret_test.c - secrets: encryption with a key file, and values in place of placeholders. */
#include "base/cleanup.h"
#include "egress/http_message.h"
#include "egress/injection.h"
#include "secret/box_ca.h"
#include "secret/vault.h"
#include "store_dir.h"
#include "tap.h"
#include "wire/wire.h"

#include <event2/buffer.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct err e;
static struct vault v;
static char key_path[600];

static struct store *secret_store(char dir[128])
{
	struct store *s;

	dir_make(dir);
	if (store_open(&s, dir, &e) < 0)
		abort();
	snprintf(key_path, sizeof(key_path), "%s/secrets.key", dir);
	return s;
}

static void vault_on(struct store *s)
{
	vault_open(&v, key_path);
	v.store = s;
}

static int set(const char *name, const char *value, size_t n)
{
	struct store_secret x = { .team = "default", .updated_ns = 1 };
	int done;

	snprintf(x.name, sizeof(x.name), "%s", name);
	done = vault_set(&v, &x, value, n, &e);
	store_secret_fini(&x);
	return done;
}

static const char *get(const char *name)
{
	static struct buf out;

	vault_wipe(&out);
	return vault_get(&v, "default", name, &out, NULL, &e) < 0 ? e.msg : buf_str(&out);
}

static void write_key(const char *text)
{
	auto_fd int fd = open(key_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

TEST(a_value_is_encrypted_with_the_key_of_the_file)
{
	auto_dir char dir[128] = "";
	struct store *s = secret_store(dir);
	struct store_secret row = { 0 };
	struct stat st;

	vault_on(s);
	CHECK(stat(key_path, &st) == 0 && st.st_size == 0 && (st.st_mode & 0777) == 0600);
	CHECK(set("A", "value of a", 10) == 0);
	CHECK(stat(key_path, &st) == 0 && st.st_size == 65);
	CHECK_STR(get("A"), "value of a");
	CHECK(store_secret_find(s, "default", "A", &row, &e) == 0);
	CHECK(row.version == 1 && row.sealed_n == 10 + 28);
	CHECK(!memmem(row.sealed, row.sealed_n, "value", 5));
	/* Under another name it cannot be decrypted. */
	snprintf(row.name, sizeof(row.name), "B");
	CHECK(store_secret_put(s, &row, &e) == 0);
	CHECK(strstr(get("B"), "belong to another name"));
	store_secret_fini(&row);
	CHECK(set("A", "2", 1) == 0);
	CHECK_STR(get("A"), "2");
	vault_close(&v);
	vault_on(s);
	CHECK_STR(get("A"), "2");
	vault_close(&v);
	store_close(s);
}

TEST(another_or_no_key_is_an_error_and_changes_nothing)
{
	auto_dir char dir[128] = "";
	struct store *s = secret_store(dir);
	char was[65] = "";
	int fd;

	vault_on(s);
	CHECK(set("A", "value", 5) == 0);
	vault_close(&v);
	fd = open(key_path, O_RDONLY | O_CLOEXEC);
	CHECK(read(fd, was, 64) == 64);
	close(fd);
	unlink(key_path);
	vault_on(s);
	CHECK(strstr(get("A"), "restore it from a backup"));
	CHECK(set("B", "x", 1) < 0);
	vault_close(&v);
	write_key("not a key");
	vault_on(s);
	CHECK(strstr(get("A"), "not a key"));
	vault_close(&v);
	write_key("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n");
	vault_on(s);
	CHECK(strstr(get("A"), "was encrypted with key"));
	CHECK(set("B", "x", 1) < 0 && strstr(e.msg, "another key"));
	vault_close(&v);
	chmod(key_path, 0640);
	vault_on(s);
	CHECK(strstr(get("A"), "chmod 600"));
	vault_close(&v);
	chmod(key_path, 0600);
	write_key(was);
	vault_on(s);
	CHECK_STR(get("A"), "value");
	vault_close(&v);
	store_close(s);
}

TEST(names_and_sizes_have_limits)
{
	auto_dir char dir[128] = "";
	struct store *s = secret_store(dir);
	static char large[VAULT_VALUE + 1];
	static const char *const bad[] = { "", "../x", "a/b", ".a", "-a", "a b", "a\n" };

	vault_on(s);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(set(bad[i], "x", 1) < 0 && e.kind == ERR_INVALID);
	CHECK(set("A", "", 0) < 0);
	CHECK(set("A", large, VAULT_VALUE + 1) < 0);
	CHECK(set("A", large, VAULT_VALUE) == 0);
	for (unsigned i = 1; i < VAULT_TEAM; i++) {
		char name[16];

		snprintf(name, sizeof(name), "N%u", i);
		CHECK(set(name, "x", 1) == 0);
	}
	CHECK(set("ONE_MORE", "x", 1) < 0 && e.kind == ERR_LIMIT);
	CHECK(set("A", "x", 1) == 0);
	vault_close(&v);
	store_close(s);
}

/* ---- placeholders ---- */

#define P1 "atoll-placeholder-1111"
#define P2 "atoll-placeholder-2222"

static void part(struct buf *out, char kind, const char *text)
{
	uint32_t n = (uint32_t)strlen(text);

	buf_putc(out, kind);
	buf_add(out, &n, sizeof(n));
	buf_add(out, text, n);
}

static struct injection *injection_of_two(void)
{
	auto_buf struct buf all = { 0 }, cert = { 0 }, key = { 0 };
	struct injection *x = NULL;

	if (box_ca_make(&cert, &key, &e) < 0)
		abort();
	part(&all, WIRE_SECRET_CERT, buf_str(&cert));
	part(&all, WIRE_SECRET_KEY, buf_str(&key));
	part(&all, WIRE_SECRET_PLACEHOLDER, P1);
	part(&all, WIRE_SECRET_VALUE, "value-1");
	part(&all, WIRE_SECRET_IN, "header");
	part(&all, WIRE_SECRET_HOST, "api.example");
	part(&all, WIRE_SECRET_HOST, "*.below.example:8443");
	part(&all, WIRE_SECRET_PLACEHOLDER, P2);
	part(&all, WIRE_SECRET_VALUE, "value 2&");
	part(&all, WIRE_SECRET_IN, "query");
	part(&all, WIRE_SECRET_HOST, "plain.example:80");
	if (injection_parse(&x, all.p, all.len, &e) < 0)
		abort();
	/* Every prefix of the frame is rejected, or is a shorter list. */
	for (size_t n = 1; n < all.len; n++) {
		struct injection *cut = NULL;

		if (injection_parse(&cut, all.p, n, &e) == 0)
			injection_free(cut);
	}
	return x;
}

static const char *written(struct injection *x, const char *host, uint16_t port, int tls,
			   const char *head)
{
	static char out[512];
	struct evbuffer *b = evbuffer_new();
	int n;

	n = injection_write(x, host, port, tls, head, strlen(head), b) < 0
		    ? -1
		    : evbuffer_remove(b, out, sizeof(out) - 1);
	out[n > 0 ? n : 0] = 0;
	evbuffer_free(b);
	return out;
}

TEST(a_placeholder_is_replaced_in_its_place_and_for_its_hosts_only)
{
	struct injection *x = injection_of_two();

	CHECK(injection_fits(x, "api.example", 443, 1));
	CHECK(!injection_fits(x, "api.example", 443, 0));
	CHECK(!injection_fits(x, "api.example", 80, 0));
	CHECK(!injection_fits(x, "api.example", 8443, 1));
	CHECK(injection_fits(x, "a.b.below.example", 8443, 1));
	CHECK(!injection_fits(x, "below.example", 8443, 1));
	CHECK(!injection_fits(x, "xbelow.example", 8443, 1));
	CHECK(injection_fits(x, "plain.example", 80, 0));
	CHECK(!injection_fits(NULL, "api.example", 443, 1));
	CHECK_STR(written(x, "api.example", 443, 1,
			  "GET /" P1 "?q=" P1 "&r=" P2 " HTTP/1.1\r\nhost: api.example\r\n"
			  "authorization: Bearer " P1 "\r\n" P1 ": " P2 " " P1 P1 "\r\n\r\n"),
		  "GET /" P1 "?q=" P1 "&r=" P2 " HTTP/1.1\r\nhost: api.example\r\n"
		  "authorization: Bearer value-1\r\n" P1 ": " P2 " value-1value-1\r\n\r\n");
	CHECK_STR(written(x, "plain.example", 80, 0,
			  "GET /?q=" P2 " HTTP/1.1\r\nx: " P2 "\r\n\r\n"),
		  "GET /?q=value%202%26 HTTP/1.1\r\nx: " P2 "\r\n\r\n");
	/* user:PLACEHOLDER in base64 */
	CHECK_STR(written(x, "api.example", 443, 1,
			  "GET / HTTP/1.1\r\nauthorization: Basic "
			  "dXNlcjphdG9sbC1wbGFjZWhvbGRlci0xMTEx\r\n\r\n"),
		  "GET / HTTP/1.1\r\nauthorization: Basic dXNlcjp2YWx1ZS0x\r\n\r\n");
	CHECK_STR(written(x, "other.example", 443, 1, "GET / HTTP/1.1\r\nx: " P1 "\r\n\r\n"),
		  "GET / HTTP/1.1\r\nx: " P1 "\r\n\r\n");
	injection_free(x);
}

TEST(a_header_of_a_host_replaces_the_one_that_the_box_sends)
{
	auto_buf struct buf all = { 0 }, cert = { 0 }, key = { 0 };
	struct injection *x = NULL;

	CHECK(box_ca_make(&cert, &key, &e) == 0);
	part(&all, WIRE_SECRET_CERT, buf_str(&cert));
	part(&all, WIRE_SECRET_KEY, buf_str(&key));
	part(&all, WIRE_SECRET_HEADER, "X-Token");
	part(&all, WIRE_SECRET_VALUE, "value-1");
	part(&all, WIRE_SECRET_HOST, "api.example");
	part(&all, WIRE_SECRET_HEADER, "X-Other");
	part(&all, WIRE_SECRET_VALUE, "");
	part(&all, WIRE_SECRET_HOST, "*.below.example:8080");
	CHECK(injection_parse(&x, all.p, all.len, &e) == 0);
	CHECK(injection_fits(x, "api.example", 443, 1));
	CHECK(!injection_fits(x, "api.example", 80, 0));
	CHECK(injection_fits(x, "a.below.example", 8080, 0));
	CHECK_STR(written(x, "api.example", 443, 1,
			  "GET /?x-token=1 HTTP/1.1\r\nx-tOKEN: own\r\nx-token2: two\r\n\r\n"),
		  "GET /?x-token=1 HTTP/1.1\r\nx-token2: two\r\nX-Token: value-1\r\n\r\n");
	CHECK_STR(written(x, "a.below.example", 8080, 0, "GET / HTTP/1.1\r\nx-token: own\r\n\r\n"),
		  "GET / HTTP/1.1\r\nx-token: own\r\nX-Other: \r\n\r\n");
	injection_free(x);
	buf_cut(&all, 0);
	part(&all, WIRE_SECRET_CERT, buf_str(&cert));
	part(&all, WIRE_SECRET_KEY, buf_str(&key));
	part(&all, WIRE_SECRET_HEADER, "");
	CHECK(injection_parse(&x, all.p, all.len, &e) < 0);
}

TEST(a_head_that_grows_too_much_is_rejected)
{
	struct injection *x = NULL;
	auto_buf struct buf all = { 0 }, cert = { 0 }, key = { 0 }, value = { 0 }, head = { 0 };

	CHECK(box_ca_make(&cert, &key, &e) == 0);
	for (unsigned i = 0; i < 4096; i++)
		buf_putc(&value, 'v');
	part(&all, WIRE_SECRET_CERT, buf_str(&cert));
	part(&all, WIRE_SECRET_KEY, buf_str(&key));
	part(&all, WIRE_SECRET_PLACEHOLDER, P1);
	part(&all, WIRE_SECRET_VALUE, buf_str(&value));
	part(&all, WIRE_SECRET_IN, "header");
	part(&all, WIRE_SECRET_HOST, "api.example");
	CHECK(injection_parse(&x, all.p, all.len, &e) == 0);
	buf_puts(&head, "GET / HTTP/1.1\r\nx: ");
	for (unsigned i = 0; i < 40; i++)
		buf_puts(&head, P1);
	buf_puts(&head, "\r\n\r\n");
	CHECK(injection_write(x, "api.example", 443, 1, head.p, head.len, NULL) < 0);
	injection_free(x);
}

TEST(a_request_in_an_opened_connection_names_its_host_in_a_header_only)
{
	static const struct {
		const char *head, *why;
	} bad[] = {
		{ "GET https://api.example/ HTTP/1.1\r\nHost: api.example\r\n\r\n", "a path" },
		{ "CONNECT api.example:443 HTTP/1.1\r\nHost: api.example\r\n\r\n", "a path" },
		{ "GET / HTTP/1.1\r\nHost: other.example\r\n\r\n", "different hosts" },
		{ "GET / HTTP/1.1\r\nHost: api.example:80\r\n\r\n", "different ports" },
		{ "GET / HTTP/1.1\r\n\r\n", "exactly one Host" },
	};
	static const char good[] = "GET /v1?a=b HTTP/1.1\r\nHost: API.example:443\r\nX: y\r\n\r\n";
	struct evbuffer *out = evbuffer_new();
	struct message m;
	const char *why;

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK_INT(message_origin_request(&m, "api.example", 443, 1, bad[i].head,
						 strlen(bad[i].head), &why),
			  400);
		CHECK(strstr(why, bad[i].why));
		message_fini(&m);
	}
	CHECK_INT(message_origin_request(&m, "api.example", 443, 1, good, strlen(good), &why), 0);
	message_write_request(&m, out);
	evbuffer_add(out, "", 1);
	CHECK_STR((const char *)evbuffer_pullup(out, -1),
		  "GET /v1?a=b HTTP/1.1\r\nhost: api.example\r\nx: y\r\nconnection: close\r\n\r\n");
	message_fini(&m);
	evbuffer_free(out);
}
