/* cluster_ca_test.c - certificates of a cluster, join tokens, and which machines can connect to each other. */
#include "cluster/ca.h"
#include "base/cleanup.h"
#include "cluster/join_token.h"
#include "http/cert_make.h"
#include "http/tls.h"
#include "tap.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <time.h>

enum { DAY = 24 * 3600 };

static struct err e;

static void must(int rc)
{
	if (rc == 0)
		return;
	printf("# %s\n", e.msg);
	abort();
}

struct cluster { /* an authority */
	struct buf cert, key;
	struct cluster_ca *ca;
	unsigned char fingerprint[CLUSTER_FINGERPRINT];
};

static struct cluster *cluster_of(unsigned which)
{
	static struct cluster all[2];
	struct cluster *c = &all[which];

	if (!c->ca) {
		must(cluster_ca_make(&c->cert, &c->key, &e));
		must(cluster_ca_load(&c->ca, &c->cert, &c->key, &e));
		must(cluster_ca_fingerprint(&c->cert, c->fingerprint, &e));
	}
	return c;
}

static struct cluster_identity machine(struct cluster *c, enum cluster_role role, unsigned number,
				       time_t when)
{
	struct cluster_identity id = { 0 };
	struct cluster_peer peer = { role, number };
	auto_buf struct buf request = { 0 };

	buf_add(&id.ca, c->cert.p, c->cert.len);
	must(cluster_ca_request(&request, &id.key, &e));
	must(cluster_ca_sign(c->ca, request.p, request.len, &peer, when, &id.cert, &e));
	return id;
}

/* ---- a handshake in memory ---- */

static struct {
	SSL *client, *server;
	int ok;
	long client_verified;
} shake;

static void shake_end(void)
{
	SSL_free(shake.client);
	SSL_free(shake.server);
	memset(&shake, 0, sizeof(shake));
}

/* Frees the contexts. ok: both sides have finished, and a byte of the client has arrived: with TLS 1.3 a client
 * has finished before the server has checked its certificate. */
static int shake_hands(SSL_CTX *client, SSL_CTX *server)
{
	BIO *a, *b;
	char byte;
	int c = 0, s = 0;

	shake_end();
	shake.client = SSL_new(client);
	shake.server = SSL_new(server);
	BIO_new_bio_pair(&a, 1 << 16, &b, 1 << 16);
	SSL_set_bio(shake.client, a, a);
	SSL_set_bio(shake.server, b, b);
	for (unsigned i = 0; i < 10 && (c != 1 || s != 1); i++) {
		c = SSL_connect(shake.client);
		s = SSL_accept(shake.server);
	}
	shake.client_verified = SSL_get_verify_result(shake.client);
	shake.ok = c == 1 && s == 1 && SSL_write(shake.client, "x", 1) == 1 &&
		   SSL_read(shake.server, &byte, 1) == 1;
	SSL_CTX_free(client);
	SSL_CTX_free(server);
	tls_why();
	return shake.ok;
}

static SSL_CTX *client_of(struct cluster_identity *id)
{
	SSL_CTX *ctx = NULL;

	must(cluster_tls_client(id, &ctx, &e));
	return ctx;
}

static SSL_CTX *server_of(struct cluster_identity *id, enum cluster_clients clients)
{
	SSL_CTX *ctx = NULL;

	must(cluster_tls_server(id, clients, &ctx, &e));
	return ctx;
}

static SSL_CTX *joining(const unsigned char *fingerprint)
{
	SSL_CTX *ctx = NULL;

	must(cluster_tls_joining(fingerprint, &ctx, &e));
	return ctx;
}

