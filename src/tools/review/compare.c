/* compare: weighs each path of a layer. */

#include "tools/review/compare.h"

#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "files/files.h"
#include "files/place.h"
#include "tools/review/merge.h"
#include "tools/review/weigh.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	CHOICES_BYTES_MAX = 8 << 20, /* as much as a command line can name */
	NEAR_ROWS_MAX = 5000, /* paths among which the one that was meant is looked for */
	NEAR_BYTES_MAX = 300, /* of a path that is compared with them */
	NAME_ROOM = 4 * PATH_MAX, /* of a path as it is shown, with its escapes */
};

#define WHY_IN_THE_WAY "a file or link has taken the place of its folder"
#define WHY_REMOVED    "the review has removed it"
#define WHY_STRANGE    "is neither a file nor a folder in your folder now"

/* The choices of the user. */

static void take_choice(struct choices *choices, const char *text)
{
	const char **lists[] = {choices->only, choices->mine, choices->theirs};
	size_t *const counts[] = {&choices->only_count, &choices->mine_count,
				  &choices->theirs_count};
	const char kinds[] = {CHOICE_ONLY, CHOICE_MINE, CHOICE_THEIRS};

	for (size_t i = 0; i < sizeof(kinds); i++) {
		if (text[0] == kinds[i])
			lists[i][(*counts[i])++] = text + 1;
	}
}

bool choices_read(int fd, struct choices *choices, struct err *err)
{
	size_t count = 0;

	buf_init(&choices->words, CHOICES_BYTES_MAX);
	if (lseek(fd, 0, SEEK_SET) < 0 ||
	    !fd_read_all(fd, &choices->words, "the names of paths", err))
		return false;
	for (size_t i = 0; i < choices->words.size; i++)
		count += choices->words.data[i] == '\0';
	choices->only = memory_array(count + 1, sizeof(*choices->only));
	choices->mine = memory_array(count + 1, sizeof(*choices->mine));
	choices->theirs = memory_array(count + 1, sizeof(*choices->theirs));
	const char *at = choices->words.data;
	for (size_t i = 0; i < count; i++) {
		take_choice(choices, at);
		at += strlen(at) + 1;
	}
	return true;
}

void choices_fini(struct choices *choices)
{
	free(choices->only);
	free(choices->mine);
	free(choices->theirs);
	buf_fini(&choices->words);
}

static bool is_named(const char *const *list, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++) {
		if (path_within(path, list[i]))
			return true;
	}
	return false;
}

/* Reading the sides of a change. */

static bool read_text(int fd, uint64_t size, struct buf *out)
{
	buf_clear(out);
	return fd >= 0 && size <= OVERLAY_TEXT_MAX &&
	       fd_read_all(fd, out, "a file", NULL) && !text_is_binary(buf_str(out));
}

bool compare_read(const struct change *change, enum compare_side side, struct buf *out)
{
	const struct upper_row *row = change->row;
	const struct undo_state *state = side == SIDE_BELOW ? &change->below : &row->state;
	const struct str kept = side == SIDE_BELOW ? change->kept : row->content;

	if (kept.data != NULL) {
		buf_clear(out);
		return buf_addstr(out, kept) && !text_is_binary(kept);
	}
	auto_close int fd = side == SIDE_BELOW ? fd_open_beneath(row->tree->below,
								 row->relative, O_RDONLY)
					       : upper_open(row);
	return state->kind == UNDO_FILE && read_text(fd, state->size, out);
}

void compare_absolute(const struct comparing *comparing, const struct upper_row *row,
		      char path[PATH_MAX])
{
	if (row->path.data[0] == '/')
		(void)snprintf(path, PATH_MAX, "%s", row->path.data);
	else
		(void)snprintf(path, PATH_MAX, "%s/%s", comparing->call->workspace,
			       row->path.data);
}

/* Judging a path before anything is compared. */

static void refuse(struct change *change, enum overlay_refusal refused, const char *why)
{
	change->class = CHANGE_REFUSED;
	change->refused = refused;
	change->why = why;
}

