/* source_test.c - from the files of a folder to a definition: which file is taken, atoll.toml, e2b.toml, devcontainer.json. */
#include "template/source.h"

#include "tap.h"

#include <stdlib.h>

static struct err e;
static struct source found;

struct file {
	const char *path, *text;
};

static int read_file(void *ctx, const char *path, struct buf *out, struct err *why)
{
	(void)why;
	for (const struct file *f = ctx; f->path; f++)
		if (!strcmp(f->path, path)) {
			buf_puts(out, f->text);
			return 1;
		}
	return 0;
}

static const char *source_with(const struct file *files, const struct source_options *o)
{
	static char *last;

	free(last);
	source_fini(&found);
	last = template_source(read_file, (void *)files, o, &found, &e) < 0
		       ? strdup(e.msg)
		       : json_dumps(found.definition, JSON_COMPACT | JSON_SORT_KEYS);
	return last;
}

#define SOURCE_OF(...)                                                                             \
	source_with((struct file[]){ __VA_ARGS__, { NULL, NULL } },                                \
		    &(struct source_options){ .files = "ab12", .arch = "amd64" })

/* The steps of the only stage. */
static const char *steps_of(const char *path, const char *text)
{
	static char *last;
	const char *got = SOURCE_OF({ path, text }, { "Dockerfile", "FROM x\n" });

	if (!found.definition)
		return got;
	free(last);
	return last = json_dumps(
		       json_object_get(json_array_get(json_object_get(found.definition, "stages"),
						      0),
				       "steps"),
		       JSON_COMPACT | JSON_SORT_KEYS);
}

/* ---- which file ---- */

TEST(the_first_file_of_the_list_is_taken)
{
	struct file all[] = { { ".devcontainer.json", "{\"image\": \"six\"}" },
			      { ".devcontainer/devcontainer.json", "{\"image\": \"five\"}" },
			      { "e2b.Dockerfile", "FROM four" },
			      { "Dockerfile", "FROM three" },
			      { "e2b.toml", "dockerfile = \"e2b.Dockerfile\"" },
			      { "atoll.toml", "[template]\nfrom = \"one\"" },
			      { NULL, NULL } };
	static const char *const files[] = {
		".devcontainer.json", ".devcontainer/devcontainer.json",
		"e2b.Dockerfile",     "Dockerfile",
		"e2b.toml",           "atoll.toml"
	};
	struct source_options o = { .files = "ab" };

	for (int i = 5; i >= 0; i--) {
		source_with(all, &o);
		CHECK_STR(found.file, files[i]);
		all[i].path = i ? "other" : NULL;
	}
	CHECK_STR(
		source_with(all, &o),
		"the folder has no atoll.toml with [template], e2b.toml, Dockerfile, e2b.Dockerfile or devcontainer.json: "
		"name the file with --file");
	CHECK_INT(e.kind, ERR_INVALID);
}

TEST(atoll_toml_without_a_template_is_for_something_else)
{
	SOURCE_OF({ "atoll.toml", "listen = 1" }, { "Dockerfile", "FROM x" });
	CHECK_STR(found.file, "Dockerfile");
	CHECK_STR(SOURCE_OF({ "atoll.toml", "x = [" }, { "Dockerfile", "FROM x" }),
		  "atoll.toml:1:5: an array that does not end");
}

TEST(a_named_file_is_what_its_name_says)
{
	struct file files[] = { { "a/web.Dockerfile", "FROM x" },
				{ "web.toml", "[template]\nname = \"web\"" },
				{ "c.json", "{\"image\": \"y\"}" },
				{ NULL, NULL } };

	source_with(files, &(struct source_options){ .file = "./a//web.Dockerfile" });
	CHECK_STR(found.file, "a/web.Dockerfile");
	source_with(files, &(struct source_options){ .file = "web.toml" });
	CHECK_STR(found.name, "web");
	source_with(files, &(struct source_options){ .file = "c.json", .files = "a" });
	CHECK_STR(found.file, "c.json");
	CHECK_STR(source_with(files, &(struct source_options){ .file = "no" }),
		  "no file 'no' in the folder");
	CHECK_INT(e.kind, ERR_NOT_FOUND);
	CHECK_STR(source_with(files, &(struct source_options){ .file = "a/../../x" }),
		  "'a/../../x' is outside of the folder");
}

