/* saved: prints the items of a saved layer, and reads and checks them. */

#include "view/saved.h"

#include "base/fd.h"
#include "base/memory.h"
#include "files/overlay.h"

#include <endian.h>
#include <limits.h>
#include <linux/limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	HEADER = 8,    /* of a chunk */
	FIXED = 8 * 8, /* of an entry, before its texts */
	CHUNK_MAX = SAVED_DATA_MAX + HEADER,
	OUT_MAX = 2 * (CHUNK_MAX + HEADER),
	SECOND_NS = 1000000000,
};

/* The attributes that the kernel gives entries of an upper folder with our options. */
static const char *const overlay_names[] = {"opaque", "origin",   "impure",
					    "uuid",   "protattr", NULL};

bool saved_has_extra(const char *name)
{
	static const char own[] = "user.overlay.", escaped[] = "user.overlay.overlay.";

	if (strcmp(name, "system.posix_acl_access") == 0 ||
	    strcmp(name, "system.posix_acl_default") == 0 ||
	    strncmp(name, escaped, strlen(escaped)) == 0)
		return true;
	if (strncmp(name, own, strlen(own)) != 0)
		return strncmp(name, "user.", strlen("user.")) == 0;
	for (size_t i = 0; overlay_names[i] != NULL; i++) {
		if (strcmp(name + strlen(own), overlay_names[i]) == 0)
			return true;
	}
	return false;
}

/* Writing. */

static void add_32(struct buf *out, uint64_t number)
{
	const uint32_t bytes = htole32((uint32_t)number);

	(void)buf_add(out, &bytes, sizeof(bytes));
}

static void add_64(struct buf *out, uint64_t number)
{
	const uint64_t bytes = htole64(number);

	(void)buf_add(out, &bytes, sizeof(bytes));
}

static void add_entry(struct buf *out, const struct saved_entry *entry)
{
	add_32(out, entry->kind);
	add_32(out, entry->mode);
	add_32(out, entry->user);
	add_32(out, entry->group);
	add_64(out, entry->size);
	add_64(out, entry->number);
	for (size_t i = 0; i < 2; i++) {
		add_64(out, (uint64_t)entry->times[i].tv_sec);
		add_32(out, (uint64_t)entry->times[i].tv_nsec);
	}
	add_32(out, entry->name.size);
	add_32(out, entry->target.size);
	(void)buf_addstr(out, entry->name);
	(void)buf_addstr(out, entry->target);
}

static void add_item(struct buf *out, const struct saved_item *item)
{
	switch (item->tag) {
	case SAVED_ENTRY:
		add_entry(out, &item->entry);
		break;
	case SAVED_EXTRA:
		(void)buf_addstr(out, item->attribute);
		(void)buf_addc(out, '\0');
		(void)buf_addstr(out, item->bytes);
		break;
	case SAVED_DATA:
		add_64(out, item->offset);
		(void)buf_addstr(out, item->bytes);
		break;
	case SAVED_CLOSE:
	case SAVED_END:
		break;
	}
}

static int write_out(struct saved_writer *writer)
{
	struct err err = {.code = EIO};

	if (!fd_write_all(writer->fd, writer->out.data, writer->out.size, &err))
		return err.code;
	buf_clear(&writer->out);
	return 0;
}

static void add_mark(struct saved_writer *writer)
{
	char mark[HASH_MARK_HEX + 1];

	hash_mark_hex(writer->hash, mark);
	(void)buf_add(&writer->out, mark, HASH_MARK_HEX);
}

int saved_write(struct saved_writer *writer, const struct saved_item *item)
{
	struct buf *out = &writer->out;
	const bool ends = item->tag == SAVED_END;
	int code = 0;

	if (writer->hash == NULL) {
		buf_init(out, OUT_MAX);
		writer->hash = hash_new_mark();
		(void)buf_adds(out, SAVED_MAGIC);
		hash_add(writer->hash, STR(SAVED_MAGIC));
	}
	const size_t begin = out->size;
	add_32(out, item->tag);
	add_32(out, 0);
	if (ends)
		add_mark(writer);
	else
		add_item(out, item);
	const uint32_t length = htole32((uint32_t)(out->size - begin - HEADER));
	if (out->overflowed)
		code = E2BIG;
	else
		memcpy(out->data + begin + sizeof(length), &length, sizeof(length));
	if (!ends && code == 0)
		hash_add(writer->hash, str_part(buf_str(out), begin, out->size));
	/* Room for another whole chunk stays. */
	if (code == 0 && (ends || out->size > OUT_MAX - CHUNK_MAX - HEADER))
		code = write_out(writer);
	if (ends || code != 0) {
		buf_fini(out);
		hash_free(writer->hash);
		*writer = (struct saved_writer){.fd = writer->fd};
	}
	return code;
}

