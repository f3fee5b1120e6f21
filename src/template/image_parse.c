/* image_parse.c - see image_parse.h. */
#include "template/image_parse.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

enum {
	ENV_MOST = 512,
	ENV_BYTES = 32 * 1024,
	WORDS_MOST = 256,
	WORD_BYTES = 8192,
	PORTS_MOST = 64,
	LABELS_MOST = 256,
	TEXT_BYTES = 1024
};

/* ---- references ---- */

static int image_is_host(const char *text, size_t n)
{
	return (n == 9 && !memcmp(text, "localhost", 9)) || memchr(text, '.', n) ||
	       memchr(text, ':', n);
}

static int image_host_ok(const char *text, size_t n)
{
	const char *colon = memchr(text, ':', n);
	size_t name = colon ? (size_t)(colon - text) : n;

	if (!name || name > 200 || text[0] == '-' || text[0] == '.')
		return 0;
	for (size_t i = 0; i < name; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr(".-", text[i]))
			return 0;
	if (!colon)
		return 1;
	for (size_t i = name + 1; i < n; i++)
		if (!isdigit((unsigned char)text[i]))
			return 0;
	return n - name > 1 && n - name <= 6;
}

/* Parts of lower case letters and digits, with . _ - between them. */
static int image_name_ok(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int edge = i == 0 || i + 1 == n || text[i - 1] == '/' || text[i + 1] == '/';

		if (islower((unsigned char)text[i]) || isdigit((unsigned char)text[i]))
			continue;
		if (edge || !strchr("._-/", text[i]))
			return 0;
	}
	return n > 0;
}

static int image_tag_ok(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_' &&
		    (i == 0 || !strchr(".-", text[i])))
			return 0;
	return n > 0 && n <= 128;
}

static int image_digest_ok(const char *text)
{
	return !strncmp(text, "sha256:", 7) && strlen(text) == IMAGE_DIGEST &&
	       strspn(text + 7, "0123456789abcdef") == STORE_HASH;
}

static int image_bad_reference(const char *text, struct err *e)
{
	return err_set(e, ERR_INVALID,
		       "'%.120s' is not the reference of an image: [HOST[:PORT]/]NAME[:TAG] or "
		       "NAME@sha256:DIGEST, in lower case",
		       text);
}

int image_reference(const struct image_conf *conf, const char *text, char out[512], struct err *e)
{
	const char *at, *slash, *rest, *digest, *tag;
	size_t host = 0, name;

	if (strlen(text) > 300)
		return image_bad_reference(text, e);
	at = strncmp(text, "docker://", 9) == 0 ? text + 9 : text;
	slash = strchr(at, '/');
	if (slash && image_is_host(at, (size_t)(slash - at)))
		host = (size_t)(slash - at);
	rest = host ? slash + 1 : at;
	digest = strchr(rest, '@');
	name = digest ? (size_t)(digest - rest) : strlen(rest);
	tag = memchr(rest, ':', name);
	if (tag)
		name = (size_t)(tag - rest);
	if ((host && !image_host_ok(at, host)) || !image_name_ok(rest, name) ||
	    (digest && !image_digest_ok(digest + 1)) ||
	    (tag && !image_tag_ok(tag + 1, (digest ? (size_t)(digest - tag) : strlen(tag)) - 1)))
		return image_bad_reference(text, e);
	if (!host && !conf->mirror)
		return err_set(e, ERR_DENIED,
			       "'%.100s' has no host, and templates.mirror is not set: name the "
			       "registry, as in HOST/%.60s",
			       text, rest);
	/* skopeo refuses a name with both a tag and a digest; the digest decides. */
	if (host)
		snprintf(out, 512, "%.*s/", (int)host, at);
	else
		snprintf(out, 512, "%.180s/%s", conf->mirror,
			 memchr(rest, '/', name) ? "" : "library/");
	snprintf(out + strlen(out), 512 - strlen(out), "%.*s%s", (int)name, rest,
		 digest ? digest
		 : tag  ? tag
			: ":latest");
	return 0;
}

void image_host(const char *reference, char out[256])
{
	snprintf(out, 256, "%.*s", (int)strcspn(reference, "/"), reference);
}

const char *image_architecture(void)
{
	static const struct {
		const char *machine, *name;
	} known[] = { { "x86_64", "amd64" },
		      { "aarch64", "arm64" },
		      { "riscv64", "riscv64" },
		      { "ppc64le", "ppc64le" },
		      { "s390x", "s390x" } };
	static struct utsname u;

	uname(&u);
	for (unsigned i = 0; i < ARRAY_LEN(known); i++)
		if (!strcmp(u.machine, known[i].machine))
			return known[i].name;
	return u.machine;
}

