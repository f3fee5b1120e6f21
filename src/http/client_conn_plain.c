/* client_conn_plain.c - replaces client_conn_tls.c and tls.c in the small client executable.
 * That executable starts atolld for every address that client_conn_url_is_plain() rejects, so
 * these functions are reached only if a caller forgot that check; then they return an error with
 * this reason. */
#include "base/cleanup.h"
#include "http/client_conn_internal.h"
#include "http/tls.h"

static int not_here(struct err *e)
{
	return err_set(e, ERR_INVALID,
		       "host names and TLS are handled by atolld, not by this executable");
}

int client_conn_open_name(struct client_conn *d, uint32_t ms, struct err *e)
{
	(void)d, (void)ms;
	return not_here(e);
}

int client_conn_tls_open(struct client_conn *d, struct ssl_ctx_st *tls, uint32_t ms, struct err *e)
{
	(void)d, (void)tls, (void)ms;
	return not_here(e);
}

void client_conn_tls_close(struct client_conn *d)
{
	d->ssl = NULL;
}

ssize_t client_conn_tls_read_now(struct client_conn *d, void *out, size_t n, struct err *e)
{
	(void)d, (void)out, (void)n;
	return not_here(e);
}

int client_conn_tls_write(struct client_conn *d, const char *p, size_t n, struct err *e)
{
	(void)d, (void)p, (void)n;
	return not_here(e);
}

ssize_t client_conn_tls_write_now(struct client_conn *d, const void *bytes, size_t n, struct err *e)
{
	(void)d, (void)bytes, (void)n;
	return not_here(e);
}

void client_conn_tls_shut(struct client_conn *d)
{
	(void)d;
}

int tls_client(const char *ca_file, struct ssl_ctx_st **out_ctx, struct err *e)
{
	(void)ca_file, (void)out_ctx;
	return not_here(e);
}

void tls_free(struct ssl_ctx_st *ctx)
{
	(void)ctx;
}
