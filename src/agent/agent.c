/* agent.c - see agent.h. */
#include "agent/agent.h"
#include "base/own.h"
#include "base/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *doc_text(const json_t *doc, const char *name)
{
	const char *text = json_string_value(json_object_get(doc, name));

	return text ? text : "";
}

void doc_hash(const json_t *doc, char out[65])
{
	auto_free char *text = json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
	uint8_t sum[SHA256_BYTES];
	struct sha256 s;

	sha256_init(&s);
	if (text)
		sha256_add(&s, text, strlen(text));
	sha256_end(&s, sum);
	for (unsigned i = 0; i < SHA256_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", sum[i]);
}

void artifact_seal(json_t *artifact)
{
	static const char *const decide[] = { "language", "files", "entry",  "packages",
					      "stdin",    "env",   "limits", "network" };
	json_t *what = json_object();
	char hash[65];

	for (unsigned i = 0; i < ARRAY_LEN(decide); i++)
		if (json_object_get(artifact, decide[i]))
			json_object_set(what, decide[i], json_object_get(artifact, decide[i]));
	doc_hash(what, hash);
	json_decref(what);
	json_object_set_new(artifact, "hash", json_string(hash));
}

json_t *artifact_child(const json_t *artifact, const char *provenance, const char *because)
{
	json_t *child = json_deep_copy(artifact);

	json_object_set(child, "parent", json_object_get(artifact, "hash"));
	json_object_set_new(child, "provenance", json_string(provenance));
	json_object_set_new(child, "changed_because", json_string(because));
	return child;
}
