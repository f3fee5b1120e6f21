/* image_parse_test.c - references of images, and what the server reads of an image. */
#include "template/image_parse.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "tap.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct image_conf plain, mirrored = { .mirror = "mirror.test:5000/hub" };
static struct err e;

TEST(a_reference_is_completed_with_tag_and_mirror)
{
	static const struct {
		const char *text, *whole;
	} rows[] = {
		{ "registry.test/app", "registry.test/app:latest" },
		{ "registry.test:5000/team/app:1.2", "registry.test:5000/team/app:1.2" },
		{ "localhost/app", "localhost/app:latest" },
		{ "docker://registry.test/app:v1", "registry.test/app:v1" },
		{ "registry.test/app@sha256:" HEX, "registry.test/app@sha256:" HEX },
		{ "registry.test/app:v1@sha256:" HEX, "registry.test/app@sha256:" HEX },
		{ "debian", "mirror.test:5000/hub/library/debian:latest" },
		{ "debian:12", "mirror.test:5000/hub/library/debian:12" },
		{ "team/app:v1", "mirror.test:5000/hub/team/app:v1" },
	};
	char out[512];

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK_INT(image_reference(&mirrored, rows[i].text, out, &e), 0);
		CHECK_STR(out, rows[i].whole);
	}
}

TEST(a_name_without_a_host_needs_a_mirror)
{
	char out[512];

	CHECK_INT(image_reference(&plain, "debian:12", out, &e), -1);
	CHECK_INT(e.kind, ERR_DENIED);
	CHECK(strstr(e.msg, "templates.mirror"));
	CHECK_INT(image_reference(&plain, "registry.test/debian:12", out, &e), 0);
}

TEST(other_texts_are_not_references)
{
	static const char *const bad[] = { "",
					   "-app",
					   "--help",
					   "App",
					   "a b",
					   "a;b",
					   "a\nb",
					   "registry.test/",
					   "registry.test//app",
					   "registry.test/app/",
					   "registry.test/.app",
					   "registry.test/../app",
					   "registry.test:/app",
					   "registry.test:123456/app",
					   "registry.test:5x/app",
					   "-registry.test/app",
					   "user@registry.test/app",
					   "registry.test/app:",
					   "registry.test/app:-v",
					   "registry.test/app:a:b",
					   "registry.test/app@sha256:12",
					   "registry.test/app@md5:" HEX,
					   "registry.test/app@sha256:" HEX "0",
					   "oci:/etc",
					   "docker-archive:/etc/passwd",
					   "http://registry.test/app",
					   "/etc/passwd" };
	static char long_one[400];
	char out[512];

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		if (image_reference(&mirrored, bad[i], out, &e) == 0)
			printf("# accepted: %s\n", bad[i]);
		CHECK_INT(image_reference(&mirrored, bad[i], out, &e), -1);
		CHECK_INT(e.kind, ERR_INVALID);
	}
	memset(long_one, 'a', sizeof(long_one) - 1);
	CHECK_INT(image_reference(&mirrored, long_one, out, &e), -1);
}

TEST(an_index_names_one_manifest)
{
	static const char good[] =
		"{\"manifests\": [{\"digest\": \"sha256:" HEX "\", \"size\": 7}]}";
	static const char *const bad[] = {
		"",
		"[]",
		"{",
		"{}",
		"{\"manifests\": []}",
		"{\"manifests\": [{}, {}]}",
		"{\"manifests\": {\"digest\": 1}}",
		"{\"manifests\": [{\"digest\": \"sha256:12\", \"size\": 7}]}",
		"{\"manifests\": [{\"digest\": \"sha256:../../../../../../../../../../../../../etc/"
		"passwd0123456789\", \"size\": 7}]}",
		"{\"manifests\": [{\"digest\": \"sha256:" HEX "\", \"size\": -1}]}",
		"{\"manifests\": [{\"digest\": \"sha256:" HEX "\", \"size\": \"7\"}]}",
		"{\"manifests\": [{\"digest\": \"sha512:" HEX "\", \"size\": 7}]}",
	};
	struct image_blob blob;

	CHECK_INT(image_parse_index(good, strlen(good), &blob, &e), 0);
	CHECK_STR(blob.digest, HEX);
	CHECK_INT(blob.size, 7);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_INT(image_parse_index(bad[i], strlen(bad[i]), &blob, &e), -1);
}

