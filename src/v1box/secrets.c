/* secrets.c - see secrets.h. No function of this file puts a value into an answer, an event, the audit
 * log or an error text. */
#include "v1box/secrets.h"
#include "api/fields.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "fleet/box_secrets.h"
#include "record/record.h"
#include "secret/box_ca.h"
#include "secret/vault.h"
#include "store/shared_rows.h"

#include <stdio.h>
#include <string.h>

enum { SECRETS_HOSTS = 8, SECRETS_BASE64 = (VAULT_VALUE + 2) / 3 * 4 };

const struct field secrets_set_fields[] = {
	/* clang-format off */
	{ "value", FIELD_TEXT, 0, 0, VAULT_VALUE, "the value, 1 byte to 64 KiB", NULL },
	{ "base64", FIELD_TEXT, 0, 0, SECRETS_BASE64, "instead of value: the same in base64, for any bytes", NULL },
	{ "hosts", FIELD_TEXTS, 0, 0, SECRETS_HOSTS, "the secret can only be used as a placeholder in requests to these hosts (default: any use)", NULL },
	{ 0 },
	/* clang-format on */
};
const struct field secrets_list_query[] = {
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)",
	  NULL },
	{ "after", FIELD_TEXT, 0, 0, STORE_NAME, "`next` of the previous page", NULL },
	{ 0 },
};

/* A viewer sees the name only. */
static json_t *secret_json(const struct call *c, const struct store_secret *x)
{
	json_t *doc = json_pack("{s:s}", "name", x->name), *hosts;

	if (c->who.role < ROLE_EDITOR)
		return doc;
	hosts = x->hosts ? json_loads(x->hosts, 0, NULL) : NULL;
	json_object_set_new(doc, "version", json_integer((json_int_t)x->version));
	json_object_set_new(doc, "hosts", hosts ? hosts : json_array());
	json_object_set_new(doc, "created", json_time((uint64_t)x->created_ns));
	json_object_set_new(doc, "updated", json_time((uint64_t)x->updated_ns));
	return doc;
}

static int secrets_read_value(struct call *c, struct buf *out, struct err *e)
{
	const json_t *text = call_get(c, "value"), *coded = call_get(c, "base64");

	if (!text == !coded)
		return err_set(e, ERR_INVALID, "value: exactly one of value and base64 is needed");
	/* All at once: a buffer that grows leaves copies of its content in free memory. */
	buf_space(out, VAULT_VALUE + 4);
	if (text)
		buf_add(out, json_string_value(text), json_string_length(text));
	else if (base64_decode(out, json_string_value(coded), json_string_length(coded)) < 0)
		return err_set(e, ERR_INVALID, "base64: must be base64 with padding");
	return 0;
}

static int secrets_read_hosts(struct call *c, struct store_secret *x, struct err *e)
{
	const json_t *given = call_get(c, "hosts");
	json_t *hosts = json_array(), *one;
	struct net_rule rule;
	char text[RULE_TEXT];
	size_t i;

	json_array_foreach((json_t *)given, i, one)
	{
		if (net_rule_parse_host(&rule, json_string_value(one), e) < 0) {
			json_decref(hosts);
			return err_in(e, "hosts[%zu]", i);
		}
		json_array_append_new(hosts, json_string(net_rule_text(&rule, text)));
	}
	x->hosts = json_dumps(hosts, JSON_COMPACT);
	json_decref(hosts);
	return 0;
}

static void secrets_id(const char *team, const char *name, char out[STORE_SHARED_ID + 1])
{
	snprintf(out, STORE_SHARED_ID + 1, "%s/%s", team, name);
}

void secrets_set(struct call *c)
{
	struct store_secret x = { .updated_ns = fleet_now_ns() };
	struct vault *vault = c->api->fleet.vault;
	auto_secret struct buf value = { 0 };
	char id[STORE_SHARED_ID + 1];
	struct err e;

	if (vault_check_name(call_param(c, 0), &e) < 0) {
		call_fail(c, &e);
		return;
	}
	snprintf(x.team, sizeof(x.team), "%s", c->who.team);
	snprintf(x.name, sizeof(x.name), "%s", call_param(c, 0));
	if (secrets_read_value(c, &value, &e) < 0 || secrets_read_hosts(c, &x, &e) < 0 ||
	    vault_set(vault, &x, value.p, value.len, &e) < 0)
		call_fail(c, &e);
	else {
		box_secrets_changed(&c->api->fleet, x.team, x.name);
		secrets_id(c->who.team, x.name, id);
		call_shared(c, "secret", id, x.version == 1 ? 201 : 200, secret_json(c, &x));
	}
	store_secret_fini(&x);
}

