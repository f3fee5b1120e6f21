/* fields.h - flags of a box as members of a request: for `new` and `set`. */
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
#define FIELD_FLAG_META                                                                            \
	{                                                                                          \
		"meta", 0, FLAG_WORDS, "KEY=VALUE", "metadata to search for; may be repeated"      \
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
must_check int fields_keep(struct api_client *r, json_t *doc, const struct args *a, unsigned flag,
			   unsigned on_timeout);
