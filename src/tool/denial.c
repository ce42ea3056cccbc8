/*
 * denial: writes denials into results, reads them off messages, judges them, and lists
 * the system's folders.
 */

#include "tool/denial.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "policy/autoexec.h"
#include "policy/commands.h"
#include "policy/deny.h"
#include "policy/network.h"
#include "policy/policy.h"
#include "tool/tool.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RULE_MAX = 64, REMEDY_MAX = 512 }; /* room for the texts about a limit */

#define KEY_LEFT_OUT "denials_left_out"

static const char *const kind_names[] = {
	[DENIAL_FS] = "fs",       [DENIAL_NET] = "net",       [DENIAL_PROC] = "proc",
	[DENIAL_LIMIT] = "limit", [DENIAL_POLICY] = "policy",
};

static bool member_is(const struct value *object, const char *key, const char *text)
{
	const char *there = value_text(value_member(object, key));

	return there != NULL && strcmp(there, text) == 0;
}

static bool is_there(const struct value *list, const struct denial *denial)
{
	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *item = value_item(list, i);

		if (member_is(item, "kind", kind_names[denial->kind]) &&
		    member_is(item, "target", denial->target) &&
		    member_is(item, "rule", denial->rule))
			return true;
	}
	return false;
}

static struct value *list_of(struct tool_result *result)
{
	struct value *details = tool_details(result);
	struct value *list = value_member(details, DENIALS_KEY);

	if (value_kind(list) != VALUE_ARRAY) {
		value_set(details, DENIALS_KEY, value_new_array());
		list = value_member(details, DENIALS_KEY);
	}
	return list;
}

void denial_print(const struct value *denial, struct buf *out)
{
	const char *target = value_text(value_member(denial, "target"));
	const char *rule = value_text(value_member(denial, "rule"));
	const char *remedy = value_text(value_member(denial, "remedy"));
	bool guessed = value_is_true(value_member(denial, "guessed"));
	bool limit = denial_is(denial, DENIAL_LIMIT);

	(void)buf_addf(out, "%s %s (%s)",
		       limit ? (guessed ? "limit perhaps reached:" : "limit reached:")
			     : (guessed ? "perhaps refused:" : "refused:"),
		       target != NULL ? target : "?", rule != NULL ? rule : "?");
	if (remedy != NULL)
		(void)buf_addf(out, "; %s", remedy);
}

/*
 * Add DENIAL to RESULT's list. Returns the new item; NULL when the list already has it
 * or is full.
 */
static const struct value *item_add(struct tool_result *result, const struct denial *denial)
{
	struct value *list = list_of(result);

	assert(denial->kind != 0 && denial->target != NULL && denial->rule != NULL);
	if (is_there(list, denial))
		return NULL;
	if (value_count(list) >= DENIALS_MAX) {
		struct value *details = tool_details(result);
		int64_t more = value_integer(value_member(details, KEY_LEFT_OUT));

		value_set_integer(details, KEY_LEFT_OUT, more + 1);
		return NULL;
	}
	struct value *item = value_new_object();
	value_set_text(item, "kind", kind_names[denial->kind]);
	value_set_text(item, "target", denial->target);
	value_set_text(item, "rule", denial->rule);
	if (denial->remedy != NULL)
		value_set_text(item, "remedy", denial->remedy);
	if (denial->guessed)
		value_set_boolean(item, "guessed", true);
	value_append(list, item);
	return item;
}

void denial_note(struct tool_result *result, const struct denial *denial)
{
	(void)item_add(result, denial);
}

void denial_add(struct tool_result *result, const struct denial *denial)
{
	const struct value *item = item_add(result, denial);
	struct buf *text = &result->text;

	if (item == NULL)
		return;
	(void)buf_end_line(text);
	(void)buf_addc(text, '[');
	denial_print(item, text);
	(void)buf_adds(text, "]\n");
}

