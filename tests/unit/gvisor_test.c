/* gvisor_test.c - the examination of runsc, with programs that only look like it. */
#include "tier/gvisor.h"
#include "jail/feature.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 30000 };

static char dir[] = "/var/tmp/gvisor-test-XXXXXX";

/* A shell script in a folder of this test; "" if that fails. */
static const char *fake(const char *script, mode_t mode)
{
	static int made; /* a made name may end with an X, too */
	static char path[64];
	FILE *f;

	if (!made && !mkdtemp(dir))
		return "";
	made = 1;
	snprintf(path, sizeof(path), "%s/runsc", dir);
	unlink(path);
	f = fopen(path, "w");
	if (!f || fprintf(f, "#!/bin/sh\n%s\n", script) < 0 || fclose(f) != 0 ||
	    chmod(path, mode) < 0)
		return "";
	return path;
}

__attribute__((destructor)) static void remove_dir(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/runsc", dir);
	unlink(path);
	rmdir(dir);
}

static int probe(const char *script, int limit_ms, struct wire_tier_facts *f, struct err *e)
{
	*f = (struct wire_tier_facts){ 0 };
	*e = (struct err){ 0 };
	return gvisor_probe_file(fake(script, 0755), limit_ms, f, e);
}

TEST(versions_of_debian_and_of_google_are_read)
{
	char version[40];
	unsigned date = 0;
	struct err e;

	CHECK_INT(gvisor_parse_version("runsc version 0.0~20221219.0\nspec: 1.0.2-dev\n", version,
				       &date, &e),
		  0);
	CHECK_STR(version, "0.0~20221219.0");
	CHECK_INT(date, 20221219);
	CHECK_INT(gvisor_parse_version("runsc version release-20240729.0\nspec: 1.1.0\n", version,
				       &date, &e),
		  0);
	CHECK_STR(version, "20240729.0");
	CHECK_INT(date, 20240729);
}

TEST(other_texts_are_no_version)
{
	static const char *const texts[] = {
		"",
		"runsc",
		"runsc version ",
		"runsc version \n20221219",
		"runsc version 1.2.3",
		"runsc version 2022.12.19",
		"Runsc version 20221219",
		"runc version 1.1.5",
		"runsc version 20221219 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	};
	char version[40] = "unchanged";
	unsigned date;
	struct err e;

	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		CHECK_INT(gvisor_parse_version(texts[i], version, &date, &e), -1);
		CHECK_STR(version, "unchanged");
	}
}

TEST(a_missing_file_is_reported)
{
	struct wire_tier_facts f = { 0 };
	struct err e;

	CHECK_INT(gvisor_probe_file("/var/tmp/no-such-runsc", PATIENCE_MS, &f, &e), -1);
	CHECK_INT(e.sys, ENOENT);
}

TEST(a_file_that_is_not_executable_is_rejected_with_the_command_that_helps)
{
	struct wire_tier_facts f = { 0 };
	struct err e;

	CHECK_INT(gvisor_probe_file(fake("echo runsc version 20240729", 0644), PATIENCE_MS, &f, &e),
		  -1);
	CHECK(strstr(e.msg, "not executable: sudo chmod 755"));
}

TEST(a_file_that_others_may_write_is_rejected)
{
	struct wire_tier_facts f = { 0 };
	struct err e;

	CHECK_INT(gvisor_probe_file(fake("exit 0", 0777), PATIENCE_MS, &f, &e), -1);
	CHECK(strstr(e.msg, "can be written by others"));
	CHECK_INT(gvisor_probe_file("/var/tmp", PATIENCE_MS, &f, &e), -1);
	CHECK(strstr(e.msg, "no regular file"));
	CHECK_INT(gvisor_probe_file("/dev/null", PATIENCE_MS, &f, &e), -1);
	CHECK(strstr(e.msg, "no regular file"));
}

TEST(another_program_is_rejected)
{
	struct wire_tier_facts f;
	struct err e;

	CHECK_INT(probe("echo runc version 1.1.5", PATIENCE_MS, &f, &e), -1);
	CHECK(strstr(e.msg, "'runc version 1.1.5"));
	CHECK_INT(probe("echo cannot start >&2; exit 3", PATIENCE_MS, &f, &e), -1);
	CHECK(strstr(e.msg, "exit status 3: cannot start"));
	CHECK_INT(probe("kill -9 $$", PATIENCE_MS, &f, &e), -1);
	CHECK(strstr(e.msg, "signal 9"));
	CHECK_INT(f.state, WIRE_TIER_UNAVAILABLE);
}

TEST(an_old_version_is_rejected)
{
	struct wire_tier_facts f;
	struct err e;

	CHECK_INT(probe("echo runsc version release-20221218.1", PATIENCE_MS, &f, &e), -1);
	CHECK(strstr(e.msg, "20221218.1, older than 20221219"));
}

TEST(a_program_that_hangs_is_ended)
{
	struct wire_tier_facts f;
	struct err e;

	CHECK_INT(probe("sleep 1000", 200, &f, &e), -1);
	CHECK(strstr(e.msg, "does not end in time"));
	/* With its output closed, and with a child that keeps the output open. */
	CHECK_INT(probe("exec >&- 2>&-; sleep 1000", 200, &f, &e), -1);
	CHECK(strstr(e.msg, "does not end in time"));
	CHECK_INT(probe("sleep 1000 & exit 0", 200, &f, &e), -1);
	CHECK(strstr(e.msg, "does not end in time"));
	CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
	CHECK_INT(errno, ECHILD);
}

TEST(a_program_that_prints_a_megabyte_is_ended)
{
	struct wire_tier_facts f;
	struct err e;

	CHECK_INT(probe("yes runsc version 20240729 | head -c 1000000", PATIENCE_MS, &f, &e), -1);
	CHECK(strstr(e.msg, "prints more than"));
}

