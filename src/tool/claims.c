/* claims: reading messages; see claims.h. */
#include "tool/claims.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "policy/autoexec.h"
#include "policy/network.h"
#include "tool/denial.h"
#include "tool/system_folders.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

enum {
	LINES_MAX = 400, /* a program that says more has said the cause among these */
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

void claims_add_unwritable(const char *path, struct tool_result *result)
{
	add_path(result, path, true, true);
}

/* The last text of LINE between OPEN and CLOSE. */
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

/* The text in quotes, else the text between the last two colons before MESSAGE. */
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
	/* "cannot open /x for writing": the word that looks like a path. */
	for (struct str rest = found, word; str_next_word(&rest, &word);) {
		if (word.size < found.size && word.data[0] == '/')
			return word;
	}
	return found;
}

/* Landlock, which refuses below L3, judges open(2) and not access(2). */
static bool opens(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd >= 0;
}

/* Can PATH, or what would hold it, be read? Then it was a write that was refused. */
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
	    system_folder_around(absolute.data, FOLDER_KERNEL) == NULL)
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

/* The words that stand before a host that was not found or reached. */
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

/* Words that name no host. pip, told to try once, says no more than the last of them. */
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
	/* A full stop at the end belongs to the sentence. */
	if (str_ends(host, STR(".")))
		host.size--;
	/* The cell has a loopback: nobody listened there. */
	if (host.size == 0 || host.size > NETWORK_NAME_MAX || is_loopback(host))
		return false;
	add_host(host, str_part(rest, host.size, rest.size), result);
	return true;
}

/* "a.example: Temporary failure in name resolution", as Gradle has it. */
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

void claims_gather(struct str messages, const char *folder, struct tool_result *result)
{
	struct str line;

	for (int i = 0; i < LINES_MAX && str_next_line(&messages, &line); i++)
		gather_line(str_part(line, 0, LINE_MAX_BYTES), folder, result);
}

void claims_gather_hosts(struct str messages, struct tool_result *result)
{
	struct str line;

	for (int i = 0; i < LINES_MAX && str_next_line(&messages, &line); i++)
		(void)gather_host(str_part(line, 0, LINE_MAX_BYTES), result);
}

/* Does LINE say what a program is told that changes or moves a mount point of the view? */
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

/* Does the path NAME stand in LINE, by itself or as the end of a longer one? */
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

/* The row that LINE names; where it names but the folder of some, the first of these. */
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

void claims_protected(struct str messages, struct tool_result *result)
{
	const struct autoexec *found[CLAIMS_MAX];
	size_t count = 0;
	struct str line;

	/* MESSAGES may be the result's own text, which moves when something is added to it. */
	while (count < CLAIMS_MAX && str_next_line(&messages, &line)) {
		const struct autoexec *row = line.size <= LINE_MAX_BYTES && says_held(line)
						     ? protected_in(line)
						     : NULL;

		if (row != NULL)
			found[count++] = row;
	}
	for (size_t i = 0; i < count; i++)
		add_protected(found[i], result);
}