void denial_add_limit(struct tool_result *result, const struct denial_limit *limit)
{
	char rule[RULE_MAX], remedy[REMEDY_MAX];

	(void)snprintf(rule, sizeof(rule), "limits.%s", limit->key);
	(void)snprintf(remedy, sizeof(remedy), "%s, or %s agents.%.64s.limits.%s (now %s)",
		       limit->advice, limit->is_floor ? "lower" : "raise",
		       limit->agent != NULL ? limit->agent : "NAME", limit->key,
		       limit->now);
	denial_add(result, &(struct denial){.kind = DENIAL_LIMIT,
					    .target = limit->target,
					    .rule = rule,
					    .remedy = remedy,
					    .guessed = limit->guessed});
}

bool denial_is(const struct value *denial, enum denial_kind kind)
{
	return member_is(denial, "kind", kind_names[kind]);
}

const struct value *denial_list(const struct tool_result *result)
{
	const struct value *list = value_member(result->details, DENIALS_KEY);

	return value_kind(list) == VALUE_ARRAY ? list : NULL;
}

const char *denial_limit(const struct tool_result *result)
{
	static const char prefix[] = "limits.";
	const struct value *list = denial_list(result);

	if (result->status == RESULT_DONE && result->exit_code == 0)
		return NULL;
	for (size_t i = 0; i < value_count(list); i++) {
		const char *rule = value_text(value_member(value_item(list, i), "rule"));

		if (denial_is(value_item(list, i), DENIAL_LIMIT) && rule != NULL &&
		    strncmp(rule, prefix, sizeof(prefix) - 1) == 0)
			return rule + sizeof(prefix) - 1;
	}
	return result->status == RESULT_TIMED_OUT ? "wall_s" : NULL;
}

void denial_set_level(struct tool_result *result, int level)
{
	struct value *list;

	if (denial_list(result) == NULL)
		return;
	list = list_of(result);
	for (size_t i = 0; i < value_count(list); i++) {
		/* A worker that was taken over may send any values. */
		if (value_kind(value_item(list, i)) == VALUE_OBJECT)
			value_set_integer(value_item(list, i), "level", level);
	}
}

/* Finds refused paths and hosts in the messages of programs. */

enum {
	LINES_MAX = 400, /* a program with more lines has named the cause in these */
	LINE_MAX_BYTES = 4096,
};

static struct value *claim_new(struct tool_result *result)
{
	struct value *details = tool_details(result);
	struct value *list = value_member(details, CLAIMS_KEY);
	struct value *claim;

	if (!list) {
		value_set(details, CLAIMS_KEY, value_new_array());
		list = value_member(details, CLAIMS_KEY);
	}
	if (value_count(list) >= CLAIMS_MAX)
		return NULL;
	claim = value_new_object();
	value_append(list, claim);
	return claim;
}

static void add_path(struct tool_result *result, const char *path, bool writes, bool exact)
{
	struct value *claim = claim_new(result);

	if (!claim)
		return;
	value_set_text(claim, "path", path);
	value_set_boolean(claim, "writes", writes);
	value_set_boolean(claim, "exact", exact);
}

void denial_claims_add_unwritable(const char *path, struct tool_result *result)
{
	add_path(result, path, true, true);
}

/* Find the last text of LINE between OPEN and CLOSE. */
static bool last_quoted(struct str line, const char *open, const char *close,
			struct str *found)
{
	struct str opening = str_of(open), closing = str_of(close);
	bool any = false;

	for (size_t at = 0;;) {
		size_t from = str_find(line, opening, at);
		size_t to;

		if (from == (size_t)-1)
			return any;
		from += opening.size;
		to = str_find(line, closing, from);
		if (to == (size_t)-1)
			return any;
		*found = str_part(line, from, to - from);
		any = true;
		at = to + closing.size;
	}
}

/*
 * The path in LINE: the text in quotes, else the text between the last two colons
 * before MESSAGE.
 */
static struct str path_in(struct str line, size_t message)
{
	static const char *const quotes[][2] = {{"\xe2\x80\x98", "\xe2\x80\x99"},
						{"'", "'"},
						{"`", "'"},
						{"\"", "\""}};
	struct str found = str_part(line, 0, message);
	size_t from = 0;

