/* port.h - shared by `port`, `open` and `forward`. */
#pragma once
#include "cli/api_client.h"

/* 0, or r->status with the error. */
must_check int port_parse(struct api_client *r, const char *text, uint32_t *out);
/* Prints an answer of /v1/boxes/{box}/ports/{port}. */
void port_report(const struct cli *cli, const json_t *doc, const char *box);