/* The script stands for a build that knows one platform. */
TEST(the_platform_that_works_is_chosen)
{
	static const char script[] =
		"case \"$*\" in --version) echo runsc version 20240729; exit 0 ;; esac\n"
		"case \"$*\" in *--platform=ptrace*'do /bin/echo ready') echo ready; exit 0 ;; esac\n"
		"echo unknown platform; exit 128";
	struct wire_tier_facts f = { 0 };
	struct err e;

	if (geteuid() != 0)
		SKIP("needs root: a mount namespace for the probe");
	f.features = ~UINT64_C(0);
	CHECK_INT(gvisor_probe_file(fake(script, 0755), PATIENCE_MS, &f, &e), 0);
	CHECK(f.features == ~FEATURE_BIT(FEATURE_LANDLOCK));
	CHECK_STR(f.platform, "ptrace");
	CHECK_STR(f.version, "20240729");
	CHECK_INT(strlen(f.sha256), 64);
	CHECK_INT(f.state, WIRE_TIER_OFFERED);
}

TEST(a_build_in_which_no_program_starts_is_rejected)
{
	struct wire_tier_facts f;
	struct err e;

	if (geteuid() != 0)
		SKIP("needs root: a mount namespace for the probe");
	CHECK_INT(
		probe("case $1 in --version) echo runsc version 20240729 ;; *) echo no; exit 1 ;; esac",
		      PATIENCE_MS, &f, &e),
		-1);
	CHECK(strstr(e.msg, "--platform=ptrace: exit status 1: no"));
	CHECK_INT(
		probe("case $1 in --version) echo runsc version 20240729 ;; *) echo ready? ;; esac",
		      PATIENCE_MS, &f, &e),
		-1);
	CHECK(strstr(e.msg, "prints 'ready?"));
}

TEST(a_keeper_without_root_offers_no_gvisor)
{
	struct tier_host h = { .dir = -1, .init_exe = -1, .mux_exe = -1, .rootless = 1 };
	struct wire_tier_facts f = { 0 };
	struct err e;

	CHECK_INT(gvisor_probe(&h, &f, &e), -1);
	CHECK(strstr(e.msg, "root"));
}

/* Copies both images, byte by byte, and fails if a file exists already. */
TEST(the_files_of_the_guest_are_written_once)
{
	char at[] = "/var/tmp/gvisor-files-XXXXXX", command[240];
	int folder, image = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct err e;

	CHECK(mkdtemp(at) && image >= 0);
	folder = open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(gvisor_write_files(folder, 1, image, image, &e), 0);
	CHECK_INT(gvisor_write_files(folder, 1, image, image, &e), -1);
	snprintf(
		command, sizeof(command),
		"cd %s && test -x mux && cmp mux /proc/%d/exe && cmp init mux && jq -e .root.path config.json >/dev/null && rm -r *",
		at, (int)getpid());
	CHECK_INT(system(command), 0);
	/* Without overlays /etc is a mount of its own. */
	CHECK_INT(gvisor_write_files(folder, 0, image, image, &e), 0);
	snprintf(
		command, sizeof(command),
		"cd %s && jq -e '.mounts | map(select(.destination == \"/etc\" and .options == [\"ro\"])) | length == 1' config.json >/dev/null",
		at);
	CHECK_INT(system(command), 0);
	snprintf(command, sizeof(command), "rm -r %s", at);
	CHECK_INT(system(command), 0);
	close(folder);
	close(image);
}

TEST(the_command_line_has_the_platform_and_no_value_of_a_request)
{
	struct tier_host h = { .dir = -1 };
	struct wire_tier_facts f = { .engine = "/usr/bin/runsc", .platform = "ptrace" };
	struct wire_box about = { .id = "secret-id" };
	struct spec sp = { .id = "secret-id" };
	struct jail_engine out = { 0 };
	int platform = 0;
	unsigned n = 0;
	struct err e;

	CHECK_INT(gvisor_outer_box(&h, &f, &about, &sp, &out, &e), 0);
	CHECK_INT(out.tier, JAIL_GVISOR);
	CHECK_INT(out.user_namespaces, 1);
	CHECK(out.filter);
	CHECK_STR(out.argv[0], "@runsc");
	CHECK_STR(out.argv[1], "/usr/bin/runsc");
	for (; out.argv[n]; n++) {
		platform += strcmp(out.argv[n], "--platform=ptrace") == 0;
		CHECK(!strstr(out.argv[n], "secret"));
	}
	CHECK_INT(platform, 1);
	CHECK(n < JAIL_ENGINE_ARGS);
	CHECK_STR(out.argv[n - 1], "box");
	gvisor_release(&out);
	CHECK(!out.own);
}

static int has_directfs(const char *version)
{
	struct tier_host h = { .dir = -1 };
	struct wire_tier_facts f = { .engine = "/usr/bin/runsc", .platform = "ptrace" };
	struct wire_box about = { 0 };
	struct spec sp = { .id = "" };
	struct jail_engine out = { 0 };
	struct err e;
	int found = 0;

	snprintf(f.version, sizeof(f.version), "%s", version);
	if (gvisor_outer_box(&h, &f, &about, &sp, &out, &e) < 0)
		return -1;
	for (unsigned n = 0; out.argv[n]; n++)
		found += strcmp(out.argv[n], "--directfs=false") == 0;
	gvisor_release(&out);
	return found;
}

TEST(only_builds_that_know_directfs_get_the_option_that_forbids_it)
{
	CHECK_INT(has_directfs("0.0~20221219.0"), 0);
	CHECK_INT(has_directfs("0.0~20240729.0"), 1);
	CHECK_INT(has_directfs("20251013.1"), 1);
}
