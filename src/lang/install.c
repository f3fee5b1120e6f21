/* install.c - see install.h. */
#include "lang/install.h"
#include "base/cleanup.h"

#include <stdio.h>
#include <string.h>

/* ---- plans ---- */

/* The arguments for a manager: the package source, and an installation below INSTALL_HOME with the
 * layout below / of a box with the layer. %s is the source, * the packages. */
struct recipe {
	const char *program; /* must be on the host */
	const char *debian;  /* the Debian package that installs the manager and its runtime */
	const char *from, *place;
	const char *registry[16];         /* with a registry */
	const char *mirror[16];           /* with a mirror on a volume; empty: not supported */
	const char *before[8];            /* a step before it */
	const char *after[12];            /* arguments after the packages */
	const char *env[INSTALL_ENV];     /* of the manager */
	const char *box_env[INSTALL_ENV]; /* of programs in a box with the layer */
};

/* A mirror of npm is a folder with the answers of a registry: a file per package, and the tarballs.
 * npm supports only HTTP, so this serves the folder on the loopback of the box during the
 * install. */
static const char npm_mirror[] =
	"const http=require('http'),fs=require('fs'),path=require('path');"
	"const {spawn}=require('child_process');"
	"const root='" INSTALL_MIRROR "/npm';"
	"const s=http.createServer((q,r)=>{"
	"const f=path.join(root,path.normalize('/'+decodeURIComponent(q.url.split('?')[0])));"
	"fs.readFile(f,(e,b)=>{r.writeHead(e?404:200,{'content-type':'application/json'});"
	"r.end(e?'{}':b)})});"
	"s.listen(0,'127.0.0.1',()=>{"
	"const c=spawn('/usr/bin/npm',[...process.argv.slice(1),"
	"'--registry=http://127.0.0.1:'+s.address().port+'/'],{stdio:'inherit'});"
	"c.on('exit',(x)=>process.exit(x===null?1:x))});";

#define NPM                                                                                        \
	"install", "--prefix=" INSTALL_HOME, "--no-audit", "--no-fund", "--no-update-notifier",    \
		"--no-save", "--replace-registry-host=always", "--fetch-retries=1",                \
		"--fetch-retry-mintimeout=500", "--loglevel=http"
#define PIP                                                                                        \
	"/usr/bin/python3", "-m", "pip", "install", "--root=" INSTALL_HOME, "--ignore-installed",  \
		"--no-input", "--no-compile", "--disable-pip-version-check",                       \
		"--no-warn-script-location"

/* The checksums of a module are checked; the checksum database is another host, which installs do
 * not contact. */
#define GO_MODULES "/home/user/modules"

/* apt without root: packages of the host count as installed (the keeper's copy of dpkg's list),
 * missing ones are downloaded, checked by apt, and unpacked. No script of a package is run. Files
 * outside of the folders that a layer may have are left out and reported. */
static const char apt_script[] =
	"set -e; umask 022; sources=$1; shift\n"
	"mkdir -p /home/user/apt/lists/partial /home/user/apt/archives/partial " INSTALL_HOME
	"/usr\n"
	"cd /home/user/apt; . /usr/lib/os-release; parts=main\n"
	"[ \"$ID\" != ubuntu ] || parts='main universe'\n"
	"for url in $sources; do\n"
	" suite=$VERSION_CODENAME\n"
	" case $url in\n"
	" copy:*) echo \"deb [trusted=yes] $url ./\"; continue ;;\n"
	" *security*) suite=$suite-security ;;\n"
	" esac\n"
	" echo \"deb [signed-by=/usr/share/keyrings/$ID-archive-keyring.gpg] $url $suite $parts\"\n"
	"done >list\n"
	"cat >conf <<-END\n"
	/* /dev/null: apt 3 warns about any other folder that does not exist. */
	"Dir::Etc::main \"/dev/null\"; Dir::Etc::parts \"/dev/null\";\n"
	"Dir::Etc::sourceparts \"/dev/null\"; Dir::Etc::sourcelist \"$PWD/list\";\n"
	"Dir::Etc::preferences \"/dev/null\"; Dir::Etc::preferencesparts \"/dev/null\";\n"
	"Dir::State \"$PWD\"; Dir::State::lists \"$PWD/lists\"; Dir::Log \"$PWD\";\n"
	"Dir::State::status \"/opt/atoll/status\";\n"
	"Dir::Cache \"$PWD\"; Dir::Cache::archives \"$PWD/archives\";\n"
	"APT::Sandbox::User \"\"; APT::Install-Recommends \"0\"; Debug::NoLocking \"1\";\n"
	"Acquire::Languages \"none\"; Acquire::Retries \"1\";\n"
	"END\n"
	"export APT_CONFIG=$PWD/conf\n"
	"apt-get -q update\n"
	"apt-get -q -y --download-only --allow-downgrades install -- \"$@\"\n"
	"cd " INSTALL_HOME "\n"
	"for deb in /home/user/apt/archives/*.deb; do\n"
	" [ ! -e \"$deb\" ] || { echo \"unpacking ${deb##*/}\"; dpkg-deb -x \"$deb\" .; }\n"
	"done\n"
	"for dir in bin sbin lib; do\n" /* of packages that still have folders outside of /usr */
	" [ ! -d $dir ] || { mkdir -p usr/$dir; cp -a $dir/. usr/$dir/; rm -r $dir; }\n"
	"done\n"
	"for dir in *; do case $dir in usr|opt|var|srv) ;; *)\n"
	" echo \"left out: /$dir\"; rm -r \"$dir\" ;; esac; done\n";