TEST(copy_gets_the_archive)
{
	struct file files[] = { { "Dockerfile", "FROM x\nCOPY a /b\nCOPY --from=y /c /d" },
				{ NULL, NULL } };

	CHECK_STR(
		source_with(files, &(struct source_options){ .files = "ab12" }),
		"{\"stages\":[{\"from\":\"x\",\"name\":\"0\",\"steps\":[{\"args\":[\"a\",\"/b\"],\"files\":\"ab12\","
		"\"line\":2,\"type\":\"COPY\"},{\"args\":[\"/c\",\"/d\"],\"from\":\"y\",\"line\":3,\"type\":\"COPY\"}]}],"
		"\"target\":0}");
	CHECK_STR(source_with(files, &(struct source_options){ 0 }),
		  "Dockerfile:2: COPY needs the files of the folder, and only texts were sent");
}

/* The digest of a step of a file with four COPY. */
static const char *digest_of(const json_t *manifest, unsigned number)
{
	struct file files[] = {
		{ "Dockerfile",
		  "FROM x\nCOPY package*.json ./\nCOPY . .\nCOPY $A /b\nCOPY no /b\n" },
		{ NULL, NULL }
	};
	const json_t *stage, *step;
	const char *digest;

	source_with(files, &(struct source_options){ .files = "ab", .manifest = manifest });
	stage = json_array_get(json_object_get(found.definition, "stages"), 0);
	step = json_array_get(json_object_get(stage, "steps"), number);
	digest = json_string_value(json_object_get(step, "digest"));
	return digest ? digest : "(none)";
}

TEST(the_digest_of_a_copy_is_that_of_the_files_that_it_reads)
{
	json_t *one = json_pack("{s:s, s:s}", "package.json", "f0644 1", "src/a.js", "f0644 2"),
	       *two = json_pack("{s:s, s:s}", "package.json", "f0644 1", "src/a.js", "f0644 3"),
	       *link = json_pack("{s:s, s:s}", "package.json", "f0644 1", "l", "link src");
	char first[65], whole[65];

	snprintf(first, sizeof(first), "%s", digest_of(one, 0));
	snprintf(whole, sizeof(whole), "%s", digest_of(one, 1));
	CHECK_INT(strlen(first), 64);
	CHECK_STR(digest_of(two, 0), first);
	CHECK(strcmp(digest_of(two, 1), whole) != 0);
	CHECK_STR(digest_of(one, 2), "(none)"); /* a variable */
	CHECK_STR(digest_of(one, 3), "(none)"); /* no such file */
	CHECK_STR(digest_of(link, 0), first);
	CHECK_STR(digest_of(link, 1), "(none)"); /* what it leads to is not known */
	json_decref(one);
	json_decref(two);
	json_decref(link);
}

/* ---- atoll.toml ---- */

TEST(atoll_toml_needs_no_dockerfile)
{
	CHECK_STR(
		SOURCE_OF(
			{ "atoll.toml",
			  "[template]\nname = \"web\"\nfrom = \"node:20\"\nrun = [\"a\",\n\"b\"]\nstart = \"npm start\"\n"
			  "ready = \"curl -f x\"\nport = 3000\ncpu = 1.5\nmemory = \"4G\"\ndisk = 1024\npool = 2\n"
			  "lib = [\"next\"]\nfile = \"p.tsx\"\ninstructions = \"use it\"\nuser = \"node\"\nworkdir = \"/app\"\n"
			  "packages = { pip = [\"numpy\"], apt = \"jq\" }\nenv = { A = \"x$B\", N = 1, T = true }\n"
			  "files = { \"a b.py\" = \"/srv/\" }\n" }),
		"{\"cpu\":1500,\"disk\":1024,\"file\":\"p.tsx\",\"instructions\":\"use it\",\"lib\":[\"next\"],"
		"\"memory\":4294967296,\"pool\":2,\"port\":3000,\"ready\":\"curl -f x\",\"stages\":[{\"from\":\"node:20\","
		"\"name\":\"0\",\"steps\":["
		"{\"args\":[\"numpy\"],\"line\":18,\"manager\":\"pip\",\"type\":\"PACKAGES\"},"
		"{\"args\":[\"jq\"],\"line\":18,\"manager\":\"apt\",\"type\":\"PACKAGES\"},"
		"{\"args\":[\"A\",\"x$B\",\"N\",\"1\",\"T\",\"true\"],\"line\":19,\"type\":\"ENV\"},"
		"{\"args\":[\"/app\"],\"line\":17,\"type\":\"WORKDIR\"},"
		"{\"args\":[\"a b.py\",\"/srv/\"],\"files\":\"ab12\",\"line\":20,\"type\":\"COPY\"},"
		"{\"args\":[\"a\"],\"line\":4,\"type\":\"RUN\"},{\"args\":[\"b\"],\"line\":5,\"type\":\"RUN\"},"
		"{\"args\":[\"node\"],\"line\":16,\"type\":\"USER\"}]}],\"start\":\"npm start\",\"target\":0}");
	CHECK_STR(found.name, "web");
	CHECK_STR(
		SOURCE_OF({ "atoll.toml", "[template]\nrun = \"x\"" }),
		"{\"stages\":[{\"from\":\"base\",\"name\":\"0\",\"steps\":[{\"args\":[\"x\"],\"line\":2,\"type\":\"RUN\"}]}],"
		"\"target\":0}");
}

