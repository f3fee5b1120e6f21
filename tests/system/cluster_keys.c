/* cluster_keys.c - for tests/system/tunnels.sh: the files of <state>/cluster of machines of one cluster.
 *
 *	cluster_keys FOLDER gateway=1 FOLDER node=2 ...
 *	cluster_keys age SECRETS FOLDER node=2 DAYS	replaces own.crt by one that was signed that many days ago */
#include "base/cleanup.h"
#include "cluster/ca.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct err e;

static int put(const char *folder, const char *name, const struct buf *text)
{
	char path[1024];
	auto_fd int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text->p, text->len) != (ssize_t)text->len)
		return err_sys(&e, "write %s", path);
	return 0;
}

static int make(const struct cluster_ca *ca, const struct buf *ca_cert, const char *folder,
		const char *role)
{
	auto_buf struct buf request = { 0 }, key = { 0 }, cert = { 0 }, number = { 0 };
	struct cluster_peer peer;

	if (cluster_peer_parse(role, strlen(role), &peer, &e) < 0 ||
	    cluster_ca_request(&request, &key, &e) < 0 ||
	    cluster_ca_sign(ca, request.p, request.len, &peer, time(NULL), &cert, &e) < 0)
		return -1;
	buf_printf(&number, "%u\n", peer.number);
	if (put(folder, "ca.crt", ca_cert) < 0 || put(folder, "own.crt", &cert) < 0 ||
	    put(folder, "own.key", &key) < 0)
		return -1;
	return put(folder, "number", &number);
}

static int age(const char *secrets, const char *folder, const char *role, int days)
{
	auto_buf struct buf ca_cert = { 0 }, ca_key = { 0 }, key = { 0 }, request = { 0 },
			    cert = { 0 };
	struct cluster_ca *ca = NULL;
	struct cluster_peer peer;
	char path[1024];
	int rc = cluster_read_file(secrets, "ca.crt", &ca_cert, &e) < 0 ||
				 cluster_read_file(secrets, "ca.key", &ca_key, &e) < 0 ||
				 cluster_read_file(folder, "own.key", &key, &e) < 0 ||
				 cluster_peer_parse(role, strlen(role), &peer, &e) < 0 ||
				 cluster_ca_load(&ca, &ca_cert, &ca_key, &e) < 0 ||
				 cluster_ca_request_for(&key, &request, &e) < 0 ||
				 cluster_ca_sign(ca, request.p, request.len, &peer,
						 time(NULL) - (time_t)days * 86400, &cert, &e) < 0
			 ? -1
			 : 0;

	cluster_ca_free(ca);
	snprintf(path, sizeof(path), "%s/own.crt", folder);
	unlink(path);
	return rc < 0 ? -1 : put(folder, "own.crt", &cert);
}

int main(int argc, char **argv)
{
	auto_buf struct buf cert = { 0 }, key = { 0 };
	struct cluster_ca *ca = NULL;
	int rc;

	if (argc == 6 && strcmp(argv[1], "age") == 0) {
		rc = age(argv[2], argv[3], argv[4], atoi(argv[5]));
		if (rc < 0)
			fprintf(stderr, "cluster_keys: %s\n", e.msg);
		return rc < 0;
	}
	rc = cluster_ca_make(&cert, &key, &e);

	if (rc == 0)
		rc = cluster_ca_load(&ca, &cert, &key, &e);
	for (int i = 1; i + 1 < argc && rc == 0; i += 2)
		rc = make(ca, &cert, argv[i], argv[i + 1]);
	cluster_ca_free(ca);
	if (rc < 0)
		fprintf(stderr, "cluster_keys: %s\n", e.msg);
	return rc < 0;
}
