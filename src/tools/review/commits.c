/* commits: reads the refs of a layer, and lets git fetch what they name. */

#include "tools/review/commits.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "files/files.h"
#include "files/overlay.h"
#include "tools/review/merge.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define HEADS      "refs/heads"
#define TAGS       "refs/tags/"
#define EMPTY_TREE "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

enum {
	PACKED_MAX = 8 << 20,
	MISSED_MAX = 2000, /* packed tags that the workspace does not have packed */
	REF_MAX = 4096,
	REFS_DEPTH = 16,
	OBJECTS_DEPTH = 5,    /* objects/info/commit-graphs/X and less */
	LISTED_MAX = 8 << 20, /* what git prints of its refs, and what it is told of them */
	SHA1_DIGITS = 40,
	SHA256_DIGITS = 64,
	ASK_WORDS_MAX = 24,
	INDEX_TRIES = 10,         /* of INDEX_MOMENT */
	INDEX_MOMENT = 100000000, /* nanoseconds */
	GIT_REFUSES = 128,        /* its exit code; a higher one: it was killed */
};

/* The refs of a layer. */

static bool is_object_name(struct str text)
{
	if (text.size != SHA1_DIGITS && text.size != SHA256_DIGITS)
		return false;
	for (size_t i = 0; i < text.size; i++) {
		if (text_hex_digit(text.data[i]) < 0)
			return false;
	}
	return true;
}

static struct commits_ref *find_ref(struct commits *commits, struct str name)
{
	for (size_t i = 0; i < commits->count; i++) {
		if (str_is(name, commits->refs[i].name))
			return &commits->refs[i];
	}
	return NULL;
}

static void set_ref(struct commits *commits, struct str name, struct str object)
{
	struct commits_ref *ref = find_ref(commits, name);

	if (!is_object_name(object))
		return;
	if (ref == NULL && commits->count < COMMITS_REFS_MAX) {
		ref = &commits->refs[commits->count++];
		ref->count = -1;
		ref->name = memory_copy_str(name);
	} else if (ref == NULL) {
		commits->unread = "there are over 1,000";
	}
	if (ref != NULL)
		(void)snprintf(ref->layer, sizeof(ref->layer), "%.*s", (int)object.size,
			       object.data);
}

static bool read_small(int folder, const char *name, size_t most, struct buf *text)
{
	auto_close int fd = fd_open_beneath(folder, name, O_RDONLY);
	struct stat st;

	buf_clear(text);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size < (off_t)most && fd_read_all(fd, text, name, NULL);
}

static bool is_there(int folder, const char *name)
{
	struct stat st;

	return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       !overlay_is_removed(&st);
}

/*
 * Did the session leave NAME of the repository as it is in the workspace? A layer has only what
 * was changed; a copy has all of it.
 */
static bool is_untouched(const struct commits *commits, const char *name)
{
	const struct upper_tree *tree = commits->tree;
	char path[PATH_MAX];

	return tree->copied != NULL &&
	       snprintf(path, sizeof(path), UNDO_GIT "/%s", name) < (int)sizeof(path) &&
	       !copied_differs(tree->copied, tree->layer, path);
}

/* Has the session put NAME into the repository GIT of the layer, or changed it there? */
static bool is_changed(const struct commits *commits, int git, const char *name)
{
	return is_there(git, name) && !is_untouched(commits, name);
}

/*
 * Has the layer removed NAME of the folder GIT: itself, a folder above it, or all that was in
 * one of these before?
 */
