/* apt_sources_test.c - sources of apt from mirrors and the release of the host. */
#include "lang/apt_sources.h"
#include "base/cleanup.h"
#include "tap.h"

#define DEBIAN "PRETTY_NAME=\"Debian GNU/Linux 12\"\nVERSION_CODENAME=bookworm\nID=debian\n"

TEST(each_mirror_is_a_line_with_the_release_and_the_keyring)
{
	auto_buf struct buf out = { 0 };

	CHECK_INT(apt_sources(" http://a.test/debian  http://a.test/debian-security ", DEBIAN,
			      &out),
		  0);
	CHECK_STR(buf_str(&out), "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
				 "http://a.test/debian bookworm main\n"
				 "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
				 "http://a.test/debian-security bookworm-security main\n");
}

TEST(ubuntu_has_two_parts_and_values_may_be_quoted)
{
	auto_buf struct buf out = { 0 };

	CHECK_INT(apt_sources("http://a.test/ubuntu",
			      "UBUNTU_CODENAME=noble\nVERSION_CODENAME=\"noble\"\nID=\"ubuntu\"",
			      &out),
		  0);
	CHECK_STR(buf_str(&out), "deb [signed-by=/usr/share/keyrings/ubuntu-archive-keyring.gpg] "
				 "http://a.test/ubuntu noble main universe\n");
}

TEST(an_unknown_release_or_no_mirror_gives_nothing)
{
	static const char *const texts[] = { "",
					     "ID=debian\n",
					     "VERSION_CODENAME=x\n",
					     "ID=a b\nVERSION_CODENAME=x\n",
					     "ID=debian\nVERSION_CODENAME=\n",
					     "ID=debian\nVERSION_CODENAME=x;y\n",
					     "ID=debian\nXVERSION_CODENAME=x\n" };
	auto_buf struct buf out = { 0 };

	for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
		CHECK_INT(apt_sources("http://a.test/", texts[i], &out), -1);
	CHECK_INT(apt_sources("", DEBIAN, &out), -1);
	CHECK_INT(apt_sources("  ", DEBIAN, &out), -1);
	CHECK_INT(out.len, 0);
}
