/* files_test.c - the file worker, tested outside of a box. */
#include "unit/boxed.h"
#include <sys/mount.h>

static void ask_list(int w, const char *path, const char *after, uint32_t max, uint32_t depth)
{
	struct wire_list l = { .head = head(WIRE_LIST, 4), .max = max, .depth = depth };
	char tail[1024];
	int n = snprintf(tail, sizeof(tail), "%s%c%s", path, 0, after);

	send_frame(w, &l, sizeof(l), tail, (size_t)n, -1);
}

static void a_file_is_written_with_its_mode_and_parent_folders(struct box *b)
{
	auto_fd int w = open_worker(b);
	char *path = in_dir("a/b/c.txt"), text[16] = "";
	struct stat st;

	put_text(w, 1, path, "first", 0750, 0);
	expect(w, WIRE_DONE);
	CHECK(HEAD->ref == 1 && !stat(path, &st) && (st.st_mode & 07777) == 0750);
	put_text(w, 2, path, "second", 0, 0); /* the mode stays */
	expect(w, WIRE_DONE);
	CHECK(get_bytes(w, path, 0, ALL, text, sizeof(text)) == 6 && !memcmp(text, "second", 6));
	CHECK(!stat(path, &st) && (st.st_mode & 07777) == 0750);
	put_text(w, 3, path, "third", 0, WIRE_PUT_NEW);
	expect_error(w, ERR_CONFLICT);
	CHECK(get_bytes(w, path, 3, 2, text, sizeof(text)) == 2 && !memcmp(text, "on", 2));
	CHECK(count_names(in_dir("a/b")) == 1); /* no temporary file is left */
}

static void a_failed_put_is_answered_once_and_its_data_discarded(struct box *b)
{
	auto_fd int w = open_worker(b);

	put_text(w, 1, "/dev/null/x", "lost", 0644, 0);
	put_text(w, 2, in_dir("after"), "kept", 0644, 0);
	expect_error(w, ERR_NOT_FOUND);
	CHECK(HEAD->ref == 1 && GOT(wire_error)->sys == ENOTDIR);
	CHECK(strstr(GOT(wire_error)->msg, "/dev/null/x"));
	expect(w, WIRE_DONE);
	CHECK(HEAD->ref == 2);
	put_text(w, 3, dir, "a folder", 0644, 0);
	expect(w, WIRE_ERROR);
	put_text(w, 4, in_dir("a/"), "no name", 0644, 0);
	expect_error(w, ERR_INVALID);
}

static void an_incomplete_upload_leaves_no_file(struct box *b)
{
	auto_fd int w = open_worker(b);

	CHECK(!mkdir(in_dir("cut"), 0755));
	ask_put(w, WIRE_PUT, 1, in_dir("cut/file"), 0644, 0);
	ask_path(w, WIRE_DATA, 1, "half", 4);
	ask_list(w, in_dir("cut"), "", 0, 0); /* gives it up */
	expect(w, WIRE_DONE);
	CHECK(!count_names(in_dir("cut")));
	ask_put(w, WIRE_PUT, 3, in_dir("cut/file"), 0644, 0);
	ask_path(w, WIRE_DATA, 3, "half", 4);
	close(steal_fd(&w));
	while (count_names(in_dir("cut")) || ask_status(b->conn).reaped < 1)
		;
}

static void a_large_file_is_read_as_it_was_written(struct box *b)
{
	auto_fd int w = open_worker(b);
	auto_free char *sent = malloc(3000000), *back = malloc(3000000);
	size_t i, n;

	for (i = 0; i < 3000000; i++)
		sent[i] = (char)(i * 7 + i / 251);
	ask_put(w, WIRE_PUT, 1, in_dir("large"), 0600, 0);
	for (i = 0; i < 3000000; i += n) {
		n = 3000000 - i < 60000 ? 3000000 - i : 60000;
		ask_path(w, WIRE_DATA, 1, sent + i, n);
	}
	ask_path(w, WIRE_DATA, 1, NULL, 0);
	expect(w, WIRE_DONE);
	CHECK(get_bytes(w, in_dir("large"), 0, ALL, back, 3000000) == 3000000);
	CHECK(!memcmp(sent, back, 3000000));
	CHECK(get_bytes(w, in_dir("large"), 2999999, 0, back, 8) == 1);
	CHECK(get_bytes(w, in_dir("large"), 5000000, 0, back, 8) == 0);
}

/* ---- through a pipe ---- */

static void make_pipe(int ends[2])
{
	CHECK(!pipe2(ends, O_CLOEXEC));
}

static void a_file_is_sent_through_a_pipe(struct box *b)
{
	auto_fd int w = open_worker(b);
	struct wire_get g = { .head = head(WIRE_GET, 8), .from = 3 };
	char *path = in_dir("piped"), text[16] = "";
	int ends[2];

	put_text(w, 1, path, "0123456789", 0644, 0);
	expect(w, WIRE_DONE);
	g.head.flags = WIRE_PIPE;
	make_pipe(ends);
	send_frame(w, &g, sizeof(g), path, strlen(path), ends[1]);
	close(ends[1]);
	expect(w, WIRE_ENTRY);
	CHECK(GOT(wire_entry)->size == 10);
	expect(w, WIRE_DATA);
	CHECK(frame_len == sizeof(struct frame));
	CHECK(read(ends[0], text, sizeof(text)) == 7 && !memcmp(text, "3456789", 7));
	CHECK(read(ends[0], text, sizeof(text)) == 0); /* it has not kept its end */
	close(ends[0]);
	/* A file without pages is copied. */
	g.from = 0;
	make_pipe(ends);
	send_frame(w, &g, sizeof(g), "/sys/kernel/notes", 17, ends[1]);
	close(ends[1]);
	if (receive(w) == WIRE_ENTRY) {
		expect(w, WIRE_DATA);
		CHECK(read(ends[0], text, sizeof(text)) >= 0);
	}
	close(ends[0]);
}

static void a_closed_pipe_ends_the_answer_and_not_the_worker(struct box *b)
{
	auto_fd int w = open_worker(b);
	struct wire_get g = { .head = head(WIRE_GET, 8) };
	char *path = in_dir("sparse"), text[4] = "";
	int ends[2], fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && !ftruncate(fd, 100 << 20));
	close(fd);
	g.head.flags = WIRE_PIPE;
	make_pipe(ends);
	send_frame(w, &g, sizeof(g), path, strlen(path), ends[1]);
	close(ends[1]);
	expect(w, WIRE_ENTRY);
	close(ends[0]);
	expect(w, WIRE_DATA);
	CHECK(get_bytes(w, path, 0, 4, text, sizeof(text)) == 4);
}