TEST(a_node_and_a_gateway_know_each_other)
{
	struct cluster_identity node = machine(cluster_of(0), CLUSTER_NODE, 7, time(NULL)),
				gateway =
					machine(cluster_of(0), CLUSTER_GATEWAY, 32767, time(NULL));
	struct cluster_peer peer;

	CHECK(shake_hands(client_of(&node), server_of(&gateway, CLUSTER_CLIENTS_KNOWN)));
	CHECK_STR(SSL_get_version(shake.client), "TLSv1.3");
	CHECK_INT(cluster_peer(shake.server, &peer, &e), 0);
	CHECK(peer.role == CLUSTER_NODE && peer.number == 7);
	CHECK_INT(cluster_peer(shake.client, &peer, &e), 0);
	CHECK(peer.role == CLUSTER_GATEWAY && peer.number == 32767);
	CHECK_INT(cluster_identity_self(&node, &peer, &e), 0);
	CHECK(peer.role == CLUSTER_NODE && peer.number == 7);
	/* Gateways connect to each other. */
	CHECK(shake_hands(client_of(&gateway), server_of(&gateway, CLUSTER_CLIENTS_JOINING)));
	shake_end();
	cluster_identity_fini(&node);
	cluster_identity_fini(&gateway);
}

TEST(a_certificate_that_is_expired_or_of_another_cluster_is_refused)
{
	struct cluster_identity gateway = machine(cluster_of(0), CLUSTER_GATEWAY, 1, time(NULL)),
				fresh = machine(cluster_of(0), CLUSTER_NODE, 2, time(NULL)),
				old = machine(cluster_of(0), CLUSTER_NODE, 2,
					      time(NULL) - (CLUSTER_CERT_DAYS * DAY + 5)),
				early = machine(cluster_of(0), CLUSTER_NODE, 2,
						time(NULL) + 2 * DAY),
				other = machine(cluster_of(1), CLUSTER_NODE, 2, time(NULL)),
				old_gateway = machine(cluster_of(0), CLUSTER_GATEWAY, 1,
						      time(NULL) - (CLUSTER_CERT_DAYS * DAY + 5));
	struct cluster_identity *bad[] = { &old, &early, &other };

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK(!shake_hands(client_of(bad[i]), server_of(&gateway, CLUSTER_CLIENTS_KNOWN)));
		CHECK(!shake_hands(client_of(bad[i]),
				   server_of(&gateway, CLUSTER_CLIENTS_JOINING)));
		cluster_identity_fini(bad[i]);
	}
	CHECK(!shake_hands(client_of(&fresh), server_of(&old_gateway, CLUSTER_CLIENTS_KNOWN)));
	CHECK_INT(shake.client_verified, X509_V_ERR_CERT_HAS_EXPIRED);
	shake_end();
	cluster_identity_fini(&old_gateway);
	cluster_identity_fini(&fresh);
	cluster_identity_fini(&gateway);
}

TEST(a_node_cannot_be_a_gateway)
{
	struct cluster_identity node = machine(cluster_of(0), CLUSTER_NODE, 7, time(NULL)),
				other = machine(cluster_of(0), CLUSTER_NODE, 8, time(NULL));

	CHECK(!shake_hands(client_of(&other), server_of(&node, CLUSTER_CLIENTS_KNOWN)));
	CHECK_INT(shake.client_verified, X509_V_ERR_INVALID_PURPOSE);
	CHECK(!shake_hands(joining(cluster_of(0)->fingerprint),
			   server_of(&node, CLUSTER_CLIENTS_JOINING)));
	shake_end();
	cluster_identity_fini(&node);
	cluster_identity_fini(&other);
}

TEST(a_machine_without_certificate_can_only_join)
{
	struct cluster_identity gateway = machine(cluster_of(0), CLUSTER_GATEWAY, 1, time(NULL)),
				other = machine(cluster_of(1), CLUSTER_GATEWAY, 1, time(NULL));
	unsigned char wrong[CLUSTER_FINGERPRINT];
	struct cluster_peer peer = { CLUSTER_ALONE, 9 };

	memcpy(wrong, cluster_of(0)->fingerprint, sizeof(wrong));
	wrong[31] ^= 1;
	CHECK(!shake_hands(joining(cluster_of(0)->fingerprint),
			   server_of(&gateway, CLUSTER_CLIENTS_KNOWN)));
	CHECK(shake_hands(joining(cluster_of(0)->fingerprint),
			  server_of(&gateway, CLUSTER_CLIENTS_JOINING)));
	CHECK_INT(cluster_peer(shake.server, &peer, &e), -1);
	CHECK_INT(e.kind, ERR_DENIED);
	CHECK_INT(peer.number, 9);
	CHECK_INT(cluster_peer(shake.client, &peer, &e), 0);
	CHECK(peer.role == CLUSTER_GATEWAY && peer.number == 1);
	CHECK(!shake_hands(joining(wrong), server_of(&gateway, CLUSTER_CLIENTS_JOINING)));
	CHECK(!shake_hands(joining(cluster_of(0)->fingerprint),
			   server_of(&other, CLUSTER_CLIENTS_JOINING)));
	shake_end();
	cluster_identity_fini(&gateway);
	cluster_identity_fini(&other);
}

