/* models_config_test.c - the models file: values and errors. */
#include "llm/models_config.h"
#include "base/cleanup.h"
#include "llm/dialect.h"
#include "tap.h"

#include <fcntl.h>

#define PROVIDER "[provider.p]\ndialect = \"chat\"\nbase = \"https://api.example.org/v1\"\n"
#define MODEL "[model.small]\nprovider = \"p\"\nname = \"m-1\"\n"

static int parse(struct models_config *b, const char *text, struct err *e)
{
	return models_config_parse(b, "models.toml", text, strlen(text), e);
}

TEST(a_complete_models_file_is_parsed)
{
	static const char text[] = PROVIDER
		"key = \"sk-1\"\nsilence = \"2s\"\nretries = 1\nschema = \"tool\"\nold_limit = true\n"
		"[provider.local]\ndialect = \"ollama\"\nbase = \"http://[::1]:11434/\"\n" MODEL
		"price = { in = 0.25, out = 2, cache_read = 0.025 }\nmax_tokens = 1000\n"
		"[model.large]\nprovider = \"local\"\nname = \"llama3:70b\"\n"
		"[role]\nplanner = [\"small\"]\ndebugger = [\"small\", \"large\"]\n";
	const struct models_config_model *m;
	struct models_config b;
	struct err e = { 0 };

	if (parse(&b, text, &e) < 0)
		printf("# %s\n", e.msg);
	CHECK_INT(b.nmodels, 2);
	CHECK_STR(b.providers[0].host, "api.example.org");
	CHECK_INT(b.providers[0].port, 443);
	CHECK_STR(b.providers[0].key, "sk-1");
	CHECK_INT(b.providers[0].silence_ms, 2000);
	CHECK_INT(b.providers[0].retries, 1);
	CHECK_INT(b.providers[0].schema, SCHEMA_TOOL);
	CHECK_STR(b.providers[1].host, "::1");
	CHECK_INT(b.providers[1].port, 11434);
	CHECK_STR(b.providers[1].base, "http://[::1]:11434");
	CHECK(b.models[0].price.cache_write == 0.25); /* the default: as all input */
	m = models_config_find(&b, NULL, "debugger", 1, &e);
	CHECK_STR(m->id, "large");
	m = models_config_find(&b, NULL, "debugger", 3,
			       &e); /* the last value, if there are fewer */
	CHECK_STR(m->id, "large");
	m = models_config_find(&b, "small", NULL, 0, &e);
	CHECK_STR(m->name, "m-1");
	CHECK(!models_config_find(&b, NULL, "poet", 0, &e));
	CHECK_STR(e.msg, "no model has the role 'poet'");
	CHECK(!models_config_find(&b, "gpt", NULL, 0, &e));
	models_config_fini(&b);
}

static const struct {
	/* clang-format off */
	const char *text, *wants;
} wrong[] = {
	{ "", "models.toml: there is no [model.NAME]" },
	{ "x = 1\n", "models.toml:1: 'x' is not provider, model or role" },
	{ "[provider.p]\ndialect = \"smoke\"\n", "models.toml:2: it is one of" },
	{ "[provider.p]\ndialect = \"chat\"\n", "models.toml:1: a provider needs dialect and base" },
	{ "[provider.p]\ndialect = \"chat\"\nbase = \"ftp://x\"\n", "models.toml:3: write it like" },
	{ "[provider.p]\nbase = \"https://u:p@x/v1\"\n", "models.toml:2: write it like" },
	{ "[provider.p]\nbase = \"https://x:99999/v1\"\n", "models.toml:2: write it like" },
	{ "[provider.p]\nbase = \"https://x/v1?key=a\"\n", "models.toml:2: write it like" },
	{ "[provider.p]\nbase = \"https://\"\n", "models.toml:2: write it like" },
	{ "[provider.p]\nkeys = \"x\"\n", "models.toml:2: a provider has no 'keys'" },
	{ "[provider.p]\nkey = \"a\\nb\"\n", "models.toml:2: the key has a blank" },
	{ "[provider.p]\nkey = \"\"\n", "models.toml:2: a text is expected" },
	{ "[provider.p]\nkey = \"a\"\nkey_env = \"PATH\"\n", "models.toml:3: one of key, key_file, key_env" },
	{ "[provider.p]\nkey_env = \"ATOLL_NO_SUCH_VARIABLE\"\n", "is not in the environment" },
	{ "[provider.p]\nkey_file = \"/no/such/file\"\n", "models.toml:2: open /no/such/file" },
	{ "[provider.p]\nsilence = 3\n", "models.toml:2: a time is expected" },
	{ "[provider.p]\nretries = 99\n", "models.toml:2: a number from 0 to 5" },
	{ PROVIDER "[model.m]\nprovider = \"q\"\nname = \"x\"\n", "models.toml:5: there is no such [provider.NAME]" },
	{ PROVIDER "[model.m]\nprovider = \"p\"\n", "models.toml:4: a model needs provider and name" },
	{ PROVIDER MODEL "price = { inn = 1 }\n", "models.toml:7: a price has in" },
	{ PROVIDER MODEL "price = { in = -1 }\n", "models.toml:7: a price has in" },
	{ PROVIDER MODEL "[role]\ncoder = [\"huge\"]\n", "models.toml:8: there is no such [model.NAME]" },
	{ PROVIDER MODEL "[role]\ncoder = []\n", "models.toml:8: a role is a list" },
	{ PROVIDER "[model.\"a b\"]\nprovider = \"p\"\nname = \"x\"\n", "models.toml:4: a name is letters" },
	{ "[provider\n", "models.toml:1:" },
	/* clang-format on */
};