/* ---- JSON ---- */

static int image_blob_parse(const json_t *doc, const char *what, struct image_blob *out,
			    struct err *e)
{
	const char *digest = json_string_value(json_object_get(doc, "digest"));
	const json_t *size = json_object_get(doc, "size");

	if (!digest || !image_digest_ok(digest))
		return err_set(e, ERR_INVALID, "damaged image: its %s has no SHA-256 digest", what);
	if (!json_is_integer(size) || json_integer_value(size) < 0)
		return err_set(e, ERR_INVALID, "damaged image: its %s has no size", what);
	snprintf(out->digest, sizeof(out->digest), "%s", digest + 7);
	out->size = (uint64_t)json_integer_value(size);
	return 0;
}

static json_t *image_load(const char *text, size_t n, const char *what, struct err *e)
{
	json_error_t bad;
	json_t *doc = json_loadb(text, n, JSON_REJECT_DUPLICATES, &bad);

	if (json_is_object(doc))
		return doc;
	json_decref(doc);
	err_set(e, ERR_INVALID, "damaged image: its %s is not a JSON object (%.80s)", what,
		doc ? "" : bad.text);
	return NULL;
}

static void image_unload(json_t **doc)
{
	json_decref(*doc);
}
#define auto_json __attribute__((cleanup(image_unload))) json_t

int image_parse_index(const char *text, size_t n, struct image_blob *out, struct err *e)
{
	auto_json *doc = image_load(text, n, "index", e);
	const json_t *list = json_object_get(doc, "manifests");

	if (!doc)
		return -1;
	if (json_array_size(list) != 1)
		return err_set(e, ERR_INVALID,
			       "damaged image: its index has %zu manifests, not one",
			       json_array_size(list));
	return image_blob_parse(json_array_get(list, 0), "manifest", out, e);
}

int image_parse_manifest(const char *text, size_t n, struct image_manifest *out, struct err *e)
{
	static const char layer[] = "application/vnd.oci.image.layer.";
	auto_json *doc = image_load(text, n, "manifest", e);
	const json_t *list = json_object_get(doc, "layers"), *one;
	size_t i;

	if (!doc ||
	    image_blob_parse(json_object_get(doc, "config"), "configuration", &out->config, e) < 0)
		return -1;
	if (!json_is_array(list) || json_array_size(list) > IMAGE_LAYERS)
		return err_set(e, ERR_LIMIT, "the image has %zu layers; %d are possible",
			       json_array_size(list), IMAGE_LAYERS);
	out->nlayers = (unsigned)json_array_size(list);
	json_array_foreach(list, i, one)
	{
		const char *type = json_string_value(json_object_get(one, "mediaType"));

		if (!type || strncmp(type, layer, strlen(layer)) != 0 || strstr(type, "encrypted"))
			return err_set(e, ERR_INVALID, "layer %zu has an unknown type: %.80s",
				       i + 1, type ? type : "none");
		if (image_blob_parse(one, "layer", &out->layer[i], e) < 0)
			return -1;
	}
	return 0;
}

/* A text without NUL and of a bounded length; "" if there is none. */
static const char *image_text(const json_t *doc, const char *name, struct err *e)
{
	const json_t *v = json_object_get(doc, name);

	if (!v || json_is_null(v))
		return "";
	if (!json_is_string(v) || json_string_length(v) > TEXT_BYTES)
		return err_set(e, ERR_INVALID, "the image's %s is not a text of at most %d bytes",
			       name, TEXT_BYTES),
		       NULL;
	return json_string_value(v);
}

static json_t *image_words(const json_t *doc, const char *name, struct err *e)
{
	const json_t *v = json_object_get(doc, name), *one;
	json_t *out;
	size_t i;

	if (!v || json_is_null(v))
		return json_array();
	if (!json_is_array(v) || json_array_size(v) > WORDS_MOST)
		goto bad;
	json_array_foreach(v, i, one) if (!json_is_string(one) ||
					  json_string_length(one) > WORD_BYTES) goto bad;
	out = json_copy((json_t *)v);
	return out;
bad:
	err_set(e, ERR_INVALID, "the image's %s is not a list of at most %d words", name,
		WORDS_MOST);
	return NULL;
}