#define APT "/bin/sh", "-c", apt_script, "apt"

/* Crates are sources. The layer has them as `cargo vendor` stores them, and a file in the root of
 * the box, which every cargo reads, names this folder. A mirror is such a folder. */
#define CRATES "/opt/packages/cargo"
static const char cargo_script[] =
	"set -e; umask 022; from=$1; shift\n"
	"layer=" INSTALL_HOME "; export CARGO_HOME=/home/user/cargo\n"
	"mkdir -p /home/user/set/src /home/user/set/.cargo $layer/.cargo $layer" CRATES "\n"
	"cd /home/user/set; : >src/lib.rs\n"
	"for crate; do case $crate in\n"
	" *@*) echo \"${crate%%@*} = \\\"${crate#*@}\\\"\" ;;\n"
	" *) echo \"$crate = \\\"*\\\"\" ;;\n"
	"esac; done >$layer/opt/packages/cargo.toml\n"
	"{ printf '[package]\\nname = \"set\"\\nversion = \"0.0.0\"\\nedition = \"2021\"\\n[dependencies]\\n'\n"
	" cat $layer/opt/packages/cargo.toml; } >Cargo.toml\n"
	"printf '[source.crates-io]\\nreplace-with = \"set\"\\n[source.set]\\n%s\\n' \"$from\" >.cargo/config.toml\n"
	"cargo generate-lockfile\n"
	"case $from in\n"
	"registry*) cargo vendor --respect-source-config $layer" CRATES " >/dev/null ;;\n"
	"*) awk '/^name/{n=$3} /^version/{v=$3} /^source/{gsub(/\"/,\"\",n);gsub(/\"/,\"\",v);print n, v}' Cargo.lock |\n"
	" while read -r name version; do\n"
	"  for dir in " INSTALL_MIRROR "/cargo/$name-$version " INSTALL_MIRROR "/cargo/$name; do\n"
	"   [ ! -d $dir ] || { cp -r $dir $layer" CRATES "/$name-$version; break; }\n"
	"  done\n"
	" done ;;\n"
	"esac\n"
	"printf '[source.crates-io]\\nreplace-with = \"layer\"\\n[source.layer]\\ndirectory = \"%s\"\\n' " CRATES
	" >$layer/.cargo/config.toml\n";
#define CARGO "/bin/sh", "-c", cargo_script, "cargo"