static const char *atoll_error(const char *line)
{
	static struct buf text;

	buf_cut(&text, 0);
	buf_printf(&text, "[template]\n%s", line);
	return SOURCE_OF({ "atoll.toml", buf_str(&text) });
}

TEST(errors_of_atoll_toml_have_their_line)
{
	CHECK_STR(atoll_error("prot = 1"),
		  "atoll.toml:2: [template] has no 'prot'; did you mean port");
	CHECK_STR(atoll_error("something = 1"), "atoll.toml:2: [template] has no 'something'");
	CHECK_STR(atoll_error("start = 1"),
		  "atoll.toml:2: start is an integer: type a text in quotes");
	CHECK_STR(atoll_error("run = [1]"),
		  "atoll.toml:2: the value is an integer: type a text in quotes");
	CHECK_STR(atoll_error("port = 0"), "atoll.toml:2: port must be a number up to 65535");
	CHECK_STR(atoll_error("pool = \"x\""), "atoll.toml:2: pool must be a number up to 64");
	CHECK_STR(atoll_error("cpu = -1"),
		  "atoll.toml:2: cpu must be a number of processors: cpu = 2");
	CHECK_STR(atoll_error("memory = \"lots\""),
		  "atoll.toml:2: memory must be a size: memory = \"4G\"");
	CHECK_STR(atoll_error("packages = [\"numpy\"]"),
		  "atoll.toml:2: packages is an array: type packages = { pip = [\"numpy\"] }");
	CHECK_STR(atoll_error("packages = { pipp = [] }"),
		  "atoll.toml:2: packages has no 'pipp'; did you mean pip");
	CHECK_STR(atoll_error("packages = { maven = [] }"),
		  "atoll.toml:2: packages has no 'maven': pip, npm, apt, gem, cargo, go");
	CHECK_STR(atoll_error("[template.files]\napp.py = \"/x\""),
		  "atoll.toml:3: files: put the name in quotes: \"app....\" = \"/path\"");
	CHECK_STR(atoll_error("env = { \"a-b\" = \"x\" }"),
		  "atoll.toml:2: env: 'a-b' is not a name of a variable");
	CHECK_STR(atoll_error("env = { a = [] }"),
		  "atoll.toml:2: a is an array: type a text in quotes");
	CHECK_STR(atoll_error("from = \"\""), "atoll.toml:2: from is empty: type from = \"base\"");
	CHECK_STR(atoll_error("name = \"\""), "atoll.toml:2: a name has 1 to 128 bytes, not 0");
}

/* ---- e2b.toml ---- */

