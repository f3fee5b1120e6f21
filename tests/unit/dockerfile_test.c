/* dockerfile_test.c - from a Dockerfile to a definition, and the variables in it. */
#include "template/dockerfile.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "template/expand.h"

#include "tap.h"

#include <stdio.h>
#include <stdlib.h>

static struct err e;

/* The definition as sorted JSON text, or the error. Freed by the next call. */
static const char *parsed_with(const char *text, const struct dockerfile_options *o)
{
	static char *last;
	json_t *doc;

	free(last);
	memset(&e, 0, sizeof(e));
	if (dockerfile_parse(text, strlen(text), o, &doc, &e) < 0)
		return last = strdup(e.msg);
	if (definition_check(doc, &e) < 0 && !strstr(e.msg, "needs `files`"))
		last = strdup(e.msg);
	else
		last = json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(doc);
	return last;
}

static const char *parsed(const char *text)
{
	return parsed_with(text, &(struct dockerfile_options){ .arch = "amd64" });
}

/* One stage from x, named 0: the steps alone. */
static const char *steps_of(const char *text)
{
	static char *last;
	auto_buf struct buf all = { 0 };
	const char *got, *steps;
	json_t *doc;

	buf_printf(&all, "FROM x\n%s", text);
	got = parsed(buf_str(&all));
	doc = json_loads(got, 0, NULL);
	if (!doc)
		return got;
	free(last);
	steps = last = json_dumps(json_object_get(json_array_get(json_object_get(doc, "stages"), 0),
						  "steps"),
				  JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(doc);
	return steps;
}

/* A setting of the definition of a file with one stage. */
static const char *setting_of(const char *name, const char *text)
{
	static char *last;
	auto_buf struct buf all = { 0 };
	json_t *doc, *v;

	buf_printf(&all, "FROM x\n%s", text);
	doc = json_loads(parsed(buf_str(&all)), 0, NULL);
	if (!doc)
		return e.msg;
	free(last);
	v = json_object_get(doc, name);
	last = json_is_string(v) ? strdup(json_string_value(v))
	       : v               ? json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY)
				 : strdup("(none)");
	json_decref(doc);
	return last;
}

/* ---- stages ---- */

TEST(the_recipe_of_the_container_image_is_understood)
{
	auto_buf struct buf text = { 0 };
	FILE *f = fopen(TESTS "/../deploy/container/Dockerfile", "re");
	const char *got;
	size_t n;

	CHECK(f != NULL);
	while (f && (n = fread(buf_space(&text, 4096), 1, 4096, f)) > 0)
		buf_grew(&text, n);
	if (f)
		fclose(f);
	got = parsed(buf_str(&text));
	CHECK(strstr(got, "\"debian:12-slim\""));
	CHECK(strstr(got, "/usr/bin/atoll") && strstr(got, "serve"));
}

TEST(a_small_file_is_one_stage)
{
	CHECK_STR(
		parsed("FROM debian:12\nRUN apt-get update\nCMD node main.js\n"),
		"{\"cmd\":[\"/bin/sh\",\"-c\",\"node main.js\"],"
		"\"stages\":[{\"from\":\"debian:12\",\"name\":\"0\",\"steps\":[{\"args\":[\"apt-get update\"],"
		"\"line\":2,\"type\":\"RUN\"}]}],\"start\":\"node main.js\",\"target\":0}");
	CHECK_STR(parsed("from base"),
		  "{\"stages\":[{\"from\":\"base\",\"name\":\"0\",\"steps\":[]}],\"target\":0}");
}

TEST(only_stages_that_the_target_needs_are_kept)
{
	static const char text[] = "FROM a AS one\nRUN 1\nFROM b AS two\nRUN 2\nFROM one AS Three\n"
				   "COPY --from=two /x /y\nFROM c AS last\nCOPY --from=0 /a /b\n";

	CHECK_STR(
		parsed(text),
		"{\"stages\":[{\"from\":\"a\",\"name\":\"one\",\"steps\":[{\"args\":[\"1\"],\"line\":2,\"type\":\"RUN\"}]},"
		"{\"from\":\"c\",\"name\":\"last\",\"steps\":[{\"args\":[\"/a\",\"/b\"],\"from\":\"one\",\"line\":8,"
		"\"type\":\"COPY\"}]}],\"target\":1}");
	CHECK_STR(
		parsed_with(text, &(struct dockerfile_options){ .target = "three" }),
		"{\"stages\":[{\"from\":\"a\",\"name\":\"one\",\"steps\":[{\"args\":[\"1\"],\"line\":2,\"type\":\"RUN\"}]},"
		"{\"from\":\"b\",\"name\":\"two\",\"steps\":[{\"args\":[\"2\"],\"line\":4,\"type\":\"RUN\"}]},"
		"{\"from\":\"one\",\"name\":\"three\",\"steps\":[{\"args\":[\"/x\",\"/y\"],\"from\":\"two\",\"line\":6,"
		"\"type\":\"COPY\"}]}],\"target\":2}");
	CHECK_STR(parsed_with(text, &(struct dockerfile_options){ .target = "four" }),
		  "Dockerfile: no stage named 'four'; the last is 'last'");
}

