/* fields.c - see fields.h. */
#include "cli/fields.h"
#include "base/cleanup.h"
#include "base/units.h"

#include <stdio.h>
#include <string.h>

void fields_number(json_t *doc, const struct args *a, unsigned flag, const char *key)
{
	if (args_has(a, flag))
		json_object_set_new(doc, key, json_integer((json_int_t)args_value(a, flag, 0)));
}

void fields_text(json_t *doc, const struct args *a, unsigned flag, const char *key)
{
	if (args_has(a, flag))
		json_object_set_new(doc, key, json_string(args_text(a, flag, "")));
}

int fields_pairs(struct api_client *r, json_t *doc, const struct args *a, unsigned flag,
		 const char *key)
{
	json_t *map = json_object();

	for (unsigned i = 0; i < a->ngiven; i++) {
		const char *text = a->given[i].text, *eq;
		char shown[SHOWN], name[256];

		if (a->given[i].flag != flag)
			continue;
		eq = strchr(text, '=');
		snprintf(name, sizeof(name), "%.*s", eq ? (int)(eq - text) : 0, text);
		if (!*name || strlen(name) != (size_t)(eq - text) ||
		    json_object_set_new(map, name, json_string(eq + 1)) < 0) {
			json_decref(map);
			return api_client_usage(r, "--%s: '%s' is not KEY=VALUE, as text",
						a->command->flags[flag].name,
						cli_error_shown(text, shown));
		}
	}
	if (json_object_size(map))
		json_object_set(doc, key, map);
	json_decref(map);
	return 0;
}

int fields_on_timeout(struct api_client *r, json_t *doc, const struct args *a, unsigned flag)
{
	const char *then = args_text(a, flag, "kill");
	char shown[SHOWN];

	if (strcmp(then, "kill") && strcmp(then, "keep") && strcmp(then, "pause"))
		return api_client_usage(r, "--on-timeout: '%s' is not kill, keep or pause",
					cli_error_shown(then, shown));
	fields_text(doc, a, flag, "on_timeout");
	return 0;
}

/* 1: `word` is one of them, or one of them after "no-". */
static int fields_checkpoints_switch(json_t *out, const char *word)
{
	static const char *const switches[] = { "self", "prepare", "track" };
	int on = strncmp(word, "no-", 3) != 0;

	for (unsigned i = 0; i < ARRAY_LEN(switches); i++)
		if (!strcmp(on ? word : word + 3, switches[i])) {
			json_object_set_new(out, switches[i], json_boolean(on));
			return 1;
		}
	return 0;
}

/* Words: "exec", "self,prepare". */
int fields_checkpoints(struct api_client *r, json_t *doc, const struct args *a, unsigned flag)
{
	static const char *const words[] = { "exec", "cell", "tool", "off" };
	const char *when = args_text(a, flag, NULL);
	auto_free char *copy = when ? strdup(when) : NULL;
	json_t *out;
	char shown[SHOWN], *rest = copy;

	if (!copy)
		return 0;
	out = json_object();
	for (char *word; (word = strsep(&rest, ",")) != NULL;) {
		unsigned i = 0;

		if (fields_checkpoints_switch(out, word))
			continue;
		while (i < ARRAY_LEN(words) && strcmp(word, words[i]) != 0)
			i++;
		if (i == ARRAY_LEN(words)) {
			json_decref(out);
			return api_client_usage(r,
						"--checkpoints: '%s' is not exec, cell, tool, off, "
						"self, prepare, track, no-self, no-prepare or "
						"no-track; several words: exec,self",
						cli_error_shown(word, shown));
		}
		json_object_set_new(out, "auto", json_string(word));
	}
	json_object_set_new(doc, "checkpoints", out);
	return 0;
}

int fields_keep(struct api_client *r, json_t *doc, const struct args *a, unsigned flag,
		unsigned on_timeout)
{
	const char *keep = args_text(a, flag, NULL);
	uint32_t ms;
	struct err e;

	if (!keep)
		return 0;
	if (strcmp(keep, "forever") && units_parse_time(keep, &ms, &e) < 0) {
		api_client_usage(r, "--keep: %s", e.msg);
		cli_error_hint(&r->error, "type", "--keep 2h, or --keep forever");
		return r->status;
	}
	json_object_set_new(doc, "retention_ms",
			    json_integer(strcmp(keep, "forever") ? (json_int_t)ms : -1));
	if (!args_has(a, on_timeout))
		json_object_set_new(doc, "on_timeout", json_string("keep"));
	return 0;
}

int fields_volumes(struct api_client *r, json_t *doc, const struct args *a, unsigned flag)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < a->ngiven; i++) {
		const char *text = a->given[i].text, *colon, *end;
		char shown[SHOWN];

		if (a->given[i].flag != flag)
			continue;
		colon = strchr(text, ':');
		end = colon ? colon + strlen(colon) : NULL;
		if (colon && end - colon > 3 && !strcmp(end - 3, ":ro"))
			end -= 3;
		if (!colon || colon == text || colon + 1 >= end || colon[1] != '/' ||
		    json_array_append_new(all, json_pack("{s:s%, s:s%, s:b}", "name", text,
							 (size_t)(colon - text), "path", colon + 1,
							 (size_t)(end - colon - 1), "read_only",
							 *end != 0)) < 0) {
			json_decref(all);
			return api_client_usage(r,
						"--volume: '%s' is not NAME:/PATH or NAME:/PATH:ro",
						cli_error_shown(text, shown));
		}
	}
	if (json_array_size(all))
		json_object_set(doc, "volumes", all);
	json_decref(all);
	return 0;
}

/* NAME, NAME=VAR: a variable. NAME:file, NAME:file:PATH: a file. NAME@HOST,HOST, NAME=VAR@HOST: a placeholder
 * for these hosts. */
static json_t *fields_secret(const char *text)
{
	size_t name = strcspn(text, "=:@");
	json_t *one = json_pack("{s:s%}", "name", text, name), *hosts;
	const char *rest = text + name;

	if (*rest == '=') {
		size_t n = strcspn(rest + 1, ":@");

		json_object_set_new(one, "variable", json_stringn(rest + 1, n));
		rest += 1 + n;
	}
	if (*rest == '@') {
		hosts = json_array();
		for (const char *at = rest + 1; at;
		     at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
			json_array_append_new(hosts, json_stringn(at, strcspn(at, ",")));
		json_object_set_new(one, "hosts", hosts);
		json_object_set_new(one, "as", json_string("placeholder"));
	} else if (!strcmp(rest, ":file") || !strncmp(rest, ":file:", 6)) {
		json_object_set_new(one, "as", json_string("file"));
		if (rest[5])
			json_object_set_new(one, "path", json_string(rest + 6));
	} else if (*rest) {
		json_decref(one);
		return NULL;
	}
	return one;
}

int fields_secrets(struct api_client *r, json_t *doc, const struct args *a, unsigned flag)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < a->ngiven; i++) {
		json_t *one;
		char shown[SHOWN];

		if (a->given[i].flag != flag)
			continue;
		one = fields_secret(a->given[i].text);
		if (!one || json_array_append_new(all, one) < 0) {
			json_decref(all);
			return api_client_usage(
				r,
				"--secret: '%s' is not NAME[=VAR], NAME:file[:PATH] or NAME[=VAR]@HOST",
				cli_error_shown(a->given[i].text, shown));
		}
	}
	if (json_array_size(all))
		json_object_set(doc, "secrets", all);
	json_decref(all);
	return 0;
}