	for (size_t i = 0; i < sizeof(quotes) / sizeof(quotes[0]); i++) {
		struct str quoted;

		if (last_quoted(line, quotes[i][0], quotes[i][1], &quoted))
			return quoted;
	}
	found = str_trim(found);
	if (str_ends(found, STR(":")))
		found.size--;
	for (size_t at; (at = str_find(found, STR(": "), from)) != (size_t)-1;)
		from = at + 2;
	found = str_trim(str_part(found, from, found.size));
	/* In "cannot open /x for writing", take the word that looks like a path. */
	for (struct str rest = found, word; str_next_word(&rest, &word);) {
		if (word.size < found.size && word.data[0] == '/')
			return word;
	}
	return found;
}

/* Try open(2): below L3 Landlock refuses it, but does not judge access(2). */
static bool opens(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd >= 0;
}

/*
 * Can PATH, or the folder that would contain it, be read? Then the refused action was a
 * write.
 */
static bool can_be_read(const char *path)
{
	char above[PATH_MAX];
	char *slash;

	if (opens(path))
		return true;
	if (access(path, F_OK) == 0 || strlen(path) >= sizeof(above))
		return false;
	memcpy(above, path, strlen(path) + 1);
	slash = strrchr(above, '/');
	if (!slash || slash == above)
		return true; /* the root of the view can always be read */
	*slash = '\0';
	return opens(above);
}

enum saying { SAYS_MISSING = 1, SAYS_CLOSED, SAYS_READ_ONLY };

static void gather_path(struct str line, size_t message, enum saying saying,
			const char *folder, struct tool_result *result)
{
	struct str path = path_in(line, message);
	char text[PATH_MAX];
	struct buf absolute;

	if (path.size == 0 || path.size >= sizeof(text) ||
	    memchr(path.data, '\0', path.size))
		return;
	memcpy(text, path.data, path.size);
	text[path.size] = '\0';
	buf_init(&absolute, PATH_MAX - 1);
	if (path_normal(folder, text, &absolute) &&
	    denial_system_folder_around(absolute.data, FOLDER_KERNEL) == NULL)
		add_path(result, absolute.data,
			 saying == SAYS_READ_ONLY ||
				 (saying == SAYS_CLOSED && can_be_read(absolute.data)),
			 false);
	buf_fini(&absolute);
}

static bool is_host_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '.' || c == '-';
}

static size_t host_size(struct str text)
{
	size_t size = 0;

	while (size < text.size && is_host_char(text.data[size]))
		size++;
	return size;
}

static bool is_loopback(struct str host)
{
	return str_is(host, "localhost") || str_starts(host, STR("127."));
}

/* Words before the name of a host that was not found or reached. */
static const char *const before_host[] = {
	"resolve host: ",
	"resolve hostname ",
	"resolve host address ",
	"resolve host ",
	"resolve '",
	"resolving '",
	"EAI_AGAIN ",
	"ENOTFOUND ",
	"Failed to resolve '",
	"dial tcp: lookup ",
	"Failed to connect to ",
	"connect to host ",
	"Unknown host ",
	"Unknown host '",
	"TCP connection to ",
	"UnknownHostException: ",
};

/*
 * Messages that name no host. pip, told to try only once, prints just the last of them.
 */
static const char *const without_host[] = {
	"Network is unreachable",          "name resolution",
	"Name or service not known",       "nodename nor servname provided",
	"socket: operation not permitted", "(from versions: none)",
};

static void add_host(struct str host, struct str behind, struct tool_result *result)
{
	const struct str mark = STR(" port ");
	struct value *claim = claim_new(result);
	size_t size = 0;
	uint16_t port;

	if (!claim)
		return;
	value_set_str(claim, "host", host);
	if (!str_starts(behind, mark))
		return;
	behind = str_part(behind, mark.size, behind.size);
	while (size < behind.size && behind.data[size] >= '0' && behind.data[size] <= '9')
		size++;
	if (network_parse_port(str_part(behind, 0, size), &port))
		value_set_integer(claim, "port", port);
}

static bool gather_named(struct str line, const char *before, struct tool_result *result)
{
	const struct str needle = str_of(before);
	const size_t at = str_find(line, needle, 0);
	struct str rest, host;

	if (at == (size_t)-1)
		return false;
	rest = str_part(line, at + needle.size, line.size);
	if (str_starts(rest, STR("\xe2\x80\x98")))
		rest = str_part(rest, 3, rest.size);
	host = str_part(rest, 0, host_size(rest));
	/* A full stop at the end belongs to the sentence, not to the host. */
	if (str_ends(host, STR(".")))
		host.size--;
	/* The cell has a loopback, so this only means that no program listened there. */
	if (host.size == 0 || host.size > NETWORK_NAME_MAX || is_loopback(host))
		return false;
	add_host(host, str_part(rest, host.size, rest.size), result);
	return true;
}

