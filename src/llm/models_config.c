/* models_config.c - see models_config.h. */
#include "llm/models_config.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/toml.h"
#include "base/units.h"
#include "llm/dialect.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	NAME_MOST = 64,
	CA_MOST = 4 << 20,
	CONNECT_MS = 10000,
	SILENCE_MS = 120000,
	DEADLINE_MS = 600000,
	RETRIES = 2
};

struct models_reader {
	struct models_config *book;
	const char *file;
};

static int models_wrong(const struct models_reader *r, const struct toml_node *n, struct err *e,
			const char *what)
{
	return err_set(e, ERR_INVALID, "%.80s:%u: %s", r->file, n->line, what);
}

static char *models_copy(const char *text, size_t len)
{
	char *p = malloc(len + 1);

	if (!p)
		abort();
	memcpy(p, text, len);
	p[len] = 0;
	return p;
}

static void models_wipe(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

/* ---- members ---- */

/* A plain line of text: a value for a URL or a header must not contain a line end. */
static int take_text(const struct models_reader *r, const struct toml_node *n, char **out,
		     struct err *e)
{
	if (n->type != TOML_STRING || !n->len)
		return models_wrong(r, n, e, "a text is expected");
	for (size_t i = 0; i < n->len; i++)
		if ((unsigned char)n->text[i] <= ' ' || n->text[i] == 127)
			return models_wrong(r, n, e, "no blanks and no control characters, please");
	free(*out);
	*out = models_copy(n->text, n->len);
	return 0;
}

static int take_time(const struct models_reader *r, const struct toml_node *n, uint32_t *out,
		     struct err *e)
{
	if (n->type != TOML_STRING)
		return models_wrong(r, n, e, "a time is expected, like \"30s\"");
	return units_parse_time(n->text, out, e) < 0 ? err_in(e, "%.80s:%u", r->file, n->line) : 0;
}

static int take_count(const struct models_reader *r, const struct toml_node *n, int64_t most,
		      int64_t *out, struct err *e)
{
	if (n->type != TOML_INTEGER || n->integer < 0 || n->integer > most)
		return err_set(e, ERR_INVALID, "%.80s:%u: a number from 0 to %lld is expected",
			       r->file, n->line, (long long)most);
	*out = n->integer;
	return 0;
}

static int read_file(const char *path, size_t most, struct buf *out, struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = -1;

	if (fd < 0)
		return err_sys(e, "open %.120s", path);
	while (out->len <= most && (n = read(fd, buf_space(out, 16384), 16384)) > 0)
		buf_grew(out, (size_t)n);
	if (n < 0)
		return err_sys(e, "read %.120s", path);
	return out->len <= most
		       ? 0
		       : err_set(e, ERR_LIMIT, "%.120s has more than %zu bytes", path, most);
}

static void wipe_buf(struct buf *b)
{
	if (b->p)
		explicit_bzero(b->p, b->room);
	buf_fini(b);
}

/* ---- a provider ---- */

/* Between the scheme and the path. */
static int split_base(struct models_config_provider *p)
{
	int tls = strncmp(p->base, "https://", 8) == 0;
	const char *host = p->base + (tls ? 8 : 7), *end, *port;
	int bracket = *host == '[';
	unsigned long number;
	char *rest;

	if (!tls && strncmp(p->base, "http://", 7) != 0)
		return -1;
	host += bracket;
	end = host + strcspn(host, bracket ? "]" : ":/?#@");
	port = end + (bracket && *end == ']');
	if (end == host || end - host > 253 || (bracket && *end != ']'))
		return -1;
	for (const char *c = host; c < end; c++)
		if (!isalnum((unsigned char)*c) && !strchr(bracket ? ":." : "-._", *c))
			return -1;
	number = *port == ':' ? strtoul(port + 1, &rest, 10)
			      : (rest = (char *)port, tls ? 443u : 80u);
	if (number == 0 || number > 65535 || (*port == ':' && !isdigit((unsigned char)port[1])) ||
	    (*rest && *rest != '/') || strpbrk(rest, "?#"))
		return -1;
	p->host = models_copy(host, (size_t)(end - host));
	p->port = (uint16_t)number;
	return 0;
}

static int take_base(const struct models_reader *r, const struct toml_node *n,
		     struct models_config_provider *p, struct err *e)
{
	if (take_text(r, n, &p->base, e) < 0)
		return -1;
	for (size_t len = strlen(p->base); len && p->base[len - 1] == '/'; len--)
		p->base[len - 1] = 0;
	return split_base(p) == 0
		       ? 0
		       : models_wrong(r, n, e, "write it like \"https://api.example.org/v1\"");
}

static int take_dialect(const struct models_reader *r, const struct toml_node *n,
			struct models_config_provider *p, struct err *e)
{
	p->dialect = n->type == TOML_STRING ? dialect_find(n->text) : NULL;
	return p->dialect
		       ? 0
		       : models_wrong(
				 r, n, e,
				 "it is one of \"chat\", \"responses\", \"messages\", \"ollama\"");
}

static int have_key(const struct models_reader *r, const struct toml_node *n,
		    struct models_config_provider *p, const char *text, size_t len, struct err *e)
{
	if (p->key)
		return models_wrong(r, n, e, "one of key, key_file, key_env is enough");
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	if (!len || len > MODELS_CONFIG_KEY)
		return models_wrong(r, n, e, "there is no key, or one that is too long");
	for (size_t i = 0; i < len; i++) /* it becomes a header; the value is not printed */
		if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 127)
			return models_wrong(
				r, n, e, "the key has a blank or a byte that no header may have");
	p->key = models_copy(text, len);
	log_secret(p->key);
	return 0;
}

