/*
 * undo_store_rights: the files that the front stores beside the logs. NUMBER.step
 * describes the log NUMBER. HASH.rights holds the rights of a session to read and write,
 * and NUMBER.step refers to it by HASH.
 */
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "files/rights.h"
#include "undo/undo_store_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RIGHTS_MAX = 8 << 20, REFUSED_NAMED = 100 };

static const char *const work_names[] = {"checkpoint", "tool", "command", "undo"};

static void step_name(uint32_t number, char name[UNDO_NAME_MAX])
{
	(void)snprintf(name, UNDO_NAME_MAX, "%08" PRIu32 ".step", number % 100000000);
}

static void rights_name(const char *hash, char name[UNDO_NAME_MAX])
{
	(void)snprintf(name, UNDO_NAME_MAX, "%.*s.rights", UNDO_RIGHTS_DIGITS, hash);
}

void undo_store_set_rights(struct undo_store *store, const struct value *rights)
{
	char hex[HASH_HEX + 1];
	struct buf text;

	buf_init(&text, RIGHTS_MAX);
	(void)value_print(rights, 0, &text);
	hash_text(buf_str(&text), hex);
	(void)snprintf(store->rights_hash, sizeof(store->rights_hash), "%.*s",
		       UNDO_RIGHTS_DIGITS, hex);
	free(store->rights_text);
	store->rights_text = buf_take(&text);
	rights_free(store->rights);
	store->rights = rights_read(rights);
}

/* Write a file of the front so that it is complete or missing at every moment. */
static bool write_whole(const struct undo_store *store, const char *name, struct str text,
			struct err *err)
{
	char temp[2 * UNDO_NAME_MAX];

	(void)snprintf(temp, sizeof(temp), "%s.%d", name, (int)getpid());
	(void)unlinkat(store->folder, temp, 0);
	auto_close int fd =
		openat(store->folder, temp,
		       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || !fd_write_all(fd, text.data, text.size, NULL) ||
	    renameat(store->folder, temp, store->folder, name) < 0) {
		int code = errno;
		(void)unlinkat(store->folder, temp, 0);
		return err_set(err, code, "the undo store: %s", strerror(code));
	}
	return true;
}

/*
 * The same with a file made ahead, which gets its name when it is complete. False: there
 * is none, so the caller writes a new file.
 */
static bool write_ahead(struct undo_store *store, const char *name, struct str text)
{
	auto_close int fd = undo_blanks_take(&store->blank_steps);

	return fd >= 0 && fd_write_all(fd, text.data, text.size, NULL) &&
	       fd_link(fd, store->folder, name);
}

/*
 * Store the rights. An existing file gets a new time, so that undo_store_tidy keeps it.
 */