/* The certificate of the CA is public: it proves nothing without a certificate that it has signed. */
TEST(the_certificate_of_the_ca_alone_does_not_make_a_gateway)
{
	struct cluster_identity other = machine(cluster_of(1), CLUSTER_GATEWAY, 1, time(NULL));
	SSL_CTX *server = server_of(&other, CLUSTER_CLIENTS_JOINING);
	BIO *b = BIO_new_mem_buf(cluster_of(0)->cert.p, (int)cluster_of(0)->cert.len);
	X509 *ca = PEM_read_bio_X509(b, NULL, NULL, NULL);

	CHECK_INT(SSL_CTX_add1_chain_cert(server, ca), 1);
	CHECK(!shake_hands(joining(cluster_of(0)->fingerprint), server));
	shake_end();
	X509_free(ca);
	BIO_free(b);
	cluster_identity_fini(&other);
}

TEST(older_versions_of_tls_are_refused)
{
	struct cluster_identity gateway = machine(cluster_of(0), CLUSTER_GATEWAY, 1, time(NULL)),
				node = machine(cluster_of(0), CLUSTER_NODE, 2, time(NULL));
	SSL_CTX *old = client_of(&node);

	SSL_CTX_set_min_proto_version(old, TLS1_2_VERSION);
	SSL_CTX_set_max_proto_version(old, TLS1_2_VERSION);
	CHECK(!shake_hands(old, server_of(&gateway, CLUSTER_CLIENTS_KNOWN)));
	shake_end();
	cluster_identity_fini(&gateway);
	cluster_identity_fini(&node);
}

TEST(names_of_certificates_are_parsed_strictly)
{
	static const char *const bad[] = { "",        "node",       "node=",      "node=0",
					   "node=07", "node=+7",    "node= 7",    "node=7 ",
					   "node=-1", "node=32768", "node=99999", "node=123456",
					   "Node=7",  "nodes=7",    "gateway=",   "gateway=1x",
					   "both=1",  "alone=1",    "node=0x7",   "xnode=7" };
	struct cluster_peer peer;

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK_INT(cluster_peer_parse(bad[i], strlen(bad[i]), &peer, &e), -1);
		CHECK_INT(e.kind, ERR_DENIED);
	}
	CHECK_INT(cluster_peer_parse("node=7\0x", 8, &peer, &e), -1);
	CHECK_INT(cluster_peer_parse("gateway=32767", 13, &peer, &e), 0);
	CHECK_INT(peer.number, 32767);
}

/* ---- requests ---- */

static void put_request(EVP_PKEY *key, EVP_PKEY *signer, const char *cn, struct buf *out)
{
	X509_REQ *r = X509_REQ_new();
	BIO *b = BIO_new(BIO_s_mem());
	char *text;
	long n;

	X509_REQ_set_pubkey(r, key);
	if (cn)
		X509_NAME_add_entry_by_txt(X509_REQ_get_subject_name(r), "CN", MBSTRING_UTF8,
					   (const unsigned char *)cn, -1, -1, 0);
	X509_REQ_sign(r, signer, EVP_sha256());
	PEM_write_bio_X509_REQ(b, r);
	n = BIO_get_mem_data(b, &text);
	buf_add(out, text, (size_t)n);
	BIO_free(b);
	X509_REQ_free(r);
}

static int sign(const char *request, size_t n, struct buf *out)
{
	const struct cluster_peer peer = { CLUSTER_NODE, 7 };

	return cluster_ca_sign(cluster_of(0)->ca, request, n, &peer, time(NULL), out, &e);
}

