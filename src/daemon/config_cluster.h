/* config_cluster.h - checks of the settings cluster.* (docs/cluster.md). */
#pragma once
#include "base/err.h"

struct config;

must_check int config_check_cluster_name(const char *text, struct err *e);
must_check int config_check_cluster_listen(const char *text, struct err *e);
must_check int config_check_gateway(const char *text, struct err *e);  /* HOST:PORT */
must_check int config_check_database(const char *text, struct err *e); /* without a password */
must_check int config_check_label(const char *text, struct err *e);    /* NAME=VALUE */
must_check int config_check_objects(const char *text, struct err *e);  /* the URL of a bucket */
/* What the role of this machine needs. */
must_check int config_check_cluster(const struct config *c, struct err *e);
