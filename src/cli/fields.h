/* fields.h - flags of a box as members of a request: for `new`, `set` and `schedule`. */
#pragma once
#include "cli/api_client.h"

#define FIELD_FLAG_LIFETIME(what)                                                                  \
	{                                                                                          \
		"lifetime", 0, FLAG_TIME, "TIME", what                                             \
	}
#define FIELD_FLAG_IDLE                                                                            \
	{                                                                                          \
		"idle", 0, FLAG_TIME, "TIME",                                                      \
			"time without activity until the box times out (never)"                    \
	}
#define FIELD_FLAG_ON_TIMEOUT                                                                      \
	{                                                                                          \
		"on-timeout", 0, FLAG_TEXT, "WHAT",                                                \
			"action after a timeout: kill, keep (its files) or pause (kill)"           \
	}
#define FIELD_FLAG_KEEP                                                                            \
	{                                                                                          \
		"keep", 0, FLAG_TEXT, "TIME",                                                      \
			"how long to keep the files after a timeout, or forever"                   \
	}
#define FIELD_FLAG_CHECKPOINTS                                                                                            \
	{                                                                                                                 \
		"checkpoints", 0, FLAG_TEXT, "WHEN",                                                                      \
			"checkpoints before each step: exec (all), cell, tool or off (off); self: by programs of the box" \
	}
#define FIELD_FLAG_META                                                                            \
	{                                                                                          \
		"meta", 0, FLAG_WORDS, "KEY=VALUE", "metadata to search for; may be repeated"      \
	}

#define FIELD_FLAG_VOLUME                                                                          \
	{                                                                                          \
		"volume", 0, FLAG_WORDS, "NAME:PATH[:ro]",                                         \
			"mount a volume at this path; may be repeated"                             \
	}
#define FIELD_FLAG_SECRET                                                                          \
	{                                                                                          \
		"secret", 0, FLAG_WORDS, "NAME[=VAR][:file[:PATH]|@HOST,...]",                     \
			"give a secret to the box; may be repeated"                                \
	}

/* Each adds a member if the flag was given. Those with a status return 0 or r->status. */
void fields_number(json_t *doc, const struct args *a, unsigned flag, const char *key);
void fields_text(json_t *doc, const struct args *a, unsigned flag, const char *key);
/* KEY=VALUE as often as given, as one object. */
must_check int fields_pairs(struct api_client *r, json_t *doc, const struct args *a, unsigned flag,
			    const char *key);
must_check int fields_on_timeout(struct api_client *r, json_t *doc, const struct args *a,
				 unsigned flag);
/* retention_ms; and on_timeout, unless that flag was given. */
must_check int fields_checkpoints(struct api_client *r, json_t *doc, const struct args *a,
				  unsigned flag);
int fields_keep(struct api_client *r, json_t *doc, const struct args *a, unsigned flag,
		unsigned on_timeout);
/* NAME:PATH[:ro] as often as given. */
must_check int fields_volumes(struct api_client *r, json_t *doc, const struct args *a,
			      unsigned flag);
/* NAME, NAME=VAR: a variable. NAME:file, NAME:file:PATH: a file. NAME@HOST,HOST, NAME=VAR@HOST: a
 * placeholder for these hosts. */
must_check int fields_secrets(struct api_client *r, json_t *doc, const struct args *a,
			      unsigned flag);