static json_t *image_env(const json_t *doc, struct err *e)
{
	const json_t *v = json_object_get(doc, "Env"), *one;
	json_t *out = json_object();
	char name[256];
	size_t i;

	if (v && !json_is_null(v) && (!json_is_array(v) || json_array_size(v) > ENV_MOST))
		goto bad;
	json_array_foreach(v, i, one)
	{
		const char *text = json_string_value(one),
			   *equals = text ? strchr(text, '=') : NULL;

		if (!text || json_string_length(one) > ENV_BYTES || equals == text ||
		    (equals && equals - text >= (ptrdiff_t)sizeof(name)))
			goto bad;
		if (!equals)
			continue; /* a name without a value */
		snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
		json_object_set_new(out, name, json_string(equals + 1));
	}
	return out;
bad:
	json_decref(out);
	err_set(e, ERR_INVALID, "the image's Env is not a list of at most %d NAME=value", ENV_MOST);
	return NULL;
}

static json_t *image_ports(json_t *doc, struct err *e)
{
	json_t *v = json_object_get(doc, "ExposedPorts"), *out = json_array();
	const char *key;
	json_t *one;
	size_t n = 0;

	json_object_foreach(v, key, one)
	{
		char *end;
		long port = strtol(key, &end, 10);

		if (port < 1 || port > 65535 || (*end && *end != '/') || ++n > PORTS_MOST) {
			json_decref(out);
			err_set(e, ERR_INVALID, "the image's ExposedPorts has '%.40s'", key);
			return NULL;
		}
		if (!*end || !strcmp(end, "/tcp"))
			json_array_append_new(out, json_integer(port));
	}
	return out;
}

static json_t *image_labels(json_t *doc, struct err *e)
{
	json_t *v = json_object_get(doc, "Labels"), *out = json_object(), *one;
	const char *key;

	json_object_foreach(v, key, one)
	{
		if (!json_is_string(one) || strlen(key) > TEXT_BYTES ||
		    json_string_length(one) > WORD_BYTES || json_object_size(v) > LABELS_MOST) {
			json_decref(out);
			err_set(e, ERR_INVALID,
				"the image's Labels has an entry that is no text, or "
				"too many");
			return NULL;
		}
		json_object_set(out, key, one);
	}
	return out;
}

static json_t *image_settings(json_t *config, struct err *e)
{
	const char *user = image_text(config, "User", e),
		   *workdir = user ? image_text(config, "WorkingDir", e) : NULL;
	json_t *env = workdir ? image_env(config, e) : NULL,
	       *cmd = env ? image_words(config, "Cmd", e) : NULL,
	       *entrypoint = cmd ? image_words(config, "Entrypoint", e) : NULL,
	       *ports = entrypoint ? image_ports(config, e) : NULL,
	       *labels = ports ? image_labels(config, e) : NULL;

	if (labels)
		return json_pack("{s:o, s:s, s:s, s:o, s:o, s:o, s:o}", "env", env, "user", user,
				 "workdir", *workdir ? workdir : "/", "cmd", cmd, "entrypoint",
				 entrypoint, "ports", ports, "labels", labels);
	json_decref(env);
	json_decref(cmd);
	json_decref(entrypoint);
	json_decref(ports);
	return NULL;
}

static int image_diffs(const json_t *doc, unsigned nlayers, char (*out)[STORE_HASH + 1],
		       struct err *e)
{
	const json_t *list = json_object_get(json_object_get(doc, "rootfs"), "diff_ids"), *one;
	size_t i;

	if (json_array_size(list) != nlayers)
		return err_set(e, ERR_INVALID,
			       "damaged image: %u layers in its manifest, %zu in its configuration",
			       nlayers, json_array_size(list));
	json_array_foreach(list, i, one)
	{
		const char *digest = json_string_value(one);

		if (!digest || !image_digest_ok(digest))
			return err_set(e, ERR_INVALID, "damaged image: layer %zu has no diff id",
				       i + 1);
		snprintf(out[i], STORE_HASH + 1, "%s", digest + 7);
	}
	return 0;
}

int image_parse_config(const char *text, size_t n, unsigned nlayers, json_t **out_config,
		       char (*out_diff)[STORE_HASH + 1], struct err *e)
{
	auto_json *doc = image_load(text, n, "configuration", e);
	const char *os = json_string_value(json_object_get(doc, "os")),
		   *arch = json_string_value(json_object_get(doc, "architecture"));

	if (!doc)
		return -1;
	if (!os || !arch || strcmp(os, "linux") != 0 || strcmp(arch, image_architecture()) != 0)
		return err_set(e, ERR_INVALID,
			       "the image is for %.40s/%.40s, and this host is "
			       "linux/%s: use an image for it",
			       os ? os : "?", arch ? arch : "?", image_architecture());
	if (image_diffs(doc, nlayers, out_diff, e) < 0)
		return -1;
	*out_config = image_settings(json_object_get(doc, "config"), e);
	return *out_config ? 0 : -1;
}