/* May both the session of the layer and the present one write PATH? */
static bool may_land(const struct comparing *comparing, struct change *change,
		     const char *path)
{
	struct err err = {0};

	if (!place_may_write(comparing->call->files, path, change->row->path.data, &err)) {
		refuse(change,
		       err.code == FILES_PROTECTED  ? REFUSED_GIT
		       : err.code == FILES_AUTOEXEC ? REFUSED_PROTECTED
						    : REFUSED_AGENT,
		       NULL);
		return false;
	}
	if (rights_may_write(comparing->rights, path))
		return true;
	refuse(change, REFUSED_SESSION, NULL);
	return false;
}

static bool is_of_sound_shape(struct change *change)
{
	switch (change->row->shape) {
	case UPPER_PLAIN:
		return true;
	case UPPER_GIT:
		refuse(change, REFUSED_GIT, NULL);
		break;
	case UPPER_OTHER:
	case UPPER_UNKNOWN:
		refuse(change, REFUSED_KIND, NULL);
		break;
	case UPPER_UNREADABLE:
		refuse(change, REFUSED_READ, NULL);
		break;
	}
	return false;
}

/* The base of a change. */

/* Is CONTENT the object that STATE names? Then git's name is enough. */
static bool is_object_text(const struct undo_state *state, struct str content)
{
	uint8_t digest[HASH_BYTES];

	hash_git_blob(content, state->object_size == HASH_BYTES, digest);
	return memcmp(digest, state->object, state->object_size) == 0;
}

static bool is_object(const struct undo_state *state, int fd, uint64_t size)
{
	struct buf text;

	if (fd < 0 || size > OVERLAY_TEXT_MAX)
		return false;
	buf_init(&text, OVERLAY_TEXT_MAX + 1);
	const bool same = fd_read_all(fd, &text, "a file", NULL) &&
			  is_object_text(state, buf_str(&text));
	buf_fini(&text);
	return same;
}

/* Is the file of CHANGE below that object? A small one was read when it was looked at. */
static bool is_below(const struct undo_state *state, const struct change *change)
{
	if (change->below.kind != UNDO_FILE)
		return false;
	if (change->kept.data != NULL)
		return is_object_text(state, change->kept);
	auto_close int fd =
		fd_open_beneath(change->row->tree->below, change->row->relative, O_RDONLY);

	return is_object(state, fd, change->below.size);
}

static bool is_in_layer(const struct undo_state *state, const struct change *change)
{
	if (change->row->state.kind != UNDO_FILE)
		return false;
	auto_close int fd = upper_open(change->row);

	return is_object(state, fd, change->row->state.size);
}

/*
 * The log names the content by git's object only: give the base the digest of the side that
 * is this object, or of the object itself.
 */
static bool hash_base(const struct comparing *comparing, struct change *change)
{
	struct undo_state *base = &change->base_room;
	const struct undo_state *side = NULL;
	struct buf text;

	if (is_below(base, change))
		side = &change->below;
	else if (is_in_layer(base, change))
		side = &change->row->state;
	if (side != NULL) {
		base->size = side->size;
		memcpy(base->digest, side->digest, UNDO_DIGEST);
		base->hashed = true;
		return true;
	}
	buf_init(&text, OVERLAY_TEXT_MAX);
	base->hashed = before_content(comparing->before, comparing->call, base, &text);
	if (base->hashed)
		undo_state_hash_text(buf_str(&text), base);
	buf_fini(&text);
	return base->hashed;
}

static bool needs_digest(const struct undo_state *state)
{
	return (state->kind == UNDO_FILE || state->kind == UNDO_LINK) && !state->hashed;
}

/*
 * The base from the log. Without a row there, a file below that nobody has touched since the
 * layer began is its own base: no program can set the time of a file's last change. A name
 * that is not below is one that the layer made, unless the kernel has noted a file below it.
 */