/*
 * Reads a line such as "a.example: Temporary failure in name resolution", as Gradle
 * prints it.
 */
static bool gather_ahead(struct str line, struct tool_result *result)
{
	static const char *const behind[] = {": Temporary failure in name resolution",
					     ": Name or service not known"};

	for (size_t i = 0; i < sizeof(behind) / sizeof(behind[0]); i++) {
		const size_t end = str_find(line, str_of(behind[i]), 0);
		size_t from = end;
		struct str host;

		if (end == (size_t)-1)
			continue;
		while (from > 0 && is_host_char(line.data[from - 1]))
			from--;
		host = str_part(line, from, end - from);
		if (host.size == 0 || host.size > NETWORK_NAME_MAX ||
		    memchr(host.data, '.', host.size) == NULL || is_loopback(host))
			return false;
		add_host(host, STR(""), result);
		return true;
	}
	return false;
}

static bool gather_host(struct str line, struct tool_result *result)
{
	for (size_t i = 0; i < sizeof(before_host) / sizeof(before_host[0]); i++) {
		if (gather_named(line, before_host[i], result))
			return true;
	}
	if (gather_ahead(line, result))
		return true;
	for (size_t i = 0; i < sizeof(without_host) / sizeof(without_host[0]); i++) {
		if (str_find(line, str_of(without_host[i]), 0) == (size_t)-1)
			continue;
		add_host(STR(""), STR(""), result);
		return true;
	}
	return false;
}

static void gather_line(struct str line, const char *folder, struct tool_result *result)
{
	static const struct {
		const char *text;
		enum saying saying;
	} messages[] = {
		{"No such file or directory", SAYS_MISSING},
		{"Permission denied", SAYS_CLOSED},
		{"Read-only file system", SAYS_READ_ONLY},
	};

	if (gather_host(line, result))
		return;
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		size_t at = str_find(line, str_of(messages[i].text), 0);

		if (at != (size_t)-1) {
			gather_path(line, at, messages[i].saying, folder, result);
			return;
		}
	}
}

void denial_claims_gather(struct str messages, const char *folder, struct tool_result *result)
{
	struct str line;

	for (int i = 0; i < LINES_MAX && str_next_line(&messages, &line); i++)
		gather_line(str_part(line, 0, LINE_MAX_BYTES), folder, result);
}

/* Is PATH a program that the view hides? Its place holds an empty file. */
static bool is_hidden_program(const char *path)
{
	struct stat st;

	return path[0] == '/' && stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size == 0 && access(path, X_OK) < 0;
}

void denial_claims_gather_hidden(struct str messages, struct tool_result *result)
{
	const struct str says = STR("Permission denied");
	struct str line;

	for (int i = 0; i < LINES_MAX && str_next_line(&messages, &line); i++) {
		const struct str head = str_part(line, 0, LINE_MAX_BYTES);
		const size_t at = str_find(head, says, 0);
		auto_free char *path =
			at != (size_t)-1 ? memory_copy_str(path_in(head, at)) : NULL;

		if (path != NULL && is_hidden_program(path))
			add_path(result, path, false, false);
	}
}

void denial_claims_gather_hosts(struct str messages, struct tool_result *result)
{
	struct str line;

	for (int i = 0; i < LINES_MAX && str_next_line(&messages, &line); i++)
		(void)gather_host(str_part(line, 0, LINE_MAX_BYTES), result);
}

/*
 * Has LINE an error that a program gets when it changes or moves a mount point of the
 * view?
 */
static bool says_held(struct str line)
{
	static const struct str texts[] = {
		{"Read-only file system", 21},
		{"Device or resource busy", 23},
		{"Invalid cross-device link", 25},
		{"EROFS", 5},
		{"EBUSY", 5},
		{"EXDEV", 5},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (str_find(line, texts[i], 0) != (size_t)-1)
			return true;
	}
	return false;
}