/* Reading. */

/* The bytes of the file, a window of them at a time. */
struct source {
	int fd;
	char *data;
	size_t at, end;
};

/* The open file, and the part of it that has been read. */
struct state {
	struct saved_reader *reader;
	size_t depth; /* open folders */
	bool in_file;
	uint64_t size, next; /* of the open file, and the end of its last bytes */
};

/* Have SIZE bytes in the window. Returns 0 or a number of errno.h. */
static int source_need(struct source *source, size_t size)
{
	if (source->end - source->at >= size)
		return 0;
	memmove(source->data, source->data + source->at, source->end - source->at);
	source->end -= source->at;
	source->at = 0;
	while (source->end < size) {
		const ssize_t got = read(source->fd, source->data + source->end,
					 OUT_MAX - source->end);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? errno : SAVED_UNSOUND;
		source->end += (size_t)got;
	}
	return 0;
}

static uint32_t get_32(const char *at)
{
	uint32_t bytes;

	memcpy(&bytes, at, sizeof(bytes));
	return le32toh(bytes);
}

static uint64_t get_64(const char *at)
{
	uint64_t bytes;

	memcpy(&bytes, at, sizeof(bytes));
	return le64toh(bytes);
}

static bool has_no_nul(struct str text)
{
	return memchr(text.data, '\0', text.size) == NULL;
}

static bool name_is_sound(struct str name)
{
	return name.size > 0 && name.size <= NAME_MAX && has_no_nul(name) &&
	       memchr(name.data, '/', name.size) == NULL && !str_equal(name, STR(".")) &&
	       !str_equal(name, STR(".."));
}

static bool entry_is_sound(const struct saved_entry *entry)
{
	const bool many = entry->kind != SAVED_FOLDER && entry->kind != SAVED_REMOVED;

	return entry->kind < SAVED_KINDS && (entry->mode & ~(mode_t)ALLPERMS) == 0 &&
	       entry->size <= INT64_MAX && (entry->size == 0 || entry->kind == SAVED_FILE) &&
	       (entry->number == 0 || many) &&
	       (entry->number != 0 || entry->kind != SAVED_AGAIN) &&
	       entry->times[0].tv_nsec < SECOND_NS &&
	       entry->times[1].tv_nsec < SECOND_NS && name_is_sound(entry->name) &&
	       (entry->kind == SAVED_LINK) == (entry->target.size > 0) &&
	       entry->target.size < PATH_MAX && has_no_nul(entry->target);
}

/* TEXTS gets the name and the target, which end in NUL there. */
static bool read_entry(struct str chunk, char texts[NAME_MAX + PATH_MAX + 2],
		       struct saved_entry *entry)
{
	const char *at = chunk.data;

	if (chunk.size < FIXED)
		return false;
	entry->kind = get_32(at);
	entry->mode = get_32(at + 4);
	entry->user = get_32(at + 8);
	entry->group = get_32(at + 12);
	entry->size = get_64(at + 16);
	entry->number = get_64(at + 24);
	for (size_t i = 0; i < 2; i++) {
		entry->times[i].tv_sec = (time_t)get_64(at + 32 + 12 * i);
		entry->times[i].tv_nsec = get_32(at + 40 + 12 * i);
	}
	const size_t name = get_32(at + 56), target = get_32(at + 60);
	if (name > NAME_MAX || target >= PATH_MAX || chunk.size != FIXED + name + target)
		return false;
	memcpy(texts, at + FIXED, name);
	texts[name] = '\0';
	memcpy(texts + name + 1, at + FIXED + name, target);
	texts[name + 1 + target] = '\0';
	entry->name = (struct str){texts, name};
	entry->target = (struct str){texts + name + 1, target};
	return entry_is_sound(entry);
}

/* The number of the tree ENTRY, which comes after those that were read; 64: it is none. */
static unsigned tree_of(const struct saved_reader *reader, const struct saved_entry *entry)
{
	char name[16];

	for (unsigned i = 0; i < SAVED_TREES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "%u", i);
		if (entry->kind == SAVED_FOLDER && reader->trees >> i == 0 &&
		    str_equal(entry->name, str_of(name)))
			return i;
	}
	return SAVED_TREES_MAX;
}

/* An entry comes next. False: it does not fit to what is open. */
static bool open_entry(struct state *state, const struct saved_entry *entry)
{
	struct saved_reader *reader = state->reader;

	const unsigned tree = state->depth == 0 ? tree_of(reader, entry) : 0;

	if (state->in_file || tree == SAVED_TREES_MAX || reader->entries == SAVED_ENTRIES_MAX)
		return false;
	if (state->depth == 0)
		reader->trees |= UINT64_C(1) << tree;
	reader->entries++;
	state->depth += entry->kind == SAVED_FOLDER;
	state->in_file = entry->kind == SAVED_FILE;
	state->size = entry->size;
	state->next = 0;
	return state->depth <= SAVED_DEPTH_MAX;
}

