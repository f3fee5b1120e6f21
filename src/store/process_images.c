/* process_images.c - see process_images.h. */
#include "store/process_images.h"
#include "store/sql.h"

static int images_insert(struct store *s, const char *id, uint64_t bytes, const char *doc,
			 struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO process_images (id, bytes, doc) VALUES (?, ?, ?)"
		       " ON CONFLICT (id) DO NOTHING");

	sql_text(&q, id);
	sql_u64(&q, bytes);
	sql_json(&q, doc, "{}");
	return sql_run(&q, e);
}

/* The bytes of a checkpoint are those of all its files. */
static int images_charge(struct store *s, const char *id, const char *change, struct err *e)
{
	auto_sql struct sql q = sql(s, change);

	sql_text(&q, id);
	sql_text(&q, id);
	return sql_run(&q, e);
}

int store_process_image_put(struct store *s, const char *id, uint64_t bytes, const char *doc,
			    struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	if (images_insert(s, id, bytes, doc, e) < 0 ||
	    images_charge(s, id,
			  "UPDATE checkpoint_layers SET bytes = bytes +"
			  " (SELECT bytes FROM process_images WHERE id = ?) WHERE id = ?",
			  e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

int store_process_image_get(struct store *s, const char *id, char **out_doc, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT doc FROM process_images WHERE id = ?");

	sql_text(&q, id);
	if (sql_one(&q, "process image", id, e) < 0)
		return -1;
	*out_doc = sql_get_dup(&q);
	return 0;
}

static int images_delete(struct store *s, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM process_images WHERE id = ?");

	sql_text(&q, id);
	return sql_run(&q, e);
}

int store_process_image_drop(struct store *s, const char *id, struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	if (images_charge(s, id,
			  "UPDATE checkpoint_layers SET bytes = max(0, bytes - coalesce("
			  "(SELECT bytes FROM process_images WHERE id = ?), 0)) WHERE id = ?",
			  e) < 0 ||
	    images_delete(s, id, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

int store_process_image_box(struct store *s, const char *id, char out_box[ID_MAX + 1],
			    struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT id FROM boxes WHERE image = ? AND image <> '' AND state <> 'gone'");

	sql_text(&q, id);
	if (sql_one(&q, "box", id, e) < 0)
		return -1;
	sql_get_text(&q, out_box, ID_MAX + 1);
	return 0;
}
