/* Signed URLs: the texts were made by botocore 1.29 and 1.43 for the same values. */
#include "cluster/signed_url.h"
#include "base/cleanup.h"
#include "tap.h"

static struct err err;
static const struct signed_url_account amazon = {
	.access_key = "AKIAIOSFODNN7EXAMPLE",
	.secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
	.region = "us-east-1",
	.scheme = "https",
	.host = "examplebucket.s3.amazonaws.com"
};
static const struct signed_url_account local = { .access_key = "AKIAIOSFODNN7EXAMPLE",
						 .secret_key =
							 "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
						 .region = "eu-central-1",
						 .scheme = "http",
						 .host = "127.0.0.1:8080",
						 .bucket = "boxes" };

TEST(the_example_of_the_specification_has_its_signature)
{
	auto_buf struct buf url = { 0 };

	CHECK_INT(signed_url(&amazon,
			     &(struct signed_url_request){ .method = "GET",
							   .key = "test.txt",
							   .at_s = 1369353600,
							   .valid_s = 86400 },
			     &url, &err),
		  0);
	CHECK_STR(
		url.p,
		"https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
		"&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
		"&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
		"&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

TEST(names_are_encoded_as_botocore_encodes_them)
{
	auto_buf struct buf url = { 0 };

	CHECK_INT(signed_url(&local,
			     &(struct signed_url_request){ .method = "PUT",
							   .key = "layers/a b+c/\xc3\xbc~_.x",
							   .at_s = 1795000000,
							   .valid_s = 900 },
			     &url, &err),
		  0);
	CHECK_STR(
		url.p,
		"http://127.0.0.1:8080/boxes/layers/a%20b%2Bc/%C3%BC~_.x?X-Amz-Algorithm=AWS4-HMAC-SHA256"
		"&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20261118%2Feu-central-1%2Fs3%2Faws4_request"
		"&X-Amz-Date=20261118T110640Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host"
		"&X-Amz-Signature=8514310bdcd70dd212ca1f186e3531a9f723e0f661f948f0b70234c6f51327b6");
}

TEST(further_parameters_are_signed)
{
	auto_buf struct buf url = { 0 };

	CHECK_INT(signed_url(&local,
			     &(struct signed_url_request){
				     .method = "PUT",
				     .key = "layers/x",
				     .query = { "partNumber", "2", "uploadId", "a/b" },
				     .at_s = 1795000000,
				     .valid_s = 900 },
			     &url, &err),
		  0);
	CHECK_STR(
		url.p,
		"http://127.0.0.1:8080/boxes/layers/x?partNumber=2&uploadId=a%2Fb&X-Amz-Algorithm=AWS4-HMAC-SHA256"
		"&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20261118%2Feu-central-1%2Fs3%2Faws4_request"
		"&X-Amz-Date=20261118T110640Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host"
		"&X-Amz-Signature=0aa36225d70415d4aaba4cb7f3495522ddb75e296d5e8f4ae1a409b052ec7404");
}

TEST(values_that_cannot_be_signed_are_rejected)
{
	static char longer[SIGNED_URL_KEY + 2];
	const struct signed_url_request bad[] = {
		{ .method = "BREW", .key = "x", .valid_s = 1 },
		{ .method = "GET", .key = "", .valid_s = 1 },
		{ .method = "GET", .key = "/x", .valid_s = 1 },
		{ .method = "GET", .key = longer, .valid_s = 1 },
		{ .method = "GET", .key = "x", .valid_s = 0 },
		{ .method = "GET", .key = "x", .valid_s = SIGNED_URL_MOST_S + 1 },
		{ .method = "GET", .key = "x", .valid_s = 1, .query = { "b", "", "a", "" } },
		{ .method = "GET", .key = "x", .valid_s = 1, .query = { "X-Amz-Expires", "99" } },
		{ .method = "GET", .key = "x", .valid_s = 1, .at_s = INT64_MAX },
	};

	memset(longer, 'x', sizeof(longer) - 1);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		auto_buf struct buf url = { 0 };

		CHECK_INT(signed_url(&local, &bad[i], &url, &err), -1);
		CHECK_INT(url.len, 0);
	}
}