TEST(e2b_toml_has_an_old_and_a_new_format)
{
	CHECK_STR(
		SOURCE_OF(
			{ "e2b.toml",
			  "team_id = \"t\"\nstart_cmd = \"s\"\nready_cmd = \"r\"\ndockerfile = \"./d/D\"\n"
			  "template_name = \"n\"\ntemplate_id = \"i\"\ncpu_count = 2\nmemory_mb = 512\nnew = 1\n" },
			{ "d/D", "FROM x\nCMD y\nVOLUME z" }),
		"{\"cpu\":2000,\"memory\":536870912,\"notes\":[\"line 3: VOLUME has no effect\",\"e2b.toml:9: new has no effect\"],"
		"\"ready\":\"r\",\"stages\":[{\"from\":\"x\",\"name\":\"0\",\"steps\":[]}],\"start\":\"s\",\"target\":0}");
	CHECK_STR(found.name, "n");
	CHECK_STR(SOURCE_OF({ "e2b.toml", "id = \"i\"\nname = \"o\"\ndockerfile = \"D\"" },
			    { "D", "FROM x\nCMD y" }),
		  "{\"stages\":[{\"from\":\"x\",\"name\":\"0\",\"steps\":[]}],\"target\":0}");
	CHECK_STR(found.name, "o");
	CHECK_STR(SOURCE_OF({ "e2b.toml", "dockerfile = \"D\"" }), "no file 'D' in the folder");
	CHECK_STR(SOURCE_OF({ "e2b.toml", "\ndockerfile = \"../D\"" }),
		  "e2b.toml:2: '../D' is outside of the folder");
	CHECK_STR(SOURCE_OF({ "e2b.toml", "dockerfile = \"D\"\nmemory_mb = \"1G\"" },
			    { "D", "FROM x" }),
		  "e2b.toml:2: memory_mb must be a number of MiB: memory_mb = 512");
	CHECK_STR(SOURCE_OF({ "e2b.toml", "dockerfile = \"D\"" }, { "D", "FROM x\nRNU y" }),
		  "D:2: unknown instruction RNU; did you mean RUN?: 'RNU y'");
	CHECK_STR(SOURCE_OF({ "e2b.toml", "x = 1" }),
		  "e2b.toml has no [template]: type [template], then from = \"base\"");
}

/* ---- devcontainer.json ---- */

TEST(a_devcontainer_is_its_image_with_the_folder_and_the_commands)
{
	CHECK_STR(
		SOURCE_OF(
			{ ".devcontainer.json",
			  "// comment\n{\"image\": \"x\", /* c */ \"containerEnv\": {\"A\": \"1$\", \"P\": \"/b:${containerEnv:PATH}\"},\n"
			  "\"remoteEnv\": {\"B\": \"${localEnv:HOME:none}\", \"C\": null}, \"remoteUser\": \"node\",\n"
			  "\"workspaceFolder\": \"/w/${localWorkspaceFolderBasename}\",\n"
			  "\"onCreateCommand\": [\"npm\", \"ci\"], \"postCreateCommand\": {\"a\": \"x // y\", \"b\": [\"z\"],},\n"
			  "\"forwardPorts\": [\"db:1\", 3000, 80], \"mounts\": [], \"customizations\": {},\n}" }),
		"{\"notes\":[\".devcontainer.json: mounts has no effect\"],\"port\":3000,\"stages\":[{\"from\":\"x\",\"name\":\"0\","
		"\"steps\":[{\"args\":[\"A\",\"1\\\\$\",\"P\",\"/b:${PATH}\"],\"type\":\"ENV\"},{\"args\":[\"B\",\"none\"],\"type\":\"ENV\"},"
		"{\"args\":[\"/w/workspace\"],\"type\":\"WORKDIR\"},"
		"{\"args\":[\".\",\"/w/workspace\"],\"files\":\"ab12\",\"owner\":\"node\",\"type\":\"COPY\"},"
		"{\"args\":[\"node\"],\"type\":\"USER\"},{\"args\":[\"npm\",\"ci\"],\"exec\":true,\"type\":\"RUN\"},"
		"{\"args\":[\"x // y\"],\"type\":\"RUN\"},{\"args\":[\"z\"],\"exec\":true,\"type\":\"RUN\"}]}],\"target\":0}");
}

