/*
 * strings: is what the gate calls literal what bash runs? See README.md. Exits with 1 at the
 * first batch with a difference.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "policy/command.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	BATCH = 5000, /* literal texts given to one bash */
	PIECES = 14,  /* of one text, at most */
	FUNCTIONS_MAX = 4096,
	FILE_MAX = 64 << 20,
	DIFFERENCES_SHOWN = 5,
};

/* Single bytes, the usual ones more often; then what only together means something. */
static const char bytes[] = "aaaabbbc1    \t\n''\"\"\\\\$`|&;()<>{}[]*?~!#%^=+-:,./@_";
static const char *const pieces[] = {
	"&&",    "||",      "|",          ";",        "\n",
	" ",     " a",      "a ",         " 'a b'",   "\"a",
	"\"",    "'",       "\\\n",       "\\ ",      "\"$\"",
	"$a",    "${a}",    "$(a)",       "{a,b}",    "{a..c}",
	"@{1}",  "{}",      "~a",         "a~1",      "a=~",
	"a=b ",  "a+=b ",   "=",          "if ",      "time ",
	"! ",    "then ",   "do ",        "in ",      "case ",
	" # a",  "#",       "a#",         "\xc3\xa9", "\xe2\x82\xac",
	"\xff",  "\x01",    "2>&1",       ">a",       "<<a\n",
	"[ a ]", "a*",      "%1",         "echo ",    ": ",
	". ",    "export ", "\"a\\\"b\"", "'\\''",    "\"\\\\\"",
	"\\\\",  "\\'",     " -- ",       "--a=b",    "a:b",
	"a:~",   "''",      "\"\"",       "\r",       "\v",
	"&",     ";;",      "$'a'",       "!a",       "^a^b",
	"/a",    "a/b",
};

static uint64_t state;

/* xorshift64*: Marsaglia 2003, Vigna 2014. */
static uint64_t random_below(uint64_t limit)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 0x2545f4914f6cdd1dULL >> 33) % limit;
}

static void make_text(struct buf *text)
{
	size_t count = 1 + random_below(PIECES);
	bool whole = random_below(2) == 0;

	buf_clear(text);
	for (size_t i = 0; i < count; i++) {
		if (whole && random_below(2) == 0)
			(void)buf_adds(
				text,
				pieces[random_below(sizeof(pieces) / sizeof(pieces[0]))]);
		else
			(void)buf_addc(text, bytes[random_below(sizeof(bytes) - 1)]);
	}
}

struct batch {
	struct buf strings, functions;
	char *names[FUNCTIONS_MAX]; /* of FUNCTIONS */
	size_t name_count;
	char *texts[BATCH];
	char *wanted[BATCH];
	size_t count;
	const char *bash_side, *folder;
	uint64_t tried, literal, skipped, differences, seed;
};

/* What the stand-ins print for COMMAND, one pipeline after the other. */
static void expect(const struct command *command, struct buf *out)
{
	bool ok = true;
	bool runs = true;

	for (size_t i = 0; i < command->count; i++) {
		const struct command_part *part = &command->parts[i];

		if (part->join != COMMAND_PIPE)
			runs = part->join == COMMAND_THEN ||
			       ok == (part->join == COMMAND_AND);
		if (!runs)
			continue;
		for (size_t j = 0; j < part->argc; j++)
			(void)buf_addf(out, "\2%s", part->argv[j]);
		(void)buf_addc(out, '\3');
		ok = part->argc % 2 == 1;
	}
}

static bool is_plain_name(const char *name)
{
	for (const char *at = name; *at; at++) {
		if (!isalnum((unsigned char)*at) && !strchr("_./:@+,^-", *at))
			return false;
	}
	return *name != '\0' && !isdigit((unsigned char)*name);
}

/* A function costs no process, as the handler of unknown commands does. */
static void add_function(struct batch *batch, const char *name)
{
	for (size_t i = 0; i < batch->name_count; i++) {
		if (strcmp(batch->names[i], name) == 0)
			return;
	}
	if (batch->name_count == FUNCTIONS_MAX)
		return;
	batch->names[batch->name_count++] = memory_copy(name);
	(void)buf_addf(&batch->functions, "function %s { stand_in '%s' \"$@\"; }\n", name,
		       name);
}

/* A name with a slash that can be no function's: bash says nothing of its arguments. */
static bool cannot_be_seen(const struct command *command)
{
	for (size_t i = 0; i < command->count; i++) {
		const char *name = command->parts[i].argv[0];

		if (strchr(name, '/') && !is_plain_name(name))
			return true;
	}
	return false;
}

static void add_text(struct batch *batch, struct str text)
{
	struct command command;
	struct buf wanted;

	batch->tried++;
	if (command_parse(&command, text)) {
		batch->literal++;
		if (cannot_be_seen(&command)) {
			batch->skipped++;
		} else {
			buf_init(&wanted, FILE_MAX);
			expect(&command, &wanted);
			for (size_t i = 0; i < command.count; i++) {
				if (is_plain_name(command.parts[i].argv[0]))
					add_function(batch, command.parts[i].argv[0]);
			}
			(void)buf_addstr(&batch->strings, text);
			(void)buf_addc(&batch->strings, '\0');
			batch->texts[batch->count] = memory_copy_str(text);
			batch->wanted[batch->count++] = buf_take(&wanted);
		}
	}
	command_fini(&command);
}