static int take_key(const struct models_reader *r, const struct toml_node *n,
		    struct models_config_provider *p, struct err *e)
{
	struct buf text = { 0 };
	const char *env;
	int rc;

	if (n->type != TOML_STRING || !n->len)
		return models_wrong(r, n, e, "a text is expected");
	if (strcmp(n->key, "key") == 0)
		return have_key(r, n, p, n->text, n->len, e);
	if (strcmp(n->key, "key_env") == 0) {
		env = getenv(n->text);
		return env ? have_key(r, n, p, env, strlen(env), e)
			   : err_set(e, ERR_NOT_FOUND, "%.80s:%u: %.60s is not in the environment",
				     r->file, n->line, n->text);
	}
	rc = read_file(n->text, MODELS_CONFIG_KEY + 2, &text, e) < 0
		     ? err_in(e, "%.80s:%u", r->file, n->line)
		     : have_key(r, n, p, buf_str(&text), text.len, e);
	wipe_buf(&text);
	return rc;
}

static int take_ca(const struct models_reader *r, const struct toml_node *n,
		   struct models_config_provider *p, struct err *e)
{
	struct buf pem = { 0 };

	if (n->type != TOML_STRING || read_file(n->text, CA_MOST, &pem, e) < 0) {
		buf_fini(&pem);
		return n->type != TOML_STRING ? models_wrong(r, n, e, "a file is expected")
					      : err_in(e, "%.80s:%u", r->file, n->line);
	}
	free(p->ca);
	p->ca_len = pem.len;
	p->ca = buf_steal(&pem);
	return 0;
}

static int take_schema(const struct models_reader *r, const struct toml_node *n,
		       struct models_config_provider *p, struct err *e)
{
	static const char *const words[] = {
		[SCHEMA_NATIVE] = "native", [SCHEMA_TOOL] = "tool", [SCHEMA_NONE] = "none"
	};

	for (unsigned i = 0; n->type == TOML_STRING && i < ARRAY_LEN(words); i++)
		if (strcmp(n->text, words[i]) == 0) {
			p->schema = (enum models_config_schema)i;
			return 0;
		}
	return models_wrong(r, n, e, "it is one of \"native\", \"tool\", \"none\"");
}

static int take_connect(const struct models_reader *r, const struct toml_node *n,
			struct models_config_provider *p, struct err *e)
{
	return take_time(r, n, &p->connect_ms, e);
}

static int take_silence(const struct models_reader *r, const struct toml_node *n,
			struct models_config_provider *p, struct err *e)
{
	return take_time(r, n, &p->silence_ms, e);
}

static int take_deadline(const struct models_reader *r, const struct toml_node *n,
			 struct models_config_provider *p, struct err *e)
{
	return take_time(r, n, &p->deadline_ms, e);
}

static int take_retries(const struct models_reader *r, const struct toml_node *n,
			struct models_config_provider *p, struct err *e)
{
	int64_t count = 0;

	if (take_count(r, n, 5, &count, e) < 0)
		return -1;
	p->retries = (unsigned)count;
	return 0;
}

static int take_old(const struct models_reader *r, const struct toml_node *n,
		    struct models_config_provider *p, struct err *e)
{
	if (n->type != TOML_BOOLEAN)
		return models_wrong(r, n, e, "true or false is expected");
	p->old_limit = n->truth;
	return 0;
}