TEST(a_request_decides_neither_role_nor_number)
{
	auto_key EVP_PKEY *key = EVP_EC_gen("P-256");
	struct cluster_identity id = { 0 };
	auto_buf struct buf request = { 0 };
	struct cluster_peer peer;

	put_request(key, key, "gateway=1", &request);
	CHECK_INT(sign(request.p, request.len, &id.cert), 0);
	CHECK_INT(cluster_identity_self(&id, &peer, &e), 0);
	CHECK(peer.role == CLUSTER_NODE && peer.number == 7);
	cluster_identity_fini(&id);
}

TEST(bad_requests_are_refused)
{
	auto_key EVP_PKEY *key = EVP_EC_gen("P-256");
	auto_key EVP_PKEY *other = EVP_EC_gen("P-256");
	auto_key EVP_PKEY *p384 = EVP_EC_gen("P-384");
	auto_key EVP_PKEY *rsa = EVP_RSA_gen(2048);
	auto_buf struct buf request = { 0 }, out = { 0 };
	static char large[CLUSTER_REQUEST_MAX + 1];

	CHECK_INT(sign("", 0, &out), -1);
	CHECK_INT(sign("no request", 10, &out), -1);
	CHECK_INT(e.kind, ERR_INVALID);
	memset(large, 'a', sizeof(large));
	CHECK_INT(sign(large, sizeof(large), &out), -1);
	CHECK(strstr(e.msg, "4097 bytes"));
	put_request(p384, p384, NULL, &request);
	CHECK_INT(sign(request.p, request.len, &out), -1);
	CHECK(strstr(e.msg, "not ECDSA P-256"));
	buf_cut(&request, 0);
	put_request(rsa, rsa, NULL, &request);
	CHECK_INT(sign(request.p, request.len, &out), -1);
	CHECK(strstr(e.msg, "not ECDSA P-256"));
	/* The key of another machine, which this one does not have. */
	buf_cut(&request, 0);
	put_request(key, other, NULL, &request);
	CHECK_INT(sign(request.p, request.len, &out), -1);
	CHECK(strstr(e.msg, "not signed with its key"));
	CHECK_INT(out.len, 0);
	/* A part of a request. */
	buf_cut(&request, 0);
	put_request(key, key, NULL, &request);
	CHECK_INT(sign(request.p, request.len / 2, &out), -1);
	CHECK_INT(sign(request.p, request.len, &out), 0);
}

TEST(a_renewed_certificate_has_the_same_key)
{
	struct cluster_identity id = machine(cluster_of(0), CLUSTER_NODE, 7, time(NULL) - 25 * DAY);
	const struct cluster_peer peer = { CLUSTER_NODE, 7 };
	struct cluster_identity gateway = machine(cluster_of(0), CLUSTER_GATEWAY, 1, time(NULL));
	auto_buf struct buf request = { 0 }, again = { 0 };
	unsigned char one[32], two[32];
	int64_t at_s;

	CHECK_INT(cluster_ca_renew_at(&id.cert, &at_s, &e), 0);
	CHECK(at_s <= time(NULL));
	CHECK_INT(cluster_ca_request_for(&id.key, &request, &e), 0);
	CHECK_INT(cluster_ca_request_for(&id.key, &again, &e), 0);
	CHECK_INT(cluster_ca_request_key(request.p, request.len, one, &e), 0);
	CHECK_INT(cluster_ca_request_key(again.p, again.len, two, &e), 0);
	CHECK(memcmp(one, two, sizeof(one)) == 0);
	buf_cut(&id.cert, 0);
	CHECK_INT(cluster_ca_sign(cluster_of(0)->ca, request.p, request.len, &peer, time(NULL),
				  &id.cert, &e),
		  0);
	CHECK_INT(cluster_ca_renew_at(&id.cert, &at_s, &e), 0);
	CHECK(at_s > time(NULL) + 19 * DAY && at_s <= time(NULL) + 20 * DAY);
	CHECK(shake_hands(client_of(&id), server_of(&gateway, CLUSTER_CLIENTS_KNOWN)));
	shake_end();
	cluster_identity_fini(&id);
	cluster_identity_fini(&gateway);
}