static void secrets_missing(struct call *c)
{
	call_error(c, 404, "not_found", "there is no such secret", call_param(c, 0),
		   "list them: GET /v1/secrets");
}

void secrets_show(struct call *c)
{
	struct store_secret x = { 0 };
	struct err e;

	if (store_secret_find(c->api->store, c->who.team, call_param(c, 0), &x, &e) < 0)
		secrets_missing(c);
	else
		call_json(c, 200, secret_json(c, &x));
	store_secret_fini(&x);
}

void secrets_delete(struct call *c)
{
	char id[STORE_SHARED_ID + 1];
	struct err e;

	if (store_secret_remove(c->api->store, c->who.team, call_param(c, 0), &e) == 0) {
		box_secrets_changed(&c->api->fleet, c->who.team, call_param(c, 0));
		secrets_id(c->who.team, call_param(c, 0), id);
		call_shared(c, "secret", id, 204, NULL);
	} else if (e.kind == ERR_NOT_FOUND)
		secrets_missing(c);
	else
		call_fail(c, &e);
}

void secrets_list(struct call *c)
{
	struct store_secrets rows = { 0 };
	char next[STORE_NAME + 1] = "";
	json_t *items = json_array();
	struct err e;

	if (store_secret_list(c->api->store, c->who.team, call_query(c, "after"),
			      (unsigned)call_query_int(c, "limit", 0), &rows, &e) < 0) {
		json_decref(items);
		call_fail(c, &e);
		return;
	}
	for (unsigned i = 0; i < rows.n; i++)
		json_array_append_new(items, secret_json(c, &rows.v[i]));
	if (rows.more)
		snprintf(next, sizeof(next), "%s", rows.v[rows.n - 1].name);
	store_secrets_fini(&rows);
	call_list(c, items, next);
}

/* ---- in a box ---- */

static const struct field as_values[] = {
	FIELD_VALUE("variable"), FIELD_VALUE("file"), FIELD_VALUE("placeholder"), { 0 }
};
static const struct field attach_fields[] = {
	/* clang-format off */
	{ "name", FIELD_NAME, 1, 0, STORE_NAME, "name of the secret", NULL },
	{ "as", FIELD_CHOICE, 0, 0, 0, "variable (default), file, or placeholder", as_values },
	{ "variable", FIELD_TEXT, 0, 0, 200, "name of the variable (default: the name of the secret)", NULL },
	{ "path", FIELD_TEXT, 0, 0, 200, "of a file, below /run/secrets (default: the name of the secret)", NULL },
	{ "hosts", FIELD_TEXTS, 0, 0, SECRETS_HOSTS, "hosts for which egress replaces the placeholder", NULL },
	{ "in", FIELD_TEXTS, 0, 0, 2, "where it is replaced: header (default), query", NULL },
	{ 0 },
	/* clang-format on */
};

struct attaching {
	struct call *call;
	struct store_secret row;
	json_t *done;  /* array */
	json_t *hosts; /* of all placeholders */
	unsigned placeholders;
	int files;
};

static int attach_taken(const struct attaching *x, const char *field, const char *value)
{
	json_t *one;
	size_t i;

	json_array_foreach(x->done, i, one)
	{
		const char *has = json_string_value(json_object_get(one, field));

		if (has && !strcmp(has, value))
			return 1;
	}
	return 0;
}

static int attach_variable(const struct attaching *x, const json_t *one, json_t *out, struct err *e)
{
	const char *name = json_string_value(json_object_get(one, "variable"));

	name = name ? name : x->row.name;
	if (!*name || strchr("0123456789", *name) ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") !=
		    strlen(name))
		return err_set(e, ERR_INVALID,
			       "variable: '%.60s' cannot be the name of a variable; name one",
			       name);
	if (attach_taken(x, "variable", name))
		return err_set(e, ERR_INVALID, "variable: '%.60s' is given twice", name);
	json_object_set_new(out, "variable", json_string(name));
	return 0;
}