#define BLOB(type, size)                                                                           \
	"{\"mediaType\": \"" type "\", \"digest\": \"sha256:" HEX "\", \"size\": " #size "}"
#define LAYER(size) BLOB("application/vnd.oci.image.layer.v1.tar+gzip", size)

TEST(a_manifest_has_a_configuration_and_layers)
{
	static const char good[] =
		"{\"config\": " BLOB("x", 5) ", \"layers\": [" LAYER(1) ", " LAYER(2) "]}";
	static const char *const bad[] = {
		"{\"layers\": [" LAYER(1) "]}",
		"{\"config\": " BLOB("x", 5) "}",
		"{\"config\": " BLOB("x", 5) ", \"layers\": [7]}",
		"{\"config\": " BLOB("x", 5) ", \"layers\": [" BLOB("text/plain", 1) "]}",
		"{\"config\": " BLOB("x", 5) ", \"layers\": [" BLOB(
			"application/vnd.oci.image.layer.v1.tar+gzip+encrypted", 1) "]}",
	};
	auto_buf struct buf many = { 0 };
	static struct image_manifest m;

	CHECK_INT(image_parse_manifest(good, strlen(good), &m, &e), 0);
	CHECK_INT(m.nlayers, 2);
	CHECK_INT(m.layer[1].size, 2);
	CHECK_INT(m.config.size, 5);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_INT(image_parse_manifest(bad[i], strlen(bad[i]), &m, &e), -1);
	buf_puts(&many, "{\"config\": " BLOB("x", 5) ", \"layers\": [" LAYER(1));
	for (unsigned i = 0; i < IMAGE_LAYERS; i++)
		buf_puts(&many, ", " LAYER(1));
	buf_puts(&many, "]}");
	CHECK_INT(image_parse_manifest(many.p, many.len, &m, &e), -1);
	CHECK_INT(e.kind, ERR_LIMIT);
}

static int config(const char *inside, const char *arch, json_t **out)
{
	static char diff[IMAGE_LAYERS][STORE_HASH + 1];
	auto_buf struct buf text = { 0 };

	buf_printf(&text,
		   "{\"os\": \"linux\", \"architecture\": \"%s\", \"config\": %s, "
		   "\"rootfs\": {\"diff_ids\": [\"sha256:" HEX "\"]}}",
		   arch, inside);
	return image_parse_config(text.p, text.len, 1, out, diff, &e);
}

TEST(a_configuration_becomes_settings)
{
	json_t *out = NULL, *same;

	CHECK_INT(
		config("{\"Env\": [\"PATH=/bin\", \"A=b=c\", \"E=\", \"NONE\"], \"User\": \"app:1\","
		       " \"Cmd\": [\"x\", \"y\"], \"ExposedPorts\": {\"80/tcp\": {}, \"53/udp\": {}},"
		       " \"Labels\": {\"a\": \"b\"}, \"Volumes\": {\"/x\": {}}}",
		       image_architecture(), &out),
		0);
	same = json_pack("{s:{s:s, s:s, s:s}, s:s, s:s, s:[s, s], s:[], s:[i], s:{s:s}}", "env",
			 "PATH", "/bin", "A", "b=c", "E", "", "user", "app:1", "workdir", "/",
			 "cmd", "x", "y", "entrypoint", "ports", 80, "labels", "a", "b");
	CHECK(json_equal(out, same));
	json_decref(out);
	json_decref(same);
	CHECK_INT(config("{}", image_architecture(), &out), 0);
	CHECK_INT(json_object_size(out), 7);
	json_decref(out);
	CHECK_INT(config("null", image_architecture(), &out), 0);
	json_decref(out);
}