/* Is the path NAME in LINE, by itself or as the end of a longer path? */
static bool names_path(struct str line, struct str name)
{
	for (size_t at = 0; (at = str_find(line, name, at)) != (size_t)-1; at++) {
		const char before = at > 0 ? line.data[at - 1] : ' ';
		const size_t end = at + name.size;
		const char after = end < line.size ? line.data[end] : ' ';

		if (strchr(" /'`\":=\x99", before) != NULL &&
		    strchr(" /'\":,;\xe2", after) != NULL)
			return true;
	}
	return false;
}

static void add_protected(const struct autoexec *row, struct tool_result *result)
{
	struct buf remedy;

	buf_init(&remedy, LINE_MAX_BYTES);
	(void)buf_addf(
		&remedy,
		"it is read-only in every cell, since %s runs what it says outside, without a "
		"question; a person changes it outside (by git checkout, too); " AUTOEXEC_REMEDY,
		row->reader);
	denial_add(result, &(struct denial){.kind = DENIAL_FS,
					    .target = row->name,
					    .rule = "protected",
					    .remedy = remedy.data,
					    .guessed = true});
	buf_fini(&remedy);
}

/*
 * The protected row that LINE names. When LINE names only the folder of several rows,
 * the first of these.
 */
static const struct autoexec *protected_in(struct str line)
{
	const struct autoexec *found = NULL;

	for (const struct autoexec *row = autoexec_names; row->name != NULL; row++) {
		const struct str name = str_of(row->name);

		if (row->care != AUTOEXEC_PROTECTED)
			continue;
		if (names_path(line, name))
			return row;
		if (found == NULL && strchr(row->name, '/') != NULL &&
		    names_path(line, str_part(name, 0, strcspn(row->name, "/"))))
			found = row;
	}
	return found;
}

/* Has TEXT only printable characters? Otherwise a sentence cannot name the path. */
static bool is_printable(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	}
	return true;
}

/* Is PART the last part of one of git's own names? A `.git` may be a file that the view holds. */
static bool is_git_name(struct str part)
{
	for (size_t i = 0; i < AUTOEXEC_GIT_COUNT; i++) {
		if (str_is(part, path_base_name(autoexec_git_names[i])))
			return true;
	}
	return str_is(part, ".git");
}

/* Is PATH one of git's own files that the view holds, or does it lie in the hooks? */
static bool is_of_git(struct str path)
{
	bool within = false;

	while (path.size > 0) {
		const size_t end = str_find(path, STR("/"), 0);
		const struct str part = str_part(path, 0, end);

		within = within || str_is(part, ".git");
		if (within && str_is(part, autoexec_git_names[AUTOEXEC_GIT_HOOKS]))
			return true;
		if (end == (size_t)-1)
			return within && is_git_name(part);
		path = str_part(path, end + 1, path.size);
	}
	return false;
}

/* Words of git in front of a path, which ends at the error behind it. */
static const struct {
	struct str words;
	const char *behind; /* what is added to the path */
} git_says[] = {
	{{"could not write config file ", 28}, ""},
	{{"could not lock config file ", 27}, ""},
	{{"failed to delete '", 18}, "/.git"}, /* of `git worktree remove` */
};

/* Append the file of git that LINE says could not be changed. False: it names none. */
static bool git_in(struct str line, struct buf *path)
{
	const size_t busy = str_find(line, STR(": Device or resource busy"), 0);
	const size_t closed = str_find(line, STR(": Read-only file system"), 0);
	struct str named = path_in(line, busy < closed ? busy : closed);

	for (size_t i = 0; i < sizeof(git_says) / sizeof(git_says[0]); i++) {
		const size_t at = str_find(line, git_says[i].words, 0);
		const size_t from = at + git_says[i].words.size;

		if (at == (size_t)-1 || busy == (size_t)-1 || from >= busy)
			continue;
		named = str_part(line, from, busy - from);
		if (str_ends(named, STR("'")))
			named.size--;
		(void)buf_addstr(path, named);
		return buf_adds(path, git_says[i].behind) && is_of_git(buf_str(path));
	}
	/* "cannot create .git/hooks/x" has no quotes. */
	for (struct str rest = named, word;
	     !is_of_git(named) && str_next_word(&rest, &word);)
		named = is_of_git(word) ? word : named;
	if (!is_of_git(named)) {
		/* A move names two. */
		const size_t quote = str_find(line, STR("'"), 0);

		named = str_part(line, quote != (size_t)-1 ? quote + 1 : line.size,
				 line.size);
		named = str_part(named, 0, str_find(named, STR("'"), 0));
	}
	return is_of_git(named) && buf_addstr(path, named);
}