TEST(a_stage_has_the_settings_of_the_stage_that_it_continues)
{
	CHECK_STR(
		parsed("FROM a AS one\nENTRYPOINT [\"node\"]\nEXPOSE 80\nLABEL a=b\n"
		       "HEALTHCHECK CMD true\nFROM one\nCMD [\"x y\"]\n"),
		"{\"labels\":{\"a\":\"b\"},\"port\":80,\"ready\":\"true\",\"stages\":[{\"from\":\"a\",\"name\":\"one\","
		"\"steps\":[]},{\"from\":\"one\",\"name\":\"1\",\"steps\":[]}],\"start\":\"node 'x y'\",\"target\":1}");
}

TEST(variables_in_from_are_replaced)
{
	json_t *args = json_pack("{s:s, s:s}", "V", "$3", "unused", "1");

	CHECK_STR(
		parsed("ARG A=deb\nARG B=${A}ian\nFROM --platform=$TARGETPLATFORM $B:${V:-12}"),
		"{\"stages\":[{\"from\":\"debian:12\",\"name\":\"0\",\"steps\":[]}],\"target\":0}");
	CHECK_STR(
		parsed_with("ARG V=1\nFROM x:$V", &(struct dockerfile_options){ .args = args }),
		"{\"notes\":[\"build arg unused: no ARG in the file has this name\"],\"stages\":[{\"from\":\"x:$3\","
		"\"name\":\"0\",\"steps\":[]}],\"target\":0}");
	json_decref(args);
	CHECK_STR(
		parsed("FROM $NONE AS x"),
		"Dockerfile:1: '$NONE' is empty: type ARG NAME=IMAGE before FROM, or --build-arg: 'FROM $NONE AS x'");
}

TEST(errors_of_from_have_their_line)
{
	CHECK_STR(parsed("\n\nFROM\n"),
		  "Dockerfile:3: type FROM IMAGE or FROM IMAGE AS NAME: 'FROM'");
	CHECK_STR(parsed("FROM a b"),
		  "Dockerfile:1: type FROM IMAGE or FROM IMAGE AS NAME: 'FROM a b'");
	CHECK_STR(parsed("FROM a AS b c"),
		  "Dockerfile:1: type FROM IMAGE or FROM IMAGE AS NAME: 'FROM a AS b c'");
	CHECK_STR(
		parsed("FROM a AS 1x"),
		"Dockerfile:1: '1x' is not a name of a stage: a letter, then letters, digits, -_.: 'FROM a AS 1x'");
	CHECK_STR(parsed("FROM a AS b\nFROM c AS B"),
		  "Dockerfile:2: there is a stage named b already: 'FROM c AS B'");
	CHECK_STR(
		parsed("FROM --platform=linux/arm64 a"),
		"Dockerfile:1: platform 'linux/arm64' is not this machine's: linux/amd64: 'FROM --platform=linux/arm64 a'");
	CHECK_STR(
		parsed("FROM --platfrom=x a"),
		"Dockerfile:1: FROM does not support --platfrom; did you mean --platform: 'FROM --platfrom=x a'");
	CHECK_STR(parsed("# nothing\n"),
		  "Dockerfile: no FROM: the first line is FROM base or FROM IMAGE");
	CHECK_STR(parsed("RUN x\n"),
		  "Dockerfile:1: FROM must come before RUN: type FROM base or FROM IMAGE: 'RUN x'");
}

/* ---- lines ---- */

TEST(lines_are_joined_and_comments_left_out)
{
	CHECK_STR(steps_of("RUN a \\\n  # a comment\n\n  b \\  \n&& c\\\\\n"),
		  "[{\"args\":[\"a   b && c\\\\\\\\\"],\"line\":2,\"type\":\"RUN\"}]");
	CHECK_STR(steps_of("RUN a\\"), "[{\"args\":[\"a\"],\"line\":2,\"type\":\"RUN\"}]");
	CHECK_STR(
		steps_of("RUN a\r\nRUN b\r\n"),
		"[{\"args\":[\"a\"],\"line\":2,\"type\":\"RUN\"},{\"args\":[\"b\"],\"line\":3,\"type\":\"RUN\"}]");
}