/* Each part begins with a letter, a digit or '_': neither "..", nor the folder of the certificates. */
static int attach_path_plain(const char *path)
{
	for (const char *at = path;; at += strcspn(at, "/") + 1) {
		size_t n = strcspn(at, "/");

		if (n == 0 || at[0] == '.' || at[0] == '-')
			return 0;
		if (!at[n])
			return 1;
	}
}

static int attach_file(struct attaching *x, const json_t *one, json_t *out, struct err *e)
{
	static const char folder[] = BOX_SECRETS_FOLDER "/";
	const char *path = json_string_value(json_object_get(one, "path"));
	char full[sizeof(folder) + 200];

	path = path ? path : x->row.name;
	if (!strncmp(path, folder, sizeof(folder) - 1))
		path += sizeof(folder) - 1;
	if (!attach_path_plain(path))
		return err_set(e, ERR_INVALID,
			       "path: '%.80s' is not a plain path below " BOX_SECRETS_FOLDER, path);
	snprintf(full, sizeof(full), "%s%s", folder, path);
	if (attach_taken(x, "path", full))
		return err_set(e, ERR_INVALID, "path: '%.80s' is given twice", full);
	json_object_set_new(out, "path", json_string(full));
	x->files = 1;
	return 0;
}

/* The operator's rules, and those of the secret. */
static int attach_host_allowed(const struct attaching *x, const struct net_rule *host,
			       const json_t *limits, const char *text, struct err *e)
{
	const struct api_conf *conf = &x->call->api->conf;
	int allowed = json_array_size(limits) == 0;
	struct net_rule wide;
	json_t *one;
	size_t i;

	json_array_foreach((json_t *)limits, i, one)
	{
		if (net_rule_parse(&wide, json_string_value(one), e) == 0 &&
		    net_rule_covers(&wide, host) && (host->port || !wide.port))
			allowed = 1;
	}
	if (!allowed)
		return err_set(e, ERR_DENIED, "this secret is not for '%.100s'", text);
	for (unsigned k = 0; k < conf->nrules; k++)
		if (net_rule_covers(&conf->rules[k], host))
			return 0;
	return err_set(e, ERR_DENIED,
		       "this daemon permits no box to reach '%.100s' (egress.allow%s)", text,
		       conf->nrules ? "" : " is empty");
}

static int attach_hosts(struct attaching *x, const json_t *given, const json_t *limits, json_t *out,
			struct err *e)
{
	json_t *hosts = json_array(), *one;
	struct net_rule rule;
	char text[RULE_TEXT];
	size_t i;

	json_object_set_new(out, "hosts", hosts);
	json_array_foreach((json_t *)given, i, one)
	{
		if (net_rule_parse_host(&rule, json_string_value(one), e) < 0 ||
		    attach_host_allowed(x, &rule, limits, json_string_value(one), e) < 0)
			return err_in(e, "hosts[%zu]", i);
		json_array_append_new(hosts, json_string(net_rule_text(&rule, text)));
		json_array_append_new(x->hosts, json_string(text));
	}
	return json_array_size(hosts)
		       ? 0
		       : err_set(e, ERR_INVALID, "hosts: a placeholder needs at least one host");
}

static int attach_in(const json_t *given, json_t *out, struct err *e)
{
	json_t *in = given && json_array_size(given) ? json_deep_copy(given)
						     : json_pack("[s]", "header"),
	       *one;
	size_t i;

	json_object_set_new(out, "in", in);
	json_array_foreach(in, i, one)
	{
		const char *word = json_string_value(one);

		if (strcmp(word, "header") != 0 && strcmp(word, "query") != 0)
			return err_set(e, ERR_INVALID, "in: '%.40s' is neither header nor query",
				       word);
	}
	return 0;
}