static void a_file_arrives_by_pipe_and_is_named_by_the_empty_data(struct box *b)
{
	auto_fd int w = open_worker(b);
	struct wire_put p = { .head = head(WIRE_PUT, 9), .mode = 0640 };
	char *path = in_dir("by/pipe"), text[16] = "";
	struct stat st;
	int ends[2];

	p.head.flags = WIRE_PIPE;
	make_pipe(ends);
	send_frame(w, &p, sizeof(p), path, strlen(path), ends[0]);
	close(ends[0]);
	CHECK(write(ends[1], "through", 7) == 7);
	close(ends[1]);
	ask_list(w, in_dir("by"), "", 0,
		 0); /* the pipe ended before the file: the upload is dropped */
	expect(w, WIRE_DONE);
	CHECK(!count_names(in_dir("by")));
	make_pipe(ends);
	send_frame(w, &p, sizeof(p), path, strlen(path), ends[0]);
	close(ends[0]);
	CHECK(write(ends[1], "through", 7) == 7);
	close(ends[1]);
	ask_path(w, WIRE_DATA, 9, NULL, 0);
	expect(w, WIRE_DONE);
	CHECK(!stat(path, &st) && (st.st_mode & 07777) == 0640);
	CHECK(get_bytes(w, path, 0, 0, text, sizeof(text)) == 7 && !memcmp(text, "through", 7));
}

static void a_failed_put_closes_its_pipe(struct box *b)
{
	auto_fd int w = open_worker(b);
	struct wire_put p = { .head = head(WIRE_PUT, 9) };
	struct wire_get g = { .head = head(WIRE_GET, 8) };
	struct pollfd gone;
	int ends[2];

	p.head.flags = g.head.flags = WIRE_PIPE;
	make_pipe(ends);
	send_frame(w, &p, sizeof(p), "/dev/null/x", 11, ends[0]);
	close(ends[0]);
	expect_error(w, ERR_NOT_FOUND);
	gone = (struct pollfd){ .fd = ends[1], .events = POLLOUT };
	while (poll(&gone, 1, 5000) == 1 && !(gone.revents & POLLERR))
		;
	CHECK(gone.revents & POLLERR);
	close(ends[1]);
	/* A pipe must be announced and present, or neither. */
	send_frame(w, &g, sizeof(g), "/etc/passwd", 11, -1);
	expect_error(w, ERR_INVALID);
	g.head.flags = 0;
	make_pipe(ends);
	send_frame(w, &g, sizeof(g), "/etc/passwd", 11, ends[1]);
	expect_error(w, ERR_INVALID);
	close(ends[0]);
	close(ends[1]);
}

static void only_plain_files_are_read(struct box *b)
{
	struct wire_get g = { .head = head(WIRE_GET, 8) };
	auto_fd int w = open_worker(b);

	CHECK(!mkfifo(in_dir("fifo"), 0644));
	send_frame(w, &g, sizeof(g), in_dir("fifo"), strlen(in_dir("fifo")), -1);
	expect_error(w, ERR_INVALID); /* and it did not hang */
	send_frame(w, &g, sizeof(g), "/dev/zero", 9, -1);
	expect_error(w, ERR_INVALID);
	send_frame(w, &g, sizeof(g), dir, strlen(dir), -1);
	expect_error(w, ERR_INVALID);
	send_frame(w, &g, sizeof(g), "/no/such", 8, -1);
	expect_error(w, ERR_NOT_FOUND);
	send_frame(w, &g, sizeof(g), "/etc/passwd\0.txt", 16, -1);
	expect_error(w, ERR_INVALID);
}

static void folders_are_created_listed_moved_and_examined(struct box *b)
{
	auto_fd int w = open_worker(b);
	char two[600];
	size_t n;
	int seen = 0;

	ask_put(w, WIRE_MKDIR, 1, in_dir("m/n/o"), 0700, 0);
	expect(w, WIRE_DONE);
	ask_put(w, WIRE_MKDIR, 1, in_dir("m/n/o"), 0700, 0);
	expect(w, WIRE_DONE);
	ask_put(w, WIRE_MKDIR, 1, in_dir("m/n/o"), 0700, WIRE_PUT_NEW);
	expect_error(w, ERR_CONFLICT);
	n = (size_t)snprintf(two, sizeof(two), "../target%c%s", 0, in_dir("m/link"));
	ask_path(w, WIRE_LINK, 2, two, n);
	expect(w, WIRE_DONE);
	n = (size_t)snprintf(two, sizeof(two), "%s%c%s", in_dir("m/n"), 0, in_dir("m/moved"));
	ask_path(w, WIRE_MOVE, 3, two, n);
	expect(w, WIRE_DONE);
	ask_list(w, in_dir("m"), "", 0, 0);
	while (receive(w) == WIRE_ENTRY) {
		struct wire_entry *e = GOT(wire_entry);

		seen += S_ISLNK(e->mode) && !strncmp((char *)(e + 1), "link", 4);
		seen += S_ISDIR(e->mode) && !strncmp((char *)(e + 1), "moved", 5) ? 10 : 0;
	}
	CHECK(HEAD->type == WIRE_DONE && seen == 11);
	ask_path(w, WIRE_ENTRY_OF, 5, in_dir("m/moved/o"), strlen(in_dir("m/moved/o")));
	expect(w, WIRE_ENTRY);
	CHECK(GOT(wire_entry)->mode == (S_IFDIR | 0700) && GOT(wire_entry)->uid == getuid());
	ask_path(w, WIRE_MOVE, 6, "only one", 8);
	expect_error(w, ERR_INVALID);
}

static void remove_does_not_follow_links(struct box *b)
{
	auto_fd int w = open_worker(b);

	CHECK(!mkdir(in_dir("gone"), 0755) && !mkdir(in_dir("stays"), 0755));
	CHECK(!mkdir(in_dir("stays/x"), 0755) && !symlink("../stays", in_dir("gone/link")));
	ask_path(w, WIRE_REMOVE, 1, in_dir("gone"), strlen(in_dir("gone")));
	expect(w, WIRE_DONE);
	CHECK(access(in_dir("gone"), F_OK) && !access(in_dir("stays/x"), F_OK));
	ask_path(w, WIRE_REMOVE, 2, in_dir("gone"), strlen(in_dir("gone")));
	expect_error(w, ERR_NOT_FOUND);
}