TEST(directives_come_first)
{
	CHECK_STR(
		parsed("\xef\xbb\xbf# syntax=docker/dockerfile:1.7\n# Escape = `\nFROM x\nRUN a `\nb\\"),
		"{\"stages\":[{\"from\":\"x\",\"name\":\"0\",\"steps\":[{\"args\":[\"a b\\\\\"],\"line\":4,"
		"\"type\":\"RUN\"}]}],\"target\":0}");
	CHECK_STR(
		parsed("# comment\n# escape=`\nFROM x\nRUN a \\\nb"),
		"{\"stages\":[{\"from\":\"x\",\"name\":\"0\",\"steps\":[{\"args\":[\"a b\"],\"line\":4,\"type\":\"RUN\"}]}],"
		"\"target\":0}");
	CHECK_STR(parsed("# escape=x\nFROM x"), "Dockerfile:1: escape is 'x': it can be \\ or `");
	CHECK_STR(parsed("# syntax=other/frontend\nFROM x"),
		  "Dockerfile: syntax 'other/frontend' is not supported, only docker/dockerfile");
}

TEST(an_unknown_instruction_has_a_suggestion)
{
	CHECK_STR(parsed("FROM x\nRNU apt-get update"),
		  "Dockerfile:2: unknown instruction RNU; did you mean RUN?: 'RNU apt-get update'");
	CHECK_STR(
		parsed("FROM x\nRUN a\n  && apt-get install"),
		"Dockerfile:3: unknown instruction &&; a line that continues the one before needs a \\ at that one's end: "
		"'&& apt-get install'");
	CHECK_STR(
		parsed("FROM x\nONBUILD RUN x"),
		"Dockerfile:2: ONBUILD is not supported: write the instruction in the file that starts FROM this "
		"template: 'ONBUILD RUN x'");
}

TEST(what_is_no_text_is_rejected)
{
	json_t *doc;

	CHECK(dockerfile_parse("FROM x\nRUN \0", 12, &(struct dockerfile_options){ 0 }, &doc, &e) <
	      0);
	CHECK_STR(e.msg, "Dockerfile:2: not a text file: byte 11 is not UTF-8 or a NUL");
	CHECK_STR(parsed_with("FROM x\nRUN \xff",
			      &(struct dockerfile_options){ .file = "my.Dockerfile" }),
		  "my.Dockerfile:2: not a text file: byte 11 is not UTF-8 or a NUL");
}

TEST(size_and_number_of_steps_are_bounded)
{
	auto_buf struct buf text = { 0 };
	json_t *doc;

	buf_puts(&text, "FROM x\n");
	for (unsigned i = 0; i <= DEFINITION_STEPS; i++)
		buf_puts(&text, "RUN a\n");
	CHECK_STR(parsed(buf_str(&text)), "Dockerfile:502: more than 500 steps: 'RUN a'");
	buf_cut(&text, 0);
	for (unsigned i = 0; i <= DEFINITION_STAGES; i++)
		buf_puts(&text, "FROM x\n");
	CHECK_STR(parsed(buf_str(&text)), "Dockerfile:65: more than 64 stages: 'FROM x'");
	memset(buf_space(&text, DOCKERFILE_BYTES), 'x', DOCKERFILE_BYTES);
	buf_grew(&text, DOCKERFILE_BYTES);
	CHECK(dockerfile_parse(text.p, text.len, &(struct dockerfile_options){ 0 }, &doc, &e) < 0);
	CHECK_INT(e.kind, ERR_LIMIT);
	CHECK_STR(e.msg, "Dockerfile has 1049031 bytes, of at most 1048576");
}

TEST(values_that_double_with_each_line_are_bounded)
{
	auto_buf struct buf text = { 0 };

	buf_puts(&text, "FROM x\nENV A=aaaaaaaaaaaaaaaa\n");
	for (unsigned i = 0; i < 40; i++)
		buf_puts(&text, "ENV A=$A$A\n");
	CHECK(strstr(parsed(buf_str(&text)), "becomes longer than 65536 bytes"));
	buf_cut(&text, 0);
	buf_puts(&text, "FROM x\nENV A=aaaaaaaaaaaaaaaa\n");
	for (unsigned i = 0; i < 12; i++)
		buf_puts(&text, "ENV A=$A$A\n");
	for (unsigned i = 0; i < 200; i++)
		buf_printf(&text, "ENV B%u=$A\n", i);
	CHECK(strstr(parsed(buf_str(&text)), "the values of all variables are longer than 4 MiB"));
}