static int attach_placeholder(struct attaching *x, const json_t *one, json_t *out, struct err *e)
{
	json_t *limits = json_loads(x->row.hosts, 0, NULL);
	const json_t *hosts = json_object_get(one, "hosts");
	char text[64] = "atoll-placeholder-";
	uint8_t random[16];
	int done;

	if (++x->placeholders > BOX_SECRETS_PLACEHOLDERS) {
		json_decref(limits);
		return err_set(e, ERR_LIMIT, "more than %d placeholders in one box",
			       BOX_SECRETS_PLACEHOLDERS);
	}
	done = attach_hosts(x, hosts ? hosts : limits, limits, out, e);
	json_decref(limits);
	if (done < 0 || attach_in(json_object_get(one, "in"), out, e) < 0 ||
	    id_random(random, sizeof(random), e) < 0)
		return -1;
	hex_encode(text + strlen(text), random, sizeof(random));
	json_object_set_new(out, "placeholder", json_string(text));
	return attach_variable(x, one, out, e);
}

static int attach_kind(struct attaching *x, const json_t *one, const char *as, json_t *out,
		       struct err *e)
{
	int placeholder = !strcmp(as, "placeholder"), file = !strcmp(as, "file");

	if (!placeholder && strcmp(x->row.hosts, "[]") != 0)
		return err_set(
			e, ERR_DENIED,
			"this secret is only for requests to its hosts: use it as a placeholder");
	if (!placeholder && (json_object_get(one, "hosts") || json_object_get(one, "in")))
		return err_set(e, ERR_INVALID, "hosts, in: only for a placeholder");
	if (!file && json_object_get(one, "path"))
		return err_set(e, ERR_INVALID, "path: only for a file");
	if (file && json_object_get(one, "variable"))
		return err_set(e, ERR_INVALID, "variable: not for a file");
	return placeholder ? attach_placeholder(x, one, out, e)
	       : file      ? attach_file(x, one, out, e)
			   : attach_variable(x, one, out, e);
}

static int attach_one(struct attaching *x, const json_t *one, struct err *e)
{
	const char *name = json_string_value(json_object_get(one, "name")),
		   *as = json_string_value(json_object_get(one, "as")), *why;
	auto_secret struct buf value = { 0 };
	json_t *out;
	int done;

	as = as ? as : "variable";
	if (vault_get(x->call->api->fleet.vault, x->call->who.team, name, &value, &x->row, e) < 0)
		return e->kind == ERR_NOT_FOUND
			       ? err_set(e, ERR_NOT_FOUND,
					 "there is no secret '%.64s'; type: atoll secret set %.64s",
					 name, name)
			       : -1;
	why = box_secrets_unfit(as, value.p, value.len);
	out = json_pack("{s:s, s:s}", "name", name, "as", as);
	done = why ? err_set(e, ERR_INVALID, "secret '%.64s' as a %s: %s", name, as, why)
		   : attach_kind(x, one, as, out, e);
	if (done == 0)
		json_array_append(x->done, out);
	json_decref(out);
	store_secret_fini(&x->row);
	return done;
}

static int attach_all(struct attaching *x, const json_t *list, struct err *e)
{
	const json_t *one;
	size_t i;

	if (!json_is_array(list))
		return err_set(e, ERR_INVALID, "must be an array");
	if (json_array_size(list) > BOX_SECRETS_MOST)
		return err_set(e, ERR_INVALID, "%zu are too many, at most %d",
			       json_array_size(list), BOX_SECRETS_MOST);
	json_array_foreach(list, i, one)
	{
		char at[32];

		snprintf(at, sizeof(at), "[%zu]", i);
		if (!json_is_object(one))
			return err_set(e, ERR_INVALID,
				       "must hold objects {name, as, variable, path, hosts, in}");
		if (fields_check(one, attach_fields, at, e) < 0)
			return -1;
		if (attach_one(x, one, e) < 0)
			return err_in(e, "%s", at);
	}
	return 0;
}

/* 1: a rule of the request is about the same host. It may permit only some requests. */
static int attach_host_named(const json_t *lines, const json_t *host)
{
	struct net_rule want, has;
	struct err ignored;
	const json_t *one;
	size_t i;

	if (net_rule_parse(&want, json_string_value(host), &ignored) < 0)
		return 0;
	json_array_foreach((json_t *)lines, i, one)
	{
		if (net_rule_parse(&has, json_string_value(one), &ignored) == 0 &&
		    has.kind == want.kind && strcmp(has.host, want.host) == 0)
			return 1;
	}
	return 0;
}