static const struct {
	const char *key;
	int (*take)(const struct models_reader *r, const struct toml_node *n,
		    struct models_config_provider *p, struct err *e);
} provider_rows[] = {
	{ "dialect", take_dialect }, { "base", take_base },       { "key", take_key },
	{ "key_file", take_key },    { "key_env", take_key },     { "ca_file", take_ca },
	{ "connect", take_connect }, { "silence", take_silence }, { "deadline", take_deadline },
	{ "retries", take_retries }, { "schema", take_schema },   { "old_limit", take_old },
};

static int provider_member(const struct models_reader *r, const struct toml_node *n,
			   struct models_config_provider *p, struct err *e)
{
	for (unsigned i = 0; i < ARRAY_LEN(provider_rows); i++)
		if (strcmp(n->key, provider_rows[i].key) == 0)
			return provider_rows[i].take(r, n, p, e);
	return err_set(e, ERR_INVALID, "%.80s:%u: a provider has no '%.40s'", r->file, n->line,
		       n->key);
}

static int read_provider(const struct models_reader *r, const struct toml_node *t, struct err *e)
{
	struct models_config_provider *p = &r->book->providers[r->book->nproviders];

	if (t->type != TOML_TABLE)
		return models_wrong(r, t, e, "a provider is a table: [provider.name]");
	if (r->book->nproviders == MODELS_CONFIG_PROVIDERS)
		return models_wrong(r, t, e, "too many providers");
	r->book->nproviders++; /* from here on it is freed with the configuration */
	*p = (struct models_config_provider){ .name = models_copy(t->key, t->key_len),
					      .connect_ms = CONNECT_MS,
					      .silence_ms = SILENCE_MS,
					      .deadline_ms = DEADLINE_MS,
					      .retries = RETRIES };
	for (const struct toml_node *n = t->in.first; n; n = n->next)
		if (provider_member(r, n, p, e) < 0)
			return -1;
	if (!p->dialect || !p->base)
		return models_wrong(r, t, e, "a provider needs dialect and base");
	return 0;
}

/* ---- a model ---- */

static int take_price(const struct models_reader *r, const struct toml_node *t,
		      struct models_config_price *out, struct err *e)
{
	const struct {
		const char *key;
		double *to;
	} rows[] = { { "in", &out->in },
		     { "out", &out->out },
		     { "cache_read", &out->cache_read },
		     { "cache_write", &out->cache_write } };
	int has_read = 0, has_write = 0;

	if (t->type != TOML_TABLE)
		return models_wrong(r, t, e, "a price is a table: { in = 0.25, out = 2.0 }");
	for (const struct toml_node *n = t->in.first; n; n = n->next) {
		double value = n->type == TOML_FLOAT     ? n->real
			       : n->type == TOML_INTEGER ? (double)n->integer
							 : -1;
		unsigned i = 0;

		while (i < ARRAY_LEN(rows) && strcmp(n->key, rows[i].key) != 0)
			i++;
		if (i == ARRAY_LEN(rows) || !isfinite(value) || value < 0 || value > 1e6)
			return models_wrong(
				r, n, e,
				"a price has in, out, cache_read, cache_write: per million tokens");
		*rows[i].to = value;
		has_read |= i == 2;
		has_write |= i == 3;
	}
	/* Without this price all input costs the same. */
	if (!has_read)
		out->cache_read = out->in;
	if (!has_write)
		out->cache_write = out->in;
	return 0;
}

static const struct models_config_provider *provider_of(const struct models_config *b,
							const char *name)
{
	for (unsigned i = 0; i < b->nproviders; i++)
		if (strcmp(b->providers[i].name, name) == 0)
			return &b->providers[i];
	return NULL;
}

static int model_member(const struct models_reader *r, const struct toml_node *n,
			struct models_config_model *m, struct err *e)
{
	int64_t count = 0;

	if (strcmp(n->key, "name") == 0)
		return take_text(r, n, &m->name, e);
	if (strcmp(n->key, "price") == 0)
		return take_price(r, n, &m->price, e);
	if (strcmp(n->key, "max_tokens") == 0) {
		if (take_count(r, n, 10000000, &count, e) < 0)
			return -1;
		m->max_tokens = (uint32_t)count;
		return 0;
	}
	if (strcmp(n->key, "provider") == 0) {
		m->provider = n->type == TOML_STRING ? provider_of(r->book, n->text) : NULL;
		return m->provider ? 0 : models_wrong(r, n, e, "there is no such [provider.NAME]");
	}
	return err_set(e, ERR_INVALID, "%.80s:%u: a model has no '%.40s'", r->file, n->line,
		       n->key);
}