/* ---- RUN ---- */

TEST(run_has_a_shell_form_and_an_exec_form)
{
	CHECK_STR(steps_of("RUN [\"a b\", \"$c\"]"),
		  "[{\"args\":[\"a b\",\"$c\"],\"exec\":true,\"line\":2,\"type\":\"RUN\"}]");
	CHECK_STR(steps_of("RUN [ -f /x ] && echo \"$y\""),
		  "[{\"args\":[\"[ -f /x ] && echo \\\"$y\\\"\"],\"line\":2,\"type\":\"RUN\"}]");
	CHECK_STR(
		steps_of("SHELL [\"/bin/bash\", \"-c\"]\nRUN a"),
		"[{\"args\":[\"a\"],\"line\":3,\"shell\":[\"/bin/bash\",\"-c\"],\"type\":\"RUN\"}]");
	CHECK_STR(steps_of("RUN"), "Dockerfile:2: RUN has no command: type RUN COMMAND: 'RUN'");
	CHECK_STR(steps_of("RUN []"),
		  "Dockerfile:2: RUN has an empty list: type RUN COMMAND: 'RUN []'");
	CHECK_STR(
		steps_of("SHELL /bin/bash"),
		"Dockerfile:2: SHELL needs a list: SHELL [\"/bin/bash\", \"-c\"]: 'SHELL /bin/bash'");
}

TEST(a_heredoc_alone_is_the_script)
{
	CHECK_STR(
		steps_of("RUN <<EOF\na $x\n # b\nEOF\nRUN c"),
		"[{\"args\":[\"a $x\\n # b\\n\"],\"line\":2,\"type\":\"RUN\"},{\"args\":[\"c\"],\"line\":6,\"type\":\"RUN\"}]");
	CHECK_STR(steps_of("RUN <<-'EOF'\n\ta\n\tEOF"),
		  "[{\"args\":[\"a\\n\"],\"line\":2,\"type\":\"RUN\"}]");
	CHECK_STR(
		steps_of("RUN python3 <<A && cat <<B\n1\nA\n2\nB\n"),
		"[{\"args\":[\"python3 <<A && cat <<B\\n1\\nA\\n2\\nB\\n\"],\"line\":2,\"type\":\"RUN\"}]");
	CHECK(strstr(steps_of("RUN <<E\n#!/usr/bin/python3\nprint(1)\nE\n"),
		     "cat >\\\"$script\\\" <<'END_OF_SCRIPT_0'\\n#!/usr/bin/python3"));
	CHECK_STR(steps_of("RUN <<EOF\na\n"),
		  "Dockerfile:2: the file ends before the line EOF: 'RUN <<EOF'");
}

TEST(secrets_of_run_are_named)
{
	CHECK_STR(
		steps_of("RUN --mount=type=secret,id=token cat /run/secrets/token"),
		"[{\"args\":[\"cat /run/secrets/token\"],\"line\":2,\"secrets\":[\"token\"],\"type\":\"RUN\"}]");
	CHECK_STR(
		steps_of(
			"RUN --mount=type=secret,id=a,target=/root/.npmrc,required --mount=type=secret,id=b,env=B npm ci"),
		"[{\"args\":[\"trap 'rm -f -- /root/.npmrc' EXIT\\n"
		"[ -e /run/secrets/a ] || { echo 'secret a is required: build with --secret id=a,src=FILE' >&2; exit 1; }\\n"
		"[ ! -e /run/secrets/a ] || { mkdir -p -- \\\"$(dirname -- /root/.npmrc)\\\" && ln -sfn /run/secrets/a /root/.npmrc || exit 1; }\\n"
		"[ ! -e /run/secrets/b ] || { B=$(cat /run/secrets/b); export B; }\\n"
		"npm ci\"],\"line\":2,\"secrets\":[\"a\",\"b\"],\"type\":\"RUN\"}]");
	CHECK_STR(
		steps_of("RUN --mount=type=secret,id=../x y"),
		"Dockerfile:2: '../x' is not an id of a secret: type id=NAME: 'RUN --mount=type=secret,id=../x y'");
	CHECK_STR(
		steps_of("RUN --mount=type=secret,id=a,env=A [\"x\"]"),
		"Dockerfile:2: target=, env= and required= of a secret need the shell form: RUN --mount=... COMMAND: "
		"'RUN --mount=type=secret,id=a,env=A [\"x\"]'");
}

