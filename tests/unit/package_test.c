/* package_test.c - package requirements: validation, canonical form, and errors of package
 * managers. */
#include "base/cleanup.h"
#include "lang/install.h"
#include "lang/package.h"
#include "tap.h"

#include <string.h>

/* The canonical form of one, or "" if it is rejected. */
static const char *canonical(enum package_manager m, const char *text)
{
	struct packages p = { .manager = m };
	static char out[300];
	struct err e;

	out[0] = 0;
	if (packages_add(&p, text, &e) == 0)
		snprintf(out, sizeof(out), "%s", p.v[0]);
	else if (e.kind != ERR_INVALID || !strstr(e.msg, "are written like"))
		snprintf(out, sizeof(out), "an error without a reason: %s", e.msg);
	packages_fini(&p);
	return out;
}

TEST(pip_accepts_only_names_extras_and_versions)
{
	static const struct {
		const char *text, *is;
	} rows[] = {
		{ "numpy", "numpy" },
		{ "Flask_SQLAlchemy", "flask-sqlalchemy" },
		{ "zope.interface", "zope-interface" },
		{ "a__b--c", "a-b-c" },
		{ "pandas==1.5", "pandas==1.5" },
		{ "pandas == 1.5", "pandas==1.5" },
		{ "pandas >=1.5 , <2", "pandas<2,>=1.5" },
		{ "pandas<2,>=1.5", "pandas<2,>=1.5" },
		{ "Requests[Security,socks]", "requests[security,socks]" },
		{ "requests [socks, security] ~= 2.8", "requests[security,socks]~=2.8" },
		{ "x===1.0+local", "x===1.0+local" },
		{ "x==1.*", "x==1.*" },
	};
	static const char *const bad[] = {
		"",
		"-r",
		"--index-url=http://evil",
		"a b",
		"a;b",
		"a;python_version<'3'",
		"$(id)",
		"`id`",
		"a|b",
		"../a",
		"./a",
		"/etc/passwd",
		"a/b",
		"~/a",
		"http://x/y.whl",
		"git+https://x",
		"a @ http://x/y",
		"a @ file:///x",
		"-e .",
		"_a",
		"a_",
		".a",
		"a==",
		"a=1",
		"a>=1,",
		"a[",
		"a[]",
		"a[b",
		"a[b]]",
		"a\nb",
		"a==1 --hash",
		"a==1;b",
		"\xc3\xa9",
		"a==1,,<2",
		"a>=1<2",
		"a==$HOME",
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		CHECK_STR(canonical(PM_PIP, rows[i].text), rows[i].is);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_STR(canonical(PM_PIP, bad[i]), "");
}

TEST(npm_accepts_names_with_scopes_and_versions)
{
	static const char *const good[] = { "left-pad",     "@types/node", "react@18.2.0",
					    "react@^18",    "react@~18.2", "react@latest",
					    "@a-b/c.d@1.x", "x@>=1.2.3",   "x@1.0.0-beta.1+b",
					    "socket.io",    "x@*" };
	static const char *const bad[] = {
		"React",      "@types",     "@/x",           "@a/",
		"@a/b/c",     "../x",       "./x",           "x/y",
		"x@",         "x@http://y", "x@git+ssh://y", "x@file:../y",
		"x@1 || 2",   "-g",         "--prefix=/",    "_x",
		".x",         "x;y",        "x y",           "@a/-b;c",
		"github:a/b", "x@npm:y@1",  "x@../y"
	};

	for (unsigned i = 0; i < ARRAY_LEN(good); i++)
		CHECK_STR(canonical(PM_NPM, good[i]), good[i]);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_STR(canonical(PM_NPM, bad[i]), "");
}

TEST(the_other_managers_have_grammars_too)
{
	CHECK_STR(canonical(PM_GEM, "rack"), "rack");
	CHECK_STR(canonical(PM_GEM, "rack:3.0.8"), "rack:3.0.8");
	CHECK_STR(canonical(PM_GEM, "rack==3.0.8"), "rack:3.0.8");
	CHECK_STR(canonical(PM_GEM, "rack:$x"), "");
	CHECK_STR(canonical(PM_CARGO, "serde_json@1.0"), "serde_json@1.0");
	CHECK_STR(canonical(PM_CARGO, "serde@=1.0.3"), "serde@=1.0.3");
	CHECK_STR(canonical(PM_CARGO, "serde@~1.0"), "serde@~1.0");
	CHECK_STR(canonical(PM_CARGO, "serde@1\"0"), "");
	CHECK_STR(canonical(PM_CARGO, "9x"), "");
	CHECK_STR(canonical(PM_GO, "golang.org/x/text@v0.14.0"), "golang.org/x/text@v0.14.0");
	CHECK_STR(canonical(PM_GO, "fmt"), "");
	CHECK_STR(canonical(PM_GO, "github.com/../x"), "");
	CHECK_STR(canonical(PM_GO, "github.com//x"), "");
	CHECK_STR(canonical(PM_APT, "libstdc++6"), "libstdc++6");
	CHECK_STR(canonical(PM_APT, "jq=1.6-2.1"), "jq=1.6-2.1");
	CHECK_STR(canonical(PM_APT, "jq/sid"), "");
	CHECK_STR(canonical(PM_APT, "-o=x"), "");
}

TEST(a_manager_is_selected_by_name_or_language)
{
	CHECK_INT(package_manager_named("pip"), PM_PIP);
	CHECK_INT(package_manager_named("pipx"), -1);
	CHECK_INT(package_manager_named(""), -1);
	CHECK_INT(package_manager_of("python"), PM_PIP);
	CHECK_INT(package_manager_of("typescript"), PM_NPM);
	CHECK_INT(package_manager_of("script"), -1);
	CHECK_INT(package_manager_of(""), -1);
}

static void set_key(const char *const *names, const char *runtime, char out[PACKAGES_KEY + 1])
{
	struct packages p = { .manager = PM_PIP };
	struct err e;

	for (; *names; names++)
		CHECK_INT(packages_add(&p, *names, &e), 0);
	packages_key(&p, runtime, out);
	packages_fini(&p);
}

TEST(a_package_set_has_one_key_in_every_notation)
{
	static const char *const one[] = { "numpy", "Pandas>=1,<2", NULL },
				 *const two[] = { "pandas <2, >=1", "NumPy", "numpy", NULL },
				 *const other[] = { "numpy", NULL };
	char a[PACKAGES_KEY + 1], b[PACKAGES_KEY + 1];

	set_key(one, "3.11", a);
	set_key(two, "3.11", b);
	CHECK_STR(a, b);
	CHECK_INT(strlen(a), 64);
	set_key(two, "3.12", b);
	CHECK(strcmp(a, b) != 0);
	set_key(other, "3.11", b);
	CHECK(strcmp(a, b) != 0);
}

TEST(a_requirements_file_may_have_comments_but_no_options)
{
	static const char good[] =
		"# what we need\nnumpy\n\n pandas==1.5  # old\r\n\trequests[socks]\nlast";
	static const char *const bad[] = { "-r other.txt", "numpy\n--index-url http://x\n", "-e .",
					   "a==1 \\\n --hash=sha256:00" };
	struct packages p = { .manager = PM_PIP };
	auto_buf struct buf text = { 0 };
	struct err e;

	CHECK_INT(packages_add_lines(&p, good, sizeof(good) - 1, &e), 0);
	packages_text(&p, &text);
	CHECK_STR(buf_str(&text), "last numpy pandas==1.5 requests[socks]");
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_INT(packages_add_lines(&p, bad[i], strlen(bad[i]), &e), -1);
	CHECK(packages_add_lines(&p, "a\nb b\n", 6, &e) < 0 && strncmp(e.msg, "line 2: ", 8) == 0);
	packages_fini(&p);
}

TEST(dependencies_declared_in_a_script_are_read)
{
	static const char good[] =
		"#!/usr/bin/python3\n# /// script\n# requires-python = \">=3.11\"\n"
		"# dependencies = [\n#   \"numpy\",\n#\n#   \"pandas<2\",\n# ]\n# ///\n"
		"import numpy\n";
	static const char *const none[] = { "", "import x\n",
					    "# /// script\n# dependencies = [\"a\"]\n",
					    "# /// script\nx = 1\n# ///\n",
					    "# /// other\n# ///\n" };
	static const char *const bad[] = { "# /// script\n# dependencies = 3\n# ///\n",
					   "# /// script\n# dependencies = [\"-r x\"]\n# ///\n",
					   "# /// script\n# = =\n# ///\n",
					   "# /// script\n# dependencies = [1]\n# ///\n" };
	struct packages p = { .manager = PM_PIP };
	struct err e;

	for (unsigned i = 0; i < ARRAY_LEN(none); i++)
		CHECK_INT(packages_add_script(&p, none[i], strlen(none[i]), &e), 0);
	CHECK_INT(p.n, 0);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_INT(packages_add_script(&p, bad[i], strlen(bad[i]), &e), -1);
	CHECK_INT(packages_add_script(&p, good, sizeof(good) - 1, &e), 0);
	CHECK_INT(p.n, 2);
	packages_fini(&p);
}

TEST(the_size_of_a_package_set_is_limited)
{
	struct packages p = { .manager = PM_PIP };
	char name[300];
	struct err e;

	for (unsigned i = 0; i < PACKAGES_MOST; i++) {
		snprintf(name, sizeof(name), "p%u", i);
		CHECK_INT(packages_add(&p, name, &e), 0);
	}
	CHECK_INT(packages_add(&p, "one-more", &e), -1);
	CHECK_INT(e.kind, ERR_LIMIT);
	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = 0;
	packages_fini(&p);
	CHECK_INT(packages_add(&p, name, &e), -1);
}

TEST(a_name_one_letter_from_a_popular_one_is_reported)
{
	const char *near[3];

	CHECK_STR(package_mistaken(PM_PIP, "reqeusts"), "requests");
	CHECK_STR(package_mistaken(PM_PIP, "numpyy"), "numpy");
	CHECK(package_mistaken(PM_PIP, "numpy") == NULL);
	CHECK(package_mistaken(PM_PIP, "something-else") == NULL);
	CHECK_INT(package_near(PM_PIP, "pandsa", near, 3), 1);
	CHECK_STR(near[0], "pandas");
	CHECK(package_near(PM_NPM, "expres", near, 3) >= 1);
	CHECK_STR(near[0], "express");
	CHECK_INT(package_near(PM_PIP, "qqqqqqqq", near, 3), 0);
}

static const char *fault(enum package_manager m, const char *said, struct install_diagnosis *d)
{
	install_diagnose(m, said, strlen(said), d);
	return install_fault_name(d->fault);
}

TEST(errors_of_package_managers_are_understood)
{
	struct install_diagnosis d;

	CHECK_STR(
		fault(PM_PIP,
		      "Looking\nERROR: Could not find a version that satisfies the requirement "
		      "pandsa (from versions: none)\nERROR: No matching distribution found for pandsa\n",
		      &d),
		"no_such_package");
	CHECK_STR(d.package, "pandsa");
	CHECK_STR(fault(PM_PIP,
			"ERROR: Could not find a version that satisfies the requirement tiny==9 "
			"(from versions: 1.0, 1.1)\n",
			&d),
		  "no_such_version");
	CHECK_STR(d.package, "tiny");
	CHECK_STR(d.versions, "1.0, 1.1");
	CHECK_STR(fault(PM_PIP,
			"WARNING: Retrying ... Failed to establish a new connection: refused\n"
			"ERROR: ... requirement x (from versions: none)",
			&d),
		  "unreachable");
	CHECK_STR(fault(PM_PIP, "  error: subprocess-exited-with-error\n", &d), "build_failure");
	CHECK_STR(fault(PM_PIP, "Killed", &d), "failed");
	CHECK_STR(fault(PM_PIP, "", &d), "failed");
	CHECK_STR(
		fault(PM_NPM,
		      "npm error code E404\nnpm error 404  'leftpda@*' is not in this registry.\n",
		      &d),
		"no_such_package");
	CHECK_STR(d.package, "leftpda");
	CHECK_STR(fault(PM_NPM, "npm ERR! notarget No matching version found for tiny@9.9.9.\n",
			&d),
		  "no_such_version");
	CHECK_STR(d.package, "tiny");
	CHECK_STR(fault(PM_NPM, "npm error code ECONNREFUSED", &d), "unreachable");
	CHECK_STR(fault(PM_GEM,
			"ERROR:  Could not find a valid gem 'rakk' (>= 0) in any repository\n", &d),
		  "no_such_package");
	CHECK_STR(d.package, "rakk");
}

static const char *explained(enum package_manager m, const char *said)
{
	static char text[240];
	struct install_diagnosis d;

	install_diagnose(m, said, strlen(said), &d);
	install_explain(m, said, strlen(said), &d, text, sizeof(text));
	return text;
}

TEST(a_missing_manager_is_named_with_its_debian_package)
{
	struct install_diagnosis d;

	CHECK_STR(fault(PM_PIP, "/usr/bin/python3: No module named pip\n", &d), "no_manager");
	CHECK_STR(explained(PM_PIP, "/usr/bin/python3: No module named pip\n"),
		  "install: pip is not installed on this host: apt-get install python3-pip");
	CHECK_STR(fault(PM_NPM, "Error: spawn /usr/bin/npm ENOENT\n    at onexit\n", &d),
		  "no_manager");
	CHECK_STR(explained(PM_NPM, "cannot execute '/usr/bin/npm': No such file or directory\n"),
		  "install: npm is not installed on this host: apt-get install npm");
	/* A package whose own setup imports pip fails to build; pip itself is there. */
	CHECK_STR(fault(PM_PIP,
			"ModuleNotFoundError: No module named 'pip'\n"
			"error: subprocess-exited-with-error\n",
			&d),
		  "build_failure");
}

TEST(an_unknown_failure_is_explained_by_the_last_line_of_output)
{
	CHECK_STR(explained(PM_GEM, "one\n  two: it broke\n\n"),
		  "install: gem failed: two: it broke");
	CHECK_STR(
		explained(PM_NPM,
			  "npm ERR! code ENODATA\nnpm ERR! the body is empty\n\nnpm ERR! "
			  "A complete log of this run can be found in:\nnpm ERR!     /tmp/x.log\n"),
		"install: npm failed: npm ERR! the body is empty");
	CHECK_STR(explained(PM_GEM, "Killed"), "install: gem failed: Killed");
	CHECK_STR(explained(PM_GEM, " \n"), "install: gem failed: it printed nothing");
	CHECK_STR(explained(PM_GEM, ""), "install: gem failed: it printed nothing");
}

TEST(an_install_plan_is_an_argument_list_without_a_shell)
{
	struct install_conf conf = { .mirror = "mirror" };
	struct packages p = { .manager = PM_PIP };
	struct install_plan plan;
	struct err e;
	unsigned n = 0;

	CHECK_INT(packages_add(&p, "tiny==1", &e), 0);
	CHECK_INT(install_plan(&p, &conf, &plan, &e), -1);
	CHECK(strstr(e.msg, "not on this host") != NULL);
	CHECK(strstr(e.msg, "apt-get install python3-pip") != NULL);
	conf.runtime[PM_PIP] = "python3.11 1";
	CHECK_INT(install_plan(&p, &conf, &plan, &e), 0);
	CHECK_INT(plan.nsteps, 2);
	while (plan.steps[0].argv[n])
		n++;
	CHECK_STR(plan.steps[0].argv[n - 1], "tiny==1");
	CHECK_STR(plan.steps[0].argv[n - 2], "--");
	conf.mirror = NULL;
	CHECK_INT(install_plan(&p, &conf, &plan, &e), -1);
	CHECK(strstr(e.msg, "packages.pip") != NULL);
	conf.source[PM_PIP] = "http://127.0.0.1:1/simple";
	CHECK_INT(install_plan(&p, &conf, &plan, &e), 0);
	CHECK_STR(plan.steps[0].argv[n - 4], "--index-url=http://127.0.0.1:1/simple");
	packages_fini(&p);
}