static bool keep_rights(const struct undo_store *store, struct err *err)
{
	struct str text = str_of(store->rights_text);
	char name[UNDO_NAME_MAX];
	struct stat st;

	rights_name(store->rights_hash, name);
	return (fstatat(store->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		(size_t)st.st_size == text.size &&
		utimensat(store->folder, name, NULL, AT_SYMLINK_NOFOLLOW) == 0) ||
	       write_whole(store, name, text, err);
}

bool undo_store_write_step(struct undo_store *store, uint32_t number,
			   const struct undo_meta *meta, struct err *err)
{
	auto_value struct value *object = value_new_object();
	char name[UNDO_NAME_MAX];
	struct buf text;

	if (store->rights_text == NULL)
		return err_set(err, EINVAL, "the undo store: nobody's log");
	value_set_text(object, "work", work_names[meta->work]);
	value_set_text(object, "run", meta->run);
	value_set_text(object, "tool", meta->tool != NULL ? meta->tool : "");
	value_set_str(object, "title", str_part(meta->title, 0, UNDO_META_MAX / 16));
	value_set_integer(object, "wall_ms", meta->wall_ms);
	value_set_text(object, "rights", store->rights_hash);
	if (meta->undoes != 0)
		value_set_integer(object, "undoes", meta->undoes);
	if (meta->turn_ms != 0)
		value_set_integer(object, "turn_ms", meta->turn_ms);
	if (meta->alone)
		value_set_boolean(object, "alone", true);
	step_name(number, name);
	buf_init(&text, UNDO_META_MAX);
	bool fine = (value_print(object, 0, &text) || err_set(err, E2BIG, "a title")) &&
		    keep_rights(store, err) &&
		    (write_ahead(store, name, buf_str(&text)) ||
		     write_whole(store, name, buf_str(&text), err));
	buf_fini(&text);
	return fine;
}

void undo_store_drop_step(const struct undo_store *store, uint32_t number)
{
	char name[UNDO_NAME_MAX];

	step_name(number, name);
	(void)unlinkat(store->folder, name, 0);
}

/* The value in the file NAME; NULL: there is none. */
static struct value *read_value(const struct undo_store *store, const char *name, size_t max)
{
	auto_close int fd = openat(store->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct value *value = NULL;
	struct buf text;

	buf_init(&text, max);
	if (fd >= 0 && fd_read_all(fd, &text, name, NULL))
		(void)value_parse(buf_str(&text), 0, &value, NULL);
	buf_fini(&text);
	return value;
}

bool undo_store_read_step(const struct undo_store *store, uint32_t number,
			  struct undo_step *step)
{
	char name[UNDO_NAME_MAX];

	step_name(number, name);
	auto_value struct value *object = read_value(store, name, UNDO_META_MAX);
	const char *work = value_text(value_member(object, "work"));
	for (size_t i = 0; work != NULL && i < sizeof(work_names) / sizeof(*work_names);
	     i++) {
		if (strcmp(work, work_names[i]) == 0)
			step->work = (enum undo_work)i;
	}
	int64_t undoes = value_integer(value_member(object, "undoes"));
	step->undoes = undoes > 0 && undoes <= UINT32_MAX ? (uint32_t)undoes : 0;
	step->wall_ms = value_integer(value_member(object, "wall_ms"));
	step->turn_ms = value_integer(value_member(object, "turn_ms"));
	step->alone = value_is_true(value_member(object, "alone"));
	step->run = memory_copy(value_text(value_member(object, "run")));
	step->tool = memory_copy(value_text(value_member(object, "tool")));
	step->title = memory_copy(value_text(value_member(object, "title")));
	return step->run != NULL && step->tool != NULL && step->title != NULL;
}

/* The hash of the rights of the log NUMBER; "": the log has none. */
static void hash_of(const struct undo_store *store, uint32_t number,
		    char hash[UNDO_RIGHTS_DIGITS + 1])
{
	char name[UNDO_NAME_MAX];

	step_name(number, name);
	auto_value struct value *object = read_value(store, name, UNDO_META_MAX);
	const char *text = value_text(value_member(object, "rights"));
	(void)snprintf(hash, UNDO_RIGHTS_DIGITS + 1, "%s", text != NULL ? text : "");
}

bool undo_store_is_ours(const struct undo_store *store, uint32_t number)
{
	char hash[UNDO_RIGHTS_DIGITS + 1];

	hash_of(store, number, hash);
	return hash[0] != '\0' && strcmp(hash, store->rights_hash) == 0;
}

static void absolute(const struct undo_store *store, struct str path, struct buf *out)
{
	buf_clear(out);
	if (path.data[0] != '/')
		(void)buf_addf(out, "%s/", store->workspace);
	(void)buf_addstr(out, path);
}

bool undo_store_may_write(const struct undo_store *store, struct str path)
{
	struct buf full;

	if (store->rights == NULL)
		return store->folder < 0;
	buf_init(&full, 2 * PATH_MAX);
	absolute(store, path, &full);
	bool may = rights_may_write(store->rights, full.data);
	buf_fini(&full);
	return may;
}

bool undo_store_may_read(const struct undo_store *store, struct str path)
{
	struct buf full;

	if (store->rights == NULL)
		return store->folder < 0;
	buf_init(&full, 2 * PATH_MAX);
	absolute(store, path, &full);
	bool may = rights_may_read(store->rights, full.data);
	buf_fini(&full);
	return may;
}

struct sieve {
	const struct undo_store *store;
	struct undo_reader *reader;
	struct undo_refused *refused;
	struct rights *rights; /* of the session that wrote the log */
	bool own;
	uint32_t number;
	char hash[UNDO_RIGHTS_DIGITS + 1];
	uint32_t source; /* the last log that a change took its content from */
	bool source_fits;
	bool git_fits;
	struct buf full;
};

/* Could the writer of the log have read the content of STATE at its source? */
static bool content_fits(struct sieve *sieve, const struct undo_state *state)
{
	char hash[UNDO_RIGHTS_DIGITS + 1];

	if (state->source == UNDO_IN_GIT || state->source == UNDO_LINKED)
		return sieve->git_fits;
	if (state->source != UNDO_LOGGED || state->log == sieve->number)
		return true;
	if (state->log != sieve->source) {
		hash_of(sieve->store, state->log, hash);
		sieve->source = state->log;
		sieve->source_fits = hash[0] != '\0' && strcmp(hash, sieve->hash) == 0;
	}
	return sieve->source_fits;
}

static bool sift(void *context, const struct undo_change *change)
{
	struct sieve *sieve = context;
	struct undo_refused *refused = sieve->refused;
	struct buf name;

	absolute(sieve->store, change->path, &sieve->full);
	if ((sieve->own || rights_may_write(sieve->rights, sieve->full.data)) &&
	    content_fits(sieve, &change->before))
		return sieve->reader->change(sieve->reader->context, change);
	if (refused != NULL && refused->count++ < REFUSED_NAMED) {
		if (refused->names == NULL)
			refused->names = value_new_array();
		buf_init(&name, 8 << 10);
		text_add_name(&name, change->path);
		value_append(refused->names, value_new_str(buf_str(&name)));
		buf_fini(&name);
	}
	return true;
}

bool undo_store_read_log(const struct undo_store *store, uint32_t number, bool own,
			 struct undo_reader *reader, struct undo_refused *refused,
			 struct err *err)
{
	auto_close int fd = undo_store_open_log(store, number, false);
	struct sieve sieve = {.store = store,
			      .own = own,
			      .reader = reader,
			      .refused = refused,
			      .number = number};
	struct undo_reader inner = {.change = sift, .context = &sieve};
	char name[UNDO_NAME_MAX];

	if (fd < 0)
		return err_set(err, errno, "there is no step %u", number);
	/* In a store in memory, all logs are from this session. */
	if (store->folder < 0)
		return undo_log_read(reader, fd, err);
	hash_of(store, number, sieve.hash);
	rights_name(sieve.hash, name);
	auto_value struct value *rights =
		sieve.hash[0] != '\0' ? read_value(store, name, RIGHTS_MAX) : NULL;
	sieve.rights = rights_read(rights);
	buf_init(&sieve.full, 2 * PATH_MAX);
	absolute(store, STR(".git/objects"), &sieve.full);
	sieve.git_fits = rights_may_read(sieve.rights, sieve.full.data);
	bool fine = undo_log_read(&inner, fd, err);
	buf_fini(&sieve.full);
	rights_free(sieve.rights);
	reader->ended = inner.ended;
	reader->sound = inner.sound;
	reader->changes = inner.changes;
	return fine;
}