/* depth directories, one inside the other, each with a file */
static void make_deep(const char *top, int depth)
{
	int i, fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(fd >= 0);
	for (i = 0; i < depth; i++) {
		int next;

		close(openat(fd, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
		CHECK(!mkdirat(fd, "d", 0755));
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	close(fd);
}

static void a_tree_ten_thousand_deep_is_removed(struct box *b)
{
	auto_fd int w = open_worker(b);

	CHECK(!mkdir(in_dir("deep"), 0755));
	make_deep(in_dir("deep"), 10000);
	ask_path(w, WIRE_REMOVE, 1, in_dir("deep"), strlen(in_dir("deep")));
	expect(w, WIRE_DONE);
	CHECK(access(in_dir("deep"), F_OK));
}

static void a_wide_tree_is_removed(struct box *b)
{
	auto_fd int w = open_worker(b);
	char path[256];
	int i;

	CHECK(!mkdir(in_dir("wide"), 0755));
	for (i = 0; i < 800; i++) {
		snprintf(path, sizeof(path), "%s/wide/%d", dir, i);
		CHECK(!mkdir(path, 0755));
		strcat(path, "/file");
		close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	}
	ask_path(w, WIRE_REMOVE, 1, in_dir("wide"), strlen(in_dir("wide")));
	expect(w, WIRE_DONE);
	CHECK(access(in_dir("wide"), F_OK));
}

struct seen {
	int files, dirs, links, deleted, hashed, longest;
	uint64_t cut;
};

static struct seen see_changes(int w, uint32_t most, uint64_t hash_bytes)
{
	struct wire_changes c = { .head = head(WIRE_CHANGES, 4), .max_entries = most };
	struct seen s = { 0 };

	c.hash_bytes = hash_bytes;
	send_frame(w, &c, sizeof(c), NULL, 0, -1);
	while (receive(w) == WIRE_ENTRY) {
		struct wire_entry *e = GOT(wire_entry);
		int n = frame_len - (int)sizeof(*e);

		CHECK(frame_bytes[sizeof(*e)] == '/');
		s.files += S_ISREG(e->mode);
		s.dirs += S_ISDIR(e->mode);
		s.links += S_ISLNK(e->mode);
		s.deleted += !e->mode;
		s.hashed += (int)e->hashed;
		s.longest = n > s.longest ? n : s.longest;
		if (hash_bytes && n == 8 && !memcmp(e + 1, "/sub/abc", 8))
			CHECK(e->hashed && e->sha256[0] == 0xba && e->sha256[31] == 0xad);
	}
	CHECK(HEAD->type == WIRE_DONE && HEAD->ref == 4);
	s.cut = HEAD->flags;
	return s;
}

static void changes_lists_the_files_of_the_upper_layer(struct box *b)
{
	auto_fd int w = open_worker(b);
	struct seen s;
	int fd, marked;

	CHECK(!mkdir(in_dir("upper/sub"), 0755) && !symlink("/etc", in_dir("upper/sub/out")));
	fd = open(in_dir("upper/sub/abc"), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	CHECK(write(fd, "abc", 3) == 3);
	close(fd);
	CHECK(!truncate(in_dir("upper/sub/abc"), 3) && !mkfifo(in_dir("upper/pipe"), 0644));
	close(open(in_dir("upper/big"), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	CHECK(!truncate(in_dir("upper/big"), 1 << 20));
	marked = !mknod(in_dir("upper/deleted"), S_IFCHR | 0000, makedev(0, 0));
	s = see_changes(w, 1000, 4096); /* enough for one of the two files */
	CHECK(s.files == 2 && s.dirs == 1 && s.links == 1 && s.hashed == 1 && !s.cut);
	CHECK(s.deleted == marked);
	s = see_changes(w, 2, 0);
	CHECK(s.cut == WIRE_DONE_TRUNCATED && s.files + s.dirs + s.links <= 2 && !s.hashed);
}

static void changes_survive_a_tree_of_thousands_of_levels(struct box *b)
{
	auto_fd int w = open_worker(b);
	struct seen s;

	CHECK(!mkdir(in_dir("upper/deep"), 0755));
	make_deep(in_dir("upper/deep"), 3500);
	s = see_changes(w, 1000000, 0);
	ask_path(w, WIRE_REMOVE, 1, in_dir("upper/deep"), strlen(in_dir("upper/deep")));
	expect(w, WIRE_DONE);
	CHECK(s.dirs >= 3501 && s.files >= 3500 && s.longest > 7000 && !s.cut);
}

static void a_path_too_long_for_a_frame_is_skipped_and_reported(struct box *b)
{
	auto_fd int w = open_worker(b);
	int i, fd = open(in_dir("upper"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	static char name[251];
	struct seen s;

	memset(name, 'n', 250);
	for (i = 0; i < 300; i++) {
		int next;

		CHECK(!mkdirat(fd, name, 0755));
		next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	close(fd);
	s = see_changes(w, 1000000, 0);
	ask_path(w, WIRE_REMOVE, 1, in_dir("upper"), strlen(in_dir("upper")));
	expect(w, WIRE_DONE);
	CHECK(!mkdir(in_dir("upper"), 0755));
	CHECK(s.cut == WIRE_DONE_TRUNCATED && s.dirs >= 255 && s.longest > 60000);
}

static void an_invalid_frame_ends_the_worker_and_not_the_box(struct box *b)
{
	auto_fd int w = open_worker(b);

	send_head(w, WIRE_STAT, 1); /* a request for init, not for a worker */
	CHECK(!receive(w));
	ask_status(b->conn);
}

/* ---- lists ---- */

/* The names up to DONE, each followed by a space; DONE's flags. */
static int hear_names(int w, char *to, size_t room)
{
	size_t n = 0;

	to[0] = '\0';
	while (receive(w) == WIRE_ENTRY) {
		const char *name = (const char *)(GOT(wire_entry) + 1);
		size_t left = (size_t)frame_len - sizeof(struct wire_entry);

		n += (size_t)snprintf(to + n, room - n, "%.*s ", (int)strnlen(name, left), name);
		CHECK(n < room);
	}
	if (HEAD->type == WIRE_ERROR)
		fail("ERROR '%s'", GOT(wire_error)->msg);
	CHECK(HEAD->type == WIRE_DONE);
	return HEAD->flags;
}

static void touch(const char *name)
{
	int fd = open(in_dir(name), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	CHECK(fd >= 0);
	close(fd);
}

static void a_list_is_sorted_and_split_into_pages(struct box *b)
{
	static const char *const names[] = {
		"l/b", "l/a", "l/\xff", "l/B", "l/a.b", "l/ab", "l/-"
	};
	auto_fd int w = open_worker(b);
	char got[512];
	size_t i;

	CHECK(!mkdir(in_dir("l"), 0755));
	ask_list(w, in_dir("l"), "", 0, 0);
	CHECK(!hear_names(w, got, sizeof(got)) && !got[0]);
	for (i = 0; i < ARRAY_LEN(names); i++)
		touch(names[i]);
	ask_list(w, in_dir("l"), "", 0, 0);
	CHECK(!hear_names(w, got, sizeof(got)) && !strcmp(got, "- B a a.b ab b \xff "));
	ask_list(w, in_dir("l"), "", 3, 0);
	CHECK(hear_names(w, got, sizeof(got)) == WIRE_DONE_TRUNCATED && !strcmp(got, "- B a "));
	ask_list(w, in_dir("l"), "a", 3, 1);
	CHECK(hear_names(w, got, sizeof(got)) == WIRE_DONE_TRUNCATED && !strcmp(got, "a.b ab b "));
	ask_list(w, in_dir("l"), "b", 3, 1);
	CHECK(!hear_names(w, got, sizeof(got)) && !strcmp(got, "\xff "));
	ask_list(w, in_dir("l"), "aa", 1, 1); /* a name that is not there */
	CHECK(hear_names(w, got, sizeof(got)) == WIRE_DONE_TRUNCATED && !strcmp(got, "ab "));
	ask_list(w, in_dir("l/a"), "", 0, 0);
	expect_error(w, ERR_NOT_FOUND);
	ask_list(w, in_dir("l"), "", 0, 65);
	expect_error(w, ERR_INVALID);
}

static void a_deep_list_resumes_at_any_path(struct box *b)
{
	static const char *const dirs[] = { "d", "d/a", "d/a/x", "d/a.", "d/c", "d/c/e" };
	static const char *const files[] = { "d/a/x/1", "d/a/x/2", "d/a/y",
					     "d/a./z",  "d/b",     "d/c/e/f" };
	static const char all[] = "a a/x a/x/1 a/x/2 a/y a. a./z b c c/e c/e/f ";
	auto_fd int w = open_worker(b);
	char got[512], rest[512], after[64] = "";
	size_t i, n;

	for (i = 0; i < ARRAY_LEN(dirs); i++)
		CHECK(!mkdir(in_dir(dirs[i]), 0755));
	for (i = 0; i < ARRAY_LEN(files); i++)
		touch(files[i]);
	ask_list(w, in_dir("d"), "", 0, 64);
	CHECK(!hear_names(w, got, sizeof(got)) && !strcmp(got, all));
	ask_list(w, in_dir("d"), "", 0, 2);
	CHECK(!hear_names(w, got, sizeof(got)) && !strcmp(got, "a a/x a/y a. a./z b c c/e "));
	/* A list that starts after any entry has the entries that follow it; also in pages of
	 * one entry. */
	for (i = 0; all[i]; i += n + 1) {
		n = strcspn(all + i, " ");
		ask_list(w, in_dir("d"), after, 1, 64);
		hear_names(w, got, sizeof(got));
		snprintf(after, sizeof(after), "%.*s", (int)n, all + i);
		CHECK(!strncmp(got, all + i, n + 1) && !got[n + 1]);
		ask_list(w, in_dir("d"), after, 0, 64);
		CHECK(!hear_names(w, rest, sizeof(rest)) && !strcmp(rest, all + i + n + 1));
	}
	ask_list(w, in_dir("d"), "a/x/0", 2, 64);
	hear_names(w, got, sizeof(got));
	CHECK(!strcmp(got, "a/x/1 a/x/2 "));
	ask_list(w, in_dir("d"), "b/was/a/folder", 1, 64);
	hear_names(w, got, sizeof(got));
	CHECK(!strcmp(got, "c "));
	ask_list(w, in_dir("d"), "../../..", 1, 64);
	hear_names(w, got, sizeof(got));
	CHECK(!strcmp(got, "a "));
}

static void a_folder_larger_than_a_page_is_listed_completely(struct box *b)
{
	auto_fd int w = open_worker(b);
	char name[64], last[64] = "";
	unsigned i, n = 0, made = 20000;

	CHECK(!mkdir(in_dir("wide"), 0755));
	for (i = 0; i < made; i++) {
		snprintf(name, sizeof(name), "wide/%x", i * 2654435761u);
		touch(name);
	}
	ask_list(w, in_dir("wide"), "", 0, 0);
	while (receive(w) == WIRE_ENTRY) {
		int len = frame_len - (int)sizeof(struct wire_entry);

		snprintf(name, sizeof(name), "%.*s", len, (char *)(GOT(wire_entry) + 1));
		CHECK(strcmp(last, name) < 0);
		strcpy(last, name);
		n++;
	}
	CHECK(HEAD->type == WIRE_DONE && !HEAD->flags && n == made);
}

static void links_are_listed_with_their_targets(struct box *b)
{
	auto_fd int w = open_worker(b);
	const struct wire_entry *e = GOT(wire_entry);
	const char *tail = (const char *)(e + 1);

	CHECK(!mkdir(in_dir("k"), 0755) && !symlink("..", in_dir("k/up")));
	CHECK(!symlink("/no/where", in_dir("k/lost")));
	ask_list(w, in_dir("k"), "", 0, 0);
	expect(w, WIRE_ENTRY);
	CHECK(S_ISLNK(e->mode) && !e->target_mode && !memcmp(tail, "lost\0/no/where", 14));
	CHECK(frame_len == (int)sizeof(*e) + 14);
	expect(w, WIRE_ENTRY);
	CHECK(S_ISLNK(e->mode) && S_ISDIR(e->target_mode) && !memcmp(tail, "up\0..", 5));
	expect(w, WIRE_DONE);
	ask_path(w, WIRE_ENTRY_OF, 1, in_dir("k/up"), strlen(in_dir("k/up")));
	expect(w, WIRE_ENTRY);
	CHECK(S_ISLNK(e->mode) && S_ISDIR(e->target_mode));
	CHECK(!memcmp(tail + strlen(in_dir("k/up")), "\0..", 3));
	ask_path(w, WIRE_ENTRY_OF, 1, in_dir("k"), strlen(in_dir("k")));
	expect(w, WIRE_ENTRY);
	CHECK(S_ISDIR(e->mode) && !e->target_mode &&
	      frame_len == (int)(sizeof(*e) + strlen(in_dir("k"))));
}

/* ---- conditions ---- */

static struct wire_entry task_text_read(int w, const char *name)
{
	ask_path(w, WIRE_ENTRY_OF, 7, in_dir(name), strlen(in_dir(name)));
	expect(w, WIRE_ENTRY);
	return *GOT(wire_entry);
}

static void put_if(int w, const char *name, const char *text, const struct wire_entry *e)
{
	struct wire_put p = { .head = head(WIRE_PUT, 6),
			      .flags = WIRE_PUT_IF,
			      .if_mtime_ns = e->mtime_ns,
			      .if_size = e->size };

	send_frame(w, &p, sizeof(p), in_dir(name), strlen(in_dir(name)), -1);
	ask_path(w, WIRE_DATA, 6, text, strlen(text));
	ask_path(w, WIRE_DATA, 6, NULL, 0);
}

static void put_with_time(int w, const char *name, uint32_t flags, uint64_t ns)
{
	struct wire_put p = { .head = head(WIRE_PUT, 8), .flags = flags, .if_mtime_ns = ns };

	send_frame(w, &p, sizeof(p), in_dir(name), strlen(in_dir(name)), -1);
	ask_path(w, WIRE_DATA, 8, "x", 1);
	ask_path(w, WIRE_DATA, 8, NULL, 0);
}

static void a_file_gets_the_time_of_its_upload(struct box *b)
{
	auto_fd int w = open_worker(b);
	struct wire_entry e;

	CHECK(!mkdir(in_dir("time"), 0755));
	put_with_time(w, "time/f", WIRE_PUT_TIME, UINT64_C(1000000000123456789));
	expect(w, WIRE_DONE);
	e = task_text_read(w, "time/f");
	CHECK(e.mtime_ns == UINT64_C(1000000000123456789) && e.size == 1);
	put_with_time(w, "time/f", WIRE_PUT_TIME | WIRE_PUT_IF, e.mtime_ns);
	expect_error(w, ERR_INVALID);
	put_with_time(w, "time/f", WIRE_PUT_NEW | WIRE_PUT_TIME, 0);
	expect_error(w, ERR_CONFLICT);
}

static void a_file_is_replaced_only_if_its_version_matches(struct box *b)
{
	auto_fd int w = open_worker(b), other = open_worker(b);
	struct wire_entry e, was;
	char text[16] = "";

	CHECK(!mkdir(in_dir("if"), 0755));
	put_text(w, 1, in_dir("if/f"), "one", 0640, 0);
	expect(w, WIRE_DONE);
	was = task_text_read(w, "if/f");
	put_if(w, "if/f", "three", &was);
	expect(w, WIRE_DONE);
	e = task_text_read(w, "if/f");
	CHECK(e.size == 5 && (e.mode & 07777) == 0640);
	put_if(w, "if/f", "four", &was);
	expect_error(w, ERR_CONFLICT);
	CHECK(GOT(wire_error)->sys == ESTALE);
	/* Another writer replaces the file during the upload. */
	put_if(other, "if/f", "five5", &e);
	expect(other, WIRE_DONE);
	put_if(w, "if/f", "six", &e);
	expect_error(w, ERR_CONFLICT);
	CHECK(get_bytes(w, in_dir("if/f"), 0, 0, text, sizeof(text)) == 5 &&
	      !memcmp(text, "five5", 5));
	put_if(w, "if/none", "x", &e);
	expect_error(w, ERR_CONFLICT);
	CHECK(count_names(in_dir("if")) == 1);
	ask_put(w, WIRE_PUT, 1, in_dir("if/g"), 0644, WIRE_PUT_NEW | WIRE_PUT_IF);
	expect_error(w, ERR_INVALID);
	ask_put(w, WIRE_PUT, 1, in_dir("if/g"), 0644, 1u << 31);
	expect_error(w, ERR_INVALID);
}

/* Two uploads are conditional on the same version: one of them is rejected. */
static void of_two_conditional_replacements_one_succeeds(struct box *b)
{
	auto_fd int w = open_worker(b), other = open_worker(b);
	int i, won, lost;

	put_text(w, 1, in_dir("duel"), "start", 0644, 0);
	expect(w, WIRE_DONE);
	for (i = 0; i < 200; i++) {
		struct wire_entry e = task_text_read(w, "duel");
		char a[32], c[32];

		snprintf(a, sizeof(a), "first %*d", i % 10 + 4, i); /* another size every time */
		snprintf(c, sizeof(c), "second %*d", i % 10 + 4, i);
		put_if(w, "duel", a, &e);
		put_if(other, "duel", c, &e);
		won = (receive(w) == WIRE_DONE) + (receive(other) == WIRE_DONE);
		lost = 2 - won;
		if (won != 1 || lost != 1)
			fail("round %d: %d have won", i, won);
	}
}

/* ---- small changes ---- */

static void ask_two(int w, int type, const char *from, const char *to, int flags)
{
	struct frame f = head(type, 9);
	char tail[600];
	int n = snprintf(tail, sizeof(tail), "%s%c%s", in_dir(from), 0, in_dir(to));

	f.flags = (uint16_t)flags;
	send_frame(w, &f, sizeof(f), tail, (size_t)n, -1);
}

static void modes_are_changed_and_unknown_flags_rejected(struct box *b)
{
	struct frame f = head(WIRE_REMOVE, 1);
	auto_fd int w = open_worker(b);

	CHECK(!mkdir(in_dir("s"), 0755) && !mkdir(in_dir("s/t"), 0755));
	touch("s/f");
	touch("s/g");
	ask_put(w, WIRE_CHMOD, 1, in_dir("s/f"), 04711, 0);
	expect(w, WIRE_DONE);
	CHECK((task_text_read(w, "s/f").mode & 07777) == 04711);
	ask_put(w, WIRE_CHMOD, 1, in_dir("s/f"), 0200000, 0);
	expect_error(w, ERR_INVALID);
	ask_put(w, WIRE_CHMOD, 1, in_dir("s/none"), 0600, 0);
	expect_error(w, ERR_NOT_FOUND);

	ask_two(w, WIRE_MOVE, "s/f", "s/g", WIRE_MOVE_NEW);
	expect_error(w, ERR_CONFLICT);
	ask_two(w, WIRE_MOVE, "s/f", "s/g", 0);
	expect(w, WIRE_DONE);
	ask_two(w, WIRE_MOVE, "s/g", "s/new/folders/g", WIRE_MOVE_NEW);
	expect(w, WIRE_DONE);
	ask_two(w, WIRE_MOVE, "s/none", "s/other/folders/g", 0);
	expect_error(w, ERR_NOT_FOUND);
	CHECK(access(in_dir("s/other"), F_OK) < 0);
	ask_two(w, WIRE_MOVE, "s/new", "s/x", 1 << 7);
	expect_error(w, ERR_INVALID);

	f.flags = WIRE_REMOVE_ONE;
	send_frame(w, &f, sizeof(f), in_dir("s"), strlen(in_dir("s")), -1);
	expect_error(w, ERR_CONFLICT);
	send_frame(w, &f, sizeof(f), in_dir("s/t"), strlen(in_dir("s/t")), -1);
	expect(w, WIRE_DONE);
	f.flags = 2;
	send_frame(w, &f, sizeof(f), in_dir("s"), strlen(in_dir("s")), -1);
	expect_error(w, ERR_INVALID);
	CHECK(!access(in_dir("s"), F_OK));
}

/* ---- copies ---- */

static void run_shell(const char *script)
{
	char command[1024];

	snprintf(command, sizeof(command), "cd %s && { %s; }", dir, script);
	if (system(command))
		fail("'%.200s' failed", script);
}

static void a_tree_is_copied_with_links_modes_and_holes(struct box *b)
{
	auto_fd int w = open_worker(b);
	struct stat st;

	run_shell("mkdir -p c/one/two c/ro && echo hello >c/one/f && chmod 751 c/one/f &&"
		  "ln -s ../nowhere c/one/l && ln -s f c/one/m && truncate -s 1G c/hole &&"
		  "echo x >c/ro/g && chmod 555 c/ro && chmod 1770 c/one/two");
	ask_two(w, WIRE_COPY, "c", "copies/c", 0);
	expect(w, WIRE_DONE);
	CHECK(!HEAD->flags);
	run_shell(
		"test \"$(cd c; find . -printf '%p %m %s %l\\n' | grep -v '^[^ ]* [0-9]* [0-9]* $' | sort)\" = "
		"\"$(cd copies/c; find . -printf '%p %m %s %l\\n' | grep -v '^[^ ]* [0-9]* [0-9]* $' | sort)\"");
	run_shell("diff -r --no-dereference c/one copies/c/one && diff c/ro/g copies/c/ro/g");
	run_shell("test \"$(stat -c %a c c/ro c/one/two c/one/f)\" = "
		  "\"$(cd copies; stat -c %a c c/ro c/one/two c/one/f)\"");
	CHECK(!stat(in_dir("copies/c/hole"), &st) && st.st_size == 1 << 30 && st.st_blocks < 100);
	CHECK(count_names(in_dir("copies")) == 1);

	ask_two(w, WIRE_COPY, "c/one/f", "copies/f", 0);
	expect(w, WIRE_DONE);
	ask_two(w, WIRE_COPY, "c/one/f", "copies/f", WIRE_COPY_NEW);
	expect_error(w, ERR_CONFLICT);
	ask_two(w, WIRE_COPY, "c/one/f", "copies/f", 0);
	expect(w, WIRE_DONE);
	ask_two(w, WIRE_COPY, "c/one/l", "copies/l", 0);
	expect(w, WIRE_DONE);
	ask_two(w, WIRE_COPY, "c", "copies/c", 0); /* a folder is not merged into another */
	expect_error(w, ERR_CONFLICT);
	ask_two(w, WIRE_COPY, "none", "copies/n/o/n/e", 0);
	expect_error(w, ERR_NOT_FOUND);
	CHECK(access(in_dir("copies/n"), F_OK) < 0);
	CHECK(count_names(in_dir("copies")) == 3);
	run_shell("chmod 755 c/ro copies/c/ro");
}

static void a_folder_is_not_copied_into_itself(struct box *b)
{
	auto_fd int w = open_worker(b);

	run_shell("mkdir -p self/a/b && echo x >self/a/f");
	ask_two(w, WIRE_COPY, "self", "self/a/b/self", 0);
	expect_error(w, ERR_INVALID);
	run_shell("test \"$(find self | sort | tr '\\n' ' ')\" = 'self self/a self/a/b self/a/f '");
}

static void files_that_cannot_be_copied_are_skipped_and_reported(struct box *b)
{
	auto_fd int w = open_worker(b);

	run_shell("mkdir odd && mkfifo odd/pipe && echo x >odd/f");
	ask_two(w, WIRE_COPY, "odd", "odd2", 0);
	expect(w, WIRE_DONE);
	CHECK(HEAD->flags == WIRE_DONE_SKIPPED && count_names(in_dir("odd2")) == 1);
	ask_two(w, WIRE_COPY, "odd/pipe", "odd3", 0);
	expect_error(w, ERR_INVALID);
}

static void a_copy_deeper_than_the_limit_is_refused_and_removed(struct box *b)
{
	auto_fd int w = open_worker(b);

	CHECK(!mkdir(in_dir("deep"), 0755));
	make_deep(in_dir("deep"), 4200);
	ask_two(w, WIRE_COPY, "deep", "deep2", 0);
	expect_error(w, ERR_LIMIT);
	CHECK(strstr(GOT(wire_error)->msg, "4096 folders"));
	run_shell("! ls -A | grep -q '^.atoll-\\|deep2'");
	ask_path(w, WIRE_REMOVE, 1, in_dir("deep"), strlen(in_dir("deep")));
	expect(w, WIRE_DONE);
}

/* A new file system, in a new mount namespace; 0 where that is not permitted. */
static int small_disk(const char *name)
{
	CHECK(!mkdir(in_dir(name), 0755));
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tmpfs", in_dir(name), "tmpfs", 0, "size=256k") == 0;
}

static void a_copy_that_does_not_fit_leaves_nothing(struct box *b)
{
	struct box inner = { .conn = -1, .listener = -1 };
	auto_fd int w = -1;

	(void)b; /* it was created outside the mount namespace */
	if (!small_disk("small")) {
		printf("# no mounts of our own: nothing to fill\n");
		return;
	}
	boxh_start(&inner, 0);
	w = open_worker(&inner);
	run_shell(
		"mkdir small/a && head -c 60000 /dev/urandom >small/a/1 && cp small/a/1 small/a/2 && "
		"cp small/a/1 small/a/3");
	ask_two(w, WIRE_COPY, "small/a", "small/b", 0);
	expect_error(w, ERR_LIMIT);
	CHECK(GOT(wire_error)->sys == ENOSPC);
	CHECK(count_names(in_dir("small")) == 1);
	ask_two(w, WIRE_COPY, "small/a/1", "small/b", 0); /* and there is room again */
	expect(w, WIRE_DONE);
	box_stop(&inner);
	umount(in_dir("small"));
}

/* ---- watching ---- */

static int open_watch(struct box *b, const char *path, int flags)
{
	struct frame f = head(WIRE_WATCH, 2);
	int w = open_worker(b);

	f.flags = (uint16_t)flags;
	send_frame(w, &f, sizeof(f), path, strlen(path), -1);
	return w;
}

/* The next event as "kind path" or "kind path>path". */
static const char *next_event(int w)
{
	static const char *const kinds[] = { "?",     "create",   "write", "remove", "rename",
					     "chmod", "overflow", "limit", "gone" };
	static char text[600];
	const struct wire_event *e = GOT(wire_event);
	int n, i;

	if (!receive(w))
		return "end";
	CHECK(HEAD->type == WIRE_EVENT && HEAD->ref == 2 && e->kind < ARRAY_LEN(kinds));
	n = snprintf(text, sizeof(text), "%s%s %.*s", kinds[e->kind], e->is_dir ? "/" : "",
		     frame_len - (int)sizeof(*e), (const char *)(e + 1));
	for (i = (int)sizeof(*e); i < frame_len; i++)
		if (!frame_bytes[i])
			snprintf(text + n, sizeof(text) - (size_t)n, ">%.*s", frame_len - i - 1,
				 frame_bytes + i + 1);
	return text;
}

static void expect_event(int w, const char *want)
{
	const char *got = next_event(w);

	if (strcmp(got, want))
		fail("wanted '%s', got '%s'", want, got);
}

/* Skips events that may occur any number of times. */
static void await_event(int w, const char *want)
{
	const char *got;

	do {
		got = next_event(w);
		if (!strcmp(got, "end"))
			fail("'%s' never came", want);
	} while (strcmp(got, want));
}

static void a_watch_reports_changes_in_a_folder(struct box *b)
{
	auto_fd int w = -1, files = open_worker(b);

	run_shell("mkdir -p w1/sub");
	w = open_watch(b, in_dir("w1"), 0);
	expect(w, WIRE_DONE);
	run_shell("echo x >w1/a; chmod 700 w1/a; mv w1/a w1/b; rm w1/b; mkdir w1/d; rmdir w1/d");
	expect_event(w, "create a");
	expect_event(w, "write a");
	expect_event(w, "chmod a");
	expect_event(w, "rename a>b");
	expect_event(w, "remove b");
	expect_event(w, "create/ d");
	expect_event(w, "remove/ d");
	run_shell("echo x >w1/sub/below; echo x >outside; mv outside w1/in; mv w1/in outside");
	expect_event(w, "create in"); /* no event of the folder below */
	expect_event(w, "write in");
	expect_event(w, "remove in");
	/* An upload is one event, not the events of its temporary file. */
	put_text(files, 1, in_dir("w1/up"), "text", 0644, 0);
	expect(files, WIRE_DONE);
	expect_event(w, "create up");
	expect_event(w, "write up");
	{
		struct wire_entry e = task_text_read(files, "w1/up");

		put_if(files, "w1/up", "other text", &e);
		expect(files, WIRE_DONE);
	}
	expect_event(w, "create up");
	expect_event(w, "write up");
	run_shell("rm w1/up; rm -r w1");
	expect_event(w, "remove up");
	await_event(w, "gone/ ");
	CHECK(!receive(w));
}

static void a_recursive_watch_follows_created_moved_and_removed_folders(struct box *b)
{
	auto_fd int w = -1;

	run_shell("mkdir -p w2/a/b");
	w = open_watch(b, in_dir("w2"), WIRE_WATCH_DEEP);
	expect(w, WIRE_DONE);
	run_shell(": >w2/a/b/f");
	expect_event(w, "create a/b/f");
	run_shell("mkdir w2/n");
	expect_event(w, "create/ n");
	run_shell(": >w2/n/f");
	expect_event(w, "create n/f");
	run_shell("mv w2/a w2/n/moved");
	expect_event(w, "rename/ a>n/moved");
	run_shell(": >w2/n/moved/b/g");
	expect_event(w, "create n/moved/b/g");
	/* Files that a new folder already contains are reported with it. */
	run_shell("mkdir -p late/x/y && : >late/x/y/z && mv late w2/late");
	expect_event(w, "create/ late");
	expect_event(w, "create/ late/x");
	expect_event(w, "create/ late/x/y");
	expect_event(w, "create late/x/y/z");
	/* A folder that was moved out is no longer watched. */
	run_shell("mv w2/n left");
	expect_event(w, "remove/ n");
	run_shell(": >left/moved/b/h; : >w2/last");
	expect_event(w, "create last");
}

static void many_writes_are_merged_into_few_events_and_the_last_is_reported(struct box *b)
{
	auto_fd int w = -1, fd = -1;
	int i, n = 0;

	run_shell("mkdir w3; : >w3/log");
	w = open_watch(b, in_dir("w3"), 0);
	expect(w, WIRE_DONE);
	fd = open(in_dir("w3/log"), O_WRONLY | O_APPEND | O_CLOEXEC);
	for (i = 0; i < 20000; i++)
		CHECK(write(fd, "x", 1) == 1);
	run_shell(": >w3/end");
	for (;;) {
		const char *got = next_event(w);

		if (!strcmp(got, "create end"))
			break;
		CHECK(!strcmp(got, "write log"));
		n++;
	}
	CHECK(n >= 1 && n < 1000);
	CHECK(write(fd, "x", 1) == 1);
	expect_event(w, "write log");
	CHECK(write(fd, "x", 1) == 1); /* again at once: reported later, but reported */
	expect_event(w, "write log");
}

static void an_overflow_of_the_inotify_queue_is_reported(struct box *b)
{
	auto_fd int w = -1;
	char name[64];
	int i, rounds;

	run_shell("mkdir w4");
	w = open_watch(b, in_dir("w4"), WIRE_WATCH_DEEP);
	expect(w, WIRE_DONE);
	for (rounds = 0; rounds < 3; rounds++)
		for (i = 0; i < 20000; i++) { /* never two equal ones in a row */
			snprintf(name, sizeof(name), "w4/%d", i % 7);
			touch(name);
			CHECK(!unlink(in_dir(name)));
		}
	run_shell("mkdir w4/unseen");
	await_event(w, "overflow ");
	run_shell(": >w4/unseen/f"); /* and the folder that was created meanwhile is watched */
	await_event(w, "create unseen/f");
}

static void more_folders_than_watches_are_an_error(struct box *b)
{
	auto_fd int w = -1, v = -1;

	run_shell("mkdir w5 && cd w5 && seq 4095 | xargs mkdir");
	w = open_watch(b, in_dir("w5"), WIRE_WATCH_DEEP);
	expect(w, WIRE_DONE);
	run_shell("mkdir w5/more");
	expect_event(w, "create/ more");
	expect_event(w, "limit/ more");
	v = open_watch(b, in_dir("w5"), WIRE_WATCH_DEEP);
	expect_error(v, ERR_LIMIT);
	CHECK(strstr(GOT(wire_error)->msg, "4096"));
	run_shell("rmdir w5/17 w5/more");
	await_event(w, "remove/ more");
	run_shell("mkdir w5/room");
	expect_event(w, "create/ room");
	run_shell(": >w5/room/f");
	expect_event(w, "create room/f");
	run_shell("rm -r w5");
}

static void a_watch_ends_with_its_connection(struct box *b)
{
	auto_fd int w = -1, v = -1;
	uint64_t before;

	run_shell("mkdir w6");
	before = ask_status(b->conn).reaped;
	w = open_watch(b, in_dir("w6"), 0);
	expect(w, WIRE_DONE);
	close(steal_fd(&w));
	while (ask_status(b->conn).reaped == before)
		;
	v = open_watch(b, in_dir("w6"), 0);
	expect(v, WIRE_DONE);
	ask_path(v, WIRE_ENTRY_OF, 1, dir, strlen(dir)); /* it does nothing else */
	CHECK(!receive(v));
	close(steal_fd(&v));
	v = open_watch(b, in_dir("none"), 0);
	expect_error(v, ERR_NOT_FOUND);
	close(steal_fd(&v));
	v = open_watch(b, "/etc/passwd", 0);
	expect_error(v, ERR_NOT_FOUND);
	close(steal_fd(&v));
	v = open_watch(b, in_dir("w6"), 1 << 7);
	expect_error(v, ERR_INVALID);
}

/* ---- searching ---- */

static void ask_search(int w, const char *path, const char *name, const char *text, uint32_t max,
		       int flags)
{
	struct wire_search s = { .head = head(WIRE_SEARCH, 3), .max = max };
	char tail[2048];
	int n = snprintf(tail, sizeof(tail), "%s%c%s%c%s", path, 0, name, 0, text);

	s.head.flags = (uint16_t)flags;
	send_frame(w, &s, sizeof(s), tail, (size_t)n, -1);
}

/* All hits, sorted, as "path" or "path:line:text", each followed by a space; DONE's flags. */
static int hear_hits(int w, char *to, size_t room)
{
	static char hits[64][600];
	const struct wire_hit *h = GOT(wire_hit);
	size_t i, k, n = 0, at = 0;

	while (receive(w) == WIRE_HIT && n < 64) {
		const char *tail = (const char *)(h + 1);
		int len = frame_len - (int)sizeof(*h), path = (int)strnlen(tail, (size_t)len);

		if (h->line)
			snprintf(hits[n++], sizeof(hits[0]), "%.*s:%u:%.*s", path, tail, h->line,
				 len - path - 1, tail + path + 1);
		else
			snprintf(hits[n++], sizeof(hits[0]), "%.*s", path, tail);
	}
	if (HEAD->type == WIRE_ERROR)
		fail("ERROR '%s'", GOT(wire_error)->msg);
	CHECK(HEAD->type == WIRE_DONE);
	for (i = 0; i < n; i++)
		for (k = i + 1; k < n; k++)
			if (strcmp(hits[i], hits[k]) > 0) {
				char swap[600];

				memcpy(swap, hits[i], 600);
				memcpy(hits[i], hits[k], 600);
				memcpy(hits[k], swap, 600);
			}
	to[0] = '\0';
	for (i = 0; i < n; i++)
		at += (size_t)snprintf(to + at, room - at, "%s ", hits[i]);
	return HEAD->flags;
}

static void names_are_found_by_substring_or_pattern(struct box *b)
{
	static const struct {
		const char *name, *hits;
		int flags;
	} cases[] = {
		{ "main", "a/main.c a/main.h ", 0 },
		{ "*.c", "a/b/util.c a/main.c ", 0 },
		{ "*.[ch]", "a/b/util.c a/main.c a/main.h ", 0 },
		{ "[!a-l]*", "README a/b/od[d a/b/util.c a/main.c a/main.h ", 0 },
		{ "????.h", "a/main.h ", 0 },
		{ "readme", "", 0 },
		{ "readme", "README ", WIRE_SEARCH_FOLD },
		{ "*ME", "README ", 0 },
		{ "*me*", "README ", WIRE_SEARCH_FOLD },
		{ "b", "a/b ", 0 },
		{ "*[*", "a/b/od[d ", 0 },
		{ "od\\[d*", "a/b/od[d ", 0 },
		{ "*a*a*a*a*a*a*a*a*a*a*x", "", 0 },
	};
	auto_fd int w = open_worker(b);
	char got[2048];
	size_t i;

	run_shell(
		"mkdir -p s1/a/b && cd s1 && touch a/main.c a/main.h a/b/util.c README 'a/b/od[d' &&"
		"ln -s /etc link~ && touch aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		ask_search(w, in_dir("s1"), cases[i].name, "", 0, cases[i].flags);
		if (hear_hits(w, got, sizeof(got)) || strcmp(got, cases[i].hits))
			fail("%s: got '%s'", cases[i].name, got);
	}
	ask_search(w, in_dir("s1"), "a", "", 3, 0);
	CHECK(hear_hits(w, got, sizeof(got)) == WIRE_DONE_TRUNCATED);
	ask_search(w, in_dir("s1"), "", "", 0, 0);
	expect_error(w, ERR_INVALID);
	ask_search(w, in_dir("none"), "x", "", 0, 0);
	expect_error(w, ERR_NOT_FOUND);
	ask_search(w, in_dir("s1"), "x", "", 0, 2);
	expect_error(w, ERR_INVALID);
}

static void lines_are_found_with_their_number(struct box *b)
{
	auto_fd int w = open_worker(b);
	char got[4096];

	run_shell("mkdir -p s2/d && cd s2 && printf 'one\\ntwo needle\\n\\nfour' >f &&"
		  "printf 'Needle at the start needle\\nneedl\\nxneedle' >d/g &&"
		  "printf 'needle\\0' >binary && printf 'needle' >d/h.c && ln -s f l");
	ask_search(w, in_dir("s2"), "", "needle", 0, 0);
	CHECK(!hear_hits(w, got, sizeof(got)));
	if (strcmp(got,
		   "d/g:1:Needle at the start needle d/g:3:xneedle d/h.c:1:needle f:2:two needle "))
		fail("got '%s'", got);
	ask_search(w, in_dir("s2"), "*.c", "NEEDLE", 0, WIRE_SEARCH_FOLD);
	CHECK(!hear_hits(w, got, sizeof(got)) && !strcmp(got, "d/h.c:1:needle "));
	ask_search(w, in_dir("s2"), "", "needle", 2, 0);
	CHECK(hear_hits(w, got, sizeof(got)) == WIRE_DONE_TRUNCATED);
	ask_search(w, in_dir("s2"), "f", "four", 0, 0);
	CHECK(!hear_hits(w, got, sizeof(got)) && !strcmp(got, "f:4:four "));
}

static void long_lines_are_searched_completely_and_returned_in_part(struct box *b)
{
	struct wire_search s = { .head = head(WIRE_SEARCH, 3), .file_bytes = 1000 };
	const struct wire_hit *h = GOT(wire_hit);
	auto_fd int w = open_worker(b);
	char tail[300];
	int n, at;

	run_shell("mkdir s3");
	/* The text is found at every position, also across two pieces. */
	for (at = 131060; at < 131080; at++) {
		char script[300];

		snprintf(
			script, sizeof(script),
			"{ echo first; head -c %d /dev/zero | tr '\\0' x; printf needle; "
			"head -c 300000 /dev/zero | tr '\\0' y; echo needle; echo last needle; } >s3/f",
			at);
		run_shell(script);
		ask_search(w, in_dir("s3"), "", "needle", 0, 0);
		expect(w, WIRE_HIT);
		CHECK(h->line == 2 && h->cut && frame_len <= (int)sizeof(*h) + 2 + 400);
		CHECK(!memcmp((char *)(h + 1) + 2 + h->at, "needle", 6));
		expect(w, WIRE_HIT);
		CHECK(h->line == 3 && !h->cut && h->at == 5);
		expect(w, WIRE_DONE);
		CHECK(!HEAD->flags);
	}
	n = snprintf(tail, sizeof(tail), "%s%c%cneedle", in_dir("s3"), 0, 0);
	send_frame(w, &s, sizeof(s), tail, (size_t)n, -1);
	expect(w, WIRE_DONE);
	CHECK(HEAD->flags == WIRE_DONE_SKIPPED); /* larger than was wanted */
}

static void a_search_ends_when_its_client_disconnects(struct box *b)
{
	auto_fd int w = open_worker(b);
	uint64_t before = ask_status(b->conn).reaped;

	ask_search(w, "/", "no such name, anywhere", "", 0, 0);
	close(steal_fd(&w));
	while (ask_status(b->conn).reaped == before)
		;
}

/* clang-format off */
static const struct test tests[] = {
	TEST(a_file_is_written_with_its_mode_and_parent_folders),
	TEST(a_failed_put_is_answered_once_and_its_data_discarded),
	TEST(an_incomplete_upload_leaves_no_file),
	TEST(a_large_file_is_read_as_it_was_written),
	TEST(a_file_is_sent_through_a_pipe),
	TEST(a_closed_pipe_ends_the_answer_and_not_the_worker),
	TEST(a_file_arrives_by_pipe_and_is_named_by_the_empty_data),
	TEST(a_failed_put_closes_its_pipe),
	TEST(only_plain_files_are_read),
	TEST(folders_are_created_listed_moved_and_examined),
	TEST(remove_does_not_follow_links),
	TEST_DIRECT(a_tree_ten_thousand_deep_is_removed),
	TEST_DIRECT(a_wide_tree_is_removed),
	TEST(changes_lists_the_files_of_the_upper_layer),
	TEST_DIRECT(changes_survive_a_tree_of_thousands_of_levels),
	TEST(a_path_too_long_for_a_frame_is_skipped_and_reported),
	TEST(an_invalid_frame_ends_the_worker_and_not_the_box),
	TEST(a_list_is_sorted_and_split_into_pages),
	TEST(a_deep_list_resumes_at_any_path),
	TEST_DIRECT(a_folder_larger_than_a_page_is_listed_completely),
	TEST(links_are_listed_with_their_targets),
	TEST(a_file_gets_the_time_of_its_upload),
	TEST(a_file_is_replaced_only_if_its_version_matches),
	TEST(of_two_conditional_replacements_one_succeeds),
	TEST(modes_are_changed_and_unknown_flags_rejected),
	TEST(a_tree_is_copied_with_links_modes_and_holes),
	TEST(a_folder_is_not_copied_into_itself),
	TEST(files_that_cannot_be_copied_are_skipped_and_reported),
	TEST_DIRECT(a_copy_deeper_than_the_limit_is_refused_and_removed),
	TEST(a_copy_that_does_not_fit_leaves_nothing),
	TEST(a_watch_reports_changes_in_a_folder),
	TEST(a_recursive_watch_follows_created_moved_and_removed_folders),
	TEST(many_writes_are_merged_into_few_events_and_the_last_is_reported),
	TEST_DIRECT(an_overflow_of_the_inotify_queue_is_reported),
	TEST_DIRECT(more_folders_than_watches_are_an_error),
	TEST(a_watch_ends_with_its_connection),
	TEST(names_are_found_by_substring_or_pattern),
	TEST(lines_are_found_with_their_number),
	TEST(long_lines_are_searched_completely_and_returned_in_part),
	TEST(a_search_ends_when_its_client_disconnects),
};
/* clang-format on */

int main(int argc, char **argv)
{
	return run_tests(tests, ARRAY_LEN(tests), argc, argv);
}