static bool is_removed(const struct commits *commits, int git, const char *name)
{
	const bool is_copy = commits->tree->copied != NULL;
	auto_free char *path = memory_copy(name);
	auto_close int at = fcntl(git, F_DUPFD_CLOEXEC, 3);
	char *rest = path, *part;

	while (at >= 0 && (part = strsep(&rest, "/")) != NULL) {
		const bool hides = is_copy || overlay_hides(at);
		struct stat st;

		if (fstatat(at, part, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return hides;
		if (!S_ISDIR(st.st_mode))
			return overlay_is_removed(&st) || rest != NULL;
		const int next = fd_open_beneath(at, part, O_RDONLY | O_DIRECTORY);

		fd_close(&at);
		at = next;
	}
	/* A folder has taken its place. */
	return at >= 0;
}

/* Note the tag NAME of the layer. Git makes none that an option could be taken for. */
static void add_tag(struct commits *commits, struct str name, struct str object)
{
	const struct str shown = str_part(name, strlen(TAGS), name.size);
	struct commits_tag *tag = &commits->tags[commits->tag_count];

	for (size_t i = 0; i < commits->tag_count; i++) {
		if (str_is(shown, commits->tags[i].name))
			return;
	}
	if (commits->tag_count == COMMITS_TAGS_MAX || !is_object_name(object) ||
	    shown.size == 0 || shown.data[0] == '-')
		return;
	commits->tag_count++;
	tag->name = memory_copy_str(shown);
	(void)snprintf(tag->object, sizeof(tag->object), "%.*s", (int)object.size,
		       object.data);
}

/* Does the file NAME of the repository BELOW say OBJECT? */
static bool has_loose(int below, const char *name, struct str object)
{
	struct buf text;

	buf_init(&text, REF_MAX);
	const bool same = read_small(below, name, REF_MAX, &text) &&
			  str_equal(str_trim(buf_str(&text)), object);
	buf_fini(&text);
	return same;
}

/*
 * Tags from the packed refs TEXT of the layer which those BELOW do not have. Git sorts both
 * files, so that each is read once.
 */
static void read_packed_tags(struct commits *commits, int below, struct str text)
{
	struct str rest = text, line;
	struct buf own;
	size_t at = 0, missed = 0;

	buf_init(&own, PACKED_MAX);
	if (!read_small(below, "packed-refs", PACKED_MAX, &own))
		buf_clear(&own);
	/* A layer may have written anything: each row that is missed costs a search. */
	while (missed < MISSED_MAX && str_next_line(&rest, &line)) {
		const size_t blank = str_find(line, STR(" "), 0);

		if (blank == (size_t)-1 ||
		    !str_starts(str_part(line, blank + 1, line.size), STR(TAGS)))
			continue;
		const struct str name = str_part(line, blank + 1, line.size);
		const struct str object = str_part(line, 0, blank);
		const size_t found = str_find(buf_str(&own), line, at);
		auto_free char *path = memory_copy_str(name);

		missed += found == (size_t)-1;
		if (found != (size_t)-1)
			at = found + line.size;
		else if (!has_loose(below, path, object))
			add_tag(commits, name, object);
	}
	buf_fini(&own);
}

/* Branches from the file of packed refs, which the layer holds only when git wrote it anew. */
static void read_packed(struct commits *commits, int git, int below)
{
	struct str rest, line;
	struct buf text;

	if (is_untouched(commits, "packed-refs"))
		return;
	buf_init(&text, PACKED_MAX);
	if (!read_small(git, "packed-refs", PACKED_MAX, &text)) {
		text.size = 0;
		if (is_there(git, "packed-refs"))
			commits->unread = "packed-refs is too large, or cannot be read";
	}
	rest = buf_str(&text);
	while (str_next_line(&rest, &line)) {
		const size_t blank = str_find(line, STR(" "), 0);

		if (blank == (size_t)-1 || line.data[0] == '#' || line.data[0] == '^')
			continue;
		const struct str name = str_part(line, blank + 1, line.size);
		auto_free char *path = memory_copy_str(name);
		/* A file of its own beats the row: one below, unless the layer removed it. */
		auto_close int loose = fd_open_beneath(below, path, O_PATH);
		if (str_starts(name, STR(HEADS "/")) &&
		    (loose < 0 || is_removed(commits, git, path)))
			set_ref(commits, name, str_part(line, 0, blank));
	}
	read_packed_tags(commits, below, buf_str(&text));
	buf_fini(&text);
}

/* Branches, and tags that BELOW does not have, that are files of their own. */
static void read_loose(struct commits *commits, int git, int below, const char *folder,
		       unsigned depth)
{
	auto_close int fd = fd_open_beneath(git, folder, O_RDONLY | O_DIRECTORY);
	DIR *names = fd >= 0 && depth < REFS_DEPTH ? fd_open_names(fd) : NULL;
	struct buf text;

	buf_init(&text, REF_MAX);
	for (const struct dirent *at = names != NULL ? readdir(names) : NULL; at != NULL;
	     at = readdir(names)) {
		char path[PATH_MAX];
		struct stat st;

		if (at->d_name[0] == '.' ||
		    snprintf(path, sizeof(path), "%s/%s", folder, at->d_name) >=
			    (int)sizeof(path) ||
		    fstatat(fd, at->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		const bool is_tag = str_starts(str_of(path), STR(TAGS));
		if (S_ISDIR(st.st_mode))
			read_loose(commits, git, below, path, depth + 1);
		else if (is_untouched(commits, path))
			continue;
		else if (!read_small(git, path, REF_MAX, &text))
			commits->unread = S_ISREG(st.st_mode) && !is_tag
						  ? "a file of one cannot be read"
						  : commits->unread;
		else if (!is_tag)
			set_ref(commits, str_of(path), str_trim(buf_str(&text)));
		else if (!has_loose(below, path, str_trim(buf_str(&text))))
			add_tag(commits, str_of(path), str_trim(buf_str(&text)));
	}
	if (names != NULL)
		(void)closedir(names);
	buf_fini(&text);
}

/* Commits on no branch, and whether the layer ended on another branch. */
static void read_head(struct commits *commits, int git, int below)
{
	struct buf ours, theirs;

	buf_init(&ours, REF_MAX);
	buf_init(&theirs, REF_MAX);
	if (!is_untouched(commits, "HEAD") && read_small(git, "HEAD", REF_MAX, &theirs) &&
	    read_small(below, "HEAD", REF_MAX, &ours) &&
	    !str_equal(str_trim(buf_str(&ours)), str_trim(buf_str(&theirs)))) {
		commits->elsewhere = true;
		set_ref(commits, STR("HEAD"), str_trim(buf_str(&theirs)));
	}
	buf_fini(&ours);
	buf_fini(&theirs);
}

/*
 * Does the folder NAME in AT hold only folders and files? Git would wait at a pipe without an
 * end, and a link may lead to one.
 */
static bool holds_files(struct call *call, int at, const char *name, unsigned depth)
{
	auto_close int fd = fd_open_beneath(at, name, O_RDONLY | O_DIRECTORY);
	DIR *names = fd >= 0 && depth < OBJECTS_DEPTH ? fd_open_names(fd) : NULL;
	bool fine = names != NULL && !call_stopped(call);

	for (const struct dirent *entry = fine ? readdir(names) : NULL;
	     entry != NULL && fine; entry = readdir(names)) {
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		fine = fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		       (S_ISDIR(st.st_mode)
				? holds_files(call, fd, entry->d_name, depth + 1)
				: S_ISREG(st.st_mode) || overlay_is_removed(&st));
	}
	if (names != NULL)
		(void)closedir(names);
	return fine;
}

/* May git read the objects of the layer's repository GIT? They name no further places. */
static bool is_sound_store(const struct commits *commits, struct call *call, int git)
{
	return !is_there(git, "objects") ||
	       (!is_changed(commits, git, "objects/info/alternates") &&
		holds_files(call, git, "objects", 0));
}

/* Git in the workspace, and in the repository of our own. */

/* INPUT is what git reads; -1: nothing. */
static int ask(struct call *call, const char *repository, const char *const *words,
	       int input, struct buf *out)
{
	const int files[] = {input, -1};
	const char *all[ASK_WORDS_MAX + 1];
	size_t count = 0;

	if (repository != NULL) {
		all[count++] = "--git-dir";
		all[count++] = repository;
	}
	for (size_t i = 0; count < ASK_WORDS_MAX && words[i] != NULL; i++)
		all[count++] = words[i];
	all[count] = NULL;
	return merge_git(call, call->workspace, all, input >= 0 ? files : NULL, out);
}
#define ASK(call, repository, out, ...) \
	ask(call, repository, (const char *const[]){__VA_ARGS__, NULL}, -1, out)

/* A ref that git is asked to change. */
struct update {
	struct commits_ref *ref;
	const char *before; /* the object that it must name now, zeros: none; "": any */
	bool done;
};

/* The name that REF has in the repository of our own. */
static const char *name_of(const struct commits_ref *ref)
{
	return strcmp(ref->name, "HEAD") == 0 ? HEADS "/HEAD" : ref->name;
}

/* Ask for the COUNT updates. *DONE of them were made, and git has refused the next one. */
static int ask_updates(struct call *call, const char *repository, const char *why,
		       const struct update *updates, size_t count, size_t *done)
{
	const char *const words[] = {"update-ref", "-m", why, "-z", "--stdin", NULL};
	auto_close int input = -1;
	struct buf text, answer;
	struct str rest, line;
	bool fine = true;

	buf_init(&text, LISTED_MAX);
	buf_init(&answer, LISTED_MAX);
	for (size_t i = 0; i < count; i++)
		fine = fine && buf_addf(&text, "start%cupdate %s%c%s%c%s%ccommit%c", 0,
					name_of(updates[i].ref), 0, updates[i].ref->layer,
					0, updates[i].before, 0, 0);
	const int code = fine && fd_memory_file("refs", buf_str(&text), &input, NULL)
				 ? ask(call, repository, words, input, &answer)
				 : -1;
	*done = 0;
	rest = buf_str(&answer);
	while (*done < count && str_next_line(&rest, &line))
		*done += str_is(line, "commit: ok");
	buf_fini(&answer);
	buf_fini(&text);
	return code;
}

/*
 * Put the commits of the layer into the COUNT refs UPDATES. Each has a transaction of its own:
 * when git refuses one, the others are still made. False: git was killed, and may have made
 * more than it has told.
 */
static bool update_refs(struct call *call, const char *repository, const char *why,
			struct update *updates, size_t count)
{
	size_t at = 0;

	while (at < count) {
		size_t done;
		const int code = ask_updates(call, repository, why, updates + at,
					     count - at, &done);

		for (size_t i = 0; i < done; i++)
			updates[at++].done = true;
		if (code < 0 || code > GIT_REFUSES)
			return false;
		at++;
	}
	return true;
}

/* Give the refs what the workspace has under their names. */
static bool read_below(struct commits *commits, struct call *call)
{
	struct str rest, line;
	struct buf text;

	buf_init(&text, LISTED_MAX);
	const bool fine = ASK(call, NULL, &text, "for-each-ref",
			      "--format=%(objectname) %(refname)", HEADS) == 0;
	rest = buf_str(&text);
	while (fine && str_next_line(&rest, &line)) {
		const size_t blank = str_find(line, STR(" "), 0);
		struct commits_ref *ref =
			blank != (size_t)-1
				? find_ref(commits, str_part(line, blank + 1, line.size))
				: NULL;

		if (ref != NULL && blank < COMMITS_NAME)
			(void)snprintf(ref->below, sizeof(ref->below), "%.*s", (int)blank,
				       line.data);
	}
	buf_clear(&text);
	if (fine && ASK(call, NULL, &text, "rev-parse", "-q", "--verify", "HEAD^0") == 0 &&
	    is_object_name(str_trim(buf_str(&text))))
		(void)snprintf(commits->head, sizeof(commits->head), "%.*s",
			       (int)str_trim(buf_str(&text)).size, text.data);
	buf_fini(&text);
	return fine;
}

static int compare_refs(const void *a, const void *b)
{
	return strcmp(((const struct commits_ref *)a)->name,
		      ((const struct commits_ref *)b)->name);
}

/* Forget refs that are below as they are in the layer. */
static void drop_equal(struct commits *commits)
{
	size_t kept = 0;

	for (size_t i = 0; i < commits->count; i++) {
		if (strcmp(commits->refs[i].layer, commits->refs[i].below) == 0)
			free(commits->refs[i].name);
		else
			commits->refs[kept++] = commits->refs[i];
	}
	commits->count = kept;
	if (kept > 0)
		qsort(commits->refs, kept, sizeof(*commits->refs), compare_refs);
}

/* The place of the objects of FOLDER, as a line of git's list of such places. */
static bool add_objects(const char *folder, struct buf *out)
{
	return strchr(folder, '\n') == NULL && folder[0] != '"' && folder[0] != '#' &&
	       buf_addf(out, "%s/" UNDO_GIT "/objects\n", folder);
}

/* Add TEXT to the file NAME of the repository of our own. WITH: O_APPEND, or O_TRUNC. */
static bool write_file(const struct commits *commits, const char *name, struct str text,
		       int with)
{
	auto_close int folder = open(commits->repository, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int file =
		folder >= 0
			? openat(folder, name, O_WRONLY | O_CREAT | O_CLOEXEC | with, 0600)
			: -1;

	return file >= 0 && fd_write_all(file, text.data, text.size, NULL);
}

/* Let the repository of our own have the objects of the workspace, and those of LAYER or NULL. */
static bool lend_objects(const struct commits *commits, struct call *call, const char *layer)
{
	struct buf places;

	buf_init(&places, 2 * PATH_MAX + 64);
	const bool fine =
		(layer == NULL || add_objects(layer, &places)) &&
		add_objects(call->workspace, &places) &&
		write_file(commits, "objects/info/alternates", buf_str(&places), O_TRUNC);
	buf_fini(&places);
	return fine;
}

/* Make the repository of our own. */
static bool make_repository(struct commits *commits, struct call *call)
{
	const char *temp = "/tmp";
	char path[PATH_MAX];

	for (size_t i = 0; call->environment != NULL && call->environment[i] != NULL; i++) {
		if (strncmp(call->environment[i], "TMPDIR=/", strlen("TMPDIR=/")) == 0)
			temp = call->environment[i] + strlen("TMPDIR=");
	}
	if (snprintf(path, sizeof(path), "%s/commits-XXXXXX", temp) >= (int)sizeof(path) ||
	    mkdtemp(path) == NULL)
		return false;
	commits->repository = memory_copy(path);
	return ASK(call, NULL, NULL, "init", "-q", "--bare", "--template=", path) == 0 &&
	       snprintf(path, sizeof(path), "%s/objects/info", commits->repository) <
		       (int)sizeof(path) &&
	       (mkdir(path, 0700) == 0 || errno == EEXIST) &&
	       lend_objects(commits, call, commits->layer);
}

/* The object of the branch REF when the layer began, from the log; false: it is unknown. */
static bool read_base(const struct commits_ref *ref, struct call *call,
		      const struct before *before, char base[COMMITS_NAME])
{
	char path[PATH_MAX];
	struct buf text;

	base[0] = '\0';
	(void)snprintf(path, sizeof(path), "%s/" UNDO_GIT "/%s", call->workspace, ref->name);
	const struct undo_state *state = before_find(before, path, &undo_absent);
	if (state == NULL)
		return false;
	/* It may have been packed. Then only its commits can tell. */
	if (state->kind != UNDO_FILE)
		return ref->below[0] == '\0';
	buf_init(&text, REF_MAX);
	const bool fine = before_content(before, call, state, &text) &&
			  is_object_name(str_trim(buf_str(&text)));
	if (fine)
		(void)snprintf(base, COMMITS_NAME, "%.*s",
			       (int)str_trim(buf_str(&text)).size, text.data);
	buf_fini(&text);
	return fine;
}

/* Find the refs whose commits git knows. They get their names in the repository of our own. */
static void find_sound(struct commits *commits, struct call *call)
{
	auto_free struct update *updates =
		memory_array(commits->count + 1, sizeof(*updates));
	size_t count = 0;

	for (size_t i = 0; i < commits->count; i++) {
		struct commits_ref *ref = &commits->refs[i];

		/*
		 * Git makes no such branch: its commands take the name for an option or for
		 * its HEAD.
		 */
		if (strncmp(ref->name, HEADS "/-", strlen(HEADS "/-")) != 0 &&
		    strcmp(ref->name, HEADS "/HEAD") != 0)
			updates[count++] = (struct update){.ref = ref, .before = ""};
	}
	(void)update_refs(call, commits->repository, "review", updates, count);
	for (size_t i = 0; i < count; i++)
		updates[i].ref->sound = updates[i].done;
}

/* A commit without files and parents. False: git could not make it. */
static bool make_root(const struct commits *commits, struct call *call,
		      char root[COMMITS_NAME])
{
	struct buf text;

	buf_init(&text, REF_MAX);
	const bool fine =
		ASK(call, commits->repository, &text, "-c", "user.name=glovebox", "-c",
		    "user.email=glovebox", "commit-tree", "-m", "", EMPTY_TREE) == 0 &&
		is_object_name(str_trim(buf_str(&text)));
	if (fine)
		(void)snprintf(root, COMMITS_NAME, "%.*s",
			       (int)str_trim(buf_str(&text)).size, text.data);
	buf_fini(&text);
	return fine;
}

/* Append NAME to OUT as a part of a quoted text in a file of git's settings. */
static bool add_escaped(const char *name, struct buf *out)
{
	bool fine = true;

	for (; *name != '\0'; name++)
		fine = fine && (*name != '"' || buf_addc(out, '\\')) &&
		       buf_addc(out, *name);
	return fine;
}

/*
 * Make what each sound ref is compared with its upstream: git counts for all refs in one
 * process how far they are from that. It is the branch below, or the commit that the workspace
 * is on, or a commit that has no history at all.
 */
static bool make_upstreams(const struct commits *commits, struct call *call)
{
	char root[COMMITS_NAME] = "";
	struct buf refs, settings;
	bool fine = true;

	buf_init(&refs, LISTED_MAX);
	buf_init(&settings, 2 * (size_t)LISTED_MAX);
	for (size_t i = 0; i < commits->count && fine; i++) {
		const struct commits_ref *ref = &commits->refs[i];
		const char *name = name_of(ref) + strlen(HEADS "/");
		const char *below = ref->below[0] != '\0' ? ref->below : commits->head;

		if (!ref->sound)
			continue;
		fine = below[0] != '\0' || root[0] != '\0' ||
		       make_root(commits, call, root);
		fine = fine &&
		       buf_addf(&refs, "%s refs/below/%s\n",
				below[0] != '\0' ? below : root, name) &&
		       buf_adds(&settings, "[branch \"") && add_escaped(name, &settings) &&
		       buf_adds(&settings, "\"]\n\tremote = .\n\tmerge = \"refs/below/") &&
		       add_escaped(name, &settings) && buf_adds(&settings, "\"\n");
	}
	fine = fine && write_file(commits, "packed-refs", buf_str(&refs), O_APPEND) &&
	       write_file(commits, "config", buf_str(&settings), O_APPEND);
	buf_fini(&settings);
	buf_fini(&refs);
	return fine;
}

/* The number behind WORD in TEXT, which is part of a text that ends in NUL; 0: none. */
static int number_after(struct str text, const char *word)
{
	const size_t at = str_find(text, str_of(word), 0);
	const unsigned long number =
		at != (size_t)-1 ? strtoul(text.data + at + strlen(word), NULL, 10) : 0;

	return number < INT_MAX ? (int)number : INT_MAX;
}

/*
 * Count the new commits of the sound refs, and see whether what is below is in their past, by
 * the objects that the repository of our own can reach.
 */
static void count_commits(struct commits *commits, struct call *call)
{
	struct str rest, line;
	struct buf text;

	for (size_t i = 0; i < commits->count; i++)
		commits->refs[i].past = false;
	buf_init(&text, LISTED_MAX);
	(void)ASK(call, commits->repository, &text, "for-each-ref",
		  "--format=%(refname) %(upstream:track,nobracket)", HEADS);
	rest = buf_str(&text);
	while (str_next_line(&rest, &line)) {
		const size_t blank = str_find(line, STR(" "), 0);
		const struct str name = str_part(line, 0, blank);
		struct commits_ref *ref =
			find_ref(commits, str_is(name, HEADS "/HEAD") ? STR("HEAD") : name);

		if (ref == NULL || !ref->sound || str_ends(line, STR(" gone")))
			continue;
		ref->count = number_after(line, " ahead ");
		ref->past = ref->below[0] != '\0' && number_after(line, " behind ") == 0;
	}
	buf_fini(&text);
}

/* Does the sound REF, a branch, move on with its commits? */
static bool moves(struct commits_ref *ref, struct call *call, const struct before *before)
{
	char base[COMMITS_NAME];
	const bool known = read_base(ref, call, before, base);

	if ((known || ref->below[0] == '\0') && strcmp(base, ref->below) == 0)
		ref->past = false;
	else if (!ref->past)
		return false;
	return true;
}

/* The commit that an annotated TAG names, in place of its own object. */
static void find_commit(struct commits *commits, struct call *call, struct commits_tag *tag)
{
	char wanted[COMMITS_NAME + sizeof("^0")];
	struct buf text;

	(void)snprintf(wanted, sizeof(wanted), "%s^0", tag->object);
	buf_init(&text, REF_MAX);
	if (ASK(call, commits->repository, &text, "rev-parse", "-q", "--verify", wanted) ==
		    0 &&
	    is_object_name(str_trim(buf_str(&text))))
		(void)snprintf(tag->object, sizeof(tag->object), "%.*s",
			       (int)str_trim(buf_str(&text)).size, text.data);
	buf_fini(&text);
}

/* Has the layer staged something that its commits do not have, and the user has not? */
static bool has_staged(const struct commits *commits, struct call *call, int git)
{
	auto_close int index = fd_open_beneath(git, "index", O_RDONLY);
	struct stat st;

	/* Commits leave an index that says what they say. */
	return index >= 0 && fstat(index, &st) == 0 && st.st_size > 0 &&
	       !is_untouched(commits, "index") && commits->count == 0 &&
	       !commits->elsewhere &&
	       ASK(call, NULL, NULL, "diff-index", "--cached", "--quiet", "HEAD") == 0;
}

void commits_look(struct commits *commits, struct call *call, const char *layer,
		  const struct upper_tree *tree, const char *id, const struct before *before)
{
	auto_close int git = -1, below = -1;
	char path[PATH_MAX];
	struct file folder;
	struct err err;

	commits->id = memory_copy(id);
	commits->layer = memory_copy(layer);
	commits->tree = tree;
	file_init(&folder);
	if (snprintf(path, sizeof(path), "%s/" UNDO_GIT, layer) < (int)sizeof(path) &&
	    files_reach(call->files, path, FILES_FOLDER, &folder, &err))
		git = fd_take(&folder.fd);
	file_fini(&folder);
	file_init(&folder);
	if (files_reach(call->files, UNDO_GIT, FILES_FOLDER, &folder, &err))
		below = fd_take(&folder.fd);
	file_fini(&folder);
	if (git < 0)
		return;
	commits->has_stash = is_changed(commits, git, "refs/stash");
	commits->has_notes = is_changed(commits, git, "refs/notes");
	read_packed(commits, git, below);
	read_loose(commits, git, below, HEADS, 0);
	read_loose(commits, git, below, "refs/tags", 0);
	if (below >= 0)
		read_head(commits, git, below);
	if (commits->count > 0 && below < 0) {
		commits->trouble = "the layer has made the repository";
		return;
	}
	if (commits->count > 0 && !read_below(commits, call)) {
		commits->trouble = "git does not run in the cell";
		return;
	}
	drop_equal(commits);
	if (commits->count > 0 && !is_sound_store(commits, call, git)) {
		commits->trouble = "the layer's objects are not all files of its own";
		return;
	}
	if (commits->count > 0 && !make_repository(commits, call)) {
		commits->trouble = "git could not read the layer";
		return;
	}
	if (commits->count > 0) {
		find_sound(commits, call);
		if (make_upstreams(commits, call))
			count_commits(commits, call);
	}
	for (size_t i = 0; i < commits->count; i++) {
		struct commits_ref *ref = &commits->refs[i];

		ref->moves = ref->sound && strcmp(ref->name, "HEAD") != 0 &&
			     moves(ref, call, before);
	}
	for (size_t i = 0; i < commits->tag_count && commits->repository != NULL; i++)
		find_commit(commits, call, &commits->tags[i]);
	commits->has_staged = has_staged(commits, call, git);
}

/* Landing. */

/* A file of the repository before git changed it, and what the log says it holds then. */
struct kept {
	char path[PATH_MAX];
	struct undo_state before, logged;
};

static bool keep(struct call *call, struct undo_log *log, const char *name,
		 struct kept *kept, struct err *err)
{
	struct file file;
	bool fine = true;

	(void)snprintf(kept->path, sizeof(kept->path), UNDO_GIT "/%s", name);
	kept->before = undo_absent;
	file_init(&file);
	if (files_reach(call->files, kept->path, FILES_READ, &file, NULL)) {
		undo_state_of(&file.st, &kept->before);
		fine = undo_log_file(log, file.fd, UNDO_CONTENT_MAX, &kept->before, err);
	}
	file_fini(&file);
	kept->logged = kept->before;
	return fine;
}

/*
 * Log that git puts OBJECT into the ref KEPT, before git does it: a landing that is killed in
 * between can be taken back. What git has made of it is logged after that (note).
 */
static bool announce(struct undo_log *log, struct kept *kept, const char *object,
		     struct err *err)
{
	const mode_t mask = umask(0);
	char text[COMMITS_NAME + 1];

	(void)umask(mask);
	(void)snprintf(text, sizeof(text), "%s\n", object);
	kept->logged = (struct undo_state){.kind = UNDO_FILE, .mode = 0666 & ~mask};
	undo_state_hash_text(str_of(text), &kept->logged);
	return undo_log_change(log, str_of(kept->path), &kept->before, &kept->logged, err);
}

/* Log what git has made of KEPT, where the log does not say that yet. */
static bool note(struct undo_places *places, struct undo_log *log,
		 const struct kept *kept, struct err *err)
{
	struct undo_state after;

	if (!undo_places_look(places, kept->path, &after, NULL, err))
		return false;
	after.source = UNDO_NOWHERE;
	return undo_state_same(&kept->logged, &after) ||
	       undo_log_change(log, str_of(kept->path), &kept->before, &after, err);
}

/* Git puts its refs on the disk: the log has to be there first. */
static bool sync_log(const struct undo_log *log, struct err *err)
{
	return fdatasync(log->fd) == 0 ||
	       err_set(err, errno, "the log of undo: %s", strerror(errno));
}

/* The name under which the commits of REF are fetched. */
static void own_name(const struct commits *commits, const struct commits_ref *ref,
		     char name[PATH_MAX])
{
	const char *last = strcmp(ref->name, "HEAD") == 0 ? ref->name
							  : ref->name + strlen(HEADS "/");

	(void)snprintf(name, PATH_MAX, "refs/glovebox/%s/%s", commits->id, last);
}

static bool fetch(struct commits *commits, struct call *call)
{
	char spec[PATH_MAX];

	(void)snprintf(spec, sizeof(spec), "+" HEADS "/*:refs/glovebox/%s/*", commits->id);
	return ASK(call, NULL, NULL, "-c", "fetch.fsckObjects=true", "-c",
		   "protocol.file.allow=always", "-c", "fetch.writeCommitGraph=false",
		   "fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-auto-gc",
		   "--no-recurse-submodules", commits->repository, spec) == 0;
}

/* The branch that the workspace is on; false: it is on none. */
static bool current_branch(struct call *call, struct buf *name)
{
	const bool fine = ASK(call, NULL, name, "symbolic-ref", "-q", "HEAD") == 0;

	if (name->size > 0 && name->data[name->size - 1] == '\n')
		buf_truncate(name, name->size - 1);
	return fine;
}

/* Changes that the user has staged stay, as with a merge that only moves on. */
static int refresh_index(struct call *call, const char *from, const char *to)
{
	const int code = ASK(call, NULL, NULL, "read-tree", "-i", "-m",
			     from[0] != '\0' ? from : EMPTY_TREE, to);

	(void)ASK(call, NULL, NULL, "update-index", "-q", "--refresh");
	return code;
}

/* Does another git hold the lock of the workspace's index? */
static bool is_index_held(struct call *call)
{
	struct file folder;

	file_init(&folder);
	const bool held = files_reach(call->files, UNDO_GIT, FILES_FOLDER, &folder, NULL) &&
			  is_there(folder.fd, "index.lock");
	file_fini(&folder);
	return held;
}

static bool say_held(struct err *err)
{
	return err_set(err, EBUSY,
		       UNDO_GIT_INDEX
		       ".lock is there: another git works in your folder. Wait "
		       "for it to end; when no git runs there, remove that file");
}

bool commits_wait_for_index(struct call *call, struct err *err)
{
	const struct timespec moment = {.tv_nsec = INDEX_MOMENT};

	for (int i = 0; i < INDEX_TRIES && is_index_held(call) && !call_stopped(call); i++)
		(void)nanosleep(&moment, NULL);
	return !is_index_held(call) || say_held(err);
}

/* The files of a branch that is to be moved, as they were. */
struct moving {
	struct kept branch, reflog;
};

static bool keep_branch(struct call *call, struct undo_log *log,
			const struct commits_ref *ref, struct moving *moving,
			struct err *err)
{
	char name[PATH_MAX];

	(void)snprintf(name, sizeof(name), "logs/%s", ref->name);
	return keep(call, log, ref->name, &moving->branch, err) &&
	       keep(call, log, name, &moving->reflog, err) &&
	       announce(log, &moving->branch, ref->layer, err);
}

/*
 * Move the COUNT branches UPDATES, of which CURRENT (or NULL) is the one that the workspace is
 * on. False: git was killed when it may have moved them, or the index is held, and the log must
 * not end. The next landing goes on (resume).
 */
static bool move(const struct commits *commits, struct call *call, struct update *updates,
		 size_t count, const struct update *current, struct err *err)
{
	char why[64];
	int code = 0;

	(void)snprintf(why, sizeof(why), "glovebox land %s", commits->id);
	const bool told = update_refs(call, NULL, why, updates, count);
	for (size_t i = 0; i < count; i++)
		updates[i].ref->moved = updates[i].done;
	if (current != NULL && current->done) {
		code = refresh_index(call, current->ref->below, current->ref->layer);
		if (code > 0 && is_index_held(call))
			return say_held(err);
	}
	return (told && code >= 0 && code <= GIT_REFUSES) ||
	       err_set(err, ECANCELED, "git was killed before it told the index");
}

/*
 * A file of the layer may hold another commit than its name says, with the user's one in its
 * past. What git has fetched is what its name says, so the workspace's objects tell the truth.
 */
static void believe_fetched(struct commits *commits, struct call *call)
{
	auto_free bool *lay = memory_array(commits->count + 1, sizeof(*lay));
	bool any = false;

	for (size_t i = 0; i < commits->count; i++) {
		lay[i] = commits->refs[i].past;
		any = any || lay[i];
	}
	if (!any)
		return;
	const bool fine = lend_objects(commits, call, NULL);
	if (fine)
		count_commits(commits, call);
	for (size_t i = 0; i < commits->count; i++) {
		if (lay[i] && !(fine && commits->refs[i].past))
			commits->refs[i].moves = false;
	}
}

/* Move the branches that move on. CURRENT is the one that the workspace is on; "": none. */
static bool move_branches(struct commits *commits, struct call *call, struct undo_log *log,
			  struct undo_places *places, const char *current, struct err *err)
{
	auto_free struct update *updates =
		memory_array(commits->count + 1, sizeof(*updates));
	auto_free struct moving *moving = memory_array(commits->count + 1, sizeof(*moving));
	auto_free struct kept *index = memory_alloc(sizeof(*index));
	const struct update *is_on = NULL;
	size_t count = 0;
	bool fine = true;

	believe_fetched(commits, call);
	for (size_t i = 0; i < commits->count && fine; i++) {
		struct commits_ref *ref = &commits->refs[i];

		if (!ref->moves)
			continue;
		updates[count] = (struct update){
			.ref = ref,
			.before = ref->below[0] != '\0'
					  ? ref->below
					  : "0000000000000000000000000000000000000000",
		};
		if (strcmp(ref->name, current) == 0)
			is_on = &updates[count];
		fine = keep_branch(call, log, ref, &moving[count++], err);
	}
	if (count == 0)
		return fine;
	fine = fine && keep(call, log, "index", index, err) && sync_log(log, err) &&
	       move(commits, call, updates, count, is_on, err);
	for (size_t i = 0; i < count && fine; i++)
		fine = note(places, log, &moving[i].branch, err) &&
		       note(places, log, &moving[i].reflog, err);
	/* A log that tells of the index tells that it fits the branch (resume). */
	return fine && note(places, log, index, err);
}

/* The branch that the workspace is on, as the log of a killed landing tells of it. */
struct broken {
	char path[PATH_MAX]; /* of the branch, as in a log */
	struct undo_state before, after;
	bool moves; /* the branch was to be moved, and the index was not told of after that */
};

static bool take_broken(void *context, const struct undo_change *change)
{
	struct broken *broken = context;

	if (str_is(change->path, broken->path)) {
		broken->before = change->before;
		broken->after = change->after;
		broken->moves = true;
	} else if (str_is(change->path, UNDO_GIT_INDEX)) {
		broken->moves = false;
	}
	return true;
}

/*
 * A landing that goes on in LOG was killed when git had moved the branch CURRENT, and perhaps
 * not the index: the user would find the old files staged.
 */
static bool resume(struct call *call, struct undo_log *log, struct undo_places *places,
		   const char *current, struct err *err)
{
	auto_free struct broken *broken = memory_alloc(sizeof(*broken));
	auto_free struct kept *index = memory_alloc(sizeof(*index));
	struct undo_reader reader = {.change = take_broken, .context = broken};
	const struct timespec moment = {.tv_nsec = INDEX_MOMENT};
	struct undo_state now = undo_absent;
	char line[COMMITS_NAME + 1];
	struct buf text;
	bool fine = true;

	(void)snprintf(broken->path, sizeof(broken->path), UNDO_GIT "/%s", current);
	if (current[0] == '\0' || !undo_log_read(&reader, log->fd, NULL) || !broken->moves)
		return true;
	buf_init(&text, REF_MAX);
	(void)ASK(call, NULL, &text, "rev-parse", "-q", "--verify", "HEAD^0");
	(void)snprintf(line, sizeof(line), "%s", text.size > 0 ? text.data : "");
	undo_state_hash_text(str_of(line), &now);
	buf_clear(&text);
	if (memcmp(now.digest, broken->after.digest, UNDO_DIGEST) == 0 &&
	    (broken->before.kind == UNDO_ABSENT ||
	     (broken->before.kind == UNDO_FILE && broken->before.size < COMMITS_NAME + 1 &&
	      undo_log_content(log->fd, broken->before.offset, broken->before.size, &text,
			       NULL)))) {
		auto_free char *from = memory_copy_str(str_trim(buf_str(&text)));

		line[strcspn(line, "\n")] = '\0';
		fine = keep(call, log, "index", index, err);
		const bool known = from[0] == '\0' || is_object_name(str_of(from));
		bool told = !known;
		/* The git of the killed landing may hold the lock of the index for a moment. */
		for (int i = 0; fine && !told && i < INDEX_TRIES; i++) {
			told = refresh_index(call, from, line) == 0;
			if (!told)
				(void)nanosleep(&moment, NULL);
		}
		fine = fine && (told || !is_index_held(call) || say_held(err)) &&
		       note(places, log, index, err);
	}
	buf_fini(&text);
	return fine;
}

bool commits_land(struct commits *commits, struct call *call, struct undo_log *log,
		  struct undo_places *places, struct err *err)
{
	auto_free struct kept *own = memory_array(commits->count + 1, sizeof(*own));
	struct buf current;
	bool fine = true;

	buf_init(&current, REF_MAX);
	if (!current_branch(call, &current))
		buf_clear(&current);
	fine = resume(call, log, places, current.size > 0 ? current.data : "", err);
	if (commits->count == 0 || commits->trouble != NULL) {
		buf_fini(&current);
		return fine;
	}
	for (size_t i = 0; i < commits->count && fine; i++) {
		char name[PATH_MAX];

		/* A name that git refuses is perhaps no path: nothing comes under it. */
		if (!commits->refs[i].sound)
			continue;
		own_name(commits, &commits->refs[i], name);
		fine = keep(call, log, name, &own[i], err) &&
		       announce(log, &own[i], commits->refs[i].layer, err);
	}
	fine = fine && sync_log(log, err);
	if (fine && !fetch(commits, call))
		commits->trouble = "git refuses to fetch them";
	for (size_t i = 0; i < commits->count && fine; i++)
		fine = !commits->refs[i].sound || note(places, log, &own[i], err);
	fine = fine && (commits->trouble != NULL ||
			move_branches(commits, call, log, places,
				      current.size > 0 ? current.data : "", err));
	buf_fini(&current);
	return fine;
}

void commits_report(const struct commits *commits, struct value *report)
{
	struct value *git, *refs, *tags;

	if (commits->count == 0 && commits->tag_count == 0 && !commits->has_stash &&
	    !commits->has_notes && !commits->has_staged && commits->trouble == NULL &&
	    commits->unread == NULL)
		return;
	git = value_new_object();
	refs = value_new_array();
	tags = value_new_array();
	for (size_t i = 0; i < commits->count; i++) {
		const struct commits_ref *ref = &commits->refs[i];
		struct value *row = value_new_object();
		struct buf name;

		buf_init(&name, 4 * PATH_MAX);
		text_add_name(&name,
			      str_of(strncmp(ref->name, HEADS "/", strlen(HEADS "/")) == 0
					     ? ref->name + strlen(HEADS "/")
					     : ref->name));
		value_set_str(row, "branch", buf_str(&name));
		buf_fini(&name);
		value_set_text(row, "commit", ref->layer);
		if (ref->below[0] != '\0')
			value_set_text(row, "below", ref->below);
		value_set_integer(row, "commits", ref->count);
		value_set_boolean(row, "sound", ref->sound);
		value_set_boolean(row, "moves", ref->moves);
		value_set_boolean(row, "moved", ref->moved);
		value_append(refs, row);
	}
	value_set(git, "refs", refs);
	for (size_t i = 0; i < commits->tag_count; i++) {
		struct value *row = value_new_object();
		struct buf name;

		buf_init(&name, 4 * PATH_MAX);
		text_add_name(&name, str_of(commits->tags[i].name));
		value_set_str(row, "tag", buf_str(&name));
		buf_fini(&name);
		value_set_text(row, "commit", commits->tags[i].object);
		value_append(tags, row);
	}
	value_set(git, "tags", tags);
	value_set_boolean(git, "stash", commits->has_stash);
	value_set_boolean(git, "notes", commits->has_notes);
	value_set_boolean(git, "staged", commits->has_staged);
	if (commits->trouble != NULL)
		value_set_text(git, "trouble", commits->trouble);
	if (commits->unread != NULL)
		value_set_text(git, "unread", commits->unread);
	value_set(report, "git", git);
}

void commits_fini(struct commits *commits)
{
	for (size_t i = 0; i < commits->count; i++)
		free(commits->refs[i].name);
	for (size_t i = 0; i < commits->tag_count; i++)
		free(commits->tags[i].name);
	if (commits->repository != NULL)
		fd_folder_remove(commits->repository);
	free(commits->repository);
	free(commits->layer);
	free(commits->id);
}