TEST(other_mounts_have_a_note_or_an_error)
{
	CHECK_STR(
		setting_of("notes",
			   "RUN --mount=type=cache,target=/root/.cache,sharing=locked pip"),
		"[\"line 2: a mount of type cache has no effect: /root/.cache is part of the image\"]");
	CHECK_STR(
		steps_of("RUN --mount=type=bind,source=package.json,target=package.json npm ci"),
		"Dockerfile:2: a mount of type bind is not supported: before RUN, type COPY package.json package.json: "
		"'RUN --mount=type=bind,source=package.json,target=package.jso'");
	CHECK_STR(
		steps_of("RUN --mount=from=go,target=/x y"),
		"Dockerfile:2: a mount of type bind is not supported: before RUN, type COPY --from=go . /x: "
		"'RUN --mount=from=go,target=/x y'");
	CHECK_STR(
		steps_of("RUN --mount=type=ssh x"),
		"Dockerfile:2: a mount of type 'ssh' is not supported, only secret and cache: 'RUN --mount=type=ssh x'");
	CHECK_STR(
		steps_of("RUN --mount=type=cache,traget=/x y"),
		"Dockerfile:2: --mount does not have 'traget': 'RUN --mount=type=cache,traget=/x y'");
}

TEST(run_without_network)
{
	CHECK_STR(steps_of("RUN --network=none --security=sandbox x"),
		  "[{\"args\":[\"x\"],\"line\":2,\"network\":false,\"type\":\"RUN\"}]");
	CHECK_STR(
		steps_of("RUN --network=host x"),
		"Dockerfile:2: --network can be none or default, not 'host': 'RUN --network=host x'");
	CHECK_STR(
		steps_of("RUN --security=insecure x"),
		"Dockerfile:2: --security can be sandbox, not 'insecure': 'RUN --security=insecure x'");
	CHECK_STR(
		steps_of("RUN --mout=x y"),
		"Dockerfile:2: RUN does not support --mout; did you mean --mount: 'RUN --mout=x y'");
}

/* ---- COPY ---- */

TEST(copy_has_sources_and_a_destination)
{
	CHECK_STR(steps_of("COPY a \"b c\" $D/\nADD --link x.tar /"),
		  "[{\"args\":[\"a\",\"b c\",\"${D}/\"],\"line\":2,\"type\":\"COPY\"},"
		  "{\"args\":[\"x.tar\",\"/\"],\"line\":3,\"type\":\"ADD\"}]");
	CHECK_STR(
		steps_of("ENV M=755\nCOPY --chown=1000:$G --chmod=0$M [\"a b\", \"/c\"]"),
		"[{\"args\":[\"M\",\"755\"],\"line\":2,\"type\":\"ENV\"},{\"args\":[\"a b\",\"/c\"],\"line\":3,"
		"\"mode\":\"0755\",\"owner\":\"1000:${G}\",\"type\":\"COPY\"}]");
	CHECK_STR(steps_of("COPY --from=nginx:1 /a /b"),
		  "[{\"args\":[\"/a\",\"/b\"],\"from\":\"nginx:1\",\"line\":2,\"type\":\"COPY\"}]");
}

TEST(errors_of_copy_have_their_line)
{
	CHECK_STR(steps_of("COPY a"), "Dockerfile:2: type COPY SOURCE... DESTINATION: 'COPY a'");
	CHECK_STR(
		steps_of("COPY a b c"),
		"Dockerfile:2: with several sources the destination is a folder: type c/: 'COPY a b c'");
	CHECK_STR(steps_of("COPY --parents a b"),
		  "Dockerfile:2: COPY does not support --parents: 'COPY --parents a b'");
	CHECK_STR(steps_of("COPY --exclude=*.md a b"),
		  "Dockerfile:2: COPY does not support --exclude: 'COPY --exclude=*.md a b'");
	CHECK_STR(steps_of("ADD --checksum=sha256:1 a b"),
		  "Dockerfile:2: ADD does not support --checksum: 'ADD --checksum=sha256:1 a b'");
	CHECK_STR(steps_of("COPY --from=7 a b"),
		  "Dockerfile:2: no stage '7' comes before this one: 'COPY --from=7 a b'");
	CHECK_STR(
		steps_of("COPY --from=$X a b"),
		"Dockerfile:2: --from has no variables: type FROM IMAGE AS NAME, then --from=NAME: 'COPY --from=$X a b'");
	CHECK_STR(
		steps_of("COPY --chmod=u+x a b"),
		"Dockerfile:2: --chmod is 'u+x': type three or four octal digits, 0755: 'COPY --chmod=u+x a b'");
	CHECK_STR(steps_of("COPY --chown a b"),
		  "Dockerfile:2: --chown has no value: 'COPY --chown a b'");
	CHECK_STR(
		steps_of("ADD https://example.org/x /x"),
		"Dockerfile:2: the source is a URL: type RUN curl -fsSL -o /x URL: 'ADD https://example.org/x /x'");
	CHECK_STR(steps_of("COPY x \"a b"),
		  "Dockerfile:2: \"a b has no closing \": 'COPY x \"a b'");
}