static const struct recipe recipes[PM_COUNT] = {
	[PM_PIP] = {
		.program = "/usr/bin/python3", .debian = "python3-pip",
		.from = INSTALL_HOME, .place = "",
		.registry = { PIP, "--index-url=%s", "--", "*" },
		.mirror = { PIP, "--no-index", "--find-links=" INSTALL_MIRROR "/pip", "--", "*" },
		/* Hashes and not times: all files of a layer have the same time. */
		.after = { "/usr/bin/python3", "-m", "compileall", "-q", "--invalidation-mode",
			   "unchecked-hash", "-s", INSTALL_HOME, "-p", "/", INSTALL_HOME },
	},
	[PM_NPM] = {
		.program = "/usr/bin/npm", .debian = "npm",
		.from = INSTALL_HOME "/node_modules",
		.place = "node_modules",
		.registry = { "/usr/bin/npm", NPM, "--registry=%s", "--", "*" },
		.mirror = { "/usr/bin/node", "-e", npm_mirror, "--", NPM, "*" },
	},
	[PM_GEM] = {
		.program = "/usr/bin/gem", .debian = "ruby",
		.from = INSTALL_HOME, .place = "",
		.registry = { "/usr/bin/gem", "install", "--no-document", "--clear-sources",
			      "--source=%s", "--install-dir=" INSTALL_HOME "/var/lib/gems/%r",
			      "--bindir=" INSTALL_HOME "/usr/local/bin", "*" },
		.mirror = { "/usr/bin/gem", "install", "--no-document", "--clear-sources",
			    "--source=file://" INSTALL_MIRROR "/gem",
			    "--install-dir=" INSTALL_HOME "/var/lib/gems/%r",
			    "--bindir=" INSTALL_HOME "/usr/local/bin", "*" },
	},
	/* Downloads are stored as a module proxy answers: boxes use the folder as their proxy. */
	[PM_GO] = {
		.program = "/usr/bin/go", .debian = "golang-go",
		.from = GO_MODULES "/cache/download",
		.place = "opt/packages/go",
		.before = { "/usr/bin/go", "mod", "init", "atoll.invalid/set" },
		.registry = { "/usr/bin/go", "get", "--", "*" },
		.mirror = { "/usr/bin/go", "get", "--", "*" },
		.env = { "GOMODCACHE=" GO_MODULES, "GOFLAGS=-modcacherw", "GOPROXY=%s", "GOSUMDB=off",
			 "GOTOOLCHAIN=local" },
		.box_env = { "GOPROXY=file:///opt/packages/go", "GOFLAGS=-mod=mod", "GOSUMDB=off",
			     "GOTOOLCHAIN=local" },
	},
	[PM_CARGO] = {
		.program = "/usr/bin/cargo", .debian = "cargo",
		.from = INSTALL_HOME, .place = "",
		.registry = { CARGO, "registry = \"sparse+%s\"", "*" },
		.mirror = { CARGO, "directory = \"" INSTALL_MIRROR "/cargo\"", "*" },
	},
	[PM_APT] = {
		.program = "/usr/bin/apt-get", .debian = "apt",
		.from = INSTALL_HOME, .place = "",
		.registry = { APT, "%s", "*" },
		.mirror = { APT, "copy:" INSTALL_MIRROR "/apt", "*" },
	},
};

void install_env(enum package_manager m, const char *source, char text[512],
		 const char *out[INSTALL_ENV + 1])
{
	const char *const *env = recipes[m].env;
	unsigned n = 0;

	for (; n < INSTALL_ENV && env[n]; n++) {
		const char *at = strstr(env[n], "%s");

		out[n] = env[n];
		if (!at)
			continue;
		snprintf(text, 512, "%.*s%s", (int)(at - env[n]), env[n],
			 source ? source : "file://" INSTALL_MIRROR "/go");
		out[n] = text;
	}
	out[n] = NULL;
}

const char *const *install_box_env(enum package_manager m)
{
	return recipes[m].box_env;
}

/* %s: the source; %r: the runtime up to its first space. */
static const char *install_fill(struct install_plan *out, unsigned *ntexts, const char *word,
				const char *source, const char *runtime)
{
	const char *at = strlen(word) < sizeof(out->text[0]) ? strstr(word, "%s") : NULL,
		   *with = source;
	size_t n = strlen(with);
	char *to;

	if (!at) {
		at = strlen(word) < sizeof(out->text[0]) ? strstr(word, "%r") : NULL;
		with = runtime;
		n = strcspn(with, " ");
	}
	if (!at || *ntexts == ARRAY_LEN(out->text))
		return word;
	to = out->text[(*ntexts)++];
	snprintf(to, sizeof(out->text[0]), "%.*s%.*s%s", (int)(at - word), word, (int)n, with,
		 at + 2);
	return to;
}

static void add_step(struct install_plan *out, unsigned *ntexts, const char *const *words,
		     unsigned nwords, const struct packages *p, const char *source,
		     const char *runtime)
{
	const char **argv = out->steps[out->nsteps++].argv;
	unsigned n = 0;

	for (unsigned i = 0; i < nwords && words[i]; i++) {
		if (strcmp(words[i], "*") != 0) {
			argv[n++] = install_fill(out, ntexts, words[i], source, runtime);
			continue;
		}
		for (unsigned k = 0; k < p->n; k++)
			argv[n++] = p->v[k];
	}
	argv[n] = NULL;
}