static void add_git(const char *path, struct tool_result *result)
{
	denial_add(result,
		   &(struct denial){
			   .kind = DENIAL_FS,
			   .target = path,
			   .rule = "protected",
			   .remedy = str_ends(str_of(path), STR("/.git"))
					     ? "it is read-only in every cell, because git follows "
					       "it outside; a person removes its folder outside"
					     : "it is read-only in every cell, because git runs or "
					       "follows what it says outside; a person gives "
					       "the command outside",
			   .guessed = true});
}

void denial_claims_protected(struct str messages, struct tool_result *result)
{
	const struct autoexec *found[CLAIMS_MAX];
	char *of_git[CLAIMS_MAX];
	size_t count = 0;
	struct str line;

	/*
	 * Add the denials later: MESSAGES may be the result's own text, which moves
	 * when something is added.
	 */
	while (count < CLAIMS_MAX && str_next_line(&messages, &line)) {
		struct buf path;

		if (line.size > LINE_MAX_BYTES || !says_held(line))
			continue;
		found[count] = protected_in(line);
		of_git[count] = NULL;
		buf_init(&path, LINE_MAX_BYTES + sizeof("/.git"));
		/* A path with what nobody sees would change the sentence that names it. */
		if (found[count] == NULL && git_in(line, &path) &&
		    text_find_unseen(buf_str(&path)) == path.size)
			of_git[count] = memory_copy_str(buf_str(&path));
		count += found[count] != NULL || of_git[count] != NULL;
		buf_fini(&path);
	}
	for (size_t i = 0; i < count; i++) {
		if (found[i] != NULL)
			add_protected(found[i], result);
		else
			add_git(of_git[i], result);
		free(of_git[i]);
	}
}

/*
 * The session's part: judges claims. They come from a worker that may have been taken
 * over.
 */

static bool has_remedy(const struct tool_result *result, const char *remedy)
{
	const struct value *list = denial_list(result);

	for (size_t i = 0; i < value_count(list); i++) {
		const char *there = value_text(value_member(value_item(list, i), "remedy"));

		if (there && strcmp(there, remedy) == 0)
			return true;
	}
	return false;
}

/* Is PATH only the beginning of the workspace's path? It was cut off at a blank. */
static bool is_cut_off(const struct policy *policy, const char *path)
{
	const size_t size = strlen(path);

	return policy->base.path != NULL && strncmp(policy->base.path, path, size) == 0 &&
	       policy->base.path[size] == ' ';
}

/* The rule of POLICY that hides the program NAME from all commands; NULL: none. */
static const struct command_rule *rule_hiding(const struct policy *policy, const char *name)
{
	for (const struct commands *at = policy->commands; at != NULL; at = at->within) {
		for (size_t i = 0; i < at->deny.count; i++) {
			const struct command_rule *rule = &at->deny.items[i];

			if (deny_rule_whole_program(rule) &&
			    command_value_is_choice(rule->programs, str_of(name)))
				return rule;
		}
	}
	return NULL;
}

static void add_hidden(const struct policy *policy, const struct command_rule *hides,
		       const char *program, struct tool_result *result)
{
	char rule[VERDICT_RULE_MAX], remedy[REMEDY_MAX];

	if (hides->of_machine)
		(void)snprintf(rule, sizeof(rule),
			       "/etc/glovebox/policy.json, deny_commands");
	else
		(void)snprintf(rule, sizeof(rule), "agents.%.64s.commands.deny",
			       policy->name);
	(void)snprintf(remedy, sizeof(remedy),
		       "the rule \"%.64s\" denies this program to scripts as well: do without "
		       "it, or ask the user to run it",
		       hides->name);
	denial_add(result, &(struct denial){.kind = DENIAL_POLICY,
					    .target = program,
					    .rule = rule,
					    .remedy = remedy,
					    .guessed = true});
}