TEST(copy_writes_heredocs)
{
	CHECK_STR(
		steps_of("COPY --chmod=600 <<one <<'two' x /d/\n$a\none\n$b\\\ntwo\n"),
		"[{\"args\":[\"x\",\"/d/\"],\"line\":2,\"mode\":\"600\",\"type\":\"COPY\"},"
		"{\"args\":[\"one\",\"/d/\"],\"content\":\"$a\\n\",\"line\":2,\"mode\":\"600\",\"type\":\"COPY\"},"
		"{\"args\":[\"two\",\"/d/\"],\"content\":\"\\\\$b\\\\\\\\\\n\",\"line\":2,\"mode\":\"600\",\"type\":\"COPY\"}]");
}

/* ---- variables ---- */

TEST(env_has_two_forms)
{
	CHECK_STR(
		steps_of("ENV A=1 B=\"x y\" C='$no' D=a\\ b E=$A"),
		"[{\"args\":[\"A\",\"1\",\"B\",\"x y\",\"C\",\"\\\\$no\",\"D\",\"a b\",\"E\",\"${A}\"],\"line\":2,\"type\":\"ENV\"}]");
	CHECK_STR(steps_of("ENV A one  two"),
		  "[{\"args\":[\"A\",\"one  two\"],\"line\":2,\"type\":\"ENV\"}]");
	CHECK_STR(steps_of("ENV A"), "Dockerfile:2: A has no value: type ENV A=VALUE: 'ENV A'");
	CHECK_STR(steps_of("ENV"), "Dockerfile:2: type ENV NAME=VALUE: 'ENV'");
	CHECK_STR(
		steps_of("ENV A=1 b"),
		"Dockerfile:2: 'b' has no =: quote a value with blanks, NAME=\"a b\": 'ENV A=1 b'");
	CHECK_STR(steps_of("ENV 1A=2"),
		  "Dockerfile:2: '1A' is not a name of a variable: 'ENV 1A=2'");
	CHECK_STR(steps_of("ENV =2"),
		  "Dockerfile:2: a name is empty: type ENV NAME=VALUE: 'ENV =2'");
	CHECK_STR(steps_of("ENV A=${B"), "Dockerfile:2: '${B' has no closing }: 'ENV A=${B'");
	CHECK_STR(
		steps_of("ENV A=${B%x}"),
		"Dockerfile:2: '${B%x}' is not supported: use ${NAME}, ${NAME:-x}, ${NAME:+x} or ${NAME:?x}: 'ENV A=${B%x}'");
}

TEST(args_are_build_args_then_defaults_then_those_before_from)
{
	json_t *args = json_pack("{s:s, s:s}", "A", "a$b", "HTTP_PROXY", "p");
	static const char text[] = "ARG G=g\nFROM x\nARG A=1 B=$A G H\nARG TARGETARCH\n";

	CHECK_STR(
		parsed_with(text, &(struct dockerfile_options){ .args = args, .arch = "arm64" }),
		"{\"stages\":[{\"from\":\"x\",\"name\":\"0\",\"steps\":[{\"args\":[\"HTTP_PROXY\",\"p\"],\"line\":2,\"type\":\"ARG\"},"
		"{\"args\":[\"A\",\"a\\\\$b\",\"B\",\"${A}\",\"G\",\"g\"],\"line\":3,\"type\":\"ARG\"},"
		"{\"args\":[\"TARGETARCH\",\"arm64\"],\"line\":4,\"type\":\"ARG\"}]}],\"target\":0}");
	json_decref(args);
	CHECK_STR(steps_of("ARG"), "Dockerfile:2: type ARG NAME or ARG NAME=VALUE: 'ARG'");
	CHECK_STR(
		steps_of("ARG a-b=1"),
		"Dockerfile:2: 'a-b' is not a name: type ARG NAME or ARG NAME=VALUE: 'ARG a-b=1'");
}