static void find_base(const struct comparing *comparing, struct change *change,
		      const char *path)
{
	const struct undo_state *logged =
		before_find(comparing->before, path, &change->below);
	/* The list of a copy says whether the tree still is what was copied. */
	const struct copied *copied = change->row->tree->copied;
	const struct undo_state *listed =
		copied != NULL ? copied_before(copied, change->row->relative) : NULL;

	change->base = &change->base_room;
	if (listed != NULL && copied_is_kept(listed, &change->below)) {
		change->base_room = change->below;
		return;
	}
	/* A row of the log of an earlier time was noted before this path was copied again. */
	if (listed != NULL && logged != NULL && logged->ctime_ns != 0 &&
	    logged->ctime_ns < listed->ctime_ns)
		logged = NULL;
	if (logged != NULL) {
		change->base_room = *logged;
		if (!needs_digest(logged) ||
		    (logged->object_size > 0 && hash_base(comparing, change)))
			return;
		change->base = NULL;
		return;
	}
	if (copied != NULL) {
		change->base_room = undo_absent;
		if (listed != NULL)
			change->base = NULL;
		return;
	}
	if (change->below.kind == UNDO_ABSENT) {
		change->base_room = undo_absent;
		if (change->row->copied_up)
			change->base = NULL;
		return;
	}
	change->base_room = change->below;
	/* The names in a folder change its time, but nobody asks for them here. */
	if (change->below.ctime_ns > comparing->created_ns &&
	    !(change->below.kind == UNDO_FOLDER && change->row->state.kind == UNDO_FOLDER))
		change->base = NULL;
}

/* Merging. */

/* Merge the texts of CHANGE. CHANGE_CONFLICT when that cannot be done. */
static enum change_class merge(const struct comparing *comparing, struct change *change)
{
	char name[64];
	struct buf ours, base, theirs;
	struct merged merged = {0};
	enum change_class class = CHANGE_CONFLICT;

	buf_init(&ours, OVERLAY_TEXT_MAX + 1);
	buf_init(&base, OVERLAY_TEXT_MAX + 1);
	buf_init(&theirs, OVERLAY_TEXT_MAX + 1);
	(void)snprintf(name, sizeof(name), "review %s", comparing->id);
	if (compare_read(change, SIDE_BELOW, &ours) &&
	    compare_read(change, SIDE_LAYER, &theirs) &&
	    before_content(comparing->before, comparing->call, change->base, &base) &&
	    !text_is_binary(buf_str(&base))) {
		diff_count(buf_str(&base), buf_str(&ours), &change->ours);
		diff_count(buf_str(&base), buf_str(&theirs), &change->theirs);
		buf_init(&merged.text, 4 * (size_t)OVERLAY_TEXT_MAX);
		const enum merge_outcome outcome =
			merge_texts(comparing->call, buf_str(&ours), buf_str(&base),
				    buf_str(&theirs), name, &merged);
		change->has_text = outcome == MERGE_CLEAN || outcome == MERGE_CLASHES;
		if (outcome == MERGE_CLEAN)
			class = CHANGE_MERGE;
		else if (outcome == MERGE_NO_GIT)
			change->why = "git, which would merge it, is not in the cell";
		change->first = merged.first;
		change->last = merged.last;
		change->text = merged.text;
	}
	buf_fini(&ours);
	buf_fini(&base);
	buf_fini(&theirs);
	return class;
}

/* Weighing. */

/* The two files have the same content: do their attributes differ? */
static bool has_other_extra(const struct change *change)
{
	auto_close int below =
		fd_open_beneath(change->row->tree->below, change->row->relative, O_RDONLY);
	auto_close int layer = upper_open(change->row);

	return below >= 0 && layer >= 0 && !overlay_same_extra(below, layer);
}

static bool same_file(const struct undo_state *a, const struct undo_state *b)
{
	return a->kind == UNDO_FILE && b->kind == UNDO_FILE && undo_state_same(a, b);
}

static int compare_path(const void *path, const void *change)
{
	return strcmp(path, ((const struct change *)change)->row->path.data);
}