const char *install_setting(enum package_manager m)
{
	static const char *const names[PM_COUNT] = {
		[PM_PIP] = "packages.pip_index",     [PM_NPM] = "packages.npm_registry",
		[PM_APT] = "packages.apt_mirrors",   [PM_GEM] = "packages.gem_source",
		[PM_CARGO] = "packages.cargo_index", [PM_GO] = "packages.go_proxy",
	};

	return names[m];
}

int install_plan(const struct packages *p, const struct install_conf *conf,
		 struct install_plan *out, struct err *e)
{
	const struct recipe *r = &recipes[p->manager];
	const char *name = package_manager_name(p->manager), *source = conf->source[p->manager],
		   *runtime = conf->runtime[p->manager] ? conf->runtime[p->manager] : "";
	int mirrored = !source && conf->mirror && r->mirror[0];
	unsigned ntexts = 0;

	*out = (struct install_plan){ .from = r->from, .place = r->place };
	if (!r->program)
		return err_set(e, ERR_DENIED, "packages of %s cannot be installed yet", name);
	if (!*runtime)
		return err_set(
			e, ERR_DENIED,
			"%s is not on this host, so %s packages are of no use: apt-get install %s",
			r->program, name, r->debian);
	if (!source && !mirrored)
		return err_set(
			e, ERR_DENIED,
			"no source for %s packages is configured: set %s or packages.mirror in the daemon's "
			"settings",
			name, install_setting(p->manager));
	if (r->before[0])
		add_step(out, &ntexts, r->before, ARRAY_LEN(r->before), p, "", runtime);
	add_step(out, &ntexts, mirrored ? r->mirror : r->registry, ARRAY_LEN(r->mirror), p,
		 source ? source : "", runtime);
	if (r->after[0])
		add_step(out, &ntexts, r->after, ARRAY_LEN(r->after), p, "", runtime);
	return 0;
}

/* ---- complaints ---- */

static const char *const faults[INSTALL_FAULTS] = {
	[INSTALL_UNKNOWN] = "failed",
	[INSTALL_NO_PACKAGE] = "no_such_package",
	[INSTALL_NO_VERSION] = "no_such_version",
	[INSTALL_BUILD] = "build_failure",
	[INSTALL_UNREACHABLE] = "unreachable",
	[INSTALL_NOT_CONFIGURED] = "not_configured",
	[INSTALL_NO_MANAGER] = "no_manager",
	[INSTALL_TIMEOUT] = "timeout",
	[INSTALL_TOO_LARGE] = "too_large",
};

const char *install_fault_name(enum install_fault f)
{
	return faults[f];
}

/* The first row whose text occurs in the output; rows that explain others come first: a package
 * that is not found because no server answers is an unreachable network. */