TEST(user_and_workdir_keep_their_variables)
{
	CHECK_STR(
		steps_of("WORKDIR /a b/$C\nUSER ${U:-node}"),
		"[{\"args\":[\"/a b/${C}\"],\"line\":2,\"type\":\"WORKDIR\"},{\"args\":[\"${U:-node}\"],\"line\":3,\"type\":\"USER\"}]");
	CHECK_STR(steps_of("WORKDIR"), "Dockerfile:2: type WORKDIR /FOLDER: 'WORKDIR'");
	CHECK_STR(steps_of("USER"), "Dockerfile:2: type USER NAME: 'USER'");
}

/* ---- settings ---- */

TEST(entrypoint_and_cmd_are_one_command)
{
	CHECK_STR(setting_of("start", "CMD [\"node\", \"it's\", \"$x\"]"), "node 'it'\\''s' '$x'");
	CHECK_STR(setting_of("start", "CMD exec node \"$X\""), "exec node \"$X\"");
	CHECK_STR(setting_of("start", "ENTRYPOINT [\"/e.sh\"]\nCMD [\"a\", \"\"]"), "/e.sh a ''");
	CHECK_STR(setting_of("start", "ENTRYPOINT [\"/e.sh\"]\nCMD a b"), "/e.sh /bin/sh -c 'a b'");
	CHECK_STR(setting_of("start", "ENTRYPOINT x y\nCMD a"), "x y");
	CHECK_STR(setting_of("start", "SHELL [\"bash\", \"-c\"]\nCMD a b"), "bash -c 'a b'");
	CHECK_STR(setting_of("start", "CMD a\nCMD b"), "b");
	CHECK_STR(setting_of("start", "CMD a\nCMD []"), "(none)");
	CHECK_STR(setting_of("start", "CMD [\"A=b\"]"), "'A=b'");
	CHECK_STR(setting_of("start", "CMD"), "Dockerfile:2: CMD has no command: 'CMD'");
	CHECK_STR(setting_of("notes", "CMD ['a', 'b']"),
		  "[\"line 2: this list is not JSON, so a shell runs it: use double quotes\"]");
}

TEST(the_words_of_cmd_are_kept_for_an_image_with_an_entrypoint)
{
	CHECK_STR(setting_of("cmd", "CMD [\"a\", \"b c\"]"), "[\"a\",\"b c\"]");
	CHECK_STR(setting_of("cmd", "CMD a b"), "[\"/bin/sh\",\"-c\",\"a b\"]");
	CHECK_STR(setting_of("cmd", "ENTRYPOINT [\"/e.sh\"]\nCMD [\"a\"]"), "(none)");
	CHECK_STR(setting_of("cmd", "CMD []"), "(none)");
	CHECK_STR(setting_of("cmd", "CMD [\"/bin/bash\"]"), "(none)");
}

TEST(a_command_for_a_person_is_no_start_command)
{
	CHECK_STR(setting_of("start", "CMD [\"/bin/bash\"]"), "(none)");
	CHECK_STR(setting_of("notes", "CMD [\"/bin/bash\"]"),
		  "[\"/bin/bash is for a person, so boxes start without a command\"]");
	CHECK_STR(setting_of("start", "CMD python3"), "(none)");
	CHECK_STR(setting_of("start", "CMD python3 x.py"), "python3 x.py");
	CHECK_STR(setting_of("start", "ENTRYPOINT [\"python3\"]\nCMD [\"x.py\"]"), "python3 x.py");
}

TEST(the_first_tcp_port_is_the_port)
{
	CHECK_STR(setting_of("port", "ENV P=3000\nEXPOSE 53/udp $P/tcp 80"), "3000");
	CHECK_STR(setting_of("port", "EXPOSE 8000-8010"), "8000");
	CHECK_STR(setting_of("port", "EXPOSE http"),
		  "Dockerfile:2: 'http' is not a port: type EXPOSE 8080: 'EXPOSE http'");
	CHECK_STR(setting_of("port", "EXPOSE 70000"),
		  "Dockerfile:2: '70000' is not a port: type EXPOSE 8080: 'EXPOSE 70000'");
	CHECK_STR(setting_of("port", "EXPOSE"), "Dockerfile:2: type EXPOSE 8080: 'EXPOSE'");
}

