/* etcd.c - see etcd.h. */
#include "coordinator/etcd.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "outbound/curl.h"
#include "outbound/curl_loop.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	ETCD_ANSWER_MS = 2000,
	ETCD_READ_MS = 700,
	ETCD_CONNECT_MS = 500,
	ETCD_ANSWER_BYTES = 64 << 20,
};

struct etcd_request {
	struct etcd_request *next, *prev;
	struct etcd *etcd;
	CURL *easy;
	char *body;
	struct buf in;
	int reads;       /* it changes nothing: can be sent again */
	unsigned member; /* that was asked */
	uint64_t until_ms;
	etcd_done *done;
	void *user;
};

struct etcd {
	struct loop *loop;
	struct curl_loop curl;
	struct curl_slist *headers;
	char *members[ETCD_MEMBERS], *ca_file;
	unsigned nmembers, member;
	uint32_t answer_ms, read_ms;
	struct etcd_request requests; /* a ring */
	struct err trouble;
	struct timer start; /* sends what was asked for in this turn of the loop */
};

/* ---- transactions ---- */

static void etcd_set_bytes(json_t *object, const char *member, const char *text)
{
	auto_buf struct buf b = { 0 };

	base64_encode(&b, text, strlen(text));
	json_object_set_new(object, member, json_string(buf_str(&b)));
}

static void etcd_set_int(json_t *object, const char *member, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	json_object_set_new(object, member, json_string(text));
}

static json_t *etcd_add(json_t **list)
{
	json_t *object = json_object();

	if (!*list)
		*list = json_array();
	if (!*list || !object)
		abort();
	json_array_append_new(*list, object);
	return object;
}

static json_t *etcd_add_op(json_t **list, const char *kind, const char *key)
{
	json_t *op = json_object();

	if (!op)
		abort();
	json_object_set_new(etcd_add(list), kind, op);
	etcd_set_bytes(op, "key", key);
	return op;
}

/* The first text after all that begin with the prefix, which ends with '/'. */
static void etcd_set_end(json_t *op, const char *prefix)
{
	auto_buf struct buf end = { 0 };

	buf_puts(&end, prefix);
	end.p[end.len - 1]++;
	etcd_set_bytes(op, "range_end", buf_str(&end));
}

void etcd_compare_revision(struct etcd_txn *t, const char *key, int64_t revision)
{
	json_t *c = etcd_add(&t->compare);

	etcd_set_bytes(c, "key", key);
	json_object_set_new(c, "target", json_string("MOD"));
	json_object_set_new(c, "result", json_string("EQUAL"));
	etcd_set_int(c, "mod_revision", revision);
}

void etcd_compare_exists(struct etcd_txn *t, const char *key)
{
	json_t *c = etcd_add(&t->compare);

	etcd_set_bytes(c, "key", key);
	json_object_set_new(c, "target", json_string("VERSION"));
	json_object_set_new(c, "result", json_string("GREATER"));
	etcd_set_int(c, "version", 0);
}

void etcd_compare_none(struct etcd_txn *t, const char *from, const char *before)
{
	json_t *c = etcd_add(&t->compare);

	etcd_set_bytes(c, "key", from);
	etcd_set_bytes(c, "range_end", before);
	json_object_set_new(c, "target", json_string("VERSION"));
	json_object_set_new(c, "result", json_string("EQUAL"));
	etcd_set_int(c, "version", 0);
}

void etcd_put(struct etcd_txn *t, const char *key, const char *value)
{
	etcd_set_bytes(etcd_add_op(&t->success, "request_put", key), "value", value);
}

void etcd_delete(struct etcd_txn *t, const char *key)
{
	etcd_add_op(&t->success, "request_delete_range", key);
}

void etcd_delete_below(struct etcd_txn *t, const char *prefix)
{
	etcd_set_end(etcd_add_op(&t->success, "request_delete_range", prefix), prefix);
}

void etcd_get(struct etcd_txn *t, const char *key)
{
	etcd_add_op(&t->success, "request_range", key);
}

void etcd_get_below(struct etcd_txn *t, const char *prefix, int without_values)
{
	json_t *op = etcd_add_op(&t->success, "request_range", prefix);

	etcd_set_end(op, prefix);
	if (without_values)
		json_object_set_new(op, "keys_only", json_true());
}

void etcd_get_else(struct etcd_txn *t, const char *key)
{
	etcd_add_op(&t->failure, "request_range", key);
}

void etcd_txn_fini(struct etcd_txn *t)
{
	json_decref(t->compare);
	json_decref(t->success);
	json_decref(t->failure);
	*t = (struct etcd_txn){ 0 };
}

static int etcd_txn_reads(const struct etcd_txn *t)
{
	size_t i;
	json_t *op;

	json_array_foreach(t->success, i, op) if (!json_object_get(op, "request_range")) return 0;
	return 1;
}

/* ---- answers ---- */

static int64_t etcd_int(const json_t *object, const char *member)
{
	const char *text = json_string_value(json_object_get(object, member));

	return text ? strtoll(text, NULL, 10) : 0;
}