static const struct complaint {
	enum package_manager manager;
	enum install_fault fault;
	const char *words;
	const char *before;   /* the text before the package name in that line; NULL: no name */
	const char *versions; /* the text before the list of versions, which ends with ')' */
} complaints[] = {
	{ PM_PIP, INSTALL_NO_MANAGER, "/usr/bin/python3: No module named pip", NULL, NULL },
	{ PM_NPM, INSTALL_NO_MANAGER, "spawn /usr/bin/npm ENOENT", NULL, NULL },
	{ PM_NPM, INSTALL_NO_MANAGER, "cannot execute '/usr/bin/npm'", NULL, NULL },
	{ PM_GEM, INSTALL_NO_MANAGER, "cannot execute '/usr/bin/gem'", NULL, NULL },
	{ PM_PIP, INSTALL_UNREACHABLE, "Failed to establish a new connection", NULL, NULL },
	{ PM_PIP, INSTALL_UNREACHABLE, "Temporary failure in name resolution", NULL, NULL },
	{ PM_PIP, INSTALL_UNREACHABLE, "Max retries exceeded", NULL, NULL },
	{ PM_PIP, INSTALL_UNREACHABLE, "ProxyError", NULL, NULL },
	{ PM_PIP, INSTALL_UNREACHABLE, "Read timed out", NULL, NULL },
	{ PM_PIP, INSTALL_TOO_LARGE, "No space left on device", NULL, NULL },
	{ PM_PIP, INSTALL_NO_PACKAGE, "(from versions: none)", "requirement ", NULL },
	{ PM_PIP, INSTALL_NO_VERSION, "(from versions: ", "requirement ", "(from versions: " },
	{ PM_PIP, INSTALL_NO_PACKAGE, "No matching distribution found for ", "found for ", NULL },
	{ PM_PIP, INSTALL_BUILD, "Failed building wheel for ", "wheel for ", NULL },
	{ PM_PIP, INSTALL_BUILD, "metadata-generation-failed", NULL, NULL },
	{ PM_PIP, INSTALL_BUILD, "subprocess-exited-with-error", NULL, NULL },
	{ PM_NPM, INSTALL_UNREACHABLE, "ENOTFOUND", NULL, NULL },
	{ PM_NPM, INSTALL_UNREACHABLE, "ECONNREFUSED", NULL, NULL },
	{ PM_NPM, INSTALL_UNREACHABLE, "ETIMEDOUT", NULL, NULL },
	{ PM_NPM, INSTALL_UNREACHABLE, "EAI_AGAIN", NULL, NULL },
	{ PM_NPM, INSTALL_UNREACHABLE, "ECONNRESET", NULL, NULL },
	{ PM_NPM, INSTALL_TOO_LARGE, "ENOSPC", NULL, NULL },
	{ PM_NPM, INSTALL_NO_PACKAGE, "is not in this registry", "'", NULL },
	{ PM_NPM, INSTALL_NO_PACKAGE, "could not be found or you do not have", "'", NULL },
	{ PM_NPM, INSTALL_NO_VERSION, "No matching version found for ", "found for ", NULL },
	{ PM_NPM, INSTALL_BUILD, "gyp ERR!", NULL, NULL },
	{ PM_NPM, INSTALL_BUILD, "command failed", NULL, NULL },
	{ PM_NPM, INSTALL_BUILD, "ELIFECYCLE", NULL, NULL },
	{ PM_GEM, INSTALL_UNREACHABLE, "Unable to download data from", NULL, NULL },
	{ PM_GEM, INSTALL_UNREACHABLE, "Failed to open TCP connection", NULL, NULL },
	{ PM_GEM, INSTALL_TOO_LARGE, "No space left on device", NULL, NULL },
	{ PM_GEM, INSTALL_NO_PACKAGE, "(>= 0) in any repository", "gem '", NULL },
	{ PM_GEM, INSTALL_NO_VERSION, "Could not find a valid gem '", "gem '", NULL },
	{ PM_GEM, INSTALL_BUILD, "Failed to build gem native extension", NULL, NULL },
	{ PM_CARGO, INSTALL_NO_PACKAGE, "no matching package named", "named `", NULL },
	{ PM_CARGO, INSTALL_NO_VERSION, "failed to select a version for", "requirement `", NULL },
	{ PM_CARGO, INSTALL_NO_VERSION, "candidate versions found which didn't match", NULL, NULL },
	{ PM_CARGO, INSTALL_TOO_LARGE, "No space left on device", NULL, NULL },
	{ PM_CARGO, INSTALL_UNREACHABLE, "ould not connect", NULL, NULL },
	{ PM_CARGO, INSTALL_UNREACHABLE, "ouldn't resolve host", NULL, NULL },
	{ PM_GO, INSTALL_UNREACHABLE, "dial tcp", NULL, NULL },
	{ PM_GO, INSTALL_NO_VERSION, "unknown revision", "go: ", NULL },
	{ PM_GO, INSTALL_NO_PACKAGE, "404 Not Found", "go: ", NULL },
	{ PM_APT, INSTALL_TOO_LARGE, "No space left on device", NULL, NULL },
	{ PM_APT, INSTALL_TOO_LARGE, "don't have enough free space", NULL, NULL },
	{ PM_APT, INSTALL_UNREACHABLE, "Could not connect", NULL, NULL },
	{ PM_APT, INSTALL_UNREACHABLE, "Unable to connect", NULL, NULL },
	{ PM_APT, INSTALL_UNREACHABLE, "Failed to fetch", NULL, NULL },
	{ PM_APT, INSTALL_UNREACHABLE, "Could not resolve", NULL, NULL },
	{ PM_APT, INSTALL_NO_PACKAGE, "Unable to locate package ", "package ", NULL },
	{ PM_APT, INSTALL_NO_PACKAGE, "has no installation candidate", "Package '", NULL },
	{ PM_APT, INSTALL_NO_VERSION, "' was not found", "for '", NULL },
	{ PM_APT, INSTALL_NO_VERSION, "have unmet dependencies", NULL, NULL },
};