TEST(an_error_in_the_models_file_names_the_line)
{
	for (unsigned i = 0; i < ARRAY_LEN(wrong); i++) {
		struct err e = { 0 };
		struct models_config b;
		int rc = parse(&b, wrong[i].text, &e);

		if (rc == 0 || !strstr(e.msg, wrong[i].wants))
			printf("# %u: %d '%s', not '%s'\n", i, rc, e.msg, wrong[i].wants);
		CHECK(rc < 0 && strstr(e.msg, wrong[i].wants));
	}
}

TEST(keys_come_from_files_and_the_environment_without_their_newline)
{
	char path[] = "/tmp/atoll-key-XXXXXX", text[400];
	auto_fd int fd = mkstemp(path);
	struct models_config b;
	struct err e;

	CHECK(write(fd, "sk-from-file\n", 13) == 13);
	snprintf(text, sizeof(text), PROVIDER "key_file = \"%s\"\n" MODEL, path);
	CHECK_INT(parse(&b, text, &e), 0);
	CHECK_STR(b.providers[0].key, "sk-from-file");
	models_config_fini(&b);
	unlink(path);
	setenv("TEST_MODEL_KEY", "sk-from-env", 1);
	CHECK_INT(parse(&b, PROVIDER "key_env = \"TEST_MODEL_KEY\"\n" MODEL, &e), 0);
	CHECK_STR(b.providers[0].key, "sk-from-env");
	models_config_fini(&b);
}

TEST(the_public_model_list_has_no_key_and_no_url)
{
	struct models_config b;
	struct err e;
	json_t *j;
	char *s;

	CHECK_INT(parse(&b, PROVIDER "key = \"sk-secret\"\n" MODEL "[role]\ncoder = [\"small\"]\n",
			&e),
		  0);
	j = models_config_public(&b);
	s = json_dumps(j, 0);
	CHECK(strstr(s, "\"coder\": [\"small\"]"));
	CHECK(!strstr(s, "sk-secret") && !strstr(s, "example.org"));
	free(s);
	json_decref(j);
	models_config_fini(&b);
}

TEST(an_error_never_shows_a_key)
{
	struct models_config b;
	struct err e;

	CHECK(parse(&b, "[provider.p]\nkey = \"sk-secret\"\nbase = 1\n", &e) < 0);
	CHECK(!strstr(e.msg, "secret"));
	CHECK(parse(&b, "[provider.p]\nkey = \"sk-secret bad\"\n", &e) < 0);
	CHECK(!strstr(e.msg, "secret"));
}

TEST(a_changed_key_changes_the_digest)
{
	uint8_t one[32], two[32], again[32];
	struct models_config b;
	struct err e;

	CHECK_INT(parse(&b, PROVIDER "key = \"sk-1\"\n" MODEL, &e), 0);
	models_config_digest(&b, one);
	models_config_fini(&b);
	CHECK_INT(parse(&b, PROVIDER "key = \"sk-2\"\n" MODEL, &e), 0);
	models_config_digest(&b, two);
	models_config_fini(&b);
	CHECK_INT(parse(&b, PROVIDER "key = \"sk-1\"\n" MODEL "# a comment\n", &e), 0);
	models_config_digest(&b, again);
	models_config_fini(&b);
	CHECK(memcmp(one, two, 32) != 0);
	CHECK(memcmp(one, again, 32) == 0);
}
