/* certificates.c - see certificates.h. */
#include "daemon/certificates.h"
#include "base/cleanup.h"

#include <fcntl.h>

enum { CERTIFICATES_MOST = 4 << 20 };

static int certificates_add(const char *path, struct buf *out, struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = -1;

	if (fd < 0)
		return err_sys(e, "open %.200s", path);
	while (out->len <= CERTIFICATES_MOST && (n = read(fd, buf_space(out, 65536), 65536)) > 0)
		buf_grew(out, (size_t)n);
	if (n < 0)
		return err_sys(e, "read %.200s", path);
	buf_putc(out, '\n');
	return n == 0 ? 0
		      : err_set(e, ERR_LIMIT, "%.200s has more than %d bytes", path,
				CERTIFICATES_MOST);
}

int certificates_read(const struct config *c, struct buf *out, struct err *e)
{
	static const char *const bundles[] = { "/etc/ssl/certs/ca-certificates.crt",
					       "/etc/pki/tls/certs/ca-bundle.crt",
					       "/etc/ssl/cert.pem" };
	const char *own = config_text(c, CONFIG_EGRESS_CA);
	struct err missing;

	for (unsigned i = 0; i < ARRAY_LEN(bundles); i++)
		if (certificates_add(bundles[i], out, &missing) == 0)
			break;
	return own && certificates_add(own, out, e) < 0 ? err_in(e, "egress.ca") : 0;
}