/* The change of PATH (as in a row); NULL: there is none. */
static struct change *find_change(const struct comparing *comparing, struct str path)
{
	auto_free char *text = memory_copy_str(path);

	return comparing->upper->count > 0
		       ? bsearch(text, comparing->changes, comparing->upper->count,
				 sizeof(*comparing->changes), compare_path)
		       : NULL;
}

/*
 * A path cannot be made when a name above it is a file or a link, unless the landing puts a
 * folder there first.
 */
static bool is_in_the_way(const struct comparing *comparing, const struct change *change)
{
	const size_t size =
		change->below.kind == UNDO_ABSENT && change->target.kind != UNDO_ABSENT
			? undo_places_blocked(comparing->places, change->row->path.data)
			: 0;
	const struct change *above =
		size > 0 ? find_change(comparing, str_part(change->row->path, 0, size))
			 : NULL;

	return size > 0 && (above == NULL || above->class != CHANGE_APPLY ||
			    above->target.kind != UNDO_FOLDER);
}

static enum change_class weigh_change(const struct comparing *comparing,
				      struct change *change)
{
	const struct undo_state *layer = &change->row->state;

	switch (weigh(change->base, &change->below, layer, &change->target)) {
	case WEIGH_THERE:
		change->extra_only =
			same_file(layer, &change->below) && has_other_extra(change);
		return change->extra_only ? CHANGE_APPLY : CHANGE_NONE;
	case WEIGH_APPLY:
		if (!is_in_the_way(comparing, change))
			return CHANGE_APPLY;
		change->why = WHY_IN_THE_WAY;
		return CHANGE_CONFLICT;
	case WEIGH_MERGE:
		return merge(comparing, change);
	case WEIGH_NO_BASE:
		/* A file that was made or changed in a folder which the layer removed. */
		if (layer->kind == UNDO_ABSENT) {
			change->why = WHY_REMOVED;
			return CHANGE_CONFLICT;
		}
		return CHANGE_NO_BASE;
	case WEIGH_CONFLICT:
		break;
	}
	return CHANGE_CONFLICT;
}

/* Apply the choice of the user to a change that was weighed. */
static void choose(const struct comparing *comparing, struct change *change, const char *path)
{
	const struct choices *choices = comparing->choices;

	if (change->class == CHANGE_NONE)
		return;
	if (is_named(choices->mine, choices->mine_count, path)) {
		change->class = CHANGE_MINE;
	} else if (is_named(choices->theirs, choices->theirs_count, path)) {
		if (change->why != NULL && strcmp(change->why, WHY_IN_THE_WAY) == 0)
			return;
		if (change->class != CHANGE_APPLY)
			change->target = change->row->state;
		change->class = CHANGE_APPLY;
	} else if (change->class == CHANGE_CONFLICT && choices->markers && change->has_text) {
		change->class = CHANGE_MERGE;
	}
}

static bool compare(struct comparing *comparing, struct change *change, struct err *err)
{
	struct upper_row *row = change->row;
	char path[PATH_MAX];
	struct err why = {0};

	compare_absolute(comparing, row, path);
	if (comparing->choices->only_count > 0 &&
	    !is_named(comparing->choices->only, comparing->choices->only_count, path)) {
		change->class = change->weighed = CHANGE_OUTSIDE;
		return true;
	}
	change->weighed = CHANGE_REFUSED;
	if (row->shape == UPPER_PLAIN && !upper_hash(comparing->upper, row, &why))
		row->shape = UPPER_UNREADABLE;
	if (!is_of_sound_shape(change))
		return true;
	change->set_ids = row->state.kind == UNDO_FILE &&
			  (row->state.mode & (S_ISUID | S_ISGID)) != 0;
	if (row->state.kind == UNDO_FILE)
		row->state.mode &= ~(mode_t)(S_ISUID | S_ISGID);
	if (!undo_places_look(comparing->places, row->path.data, &change->below,
			      &comparing->upper->text, &why)) {
		if (why.code != ENXIO) {
			refuse(change, REFUSED_READ, NULL);
			return true;
		}
		change->why = WHY_STRANGE;
		change->class = change->weighed = CHANGE_CONFLICT;
		return true;
	}
	if (change->below.kind == UNDO_FILE && comparing->upper->text.size > 0)
		change->kept =
			upper_keep(comparing->upper, buf_str(&comparing->upper->text));
	find_base(comparing, change, path);
	change->class = weigh_change(comparing, change);
	/* Only a path that would be written has to be allowed. */
	if (change->class != CHANGE_NONE && !may_land(comparing, change, path)) {
		change->weighed = CHANGE_REFUSED;
		return true;
	}
	change->weighed = change->class;
	choose(comparing, change, path);
	return !call_stopped(comparing->call) || err_set(err, ECANCELED, "stopped");
}