static void fail(const char *what)
{
	(void)fprintf(stderr, "strings: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void write_file(const char *path, const struct buf *content)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || !fd_write_all(fd, content->data, content->size, NULL))
		fail(path);
}

/* What bash printed. */
static void run_bash(const struct batch *batch, struct buf *printed)
{
	const char *const argv[] = {"bash",     "--noprofile", "--norc", batch->bash_side,
				    ".strings", ".functions",  NULL};
	const char *const environment[] = {"LC_ALL=C.UTF-8", NULL};
	union {
		const char *const *given;
		char *const *taken;
	} words = {argv}, variables = {environment};
	posix_spawn_file_actions_t actions;
	int status;
	pid_t pid;

	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, ".printed",
					       O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (posix_spawnp(&pid, "bash", &actions, NULL, words.taken, variables.taken) != 0)
		fail("bash");
	(void)posix_spawn_file_actions_destroy(&actions);
	if (waitpid(pid, &status, 0) != pid)
		fail("bash");
	auto_close int fd = open(".printed", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || !fd_read_all(fd, printed, ".printed", NULL))
		fail(".printed");
}

static void show(const char *what, struct str text)
{
	struct buf shown;

	buf_init(&shown, FILE_MAX);
	text_add_name(&shown, text);
	(void)fprintf(stderr, "  %-7s %s\n", what, shown.data);
	buf_fini(&shown);
}

static void compare(struct batch *batch, struct str printed)
{
	size_t at = 0;

	for (size_t i = 0; i < batch->count; i++) {
		size_t end = str_find(printed, STR("\4"), at);
		struct str got;

		if (end == (size_t)-1)
			end = printed.size;
		got = str_part(printed, at, end - at);
		at = end + 1;
		if (str_is(got, batch->wanted[i]))
			continue;
		if (batch->differences++ < DIFFERENCES_SHOWN) {
			(void)fprintf(stderr, "different, seed %llu:\n",
				      (unsigned long long)batch->seed);
			show("text", str_of(batch->texts[i]));
			show("gate", str_of(batch->wanted[i]));
			show("bash", got);
		}
	}
	if (at != printed.size)
		batch->differences++; /* more came out than went in */
}

static void play(struct batch *batch)
{
	struct buf printed;

	write_file(".strings", &batch->strings);
	write_file(".functions", &batch->functions);
	buf_init(&printed, FILE_MAX);
	run_bash(batch, &printed);
	compare(batch, buf_str(&printed));
	buf_fini(&printed);
	for (size_t i = 0; i < batch->count; i++) {
		free(batch->texts[i]);
		free(batch->wanted[i]);
	}
	for (size_t i = 0; i < batch->name_count; i++)
		free(batch->names[i]);
	batch->count = batch->name_count = 0;
	buf_clear(&batch->strings);
	buf_clear(&batch->functions);
}

/* Files that a pattern would find. */
static const char *const files[] = {"a",  "b",  "c",  "aa", "ab",  "ba", "a b", "1",
				    "a1", "a=", "-a", "@a", "a,b", "a:", "{a",  NULL};

static void make_folder(char *folder)
{
	if (mkdtemp(folder) == NULL || chdir(folder) < 0)
		fail(folder);
	for (size_t i = 0; files[i] != NULL; i++) {
		auto_close int fd = open(files[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		if (fd < 0)
			fail(files[i]);
	}
}

static void remove_folder(const char *folder)
{
	static const char *const ours[] = {".strings", ".functions", ".printed"};

	for (size_t i = 0; files[i] != NULL; i++)
		(void)unlink(files[i]);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		(void)unlink(ours[i]);
	(void)chdir("/");
	(void)rmdir(folder);
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/glovebox-gate-XXXXXX";
	struct batch *batch = memory_alloc(sizeof(*batch));
	uint64_t count = 0, seed = (uint64_t)time(NULL);
	struct buf text;

	if (argc < 3 || !text_parse_count(argv[2], UINT64_MAX >> 1, &count, NULL) ||
	    (argc > 3 && !text_parse_count(argv[3], UINT64_MAX >> 1, &seed, NULL))) {
		(void)fprintf(stderr, "usage: strings BASH_SIDE COUNT [SEED]\n");
		return 2;
	}
	state = 2 * seed + 1; /* never 0 */
	batch->seed = seed;
	batch->bash_side = argv[1];
	buf_init(&text, FILE_MAX);
	buf_init(&batch->strings, FILE_MAX);
	buf_init(&batch->functions, FILE_MAX);
	make_folder(folder);
	while (batch->tried < count && batch->differences == 0) {
		make_text(&text);
		add_text(batch, buf_str(&text));
		if (batch->count == BATCH || batch->tried == count)
			play(batch);
	}
	remove_folder(folder);
	(void)printf("%llu texts, seed %llu: %llu literal, %llu of them compared with bash, "
		     "%llu different\n",
		     (unsigned long long)batch->tried, (unsigned long long)seed,
		     (unsigned long long)batch->literal,
		     (unsigned long long)(batch->literal - batch->skipped),
		     (unsigned long long)batch->differences);
	bool ok = batch->differences == 0 && batch->literal > batch->skipped;
	buf_fini(&text);
	buf_fini(&batch->strings);
	buf_fini(&batch->functions);
	free(batch);
	return ok ? 0 : 1;
}