static char *etcd_bytes(const json_t *object, const char *member)
{
	const json_t *text = json_object_get(object, member);
	struct buf out = { 0 };

	buf_puts(&out, "");
	if (text && base64_decode(&out, json_string_value(text), json_string_length(text)) < 0)
		buf_cut(&out, 0);
	return out.p ? buf_steal(&out) : strdup("");
}

int etcd_list_read(struct etcd_list *out, const struct etcd_answer *a, unsigned index)
{
	const json_t *range =
		json_object_get(json_array_get(a->responses, index), "response_range");
	const json_t *kvs = json_object_get(range, "kvs");

	*out = (struct etcd_list){ 0 };
	if (!range)
		return -1;
	if (!json_array_size(kvs))
		return 0;
	out->v = calloc(json_array_size(kvs), sizeof(*out->v));
	if (!out->v)
		abort();
	for (size_t i = 0; i < json_array_size(kvs); i++) {
		const json_t *kv = json_array_get(kvs, i);

		out->v[out->n++] = (struct etcd_kv){ etcd_bytes(kv, "key"), etcd_bytes(kv, "value"),
						     etcd_int(kv, "mod_revision") };
	}
	return 0;
}

void etcd_list_fini(struct etcd_list *l)
{
	for (unsigned i = 0; i < l->n; i++) {
		free(l->v[i].key);
		free(l->v[i].value);
	}
	free(l->v);
	*l = (struct etcd_list){ 0 };
}

/* ---- requests ---- */

static void etcd_request_free(struct etcd_request *r)
{
	r->prev->next = r->next;
	r->next->prev = r->prev;
	if (r->easy) {
		curl.multi_remove_handle(r->etcd->curl.handle, r->easy);
		curl.easy_cleanup(r->easy);
	}
	buf_fini(&r->in);
	free(r->body);
	free(r);
}

static size_t etcd_receive(char *bytes, size_t size, size_t n, void *user)
{
	struct etcd_request *r = user;

	if (r->in.len + size * n > ETCD_ANSWER_BYTES)
		return 0; /* ends the transfer */
	buf_add(&r->in, bytes, size * n);
	return size * n;
}

static void etcd_request_start(struct etcd_request *r)
{
	struct etcd *x = r->etcd;
	auto_buf struct buf url = { 0 };
	uint64_t now = loop_now_ms();
	uint64_t limit = r->until_ms > now ? r->until_ms - now : 1;

	if (r->reads && limit > x->read_ms)
		limit = x->read_ms;
	r->member = x->member;
	buf_cut(&r->in, 0);
	buf_printf(&url, "%s/v3/kv/txn", x->members[x->member]);
	if (!r->easy)
		r->easy = curl.easy_init();
	else
		curl.multi_remove_handle(x->curl.handle, r->easy);
	if (!r->easy)
		abort();
	curl.easy_setopt(r->easy, CURLOPT_URL, buf_str(&url));
	curl.easy_setopt(r->easy, CURLOPT_PRIVATE, r);
	curl.easy_setopt(r->easy, CURLOPT_POSTFIELDS, r->body);
	curl.easy_setopt(r->easy, CURLOPT_HTTPHEADER, x->headers);
	curl.easy_setopt(r->easy, CURLOPT_WRITEFUNCTION, etcd_receive);
	curl.easy_setopt(r->easy, CURLOPT_WRITEDATA, r);
	curl.easy_setopt(r->easy, CURLOPT_TIMEOUT_MS, (long)limit);
	curl.easy_setopt(r->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)ETCD_CONNECT_MS);
	curl.easy_setopt(r->easy, CURLOPT_NOSIGNAL, 1L);
	curl.easy_setopt(r->easy, CURLOPT_TCP_NODELAY, 1L);
	curl.easy_setopt(r->easy, CURLOPT_PROXY, "");
	if (x->ca_file)
		curl.easy_setopt(r->easy, CURLOPT_CAINFO, x->ca_file);
	curl.multi_add_handle(x->curl.handle, r->easy);
}

/* The fields of an answer, or why there is none. */
static int etcd_parse(struct etcd_answer *a, json_t **out_doc, struct etcd_request *r,
		      struct err *e)
{
	long status = 0;
	const char *why;

	curl.easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
	*out_doc = json_loadb(buf_str(&r->in), r->in.len, 0, NULL);
	why = json_string_value(json_object_get(*out_doc, "error"));
	if (status != 200 || why || !json_is_object(json_object_get(*out_doc, "header")))
		return err_set(e, ERR_SYS, "etcd %s: status %ld: %.120s",
			       r->etcd->members[r->member], status,
			       why ? why : "not an answer of etcd");
	*a = (struct etcd_answer){
		.succeeded = json_is_true(json_object_get(*out_doc, "succeeded")),
		.revision = etcd_int(json_object_get(*out_doc, "header"), "revision"),
		.responses = json_object_get(*out_doc, "responses"),
	};
	return 0;
}

