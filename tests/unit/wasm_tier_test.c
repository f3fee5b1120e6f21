/* wasm_tier_test.c - the tier wasm: which modules are offered, which programs a box executes. */
#include "tap.h"
#include "tier/wasm.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static void put(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	if (f) {
		fputs(text, f);
		fclose(f);
		chmod(path, 0644);
	}
}

static void make_folder(void)
{
	char path[128];

	strcpy(folder, "/tmp/wasm-tier-XXXXXX");
	if (!mkdtemp(folder))
		abort();
	chmod(folder, 0755);
	snprintf(path, sizeof(path), "%s/aa", folder);
	mkdir(path, 0755);
	put("aa/atoll-wasm", "program");
	put("aa/data", "data");
	snprintf(path, sizeof(path), "%s/python", folder);
	if (symlink("aa/atoll-wasm", path) < 0)
		abort();
}

static void remove_folder(void)
{
	static const char *const names[] = { "aa/atoll-wasm", "aa/data", "aa/image", "python",
					     "ruby" };
	char path[128];

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/aa", folder);
	rmdir(path);
	rmdir(folder);
}

static void probe(struct wire_tier_facts *out)
{
	struct tier_host h = { .features = 6 };

	tier_facts_init(WIRE_TIER_WASM, &h, out);
	wasm_probe_folder(folder, out);
}

TEST(without_modules_it_is_unprepared)
{
	struct wire_tier_facts f;

	strcpy(folder, "/nonexistent");
	probe(&f);
	CHECK_INT(f.state, WIRE_TIER_UNPREPARED);
	CHECK(strstr(f.reason, "atoll tier prepare wasm"));
}

TEST(a_change_of_any_file_of_a_module_changes_its_hash)
{
	struct wire_tier_facts a, b, c;

	if (geteuid() != 0)
		SKIP("not root");
	make_folder();
	probe(&a);
	put("aa/data", "Data");
	probe(&b);
	put("aa/image", "state");
	probe(&c);
	remove_folder();
	CHECK_INT(a.state, WIRE_TIER_OFFERED);
	CHECK_STR(a.version, "python");
	CHECK_INT(a.rank, 3);
	CHECK_INT(a.features, 6);
	CHECK(a.unsupported & 1u << WIRE_NEED_GPU && a.unsupported & 1u << WIRE_NEED_VOLUME);
	CHECK(strlen(a.sha256) == 64 && strcmp(a.sha256, b.sha256) && strcmp(b.sha256, c.sha256));
}

TEST(a_module_that_others_can_write_or_that_lacks_a_file_is_not_offered)
{
	struct wire_tier_facts writable, incomplete, foreign;
	char path[128];

	if (geteuid() != 0)
		SKIP("not root");
	make_folder();
	snprintf(path, sizeof(path), "%s/aa/atoll-wasm", folder);
	chmod(path, 0777);
	probe(&writable);
	chmod(path, 0755);
	CHECK(chown(path, 1, 1) == 0);
	probe(&foreign);
	unlink(path);
	probe(&incomplete);
	remove_folder();
	CHECK_INT(writable.state, WIRE_TIER_UNPREPARED);
	CHECK_INT(foreign.state, WIRE_TIER_UNPREPARED);
	CHECK_INT(incomplete.state, WIRE_TIER_UNPREPARED);
	CHECK(strstr(incomplete.reason, "python is incomplete"));
}

TEST(only_modules_are_programs_of_its_boxes)
{
	static const char *const others[] = { "",
					      "/bin/sh",
					      "python",
					      WASM_FOLDER,
					      WASM_FOLDER "/",
					      WASM_FOLDER "/..",
					      WASM_FOLDER "/../x",
					      WASM_FOLDER "/aa/atoll-wasm",
					      WASM_FOLDER "x/python" };
	struct err e;

	CHECK_INT(wasm_check_program(WASM_FOLDER "/python", &e), 0);
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		CHECK_INT(wasm_check_program(others[i], &e), -1);
		CHECK_INT(e.kind, ERR_DENIED);
	}
}