TEST(a_damaged_configuration_is_an_error)
{
	static const char *const bad[] = { "{\"Env\": {}}",
					   "{\"Env\": [7]}",
					   "{\"Env\": [\"=x\"]}",
					   "{\"User\": 7}",
					   "{\"WorkingDir\": []}",
					   "{\"Cmd\": \"sh\"}",
					   "{\"Entrypoint\": [{}]}",
					   "{\"ExposedPorts\": {\"0/tcp\": {}}}",
					   "{\"ExposedPorts\": {\"x\": {}}}",
					   "{\"ExposedPorts\": {\"70000\": {}}}",
					   "{\"Labels\": {\"a\": 1}}" };
	static char diff[IMAGE_LAYERS][STORE_HASH + 1];
	static const char none[] = "{\"os\": \"linux\", \"rootfs\": {}}";
	json_t *out = NULL;

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK_INT(config(bad[i], image_architecture(), &out), -1);
		CHECK_INT(e.kind, ERR_INVALID);
	}
	CHECK_INT(image_parse_config(none, strlen(none), 0, &out, diff, &e), -1);
	CHECK_INT(config("{}", "sparc", &out), -1);
	CHECK(strstr(e.msg, "linux/sparc") && strstr(e.msg, image_architecture()));
}

TEST(messages_of_skopeo_are_explained)
{
	static const struct {
		const char *said;
		enum err_kind kind;
		const char *words;
	} rows[] = {
		{ "msg=\"initializing source docker://r.test/a:1: reading manifest 1 in r.test/a: "
		  "unauthorized: authentication required\"",
		  ERR_DENIED, "password" },
		{ "msg=\"reading manifest 1 in r.test/a: manifest unknown: manifest unknown\"",
		  ERR_NOT_FOUND, "r.test/a:1" },
		{ "reading manifest 1 in r.test:41429/a: manifest unknown", ERR_NOT_FOUND,
		  "no image" }, /* the port is not a status */
		{ "msg=\"toomanyrequests: You have reached your pull rate limit\"", ERR_LIMIT,
		  "429" },
		{ "received unexpected HTTP status: 429 Too Many Requests", ERR_LIMIT, "429" },
		{ "msg=\"writing blob: happened during read: unexpected EOF\"", ERR_SYS,
		  "try again" },
		{ "msg=\"writing blob: Digest did not match, expected sha256:12, got sha256:34\"",
		  ERR_CONFLICT, "another digest" },
		{ "http: server gave HTTP response to HTTPS client", ERR_SYS,
		  "insecure_registries" },
		{ "no image found in manifest list for architecture s390x", ERR_INVALID,
		  "processor" },
		{ "dial tcp 127.0.0.2:1: connect: connection refused", ERR_SYS,
		  "cannot be reached" },
		{ "time=\"x\" level=fatal msg=\"something else\"\n", ERR_SYS, "something else" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		image_explain("r.test/a:1", rows[i].said, NULL, NULL, &e);
		if (e.kind != rows[i].kind || !strstr(e.msg, rows[i].words))
			printf("# %s -> %s\n", rows[i].said, e.msg);
		CHECK_INT(e.kind, rows[i].kind);
		CHECK(strstr(e.msg, rows[i].words) && strstr(e.msg, "r.test"));
	}
	image_explain_archive("upload:ab", "x\nlevel=fatal msg=\"unexpected EOF\"\n", &e);
	CHECK(strstr(e.msg, "upload:ab is not an image") && strstr(e.msg, "(unexpected EOF)"));
	image_explain("r.test/a:1", "Forbidden", "denied", "r.test:443", &e);
	CHECK_INT(e.kind, ERR_DENIED);
	CHECK(strstr(e.msg, "templates.registries"));
}