/* Does the layer hold PATH, or something below it? The workspace itself may be empty. */
static bool is_held(const struct comparing *comparing, const char *path)
{
	char held[PATH_MAX];

	if (path[0] == '\0')
		return false;
	if (path_within(comparing->call->workspace, path))
		return true;
	for (size_t i = 0; i < comparing->upper->count; i++) {
		compare_absolute(comparing, &comparing->upper->rows[i], held);
		if (path_within(held, path))
			return true;
	}
	return false;
}

/* Add the path of the layer that was probably meant by PATH, if there is one. */
static void add_near(const struct comparing *comparing, const char *path, struct buf *out)
{
	auto_free const char **names = memory_array(NEAR_ROWS_MAX + 1, sizeof(*names));
	const char *near;
	size_t count = 0;

	for (size_t i = 0; i < comparing->upper->count && count < NEAR_ROWS_MAX; i++) {
		if (comparing->upper->rows[i].path.size <= NEAR_BYTES_MAX)
			names[count++] = comparing->upper->rows[i].path.data;
	}
	near = strlen(path) <= NEAR_BYTES_MAX ? text_nearest(path, names) : NULL;
	if (near == NULL)
		return;
	(void)buf_adds(out, " Did you mean ");
	text_add_name(out, str_of(near));
	(void)buf_addc(out, '?');
}

/*
 * Each path that the user has named has to be in the layer. Otherwise a slip in the name of a
 * file that was to stay would land over it.
 */
static bool are_held(const struct comparing *comparing, const char *const *paths,
		     size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		const char *shown = path_relative(paths[i], comparing->call->workspace);
		struct buf text;

		if (is_held(comparing, paths[i]))
			continue;
		buf_init(&text, 3 * (size_t)NAME_ROOM);
		text_add_name(&text, str_of(shown));
		(void)buf_addf(&text, ": review %s holds nothing there.", comparing->id);
		add_near(comparing, shown, &text);
		(void)err_set(err, ENOENT, "%s", text.data);
		buf_fini(&text);
		return false;
	}
	return true;
}

bool compare_all(struct comparing *comparing, struct err *err)
{
	const struct choices *choices = comparing->choices;

	if (!are_held(comparing, choices->only, choices->only_count, err) ||
	    !are_held(comparing, choices->mine, choices->mine_count, err) ||
	    !are_held(comparing, choices->theirs, choices->theirs_count, err))
		return false;
	const size_t count = comparing->upper->count;

	comparing->changes = memory_array(count + 1, sizeof(*comparing->changes));
	for (size_t i = 0; i < count; i++)
		comparing->changes[i] = (struct change){.row = &comparing->upper->rows[i]};
	for (size_t i = 0; i < count; i++) {
		compare_tell(comparing, i, "comparing");
		if (!compare(comparing, &comparing->changes[i], err))
			return false;
	}
	return true;
}

void compare_fini(struct comparing *comparing)
{
	for (size_t i = 0; comparing->changes != NULL && i < comparing->upper->count; i++)
		buf_fini(&comparing->changes[i].text);
	free(comparing->changes);
	comparing->changes = NULL;
}