static void judge_path(const struct policy *policy, const struct value *claim,
		       const char *path, struct tool_result *result)
{
	bool exact = value_is_true(value_member(claim, "exact"));
	bool writes = value_is_true(value_member(claim, "writes"));
	struct verdict verdict;
	struct buf shown;

	if (!is_printable(path) || (!exact && is_cut_off(policy, path)))
		return;
	const struct command_rule *hides =
		exact ? NULL : rule_hiding(policy, path_base_name(path));
	if (hides != NULL) {
		add_hidden(policy, hides, path_base_name(path), result);
		return;
	}
	policy_judge_path(policy, path, writes, !exact, &verdict);
	if (verdict.answer == VERDICT_ALLOW)
		return;
	/*
	 * A link led a file tool to a path that the rule denies. Report it as if the
	 * call had named it.
	 */
	if (exact && result->status == RESULT_FAILED)
		result->status = RESULT_DENIED;
	/* The list already has this remedy, for another of many files. */
	if (has_remedy(result, verdict.because))
		return;
	buf_init(&shown, 4 * PATH_MAX);
	text_add_name(&shown, str_of(path));
	denial_add(result, &(struct denial){.kind = DENIAL_FS,
					    .target = shown.data,
					    .rule = verdict.rule,
					    .remedy = verdict.because,
					    .guessed = !exact});
	buf_fini(&shown);
}

/*
 * Add a denial for HOST (as network_parse_host accepts it, or "") and the PORT of the
 * message, or 0.
 */
static void judge_host(const struct policy *policy, const char *host, int64_t port,
		       struct tool_result *result)
{
	char rule[VERDICT_RULE_MAX], remedy[NETWORK_REMEDY_MAX], entry[NETWORK_TEXT_MAX];
	struct network_host read;

	(void)snprintf(rule, sizeof(rule), "agents.%.64s.network", policy->name);
	if (*host && network_parse_host(str_of(host), &read, NULL))
		(void)network_print_remedy(network_print_entry(&read,
							       port > 0 && port <= UINT16_MAX
								       ? (uint16_t)port
								       : NETWORK_PORT_TLS,
							       entry),
					   remedy);
	else
		(void)snprintf(remedy, sizeof(remedy),
			       "add the host that it wanted" NETWORK_REMEDY_KEY
			       "--allow-host HOST");
	denial_add(result, &(struct denial){.kind = DENIAL_NET,
					    .target = *host ? host : "the network",
					    .rule = rule,
					    .remedy = remedy,
					    .guessed = true});
}

/*
 * Do not advise to list the host: in a cell without a network, the configuration would
 * be refused.
 */
static void judge_closed(const char *host, struct tool_result *result)
{
	denial_add(result,
		   &(struct denial){
			   .kind = DENIAL_NET,
			   .target = *host ? host : "the network",
			   .rule = "level below L3",
			   .remedy = "only a cell of level L3 has a network: `glovebox "
				     "doctor` names what this machine lacks for it",
			   .guessed = true,
		   });
}

/* Judge the path SAID of CLAIM: persons read where it is on the host. */
static void judge_said(const struct policy *policy, const struct value *claim,
		       const char *said, struct tool_result *result)
{
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (said[0] == '/' && policy_normal(policy, "/", said, &path) &&
	    policy->at != NULL && path_within(said, policy->at))
		judge_path(policy, claim, path.data, result);
	else
		judge_path(policy, claim, said, result);
	buf_fini(&path);
}

static bool is_host(const char *host)
{
	struct network_host read;

	return network_parse_host(str_of(host), &read, NULL);
}

bool denial_has_network(const struct tool_result *result)
{
	const struct value *list = denial_list(result);

	for (size_t i = 0; i < value_count(list); i++) {
		if (denial_is(value_item(list, i), DENIAL_NET))
			return true;
	}
	return false;
}

bool denial_claims_name_host(const struct tool_result *result)
{
	const struct value *list = value_member(result->details, CLAIMS_KEY);

	for (size_t i = 0; i < value_count(list) && i < CLAIMS_MAX; i++) {
		if (value_text(value_member(value_item(list, i), "host")))
			return true;
	}
	return false;
}

