/* imports_test.c - the package for an import, and packages that must not be installed. */
#include "debug/imports.h"
#include "base/cleanup.h"
#include "lang/popular_packages.h"
#include "tap.h"

/* "install pip pillow", "guess npm x", "builtin", "mistyped json", "replaced queue", "suspect
 * requests", "none" */
static const char *find(const char *language, const char *name)
{
	static const char *const kinds[] = { "none",     "install",  "guess",  "builtin",
					     "mistyped", "replaced", "suspect" };
	static char out[600];
	struct import i;

	import_find(lang_named(language), name, &i);
	if (i.kind == IMPORT_KNOWN || i.kind == IMPORT_GUESSED)
		snprintf(out, sizeof(out), "%s %s %s", kinds[i.kind],
			 package_manager_name(i.manager), i.package);
	else
		snprintf(out, sizeof(out), "%s%s%s", kinds[i.kind], *i.meant ? " " : "", i.meant);
	return out;
}

TEST(an_import_is_mapped_to_its_package)
{
	static const struct {
		const char *language, *name, *package;
	} rows[] = {
		{ "python", "cv2", "install pip opencv-python" },
		{ "python", "PIL", "install pip pillow" },
		{ "python", "PIL.Image", "install pip pillow" },
		{ "python", "yaml", "install pip pyyaml" },
		{ "python", "bs4", "install pip beautifulsoup4" },
		{ "python", "sklearn.linear_model", "install pip scikit-learn" },
		{ "python", "dateutil.parser", "install pip python-dateutil" },
		{ "python", "Crypto.Cipher", "install pip pycryptodome" },
		{ "python", "serial", "install pip pyserial" },
		{ "python", "dotenv", "install pip python-dotenv" },
		{ "python", "jwt", "install pip pyjwt" },
		{ "python", "google.cloud.storage", "install pip google-cloud-storage" },
		{ "python", "google.protobuf.message", "install pip protobuf" },
		{ "python", "numpy", "install pip numpy" },
		{ "python", "requests.exceptions", "install pip requests" },
		{ "python", "flask_cors", "install pip flask-cors" },
		{ "python", "ujson", "install pip ujson" },
		{ "node", "lodash/fp", "install npm lodash" },
		{ "node", "express", "install npm express" },
		{ "node", "@prisma/client", "install npm @prisma/client" },
		{ "typescript", "zod", "install npm zod" },
		{ "ruby", "nokogiri", "install gem nokogiri" },
		{ "ruby", "active_support/core_ext", "install gem activesupport" },
		{ "ruby", "zip", "install gem rubyzip" },
		{ "rust", "serde", "install cargo serde" },
		{ "rust", "num_bigint", "install cargo num-bigint" },
		{ "go", "github.com/google/uuid", "install go github.com/google/uuid" },
		{ "go", "github.com/spf13/cobra/doc", "install go github.com/spf13/cobra" },
		{ "c", "zlib.h", "install apt zlib1g-dev" },
		{ "c", "curl/curl.h", "install apt libcurl4-openssl-dev" },
		{ "c++", "nlohmann/json.hpp", "install apt nlohmann-json3-dev" },
		{ "c++", "boost/asio.hpp", "install apt libboost-dev" },
		{ "perl", "LWP::UserAgent", "install apt libwww-perl" },
		{ "lua", "socket.http", "install apt lua-socket" },
		{ "php", "Imagick", "install apt php-imagick" },
		{ "bash", "jq", "install apt jq" },
		{ "bash", "convert", "install apt imagemagick" },
		{ "r", "ggplot2", "install apt r-cran-ggplot2" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		CHECK_STR(find(rows[i].language, rows[i].name), rows[i].package);
}

TEST(standard_library_modules_are_never_installed)
{
	CHECK_STR(find("python", "json"), "builtin");
	CHECK_STR(find("python", "os.path"), "builtin");
	CHECK_STR(find("python", "tkinter"), "builtin");
	CHECK_STR(find("node", "fs"), "builtin");
	CHECK_STR(find("node", "fs/promises"), "builtin");
	CHECK_STR(find("node", "node:fs"), "builtin");
	CHECK_STR(find("node", "node:nonsense"), "builtin");
	CHECK_STR(find("ruby", "json"), "builtin");
	CHECK_STR(find("ruby", "net/http"), "builtin");
	CHECK_STR(find("rust", "std::collections"), "builtin");
	CHECK_STR(find("go", "fmt"), "builtin");
	CHECK_STR(find("c", "stdio.h"), "builtin");
	CHECK_STR(find("c++", "vector"), "builtin");
	CHECK_STR(find("perl", "List::Util"), "builtin");
	CHECK_STR(find("lua", "string"), "builtin");
	CHECK_STR(find("r", "stats"), "builtin");
}

TEST(a_mistyped_import_is_corrected)
{
	CHECK_STR(find("python", "maths"), "mistyped math");
	CHECK_STR(find("python", "jsn"), "mistyped json");
	CHECK_STR(find("python", "colections"), "mistyped collections");
	CHECK_STR(find("python", "Random"), "mistyped random");
	CHECK_STR(find("node", "cryto"), "mistyped crypto");
	CHECK_STR(find("go", "stings"), "mistyped strings");
	CHECK_STR(find("go", "encodng/json"), "mistyped encoding/json");
	CHECK_STR(find("c", "stdoi.h"), "mistyped stdio.h");
	CHECK_STR(find("ruby", "jsno"), "mistyped json");
	CHECK_STR(find("perl", "List::Utl"), "mistyped List::Util");
}

TEST(a_module_name_of_python_2_is_replaced)
{
	CHECK_STR(find("python", "urllib2"), "replaced urllib.request");
	CHECK_STR(find("python", "ConfigParser"), "replaced configparser");
	CHECK_STR(find("python", "Tkinter"), "replaced tkinter");
}

TEST(a_name_one_letter_from_a_popular_package_is_rejected)
{
	CHECK_STR(find("python", "reqeusts"), "suspect requests");
	CHECK_STR(find("python", "numpyy"), "suspect numpy");
	CHECK_STR(find("python", "pandsa"), "suspect pandas");
	CHECK_STR(find("node", "expres"), "suspect express");
	CHECK_STR(find("node", "lodahs"), "suspect lodash");
	CHECK_STR(find("rust", "serd"), "suspect serde");
	CHECK_STR(find("go", "github.com/gogle/uuid"), "suspect github.com/google/uuid");
}

TEST(an_unlisted_valid_name_is_a_guess)
{
	CHECK_STR(find("python", "zebrafish_tools"), "guess pip zebrafish_tools");
	CHECK_STR(find("node", "@scope/thing/deep"), "guess npm @scope/thing");
	CHECK_STR(find("go", "example.com/a/b/c"), "guess go example.com/a/b");
	CHECK_STR(find("perl", "Foo::Bar"), "guess apt libfoo-bar-perl");
	CHECK_STR(find("r", "ZedPlot"), "guess apt r-cran-zedplot");
	/* Lines that have no information about the name of a package. */
	CHECK_STR(find("c", "zebra.h"), "none");
	CHECK_STR(find("lua", "zebra"), "none");
	CHECK_STR(find("bash", "frobnicate"), "none");
	CHECK_STR(find("php", "Zebra\\Fish"), "none");
	CHECK_STR(find("go", "zebra"), "none");
	CHECK_STR(find("java", "org.example"), "none");
}

TEST(an_invalid_module_name_has_no_package)
{
	static const char *const names[] = {
		"", "-rf", "../x", "a b", "x;y", "--index-url=x", "\xff\xfe", ".", "/", "@", "::"
	};
	char big[1000];

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		CHECK_STR(find("python", names[i]), "none");
		CHECK_STR(find("c", names[i]), "none");
	}
	memset(big, 'a', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	for (unsigned i = 0; i < lang_count(); i++)
		CHECK_STR(find(lang_at(i)->name, big), "none");
	CHECK_STR(find("nosuchlanguage", "x"), "none");
}

TEST(a_c_library_is_found_by_header_and_symbol)
{
	const struct lang *c = lang_named("c");

	CHECK_STR(import_link(c, "zlib.h"), "z");
	CHECK_STR(import_link(c, "sqlite3_open"), "sqlite3");
	CHECK_STR(import_link(c, "SSL_new"), "ssl -lcrypto");
	CHECK_STR(import_link(c, "curl_easy_init"), "curl");
	CHECK_STR(import_link(c, "my_function"), "");
	CHECK_STR(import_link(lang_named("python"), "zlib"), "");
	CHECK_STR(import_link(NULL, "x"), "");
}

static unsigned in_common(enum package_manager m, const char *name)
{
	for (const char *const *c = common_names[m]; c && *c; c++)
		if (!strcmp(*c, name))
			return 1;
	return 0;
}

TEST(no_name_is_in_two_import_lists)
{
	for (unsigned i = 0; i < lang_count(); i++) {
		const struct toml_node *t = import_table(lang_at(i)),
				       *known = t ? toml_get(t, "known") : NULL;
		int m = t ? package_manager_named(image_text(t, "manager")) : -1;

		CHECK(!t || m >= 0);
		for (const struct toml_node *k = known ? known->in.first : NULL; k; k = k->next) {
			if (in_common((enum package_manager)m, k->text) ||
			    image_has(toml_get(t, "builtin"), k->text))
				printf("# %s: %s is there twice\n", lang_at(i)->name, k->text);
			CHECK(!in_common((enum package_manager)m, k->text));
			CHECK(!image_has(toml_get(t, "builtin"), k->text));
		}
	}
}

TEST(the_import_tables_have_the_documented_size)
{
	const struct toml_node *py = import_table(lang_named("python"));

	CHECK(toml_get(py, "names")->in.count >= 150);
	CHECK(toml_get(py, "known")->in.count >= 200);
	CHECK(toml_get(py, "builtin")->in.count >= 200);
}
