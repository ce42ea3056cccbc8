/*
 * saved_fuzz: any bytes as the file of a saved layer, with the mark that belongs to them. What is taken of it are
 * single names, bounded and in order; a file that is taken as a whole is what the writer makes of its items.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "view/saved.h"

enum { MOST = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct taking {
	struct saved_writer writer;
	size_t depth, bytes;
	bool in_file;
};

static void is_single(const struct saved_entry *entry)
{
	if (entry->name.size == 0 || entry->name.size > 255 ||
	    strlen(entry->name.data) != entry->name.size ||
	    strchr(entry->name.data, '/') != NULL ||
	    strcmp(entry->name.data, "..") == 0 || strcmp(entry->name.data, ".") == 0 ||
	    strlen(entry->target.data) != entry->target.size ||
	    entry->kind >= SAVED_KINDS || (entry->mode & ~(mode_t)07777) != 0)
		abort();
}

static int take(void *context, const struct saved_item *item)
{
	struct taking *taking = context;

	if (item->tag == SAVED_ENTRY) {
		is_single(&item->entry);
		if (taking->in_file ||
		    (taking->depth == 0 && item->entry.kind != SAVED_FOLDER))
			abort();
		taking->in_file = item->entry.kind == SAVED_FILE;
		taking->depth += item->entry.kind == SAVED_FOLDER;
	} else if (item->tag == SAVED_CLOSE) {
		if (!taking->in_file && taking->depth-- == 0)
			abort();
		taking->in_file = false;
	} else if (item->tag == SAVED_DATA
			   ? !taking->in_file
			   : item->tag != SAVED_EXTRA || taking->depth == 0) {
		abort();
	} else if (item->tag == SAVED_EXTRA &&
		   (item->attribute.data[item->attribute.size] != '\0' ||
		    !saved_has_extra(item->attribute.data))) {
		abort();
	}
	taking->bytes += item->bytes.size;
	if (taking->bytes > MOST || taking->depth > SAVED_DEPTH_MAX)
		abort();
	return saved_write(&taking->writer, item);
}

/* DATA with the chunk that ends it. */
static void add_end(const uint8_t *data, size_t size, struct buf *file)
{
	static const char header[] = {'G', 'B', 'L', 'E', HASH_MARK_HEX, 0, 0, 0};
	const struct str begin = {(const char *)data, size};
	char mark[HASH_MARK_HEX + 1];

	hash_mark(begin, mark);
	(void)buf_addstr(file, begin);
	(void)buf_add(file, header, sizeof(header));
	(void)buf_add(file, mark, HASH_MARK_HEX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_close int in = -1, out = -1;
	struct buf file, again;

	buf_init(&file, 64 << 20);
	buf_init(&again, 64 << 20);
	add_end(data, size, &file);
	if (!fd_memory_file("in", buf_str(&file), &in, NULL) ||
	    !fd_memory_file("out", STR(""), &out, NULL))
		abort();
	struct taking taking = {.writer.fd = out};
	struct saved_reader reader = {.take = take, .context = &taking, .bytes_most = MOST};
	const int code = saved_read(&reader, in);
	if (saved_write(&taking.writer, &(const struct saved_item){.tag = SAVED_END}) != 0)
		abort();
	if (code == 0 &&
	    (lseek(out, 0, SEEK_SET) != 0 || !fd_read_all(out, &again, "", NULL) ||
	     !str_equal(buf_str(&file), buf_str(&again))))
		abort();
	if (code != 0 && code != SAVED_UNSOUND && code != SAVED_OVER)
		abort();
	buf_fini(&file);
	buf_fini(&again);
	return 0;
}