TEST(the_health_check_is_the_ready_command)
{
	CHECK_STR(
		setting_of("ready",
			   "HEALTHCHECK --interval=5s --retries=3 CMD curl -f localhost || exit 1"),
		"curl -f localhost || exit 1");
	CHECK_STR(setting_of("ready", "HEALTHCHECK CMD [\"test\", \"a b\"]"), "test 'a b'");
	CHECK_STR(setting_of("ready", "HEALTHCHECK CMD x\nHEALTHCHECK NONE"), "(none)");
	CHECK_STR(
		setting_of("ready", "HEALTHCHECK curl x"),
		"Dockerfile:2: type HEALTHCHECK CMD COMMAND, or HEALTHCHECK NONE: 'HEALTHCHECK curl x'");
	CHECK_STR(
		setting_of("ready", "HEALTHCHECK --intervall=5s CMD x"),
		"Dockerfile:2: HEALTHCHECK does not support --intervall; did you mean --interval: "
		"'HEALTHCHECK --intervall=5s CMD x'");
}

TEST(labels_are_collected)
{
	CHECK_STR(setting_of("labels", "LABEL a=1 \"b.c\"=\"x y\"\nMAINTAINER me\nLABEL a=2"),
		  "{\"a\":\"2\",\"b.c\":\"x y\",\"maintainer\":\"me\"}");
	CHECK_STR(setting_of("notes", "VOLUME /data\nSTOPSIGNAL SIGINT"),
		  "[\"line 2: VOLUME has no effect\",\"line 3: STOPSIGNAL has no effect\"]");
	CHECK_STR(setting_of("notes", "VOLUME"), "Dockerfile:2: VOLUME has no value: 'VOLUME'");
}

/* ---- expand.h ---- */

static const char *look(void *ctx, const char *name)
{
	(void)ctx;
	return !strcmp(name, "A") ? "a" : !strcmp(name, "EMPTY") ? "" : NULL;
}

static const char *expanded(const char *text)
{
	static struct buf out;

	buf_cut(&out, 0);
	return expand_text(&out, text, look, NULL, &e) < 0 ? e.msg : buf_str(&out);
}

TEST(variables_are_replaced)
{
	CHECK_STR(expanded("$A ${A}b $Ab $NONE. $1 $$ $ $. 5$"), "a ab  .   $ $. 5$");
	CHECK_STR(expanded("${NONE:-x} ${EMPTY:-x} ${EMPTY-x} ${A:-x} ${NONE-x}"), "x x  a x");
	CHECK_STR(expanded("${NONE:+x} ${EMPTY:+x} ${EMPTY+x} ${A:+x} ${A+x}"), "  x x x");
	CHECK_STR(expanded("${NONE:-${A}b${NONE:-c}}d"), "abcd");
	CHECK_STR(expanded("${A:?no} ${EMPTY?no}"), "a ");
	CHECK_STR(expanded("${EMPTY:?give $A}"), "EMPTY: give a");
	CHECK_STR(expanded("${NONE?}"), "NONE: it is not set");
	CHECK_STR(expanded("\\$A \\\\ \\n '\"$A\"' ${NONE:-\\}}"), "$A \\ \\n '\"a\"' }");
}

TEST(wrong_variables_are_errors)
{
	CHECK_STR(expanded("${A"), "'${A' has no closing }");
	CHECK_STR(expanded("x${}"), "'${}' has no name after ${");
	CHECK_STR(expanded("${A/b/c}"),
		  "'${A/b/c}' is not supported: use ${NAME}, ${NAME:-x}, ${NAME:+x} or ${NAME:?x}");
	CHECK_STR(
		expanded(
			"${a:-${a:-${a:-${a:-${a:-${a:-${a:-${a:-${a:-${a:-${a:-${a:-${a:-${a:-${a:-${a:-${a:-"),
		"more than 16 levels of ${}");
}

static const char *word_of(const char *word)
{
	static struct buf out;

	buf_cut(&out, 0);
	return expand_word(&out, word, '\\', &e) < 0 ? e.msg : buf_str(&out);
}

TEST(quotes_of_a_word_are_removed_and_variables_stay)
{
	CHECK_STR(word_of("a\"b c\"'d $e'$f\"g\""), "ab cd \\$e${f}g");
	CHECK_STR(word_of("\"\\\"\\$x\\y\\\\\""), "\"\\$x\\\\y\\\\");
	CHECK_STR(word_of("\\$x\\ y"), "\\$x y");
	CHECK_STR(word_of("${A:-\"}\"}"), "${A:-\\}}");
	CHECK_STR(word_of("$\"x\""), "\\$x");
	CHECK_STR(word_of("'x"), "'x has no closing '");
	CHECK_STR(word_of("\"x"), "\"x has no closing \"");
}