static int read_model(const struct models_reader *r, const struct toml_node *t, struct err *e)
{
	struct models_config_model *m = &r->book->models[r->book->nmodels];

	if (t->type != TOML_TABLE)
		return models_wrong(r, t, e, "a model is a table: [model.name]");
	if (r->book->nmodels == MODELS_CONFIG_MODELS)
		return models_wrong(r, t, e, "too many models");
	r->book->nmodels++;
	*m = (struct models_config_model){ .id = models_copy(t->key, t->key_len) };
	for (const struct toml_node *n = t->in.first; n; n = n->next)
		if (model_member(r, n, m, e) < 0)
			return -1;
	if (!m->provider || !m->name)
		return models_wrong(r, t, e, "a model needs provider and name");
	return 0;
}

static const struct models_config_model *model_of(const struct models_config *b, const char *id)
{
	for (unsigned i = 0; i < b->nmodels; i++)
		if (strcmp(b->models[i].id, id) == 0)
			return &b->models[i];
	return NULL;
}

static int read_role(const struct models_reader *r, const struct toml_node *t, struct err *e)
{
	struct models_config_role *role = &r->book->roles[r->book->nroles];

	if (t->type != TOML_ARRAY || !t->in.count || t->in.count > MODELS_CONFIG_LEVELS)
		return models_wrong(
			r, t, e, "a role is a list of one to four models: [\"small\", \"large\"]");
	if (r->book->nroles == MODELS_CONFIG_ROLES)
		return models_wrong(r, t, e, "too many roles");
	r->book->nroles++;
	*role = (struct models_config_role){ .name = models_copy(t->key, t->key_len) };
	for (const struct toml_node *n = t->in.first; n; n = n->next) {
		const struct models_config_model *m =
			n->type == TOML_STRING ? model_of(r->book, n->text) : NULL;

		if (!m)
			return models_wrong(r, n, e, "there is no such [model.NAME]");
		role->levels[role->n++] = m;
	}
	return 0;
}

/* ---- the whole ---- */

static const struct {
	const char *key;
	int (*read)(const struct models_reader *r, const struct toml_node *t, struct err *e);
} sections[] = {
	/* in dependency order */
	{ "provider", read_provider },
	{ "model", read_model },
	{ "role", read_role },
};

static int check_name(const struct models_reader *r, const struct toml_node *n, struct err *e)
{
	size_t i = 0;

	while (i < n->key_len && (isalnum((unsigned char)n->key[i]) || strchr("-_.", n->key[i])))
		i++;
	if (!n->key_len || n->key_len > NAME_MOST || i < n->key_len ||
	    !isalnum((unsigned char)n->key[0]))
		return models_wrong(r, n, e, "a name is letters, digits, '-', '_', '.'");
	return 0;
}

static int read_section(const struct models_reader *r, const struct toml_node *root, unsigned i,
			struct err *e)
{
	const struct toml_node *t = toml_get(root, sections[i].key);

	if (!t)
		return 0;
	if (t->type != TOML_TABLE)
		return models_wrong(r, t, e, "a table is expected");
	for (const struct toml_node *n = t->in.first; n; n = n->next)
		if (check_name(r, n, e) < 0 || sections[i].read(r, n, e) < 0)
			return -1;
	return 0;
}

static int read_all(const struct models_reader *r, const struct toml_node *root, struct err *e)
{
	for (const struct toml_node *n = root->in.first; n; n = n->next) {
		unsigned i = 0;

		while (i < ARRAY_LEN(sections) && strcmp(n->key, sections[i].key) != 0)
			i++;
		if (i == ARRAY_LEN(sections))
			return err_set(e, ERR_INVALID,
				       "%.80s:%u: '%.40s' is not provider, model or role", r->file,
				       n->line, n->key);
	}
	for (unsigned i = 0; i < ARRAY_LEN(sections); i++)
		if (read_section(r, root, i, e) < 0)
			return -1;
	return r->book->nmodels
		       ? 0
		       : err_set(e, ERR_INVALID, "%.80s: there is no [model.NAME]", r->file);
}

/* Wipes the copies of keys in the parser. */
static void wipe_tree(const struct toml_node *n)
{
	for (; n; n = n->next) {
		if (n->type == TOML_TABLE || n->type == TOML_ARRAY)
			wipe_tree(n->in.first);
		else if (n->type == TOML_STRING && n->text)
			explicit_bzero((char *)(uintptr_t)n->text, n->len);
	}
}