/* The hosts of placeholders can be reached without a request for them. */
static void attach_network(const struct attaching *x, struct store_box *row)
{
	json_t *all = row->network ? json_loads(row->network, 0, NULL) : json_array(), *one;
	size_t i;
	char *text;

	json_array_foreach(x->hosts, i, one) if (!attach_host_named(all, one))
		json_array_append(all, one);
	text = json_dumps(all, JSON_COMPACT);
	row->network = http_strdup(x->call->req, text, strlen(text));
	free(text);
	json_decref(all);
}

/* In base64, for the row. */
static int secrets_seal(struct call *c, const char *context, const char *bytes, size_t n,
			struct buf *out, struct err *e)
{
	auto_buf struct buf sealed = { 0 };

	if (vault_seal(c->api->fleet.vault, context, bytes, n, &sealed, e) < 0)
		return -1;
	base64_encode(out, sealed.p, sealed.len);
	return 0;
}

static int attach_ca(struct call *c, json_t *doc, struct err *e)
{
	auto_buf struct buf cert = { 0 }, coded = { 0 };
	auto_secret struct buf key = { 0 };

	if (box_ca_make(&cert, &key, e) < 0 ||
	    secrets_seal(c, BOX_SECRETS_CA_CONTEXT, key.p, key.len, &coded, e) < 0)
		return -1;
	json_object_set_new(
		doc, "ca", json_pack("{s:s, s:s}", "cert", buf_str(&cert), "key", buf_str(&coded)));
	return 0;
}

static int attach_row(struct attaching *x, struct box_spec *out, struct err *e)
{
	json_t *doc = json_pack("{s:O}", "attached", x->done);
	int done = x->placeholders ? attach_ca(x->call, doc, e) : 0;
	char *text = json_dumps(doc, JSON_COMPACT);

	json_decref(doc);
	out->row.secrets = http_strdup(x->call->req, text, strlen(text));
	free(text);
	if (x->placeholders)
		attach_network(x, &out->row);
	if (x->placeholders || x->files)
		out->flags |= WIRE_CREATE_SECRETS;
	return done;
}

int secrets_want(struct call *c, const json_t *list, struct box_spec *out, struct err *e)
{
	struct attaching x = { .call = c };
	int done;

	if (!list)
		return 0;
	x.done = json_array();
	x.hosts = json_array();
	done = attach_all(&x, list, e);
	if (done == 0 && json_array_size(x.done))
		done = attach_row(&x, out, e);
	json_decref(x.done);
	json_decref(x.hosts);
	return done < 0 ? err_in(e, "secrets") : 0;
}

/* ---- headers ---- */

static int headers_add(struct call *c, const json_t *one, json_t *out, struct err *e)
{
	const json_t *value = json_object_get(one, "value");
	auto_buf struct buf coded = { 0 };

	if (secrets_seal(c, BOX_SECRETS_HEADER_CONTEXT, json_string_value(value),
			 json_string_length(value), &coded, e) < 0)
		return -1;
	return json_array_append_new(
		out, json_pack("{s:O, s:O, s:s}", "host", json_object_get(one, "host"), "name",
			       json_object_get(one, "name"), "value", buf_str(&coded)));
}

int secrets_set_headers(struct call *c, const char *row_secrets, const json_t *headers, char **out,
			struct err *e)
{
	json_t *doc = row_secrets ? json_loads(row_secrets, 0, NULL) : NULL, *all = json_array();
	const json_t *one;
	int done = 0;
	size_t i;

	doc = doc ? doc : json_object();
	json_array_foreach(headers, i, one) if (done == 0) done = headers_add(c, one, all, e);
	if (done == 0 && json_array_size(all) && !json_object_get(doc, "ca"))
		done = attach_ca(c, doc, e);
	json_object_set_new(doc, "headers", all);
	if (done == 0)
		*out = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	return done;
}

json_t *secrets_of_row(const struct store_box *row)
{
	json_t *doc = row->secrets ? json_loads(row->secrets, 0, NULL) : NULL,
	       *all = json_incref(json_object_get(doc, "attached")), *one;
	size_t i;

	json_decref(doc);
	json_array_foreach(all, i, one) json_object_del(one, "placeholder");
	return all ? all : json_array();
}
