/*
 * git_index beside git: indexes that git makes of repositories made at random, of every version
 * and with every extension it writes, are read as `git ls-files -s` says; what the reader does
 * not take it refuses.
 */
#include "../base/made.h"
#include "../base/tree.h"
#include "../base/unit.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "guard/readers.h"

enum {
	TREES = 48,
	INDEX_MAX = 4 << 20,
};

/* What a repository has besides files; each with each version, by the number of the tree. */
enum feature {
	PLAIN,
	SPLIT,      /* the index lies in two files */
	SPLIT_MORE, /* and the second has changes of the first */
	UNTRACKED,  /* with the cache of untracked files */
	SPARSE,     /* folders stand for what is in them */
	CONFLICT,   /* paths in several stages, and one that was resolved */
	FLAGS,      /* assume-unchanged, skip-worktree, intent-to-add */
	SHA256,
	FEATURES,
};

/*
 * $1 version, $2 feature, $3 number that the random ones come from. Names have blanks, quotes,
 * line ends, bytes that are no UTF-8 and common beginnings.
 */
static const char script[] =
	"set -e\n"
	"RANDOM=$3\n"
	"export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a "
	"GIT_AUTHOR_EMAIL=a@a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@a\n"
	"format=sha1; if [ $2 = 7 ]; then format=sha256; fi\n"
	"git init -q --object-format=$format .\n"
	"parts=(a b long-name-of-a-part 'with blank' 'quo\"te' $'line\\nend' $'\\xff\\xfe' "
	"'ä' .hidden 'x~' dir)\n"
	"pick() { part=${parts[RANDOM % ${#parts[@]}]}; }\n"
	"runs=()\n"
	"for ((i = 0; i < 4 + RANDOM % 30; i++)); do\n"
	"  folder=; for ((j = RANDOM % 4; j > 0; j--)); do pick; folder+=$part.d/; done\n"
	"  [ -d \"./$folder\" ] || mkdir -p \"./$folder\"; pick; name=./$folder$part$RANDOM\n"
	"  case $((RANDOM % 5)) in\n"
	"  0) ln -s target \"$name\" ;;\n"
	"  1) echo $RANDOM > \"$name\"; runs+=(\"$name\") ;;\n"
	"  *) printf '%*s' $((RANDOM % 300)) '' > \"$name\" ;;\n"
	"  esac\n"
	"done\n"
	"chmod 755 . \"${runs[@]}\"\n"
	"printf -v long 'l%.0s' {1..200}; mkdir -p $long/$long/$long/$long/$long\n"
	"printf -v more 'm%.0s' {1..200}\n"
	"for ((i = 20; i > 0; i--)); do long+=/$more; done\n"
	"git add -A\n"
	"object=$(git hash-object -w --stdin <<< x)\n"
	"link=$(printf '%0*d' $([ $format = sha1 ] && echo 40 || echo 64) 7)\n"
	"git update-index --add --cacheinfo 160000,$link,sub --cacheinfo "
	"160000,$link,deep/er/sub --cacheinfo \"100644,$object,${long:0:4090}\"\n"
	"git update-index --force-remove \"${long:0:4090}\"\n"
	"git update-index --add --cacheinfo \"100644,$object,${long:0:3000}/f\"\n"
	"git commit -qm one\n"
	"git update-index --index-version $1\n"
	"case $2 in\n"
	"1) git update-index --split-index ;;\n"
	"2) git update-index --split-index\n"
	"   git update-index --add --cacheinfo 160000,${link/7/8},sub\n"
	"   echo changed > changed; git add changed\n"
	"   git update-index --force-remove deep/er/sub ;;\n"
	"3) mkdir -p other/folder; echo > other/folder/file; git update-index "
	"--untracked-cache; git status > /dev/null ;;\n"
	"4) mkdir -p in/side out/side/deep; echo > in/side/f; echo > out/side/f; echo > "
	"out/side/deep/f; git add in out; git commit -qm two; git sparse-checkout init --cone "
	"--sparse-index; git sparse-checkout set in ;;\n"
	"5) for stage in 1 2 3; do echo \"100644 $object $stage\tcon flict\"; echo \"100644 $object "
	"$stage\tother\"; done | git update-index --index-info; echo > other; git add other ;;\n"
	"6) echo 1 > one; echo 2 > two; echo 3 > three; git add one two; git update-index "
	"--assume-unchanged one; git update-index --skip-worktree two; git add -N three ;;\n"
	"esac\n"
	"git ls-files -s -z $([ $2 = 4 ] && echo --sparse) > ../said\n";

struct place {
	char folder[64], work[96], said[96];
};