void denial_claims_judge(const struct policy *policy, enum claims_hosts hosts,
			 struct tool_result *result)
{
	auto_value struct value *list = NULL;
	bool any_host = false, network_told;

	if (!value_member(result->details, CLAIMS_KEY))
		return;
	list = value_ref(value_member(result->details, CLAIMS_KEY));
	value_remove(result->details, CLAIMS_KEY);
	network_told = denial_has_network(result) || hosts == CLAIMS_HOSTS_WRONG;
	for (size_t i = 0; i < value_count(list) && i < CLAIMS_MAX; i++) {
		const struct value *claim = value_item(list, i);
		const char *host = value_text(value_member(claim, "host"));
		const int64_t port = value_integer(value_member(claim, "port"));

		if (value_text(value_member(claim, "path")))
			judge_said(policy, claim, value_text(value_member(claim, "path")),
				   result);
		else if (network_told || !host)
			continue;
		else if (!*host)
			any_host = true;
		else if (is_host(host) && hosts == CLAIMS_HOSTS_CLOSED)
			judge_closed(host, result);
		else if (is_host(host))
			judge_host(policy, host, port, result);
	}
	/*
	 * A program that named its host often prints a message without the host as
	 * well.
	 */
	if (!any_host || denial_has_network(result))
		return;
	if (hosts == CLAIMS_HOSTS_CLOSED)
		judge_closed("", result);
	else
		judge_host(policy, "", 0, result);
}

/* The system's folders, each in one row with all its kinds. */

enum {
	FIXED = FOLDER_SYSTEM | FOLDER_FIXED,
	KERNEL = FOLDER_KERNEL | FOLDER_OWN,
};

/* In the order in which a view shows them. */
static const struct {
	const char *path;
	unsigned kinds;
} folders[] = {
	{"/usr", FIXED | FOLDER_NEEDED},
	{"/bin", FIXED},
	{"/sbin", FIXED},
	{"/lib", FIXED},
	{"/lib32", FIXED},
	{"/lib64", FIXED},
	{"/libx32", FIXED},
	{"/opt", FOLDER_SYSTEM},
	{"/etc", FIXED | FOLDER_NEEDED},
	{"/proc", KERNEL | FOLDER_NEEDED},
	{"/sys", KERNEL},
	{"/dev", KERNEL | FOLDER_NEEDED},
	{"/dev/shm", FOLDER_OWN},
	{"/run", FOLDER_OWN | FOLDER_RUNNING | FOLDER_CROWD},
	{"/var/run", FOLDER_RUNNING},
	{"/tmp", FOLDER_OWN | FOLDER_NEEDED | FOLDER_CROWD},
	{"/var/tmp", FOLDER_OWN},
	{"/home", FOLDER_OWN},
	{"/", FOLDER_OWN | FOLDER_CROWD},
	{"/var", FOLDER_CROWD},
	{"/boot", FOLDER_START | FOLDER_CROWD},
	{"/var/spool/cron", FOLDER_START},
};

static const size_t folder_count = sizeof(folders) / sizeof(folders[0]);

const char *denial_system_folder_next(size_t *at, unsigned kinds)
{
	while (*at < folder_count) {
		const size_t i = (*at)++;

		if ((folders[i].kinds & kinds) != 0)
			return folders[i].path;
	}
	return NULL;
}

bool denial_system_folder_is(const char *path, unsigned kinds)
{
	const char *folder;

	for (size_t at = 0; (folder = denial_system_folder_next(&at, kinds)) != NULL;) {
		if (strcmp(path, folder) == 0)
			return true;
	}
	return false;
}

const char *denial_system_folder_around(const char *path, unsigned kinds)
{
	const char *folder;

	for (size_t at = 0; (folder = denial_system_folder_next(&at, kinds)) != NULL;) {
		if (path_within(path, folder))
			break;
	}
	return folder;
}

const char *denial_system_folder_within(const char *path, unsigned kinds)
{
	const char *folder;

	for (size_t at = 0; (folder = denial_system_folder_next(&at, kinds)) != NULL;) {
		if (path_within(folder, path))
			break;
	}
	return folder;
}