/* ---- messages of skopeo ---- */

static const struct {
	const char *words; /* any of these, separated by | */
	enum err_kind kind;
	const char *message; /* %s: the registry, then the reference */
} image_messages[] = {
	{ "no image found in manifest list|no image found in image index|does not match platform",
	  ERR_INVALID, "registry %s has no image of %s for this host's processor" },
	{ "gave HTTP response to HTTPS client", ERR_SYS,
	  "registry %s has no TLS, so %s was not pulled: add its host to "
	  "templates.insecure_registries, if you trust the network to it" },
	{ "toomanyrequests|too many requests|429", ERR_LIMIT,
	  "registry %s limits the number of requests (429), so %s was not pulled: try again later, "
	  "or with credentials" },
	{ "Digest did not match|digest mismatch|Digest for|doesn't match|does not match digest",
	  ERR_CONFLICT,
	  "registry %s sent content of %s with another digest than its manifest has" },
	{ "unexpected EOF|happened during read|connection reset|Size mismatch|reached EOF", ERR_SYS,
	  "registry %s ended the download of %s in the middle: try again" },
	{ "unauthorized|authentication required|401|403 (Forbidden)|access to the resource is denied|"
	  "no basic auth credentials",
	  ERR_DENIED,
	  "registry %s does not permit to pull %s (401): check the name, or pass the user and password "
	  "of an account that may" },
	{ "manifest unknown|name unknown|repository name not known|404 (Not Found)|StatusCode: 404",
	  ERR_NOT_FOUND, "registry %s has no image %s: check name and tag" },
	{ "x509:|certificate", ERR_SYS,
	  "the certificate of registry %s is not valid for this host, so %s was not pulled" },
	{ "no such host|connection refused|i/o timeout|proxyconnect|no route to host|dial tcp",
	  ERR_SYS, "registry %s cannot be reached, so %s was not pulled" },
};

/* A number is a status only where a space is before it: it may also be part of a port or a digest. */
static int image_has_word(const char *said, const char *word)
{
	const char *at = said;

	while ((at = strcasestr(at, word)) != NULL) {
		if (!isdigit((unsigned char)*word) ||
		    (at > said && at[-1] == ' ' && !isalnum((unsigned char)at[strlen(word)])))
			return 1;
		at++;
	}
	return 0;
}

static int image_has_words(const char *said, const char *words)
{
	char one[128];

	for (; *words; words += strcspn(words, "|"), words += *words == '|') {
		snprintf(one, sizeof(one), "%.*s", (int)strcspn(words, "|"), words);
		if (image_has_word(said, one))
			return 1;
	}
	return 0;
}

/* The text of skopeo's last message. */
static void image_last(const char *said, char *out, size_t size)
{
	const char *at = said, *last = NULL;

	while ((at = strstr(at, "msg=\"")) != NULL)
		last = at += 5;
	if (!last) {
		size_t n = strlen(said);

		while (n && said[n - 1] == '\n')
			n--;
		for (at = said + n; at > said && at[-1] != '\n'; at--)
			;
		snprintf(out, size, "%.*s", (int)(said + n - at), at);
		return;
	}
	snprintf(out, size, "%.*s", (int)strcspn(last, "\n"), last);
	if (*out && out[strlen(out) - 1] == '"')
		out[strlen(out) - 1] = 0;
}

void image_explain_archive(const char *name, const char *said, struct err *out)
{
	char last[140];

	image_last(said, last, sizeof(last));
	err_set(out, ERR_INVALID,
		"%.60s is not an image: an OCI layout or the output of docker save, as tar (%s)",
		name, last);
}

void image_explain(const char *reference, const char *said, const char *verdict, const char *why,
		   struct err *out)
{
	char host[256], last[160];

	image_host(reference, host);
	if (verdict && !strcmp(verdict, "denied")) {
		err_set(out, ERR_DENIED,
			"%.80s is not in templates.registries, so %.80s was not pulled: add it there",
			why, reference);
		return;
	}
	for (unsigned i = 0; i < ARRAY_LEN(image_messages); i++) {
		if (!image_has_words(said, image_messages[i].words))
			continue;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		err_set(out, image_messages[i].kind, image_messages[i].message, host, reference);
#pragma GCC diagnostic pop
		return;
	}
	if (verdict) {
		err_set(out, ERR_SYS, "registry %.80s cannot be reached (%.100s)", host, why);
		return;
	}
	image_last(said, last, sizeof(last));
	err_set(out, ERR_SYS, "%.60s was not pulled: skopeo: %.150s", reference, last);
}