static void place_begin(struct place *place)
{
	(void)snprintf(place->folder, sizeof(place->folder), "%s/glovebox-index-XXXXXX",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(place->folder));
	(void)snprintf(place->work, sizeof(place->work), "%s/work", place->folder);
	(void)snprintf(place->said, sizeof(place->said), "%s/said", place->folder);
	assert_int_equal(mkdir(place->work, 0755), 0);
}

static void make(const struct place *place, unsigned version, unsigned feature,
		 unsigned number)
{
	char words[3][16];
	int status;
	pid_t pid;

	(void)snprintf(words[0], sizeof(words[0]), "%u", version);
	(void)snprintf(words[1], sizeof(words[1]), "%u", feature);
	(void)snprintf(words[2], sizeof(words[2]), "%u", number);
	pid = fork();
	if (pid == 0) {
		if (chdir(place->work) == 0)
			(void)execlp("bash", "bash", "-c", script, "bash", words[0],
				     words[1], words[2], (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

struct listing {
	struct buf text;
	size_t hash;
};

static bool add_link(void *context, struct str path)
{
	struct listing *listing = context;
	const bool folder = str_ends(path, STR("/"));

	return buf_addf(&listing->text, "%s - 0\t%.*s", folder ? "040000" : "160000",
			(int)path.size, path.data) &&
	       buf_addc(&listing->text, '\0');
}

static bool add_entry(void *context, const struct git_index_entry *entry)
{
	struct listing *listing = context;

	(void)buf_addf(&listing->text, "%06o ", (unsigned)entry->mode);
	for (size_t i = 0; i < listing->hash; i++)
		(void)buf_addf(&listing->text, "%02x", entry->object[i]);
	(void)buf_addf(&listing->text, " %s\t%.*s", entry->unsure ? "?" : "0",
		       (int)entry->path.size, entry->path.data);
	return buf_addc(&listing->text, '\0');
}

static void read_index(const struct place *place, const char *name, bool sha256,
		       struct git_index_reader *reader, struct listing *listing)
{
	char path[PATH_MAX];
	struct err err = {0};
	struct buf text;

	(void)snprintf(path, sizeof(path), "%s/.git/%s", place->work, name);
	buf_init(&text, INDEX_MAX);
	assert_true(fd_read_file(path, INDEX_MAX, &text, NULL));
	buf_init(&listing->text, INDEX_MAX);
	listing->hash = sha256 ? 32 : 20;
	*reader = (struct git_index_reader){.sha256 = sha256,
					    .link = add_link,
					    .entry = add_entry,
					    .context = listing};
	if (!readers_index_read(reader, buf_str(&text), &err))
		fail_msg("%s", err.text);
	buf_fini(&text);
}

/* What git said, in the words of the listing; *UNSURE: how many it calls so itself. */
static void expect(const struct place *place, struct buf *expected)
{
	struct buf said;
	struct str rest;

	buf_init(&said, INDEX_MAX);
	buf_init(expected, INDEX_MAX);
	assert_true(fd_read_file(place->said, INDEX_MAX, &said, NULL));
	rest = buf_str(&said);
	while (rest.size > 0) {
		const char *end = memchr(rest.data, '\0', rest.size);
		struct str row = str_part(rest, 0, (size_t)(end - rest.data));
		const size_t tab = str_find(row, STR("\t"), 0);
		const struct str mode = str_part(row, 0, 6);
		const bool named = str_is(mode, "160000") || str_is(mode, "040000");

		assert_true(end != NULL && tab > 10 && tab != (size_t)-1);
		(void)buf_addf(expected, "%.*s ", (int)mode.size, mode.data);
		if (named)
			(void)buf_adds(expected, "-");
		else
			(void)buf_addstr(expected, str_part(row, 7, tab - 9));
		(void)buf_addf(expected, " %s", row.data[tab - 1] == '0' ? "0" : "?");
		(void)buf_addstr(expected, str_part(row, tab, row.size));
		(void)buf_addc(expected, '\0');
		rest = str_part(rest, row.size + 1, rest.size);
	}
	buf_fini(&said);
}

static void assert_same(const struct buf *expected, const struct buf *found, unsigned tree)
{
	if (expected->size == found->size &&
	    memcmp(expected->data, found->data, found->size) == 0)
		return;
	for (size_t i = 0; i < expected->size; i++)
		expected->data[i] = expected->data[i] == '\0' ? '\n' : expected->data[i];
	for (size_t i = 0; i < found->size; i++)
		found->data[i] = found->data[i] == '\0' ? '\n' : found->data[i];
	fail_msg("tree %u: git says\n%s\nwe\n%s", tree, expected->data, found->data);
}

/* Flags are git's business: a path that it does not look at is unsure here and stage 0 there. */
static void forgive_flags(struct buf *expected)
{
	static const char *const names[] = {"one", "two", "three"};

	for (size_t i = 0; i < UNIT_COUNT(names); i++) {
		char row[16];
		const int size = snprintf(row, sizeof(row), " 0\t%s", names[i]);
		char *at = memmem(expected->data, expected->size, row, (size_t)size + 1);

		assert_non_null(at);
		at[1] = '?';
	}
}

static void every_index_is_read_as_git_lists_it(void **state)
{
	uint64_t seed = made_seed(20251122);

	(void)state;
	for (unsigned tree = 0; tree < TREES; tree++) {
		const unsigned version = 2 + tree % 3, feature = tree / 3 % FEATURES;
		struct git_index_reader reader;
		struct listing listing;
		struct place place;
		struct buf expected;

		if (feature == SPLIT || feature == SPLIT_MORE)
			continue;
		place_begin(&place);
		make(&place, version, feature, made_random(&seed, 32768));
		expect(&place, &expected);
		if (feature == FLAGS)
			forgive_flags(&expected);
		read_index(&place, "index", feature == SHA256, &reader, &listing);
		assert_string_equal(reader.shared, "");
		assert_same(&expected, &listing.text, tree);
		buf_fini(&expected);
		buf_fini(&listing.text);
		tree_remove(place.folder);
	}
}

static bool has_row(const struct buf *text, const char *row)
{
	return memmem(text->data, text->size, row, strlen(row) + 1) != NULL;
}

/* One in two parts says so, and each part is read: no gitlink stays unseen. */
static void both_parts_of_a_split_index_are_read(void **state)
{
	uint64_t seed = made_seed(20251122);

	(void)state;
	for (unsigned version = 2; version <= 4; version++) {
		for (unsigned feature = SPLIT; feature <= SPLIT_MORE; feature++) {
			char name[2 * GIT_HASH_MAX + sizeof("sharedindex.")];
			struct git_index_reader reader, other;
			struct listing part, shared;
			struct place place;
			struct buf expected;

			place_begin(&place);
			make(&place, version, feature, made_random(&seed, 32768));
			expect(&place, &expected);
			read_index(&place, "index", false, &reader, &part);
			assert_int_equal(strlen(reader.shared), 40);
			(void)snprintf(name, sizeof(name), "sharedindex.%s", reader.shared);
			read_index(&place, name, false, &other, &shared);
			assert_string_equal(other.shared, "");
			assert_true(has_row(&shared.text, "160000 - 0\tsub"));
			if (feature == SPLIT)
				assert_same(&expected, &shared.text, version);
			else
				assert_true(has_row(
					&part.text,
					"100644 5ea2ed416fbd4a4cbe227b75fe255dd7fa6bd4d6 0\tchanged"));
			assert_false(has_row(&part.text, "160000 - 0\t"));
			buf_fini(&expected);
			buf_fini(&part.text);
			buf_fini(&shared.text);
			tree_remove(place.folder);
		}
	}
}

/* Git refuses one whose name does not begin with a capital letter when it does not know it. */
static void an_extension_that_one_must_know_is_refused(void **state)
{
	static const char *const names[] = {"zzzz", "Zzzz", "sdir"};
	struct place place;
	struct buf text;
	char path[128];

	(void)state;
	place_begin(&place);
	make(&place, 2, PLAIN, 1);
	(void)snprintf(path, sizeof(path), "%s/.git/index", place.work);
	for (size_t i = 0; i < UNIT_COUNT(names); i++) {
		struct git_index_reader reader = {.sha256 = false};
		struct err err = {0};
		char hash[20];

		buf_init(&text, INDEX_MAX);
		assert_true(fd_read_file(path, INDEX_MAX, &text, NULL));
		memcpy(hash, text.data + text.size - sizeof(hash), sizeof(hash));
		buf_truncate(&text, text.size - sizeof(hash));
		(void)buf_adds(&text, names[i]);
		(void)buf_addstr(&text, (struct str){"\0\0\0\0", 4});
		(void)buf_addstr(&text, (struct str){hash, sizeof(hash)});
		assert_int_equal(readers_index_read(&reader, buf_str(&text), &err), i > 0);
		if (i == 0)
			assert_non_null(strstr(err.text, "zzzz"));
		buf_fini(&text);
	}
	tree_remove(place.folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_index_is_read_as_git_lists_it),
		cmocka_unit_test(both_parts_of_a_split_index_are_read),
		cmocka_unit_test(an_extension_that_one_must_know_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