int models_config_parse(struct models_config *out, const char *name, const char *text, size_t len,
			struct err *e)
{
	struct models_reader r = { .book = out, .file = name };
	struct toml doc;
	int rc;

	memset(out, 0, sizeof(*out));
	if (toml_parse(&doc, name, text, len, e) < 0)
		return -1;
	rc = read_all(&r, doc.root, e);
	wipe_tree(doc.root);
	toml_fini(&doc);
	if (rc < 0)
		models_config_fini(out);
	return rc;
}

int models_config_load(struct models_config *out, const char *path, struct err *e)
{
	struct buf text = { 0 };
	int rc = read_file(path, TOML_MAX_BYTES, &text, e);

	if (rc == 0)
		rc = models_config_parse(out, path, buf_str(&text), text.len, e);
	wipe_buf(&text);
	return rc;
}

void models_config_fini(struct models_config *b)
{
	for (unsigned i = 0; i < b->nproviders; i++) {
		struct models_config_provider *p = &b->providers[i];

		models_wipe(&p->key);
		free(p->name);
		free(p->base);
		free(p->host);
		free(p->ca);
	}
	for (unsigned i = 0; i < b->nmodels; i++) {
		free(b->models[i].id);
		free(b->models[i].name);
	}
	for (unsigned i = 0; i < b->nroles; i++)
		free(b->roles[i].name);
	memset(b, 0, sizeof(*b));
}

const struct models_config_model *models_config_find(const struct models_config *b,
						     const char *model, const char *role,
						     unsigned level, struct err *e)
{
	const struct models_config_model *m = model ? model_of(b, model) : NULL;

	if (model && !m)
		err_set(e, ERR_NOT_FOUND, "there is no model '%.64s'", model);
	if (model)
		return m;
	for (unsigned i = 0; role && i < b->nroles; i++)
		if (strcmp(b->roles[i].name, role) == 0)
			return b->roles[i]
				.levels[level < b->roles[i].n ? level : b->roles[i].n - 1];
	err_set(e, ERR_NOT_FOUND, "no model has the role '%.64s'", role ? role : "");
	return NULL;
}

static json_t *price_json(const struct models_config_price *p)
{
	return json_pack("{s:f, s:f, s:f, s:f}", "in", p->in, "out", p->out, "cache_read",
			 p->cache_read, "cache_write", p->cache_write);
}

json_t *models_config_public(const struct models_config *b)
{
	json_t *models = json_array(), *roles = json_object();

	for (unsigned i = 0; i < b->nmodels; i++) {
		const struct models_config_model *m = &b->models[i];

		json_array_append_new(models,
				      json_pack("{s:s, s:s, s:s, s:s, s:o}", "id", m->id, "name",
						m->name, "provider", m->provider->name, "dialect",
						m->provider->dialect->name, "price",
						price_json(&m->price)));
	}
	for (unsigned i = 0; i < b->nroles; i++) {
		json_t *levels = json_array();

		for (unsigned k = 0; k < b->roles[i].n; k++)
			json_array_append_new(levels, json_string(b->roles[i].levels[k]->id));
		json_object_set_new(roles, b->roles[i].name, levels);
	}
	return json_pack("{s:o, s:o}", "models", models, "roles", roles);
}

static void models_mix(struct sha256 *h, const void *bytes, size_t n)
{
	uint64_t len = n;

	sha256_add(h, &len, sizeof(len)); /* so that "ab","c" is not "a","bc" */
	if (n)
		sha256_add(h, bytes, n);
}

static void mix_text(struct sha256 *h, const char *text)
{
	models_mix(h, text, text ? strlen(text) : 0);
}

void models_config_digest(const struct models_config *b, uint8_t out[32])
{
	struct sha256 h;
	json_t *open = models_config_public(b);
	char *text = json_dumps(open, JSON_COMPACT);

	sha256_init(&h);
	mix_text(&h, text);
	for (unsigned i = 0; i < b->nproviders; i++) {
		const struct models_config_provider *p = &b->providers[i];
		const uint32_t numbers[] = { p->connect_ms, p->silence_ms, p->deadline_ms,
					     p->retries,    p->schema,     (uint32_t)p->old_limit };

		mix_text(&h, p->name);
		mix_text(&h, p->base);
		mix_text(&h, p->key);
		models_mix(&h, p->ca, p->ca_len);
		models_mix(&h, numbers, sizeof(numbers));
	}
	for (unsigned i = 0; i < b->nmodels; i++)
		models_mix(&h, &b->models[i].max_tokens, sizeof(b->models[i].max_tokens));
	sha256_end(&h, out);
	free(text);
	json_decref(open);
}