TEST(a_devcontainer_may_have_a_dockerfile)
{
	CHECK_STR(
		SOURCE_OF(
			{ ".devcontainer/devcontainer.json",
			  "{\"build\": {\"dockerfile\": \"D\", \"args\": {\"V\": \"12\"}}, \"updateContentCommand\": \"u\"}" },
			{ ".devcontainer/D", "ARG V\nFROM x:$V\nCOPY a /a\n" }),
		"{\"stages\":[{\"from\":\"x:12\",\"name\":\"0\",\"steps\":[{\"args\":[\".devcontainer/a\",\"/a\"],\"files\":\"ab12\","
		"\"line\":3,\"type\":\"COPY\"},{\"args\":[\"/workspace\"],\"type\":\"WORKDIR\"},{\"args\":[\".\",\"/workspace\"],"
		"\"files\":\"ab12\",\"type\":\"COPY\"},{\"args\":[\"u\"],\"type\":\"RUN\"}]}],\"target\":0}");
	CHECK_STR(
		SOURCE_OF({ ".devcontainer/devcontainer.json",
			    "{\"dockerFile\": \"../Dockerfile.dev\", \"context\": \"..\"}" },
			  { "Dockerfile.dev", "FROM x\nCOPY a /a\n" }),
		"{\"stages\":[{\"from\":\"x\",\"name\":\"0\",\"steps\":[{\"args\":[\"a\",\"/a\"],\"files\":\"ab12\",\"line\":2,"
		"\"type\":\"COPY\"},{\"args\":[\"/workspace\"],\"type\":\"WORKDIR\"},{\"args\":[\".\",\"/workspace\"],\"files\":\"ab12\","
		"\"type\":\"COPY\"}]}],\"target\":0}");
}

TEST(errors_of_a_devcontainer_name_what_is_wrong)
{
	static const char p[] = ".devcontainer.json";

	CHECK_STR(steps_of(p, "x"), "[]"); /* the Dockerfile comes first */
	CHECK_STR(SOURCE_OF({ p, "{\n\"image\": }" }),
		  ".devcontainer.json:2: unexpected token near '}'");
	CHECK_STR(SOURCE_OF({ p, "[1]" }),
		  ".devcontainer.json: the file must be an object: {\"image\": \"base\"}");
	CHECK_STR(
		SOURCE_OF({ p, "{}" }),
		".devcontainer.json: neither image nor build.dockerfile: type \"image\": \"base\"");
	CHECK_STR(SOURCE_OF({ p, "{\"image\": 1}" }), ".devcontainer.json: image must be a text");
	CHECK_STR(
		SOURCE_OF(
			{ p, "{\"image\": \"x\", \"features\": {\"example.org/f/node:1\": {}}}" }),
		".devcontainer.json: feature 'example.org/f/node:1' is not supported: install it with a Dockerfile or "
		"onCreateCommand");
	CHECK_STR(
		SOURCE_OF({ p, "{\"dockerComposeFile\": \"x\"}" }),
		".devcontainer.json: dockerComposeFile is not supported: name an image or build.dockerfile");
	CHECK_STR(SOURCE_OF({ p, "{\"build\": {}}" }),
		  ".devcontainer.json: build has no dockerfile");
	CHECK_STR(SOURCE_OF({ p, "{\"build\": {\"dockerfile\": \"../D\"}}" }),
		  ".devcontainer.json: '../D' is outside of the folder");
	CHECK_STR(SOURCE_OF({ p, "{\"image\": \"x\", \"containerEnv\": {\"A\": \"${wrong}\"}}" }),
		  ".devcontainer.json: ${wrong} is not supported");
	CHECK_STR(SOURCE_OF({ p, "{\"image\": \"x\", \"containerEnv\": {\"A\": 1}}" }),
		  ".devcontainer.json: containerEnv: 'A' must be a name with a text");
	CHECK_STR(SOURCE_OF({ p, "{\"image\": \"x\", \"workspaceFolder\": \"w\"}" }),
		  ".devcontainer.json: workspaceFolder must be a path like /workspace");
	CHECK_STR(
		SOURCE_OF({ p,
			    "{\"image\": \"x\", \"postCreateCommand\": {\"a\": {\"b\": \"c\"}}}" }),
		".devcontainer.json: a must be a text, a list of texts or an object of them");
	CHECK_STR(SOURCE_OF({ p, "{\"image\": \"x\", \"postCreateCommand\": [1]}" }),
		  ".devcontainer.json: postCreateCommand must have texts");
}