TEST(an_authority_needs_its_own_key)
{
	struct cluster_identity node = machine(cluster_of(0), CLUSTER_NODE, 7, time(NULL));
	struct cluster_ca *ca = NULL;
	struct buf none = { 0 };

	CHECK_INT(cluster_ca_load(&ca, &cluster_of(0)->cert, &cluster_of(1)->key, &e), -1);
	CHECK_INT(e.kind, ERR_INVALID);
	CHECK_INT(cluster_ca_load(&ca, &none, &cluster_of(1)->key, &e), -1);
	CHECK_INT(cluster_ca_load(&ca, &cluster_of(0)->cert, &none, &e), -1);
	CHECK_INT(cluster_ca_load(&ca, &node.cert, &node.key, &e), -1);
	CHECK(strstr(e.msg, "not one of an authority"));
	CHECK(!ca);
	cluster_identity_fini(&node);
}

TEST(an_identity_needs_matching_parts)
{
	struct cluster_identity node = machine(cluster_of(0), CLUSTER_NODE, 7, time(NULL)),
				other = machine(cluster_of(0), CLUSTER_NODE, 8, time(NULL)), mixed;
	SSL_CTX *ctx = NULL;

	mixed = (struct cluster_identity){ node.ca, node.cert, other.key };
	CHECK_INT(cluster_tls_client(&mixed, &ctx, &e), -1);
	CHECK(strstr(e.msg, "own.key does not belong to own.crt"));
	mixed = (struct cluster_identity){ node.ca, node.ca, node.key }; /* CN without a role */
	CHECK_INT(cluster_tls_client(&mixed, &ctx, &e), -1);
	CHECK(!ctx);
	CHECK_INT(cluster_identity_load(&mixed, "/does/not/exist", &e), -1);
	CHECK(e.kind == ERR_NOT_FOUND && strstr(e.msg, "atoll node join"));
	cluster_identity_fini(&node);
	cluster_identity_fini(&other);
}

/* ---- tokens ---- */

TEST(a_token_is_read_as_it_was_printed)
{
	struct join_token t, again;
	char text[JOIN_TOKEN_TEXT + 1];
	unsigned char one[JOIN_TOKEN_HASH], two[JOIN_TOKEN_HASH];

	CHECK_INT(join_token_make(&t, cluster_of(0)->fingerprint, &e), 0);
	join_token_print(&t, text);
	CHECK_INT(strlen(text), JOIN_TOKEN_TEXT);
	CHECK_INT(join_token_parse(&again, text, &e), 0);
	CHECK(memcmp(&t, &again, sizeof(t)) == 0);
	join_token_hash(&t, one);
	join_token_hash(&again, two);
	CHECK(memcmp(one, two, sizeof(one)) == 0);
	CHECK(!memmem(one, sizeof(one), t.secret, 4));
	text[10] = 'x';
	CHECK_INT(join_token_parse(&again, text, &e), -1);
	CHECK(!strstr(e.msg, text + 4) && strstr(e.msg, "atoll node token"));
	text[10] = '0';
	text[36] = '-';
	CHECK_INT(join_token_parse(&again, text, &e), -1);
	text[36] = '_';
	text[JOIN_TOKEN_TEXT - 1] = 0;
	CHECK_INT(join_token_parse(&again, text, &e), -1);
	CHECK_INT(join_token_parse(&again, "", &e), -1);
	CHECK_INT(join_token_parse(&again, "atj_", &e), -1);
}

TEST(a_token_is_refused_with_the_reason)
{
	static const struct {
		unsigned cluster;
		struct join_token_row row;
		const char *why;
	} rows[] = {
		{ 0, { 1, 1000, 1 }, NULL },
		{ 0, { 0, 0, 0 }, "has not issued this join token" },
		{ 0, { 1, 900, 1 }, "expired 50 s ago" },
		{ 0, { 1, 950, 1 }, "expired 0 s ago" },
		{ 0, { 1, 1000, 0 }, "was used already" },
		{ 1, { 1, 1000, 1 }, "is of another cluster" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct join_token t;
		int rc;

		CHECK_INT(join_token_make(&t, cluster_of(rows[i].cluster)->fingerprint, &e), 0);
		rc = join_token_check(&t, cluster_of(0)->fingerprint, &rows[i].row, 950, &e);
		CHECK_INT(rc, rows[i].why ? -1 : 0);
		if (rows[i].why) {
			CHECK_INT(e.kind, ERR_DENIED);
			CHECK(strstr(e.msg, rows[i].why) && strstr(e.msg, "atoll node token"));
		}
	}
}