static bool close_entry(struct state *state)
{
	if (!state->in_file && state->depth == 0)
		return false;
	state->depth -= !state->in_file;
	state->in_file = false;
	return true;
}

static bool read_extra(const struct state *state, struct str chunk, struct saved_item *item)
{
	const char *end = memchr(chunk.data, '\0', chunk.size);

	if (end == NULL || (!state->in_file && state->depth == 0))
		return false;
	item->attribute = (struct str){chunk.data, (size_t)(end - chunk.data)};
	item->bytes = str_part(chunk, item->attribute.size + 1, chunk.size);
	return item->attribute.size <= XATTR_NAME_MAX &&
	       item->bytes.size <= SAVED_EXTRA_MAX && saved_has_extra(chunk.data);
}

static bool read_data(struct state *state, struct str chunk, struct saved_item *item)
{
	if (chunk.size <= 8 || !state->in_file)
		return false;
	item->offset = get_64(chunk.data);
	item->bytes = str_part(chunk, 8, chunk.size);
	if (item->offset < state->next || item->offset > state->size ||
	    item->bytes.size > state->size - item->offset)
		return false;
	state->next = item->offset + item->bytes.size;
	return true;
}

static bool read_item(struct state *state, struct str chunk, char *texts,
		      struct saved_item *item)
{
	switch (item->tag) {
	case SAVED_ENTRY:
		return read_entry(chunk, texts, &item->entry) &&
		       open_entry(state, &item->entry);
	case SAVED_EXTRA:
		return read_extra(state, chunk, item);
	case SAVED_DATA:
		return read_data(state, chunk, item);
	case SAVED_CLOSE:
		return chunk.size == 0 && close_entry(state);
	case SAVED_END:
		return chunk.size == HASH_MARK_HEX && state->depth == 0 && !state->in_file;
	}
	return false;
}

/* Take the next item. SAVED_END: the last one was taken; its mark is in MARK. */
static int take_next(struct state *state, struct source *source, struct hash *hash,
		     char mark[HASH_MARK_HEX], enum saved_tag *tag)
{
	char texts[NAME_MAX + PATH_MAX + 2];
	int code = source_need(source, HEADER);

	if (code != 0)
		return code;
	struct saved_item item = {.tag = get_32(source->data + source->at)};
	const size_t length = get_32(source->data + source->at + 4);
	if (length > CHUNK_MAX)
		return SAVED_UNSOUND;
	code = source_need(source, HEADER + length);
	if (code != 0)
		return code;
	const struct str whole = {source->data + source->at, HEADER + length};
	const struct str chunk = str_part(whole, HEADER, whole.size);
	source->at += whole.size;
	if (!read_item(state, chunk, texts, &item))
		return SAVED_UNSOUND;
	*tag = item.tag;
	if (item.tag == SAVED_END) {
		memcpy(mark, chunk.data, HASH_MARK_HEX);
		return 0;
	}
	hash_add(hash, whole);
	state->reader->bytes += item.bytes.size;
	return state->reader->bytes > state->reader->bytes_most
		       ? SAVED_OVER
		       : state->reader->take(state->reader->context, &item);
}

int saved_read(struct saved_reader *reader, int fd)
{
	auto_free char *window = memory_alloc(OUT_MAX);
	struct source source = {.fd = fd, .data = window};
	struct state state = {.reader = reader};
	struct hash *hash = hash_new_mark();
	char told[HASH_MARK_HEX] = "", mark[HASH_MARK_HEX + 1];
	enum saved_tag tag = SAVED_ENTRY;
	int code = lseek(fd, 0, SEEK_SET) < 0 ? errno
					      : source_need(&source, strlen(SAVED_MAGIC));

	if (code == 0 && memcmp(window, SAVED_MAGIC, strlen(SAVED_MAGIC)) != 0)
		code = SAVED_UNSOUND;
	source.at = strlen(SAVED_MAGIC);
	hash_add(hash, STR(SAVED_MAGIC));
	while (code == 0 && tag != SAVED_END)
		code = take_next(&state, &source, hash, told, &tag);
	hash_mark_hex(hash, mark);
	if (code == 0 && (memcmp(told, mark, HASH_MARK_HEX) != 0 ||
			  source_need(&source, 1) != SAVED_UNSOUND))
		code = SAVED_UNSOUND;
	hash_free(hash);
	return code;
}