static void etcd_over(void *owner, int rc)
{
	struct etcd_request *r = owner;
	struct etcd *x = r->etcd;
	struct etcd_answer a;
	json_t *doc = NULL;
	struct err e = { 0 };

	if (rc != CURLE_OK)
		err_set(&e, ERR_SYS, "etcd %s: %s", x->members[r->member],
			curl.easy_strerror((CURLcode)rc));
	else
		etcd_parse(&a, &doc, r, &e);
	x->trouble = e;
	if (e.kind && r->member == x->member)
		x->member = (x->member + 1) % x->nmembers;
	if (e.kind && r->reads && loop_now_ms() + 20 < r->until_ms) {
		/* After a refused connection it would be tried in a busy loop: one attempt per 20 ms. */
		timer_set(&x->start, 20);
		curl.multi_remove_handle(x->curl.handle, r->easy);
		curl.easy_cleanup(r->easy);
		r->easy = NULL;
	} else {
		r->done(r->user, e.kind ? NULL : &a, e.kind ? &e : NULL);
		etcd_request_free(r);
	}
	json_decref(doc);
}

static void etcd_start(struct timer *t)
{
	struct etcd *x = loop_owner(t, struct etcd, start);

	for (struct etcd_request *r = x->requests.next; r != &x->requests; r = r->next)
		if (!r->easy)
			etcd_request_start(r);
}

void etcd_send(struct etcd *x, struct etcd_txn *take_t, etcd_done *done, void *user)
{
	struct etcd_request *r = calloc(1, sizeof(*r));
	json_t *body = json_object();

	if (!r || !body)
		abort();
	r->reads = etcd_txn_reads(take_t);
	if (take_t->compare)
		json_object_set_new(body, "compare", steal(&take_t->compare));
	if (take_t->success)
		json_object_set_new(body, "success", steal(&take_t->success));
	if (take_t->failure)
		json_object_set_new(body, "failure", steal(&take_t->failure));
	r->body = json_dumps(body, JSON_COMPACT);
	json_decref(body);
	if (!r->body)
		abort();
	r->etcd = x;
	r->done = done;
	r->user = user;
	r->until_ms = loop_now_ms() + x->answer_ms;
	r->next = &x->requests;
	r->prev = x->requests.prev;
	r->prev->next = r->next->prev = r;
	timer_set(&x->start, 0);
}

/* ---- life ---- */

static int etcd_split(struct etcd *x, const char *addresses, struct err *e)
{
	while (*addresses) {
		size_t n = strcspn(addresses, ", ");

		if (n) {
			char *one = strndup(addresses, n);

			if (!one)
				abort();
			if (one[n - 1] == '/')
				one[n - 1] = 0;
			if (x->nmembers == ETCD_MEMBERS ||
			    (strncmp(one, "http://", 7) != 0 && strncmp(one, "https://", 8) != 0)) {
				err_set(e, ERR_INVALID,
					x->nmembers == ETCD_MEMBERS
						? "cluster.etcd: more than 9 addresses: %.100s"
						: "cluster.etcd: \"%.100s\" is not an address: write "
						  "http://HOST:2379",
					one);
				free(one);
				return -1;
			}
			x->members[x->nmembers++] = one;
		}
		addresses += n + (addresses[n] != 0);
	}
	if (!x->nmembers)
		return err_set(e, ERR_INVALID, "cluster.etcd: no address: write http://HOST:2379");
	return 0;
}

int etcd_new(struct etcd **out, struct loop *l, const struct etcd_conf *conf, struct err *e)
{
	struct etcd *x;

	if (curl_load(e) < 0)
		return -1;
	x = calloc(1, sizeof(*x));
	if (!x)
		return err_sys(e, "etcd");
	x->loop = l;
	x->requests.next = x->requests.prev = &x->requests;
	x->answer_ms = conf->answer_ms ? conf->answer_ms : ETCD_ANSWER_MS;
	x->read_ms = conf->read_ms ? conf->read_ms : ETCD_READ_MS;
	timer_init(&x->start, l, etcd_start);
	if (etcd_split(x, conf->addresses, e) < 0) {
		etcd_free(x);
		return -1;
	}
	x->ca_file = conf->ca_file ? strdup(conf->ca_file) : NULL;
	curl_loop_init(&x->curl, l, etcd_over);
	x->headers = curl.slist_append(NULL, "Content-Type: application/json");
	/* A member without a leader answers at once with an error. */
	x->headers = curl.slist_append(x->headers, "Grpc-Metadata-hasleader: true");
	x->headers = curl.slist_append(x->headers, "Expect:");
	*out = x;
	return 0;
}

void etcd_free(struct etcd *x)
{
	if (!x)
		return;
	while (x->requests.next != &x->requests)
		etcd_request_free(x->requests.next);
	timer_fini(&x->start);
	if (x->curl.handle) {
		curl.multi_cleanup(x->curl.handle);
		timer_fini(&x->curl.timer);
	}
	if (x->headers)
		curl.slist_free_all(x->headers);
	for (unsigned i = 0; i < x->nmembers; i++)
		free(x->members[i]);
	free(x->ca_file);
	free(x);
}

const char *etcd_trouble(const struct etcd *x)
{
	return x->trouble.kind ? x->trouble.msg : "";
}