/* The text between two marks of one line. */
static void cut_out(const char *line, const char *end, const char *before, const char *stops,
		    char *out, size_t size)
{
	const char *at = memmem(line, (size_t)(end - line), before, strlen(before));
	size_t n = 0;

	if (!at)
		return;
	at += strlen(before);
	while (at + n < end && !strchr(stops, at[n]) && n + 1 < size)
		n++;
	memcpy(out, at, n);
	out[n] = 0;
}

static void line_of(const char *said, size_t n, const char *at, const char **out_line,
		    const char **out_end)
{
	const char *line = at, *end = memchr(at, '\n', (size_t)(said + n - at));

	while (line > said && line[-1] != '\n')
		line--;
	*out_line = line;
	*out_end = end ? end : said + n;
}

/* The valid part of the name; npm prints 'name@*'. */
static void set_package(enum package_manager m, struct install_diagnosis *d, const char *found)
{
	struct packages p = { .manager = m };
	char name[PACKAGE_TEXT + 1];
	struct err ignored;

	package_name(m, found, name);
	if (name[0] && packages_add(&p, name, &ignored) == 0)
		snprintf(d->package, sizeof(d->package), "%s", p.v[0]);
	packages_fini(&p);
}

void install_diagnose(enum package_manager m, const char *said, size_t n,
		      struct install_diagnosis *out)
{
	const char *line, *end, *at = NULL;
	const struct complaint *c = complaints;
	char found[PACKAGE_TEXT + 1] = "";

	*out = (struct install_diagnosis){ .fault = INSTALL_UNKNOWN };
	for (; c < complaints + ARRAY_LEN(complaints); c++)
		if (c->manager == m && n && (at = memmem(said, n, c->words, strlen(c->words))))
			break;
	if (!at)
		return;
	out->fault = c->fault;
	line_of(said, n, at, &line, &end);
	snprintf(out->line, sizeof(out->line), "%.*s", (int)(end - line < 255 ? end - line : 255),
		 line);
	if (c->before)
		cut_out(line, end, c->before, " '`\"\n", found, sizeof(found));
	if (found[0])
		set_package(m, out, found);
	if (c->versions)
		cut_out(line, end, c->versions, ")\n", out->versions, sizeof(out->versions));
}

/* The last line that is not empty, without the spaces around it. npm ends with the name of a log file in the
 * install box, which no longer exists then: the line before that. */
static void install_last_line(const char *said, size_t n, char *out, size_t size)
{
	static const char log_file[] = "A complete log of this run";
	const char *line, *end, *log = n ? memmem(said, n, log_file, strlen(log_file)) : NULL;

	if (log) {
		line_of(said, n, log, &line, &end);
		n = (size_t)(line - said);
	}
	while (n && strchr(" \t\r\n", said[n - 1]))
		n--;
	if (!n)
		return;
	line_of(said, n, said + n - 1, &line, &end);
	while (line < end && strchr(" \t", *line))
		line++;
	snprintf(out, size, "%.*s", (int)(end - line < 255 ? end - line : 255), line);
}

void install_explain(enum package_manager m, const char *said, size_t n,
		     struct install_diagnosis *d, char *out, size_t size)
{
	const char *name = package_manager_name(m);

	switch (d->fault) {
	case INSTALL_NO_MANAGER:
		snprintf(out, size, "install: %s is not installed on this host: apt-get install %s",
			 name, recipes[m].debian);
		break;
	case INSTALL_NO_PACKAGE:
		snprintf(out, size, "install: %s knows no package '%.80s'", name, d->package);
		break;
	case INSTALL_NO_VERSION:
		snprintf(out, size, "install: %s has no such version of '%.80s'", name, d->package);
		break;
	case INSTALL_UNREACHABLE:
		snprintf(out, size, "install: the registry of %s cannot be reached", name);
		break;
	case INSTALL_BUILD:
		snprintf(out, size, "install: a package could not be built");
		break;
	default:
		if (!d->line[0])
			install_last_line(said, n, d->line, sizeof(d->line));
		snprintf(out, size, "install: %s failed: %.160s", name,
			 d->line[0] ? d->line : "it printed nothing");
	}
}
