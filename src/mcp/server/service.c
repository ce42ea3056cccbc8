/*
 * service: the cells of `mcp --http`, their workspaces, the tokens and what these may use. A
 * cell that is to end stays in the list until its calls have been answered.
 */

#include "mcp/server/service.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "mcp/server/mcp.h"
#include "mcp/server/metrics.h"
#include "policy/config.h"
#include "policy/service/service.h"
#include "process/loop.h"
#include "session/session.h"
#include "tool/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	TICK_MS = 1000,
	SAVE_MS = 10000,  /* so much use may be forgotten by a kill */
	ENDING_MS = 3000, /* more than the grace of a command */
	MINUTE_MS = 60000,
	DAY_MS = 86400000,
	SECOND_MS = 1000,
	STATUS_BUSY = 503,
	STATUS_TOO_MANY = 429,
	RETRY_S = 1,      /* a call may have ended by then */
	RETRY_CELL_S = 5, /* cells live longer than calls */
	RETRY_SET_UP_S = 10,
	FAILED_MS = 30000, /* so long the service is not ready, unless a cell can be made */
	TOKENS_TEXT_MAX = 4 << 20,
	TOKENS_MAX = 4096,
	ENDED_MAX = 64, /* names of cells whose end is remembered for each token */
	TOKEN_HEX = 48, /* 192 bits */
	USED_MAX = 1 << 20,
	SENTENCE_MAX = 1024,
	STAMP_NS = 50000000, /* the kernel stamps files by a clock that is coarser than ours */
	REST_MS = 100, /* a file that has changed is read when it was left alone for so long */
};

#define ANYONE       "default" /* the token of a service without a file of tokens */
#define ONLY_CELL    "main"    /* the cell of a token that names none */
#define TOKEN_PREFIX "gb_"

/* The use of a token on one day. */
struct spent {
	int64_t day; /* since 1970, UTC */
	double cpu_s;
	uint64_t written, net;
};

struct mcp_token {
	struct service_token row;
	struct mcp_token *next;
	bool gone; /* not in the file any more: kept, because requests may point to it */
	bool expired; /* and that was told */
	size_t cells;
	struct spent spent;
	double cpu_s;      /* of all days */
	int64_t minute_ms; /* when the minute began */
	uint64_t calls_minute;
	struct value *ended; /* names of cells -> why they ended, until that was told */
};

struct mcp_service {
	struct mcp_service_options options;
	const struct service *settings;
	struct mcp *desk;
	struct mcp_token *tokens;
	struct mcp_token *everyone; /* of the shared cell, whose use is nobody's; or NULL */
	struct stat seen;           /* the status of the tokens file when it was read */
	struct stat resting;        /* that of the last look, … */
	int64_t rested_ms;          /* … which it has had since then */
	struct stat told;           /* the same when a fault of it was told */
	struct mcp_cell *cells, *shared;
	struct mcp_cell *closing; /* those that are in no list any more, and not over yet */
	size_t cell_count;        /* of both lists */
	struct workspaces workspaces;
	struct timer tick;
	int64_t save_ms;
	bool used_changed, draining;
	int64_t drained_ms; /* when the calls that are left are cancelled */
	int64_t failed_ms;  /* when the last cell could not be made; 0: it could */
	struct metrics metrics;
	void (*leave)(void *context, struct mcp_cell *cell);
	void (*revoke)(void *context, const struct mcp_token *token, const char *why);
	void *leave_context;
};

static void complain(const struct mcp_service *service, const char *sentence)
{
	if (service->options.complain != NULL)
		service->options.complain(service->options.host.context, sentence);
}

static int64_t today(void)
{
	return clock_wall_ms() / DAY_MS;
}

/* Tell RECORD to the counts and to the observer outside. */
static bool tell(struct mcp_service *service, const struct mcp_record *record,
		 struct err *err)
{
	const struct mcp_observer *outside = &service->options.observer;

	metrics_take(&service->metrics, record);
	return outside->tell == NULL || outside->tell(outside->context, record, err);
}

/* The token NAME from FIRST on, but none that is gone. */
static struct mcp_token *token_find(struct mcp_token *first, const char *name)
{
	while (first != NULL && (first->gone || strcmp(first->row.name, name) != 0))
		first = first->next;
	return first;
}

/* The use of all tokens. */

/*
 * Is the use of DAY that of today? A clock that was set back over midnight does not begin a day
 * twice; one that was wrong by more begins a new one.
 */
static bool is_of_today(int64_t day)
{
	return day == today() || day == today() + 1;
}

static struct spent *spent_today(struct mcp_token *token)
{
	if (!is_of_today(token->spent.day))
		token->spent = (struct spent){.day = today()};
	return &token->spent;
}

static void spend(struct mcp_service *service, struct mcp_token *token, double cpu_s,
		  uint64_t written, uint64_t net)
{
	struct mcp_token *now =
		token->gone ? token_find(service->tokens, token->row.name) : token;
	struct spent *spent;

	if (cpu_s <= 0 && written == 0 && net == 0)
		return;
	/* The last use of a token that was changed is that of its new line. */
	token = now != NULL ? now : token;
	spent = spent_today(token);
	spent->cpu_s += cpu_s;
	spent->written += written;
	spent->net += net;
	token->cpu_s += cpu_s;
	service->used_changed = true;
}

/*
 * Add what CELL has used since the last time to its token. Numbers that no group counts are
 * not there: they come with the ends of calls.
 */
static void sample(struct mcp_cell *cell)
{
	struct accounts now;
	double cpu_s = 0;
	uint64_t written = 0, net = 0;

	if (cell->mcp->session == NULL)
		return;
	session_accounts(cell->mcp->session, &now, NULL);
	if (now.cpu != ACCOUNTS_NONE && now.cpu_s > cell->cpu_s) {
		cpu_s = now.cpu_s - cell->cpu_s;
		cell->cpu_s = now.cpu_s;
	}
	if (now.io != ACCOUNTS_NONE && now.written > cell->written) {
		written = now.written - cell->written;
		cell->written = now.written;
	}
	if (now.net_in + now.net_out > cell->net) {
		net = now.net_in + now.net_out - cell->net;
		cell->net = now.net_in + now.net_out;
	}
	spend(cell->service, cell->token, cpu_s, written, net);
}

/* A call of CELL has ended with RESULT: take its estimates where nothing counts the cell. */
static void take_estimates(struct mcp_cell *cell, const struct tool_result *result)
{
	const struct accounts *used = &result->accounts;
	struct accounts counted = {0};

	if (cell->mcp->session != NULL)
		session_accounts(cell->mcp->session, &counted, NULL);
	spend(cell->service, cell->token, counted.cpu == ACCOUNTS_NONE ? used->cpu_s : 0,
	      counted.io == ACCOUNTS_NONE ? used->written : 0, 0);
}

static bool cell_tell(void *context, const struct mcp_record *record, struct err *err)
{
	struct mcp_cell *cell = context;
	struct mcp_record whole = *record;

	whole.token = cell->token->row.name;
	whole.cell = cell->name;
	if (record->what == MCP_TOLD_END)
		take_estimates(cell, record->result);
	return tell(cell->service, &whole, err);
}

static bool refuse(struct mcp_busy *busy, int status, int retry_s, const char *limit,
		   double value)
{
	busy->status = status;
	busy->retry_s = retry_s;
	busy->kind = "busy";
	busy->limit = limit;
	busy->value = value;
	busy->why.code = MCP_CODE_BUSY;
	return false;
}

/* Has TOKEN anything left of what it may use today? False: BUSY says what it has used up. */
static bool has_left(struct mcp_token *token, struct mcp_busy *busy)
{
	const struct service_quota *quota = &token->row.quota;
	const struct spent *spent = spent_today(token);
	const int64_t left_ms = (today() + 1) * DAY_MS - clock_wall_ms();
	const struct {
		const char *key;
		double used, may;
	} rows[] = {
		{"cpu_s_day", spent->cpu_s, quota->cpu_s_day},
		{"written_day", (double)spent->written, (double)quota->written_day},
		{"net_day", (double)spent->net, (double)quota->net_day},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].may <= 0 || rows[i].used < rows[i].may)
			continue;
		(void)err_set(&busy->why, MCP_CODE_BUSY,
			      "The token %s has used what it may use today (%s: %.15g); a new "
			      "day begins at midnight UTC.",
			      token->row.name, rows[i].key, rows[i].may);
		return refuse(busy, STATUS_TOO_MANY, (int)(left_ms / SECOND_MS) + 1,
			      rows[i].key, rows[i].may);
	}
	return true;
}

static bool has_day_quota(const struct mcp_token *token)
{
	return service_quota_needs_group(&token->row.quota) || token->row.quota.net_day > 0;
}

/* May TOKEN make one more call in this minute? It is counted. False: BUSY says when it may. */
static bool count_call(struct mcp_token *token, struct mcp_busy *busy)
{
	const uint64_t a_minute = token->row.quota.calls_minute;
	const int64_t now = clock_now_ms();

	if (now - token->minute_ms >= MINUTE_MS) {
		token->minute_ms = now;
		token->calls_minute = 0;
	}
	if (a_minute > 0 && token->calls_minute >= a_minute) {
		(void)err_set(&busy->why, MCP_CODE_BUSY,
			      "The token %s may make %" PRIu64
			      " calls a minute; a new cell counts as one.",
			      token->row.name, a_minute);
		return refuse(busy, STATUS_TOO_MANY,
			      (int)((token->minute_ms + MINUTE_MS - now) / SECOND_MS) + 1,
			      "calls_minute", (double)a_minute);
	}
	token->calls_minute++;
	return true;
}

/* The use of today survives a restart, in one file of this user for each tokens file. */
static void used_load(struct mcp_service *service)
{
	auto_value struct value *used = NULL;
	const struct value *tokens;
	struct buf text;

	if (service->options.used_file == NULL)
		return;
	buf_init(&text, USED_MAX);
	if (fd_read_file(service->options.used_file, USED_MAX, &text, NULL))
		(void)value_parse(buf_str(&text), 0, &used, NULL);
	buf_fini(&text);
	tokens = value_member(used, "tokens");
	const int64_t day = value_integer(value_member(used, "day"));

	if (!is_of_today(day))
		return;
	for (struct mcp_token *at = service->tokens; at != NULL; at = at->next) {
		const struct value *row = value_member(tokens, at->row.name);
		const int64_t written = value_integer(value_member(row, "written"));
		const int64_t net = value_integer(value_member(row, "net"));

		at->spent = (struct spent){
			.day = day,
			.cpu_s = value_number(value_member(row, "cpu_s")),
			.written = written > 0 ? (uint64_t)written : 0,
			.net = net > 0 ? (uint64_t)net : 0,
		};
	}
}

static void used_save(struct mcp_service *service)
{
	auto_value struct value *used = NULL;
	struct value *tokens;
	int64_t day = today();
	struct buf text;
	struct err err;

	service->save_ms = clock_now_ms() + SAVE_MS;
	if (service->options.used_file == NULL || !service->used_changed)
		return;
	service->used_changed = false;
	used = value_new_object();
	tokens = value_new_object();
	for (struct mcp_token *at = service->tokens; at != NULL; at = at->next) {
		const struct spent *spent = spent_today(at);
		struct value *row;

		if (at->gone || !has_day_quota(at))
			continue;
		day = spent->day > day ? spent->day : day;
		row = value_new_object();
		value_set_real(row, "cpu_s", spent->cpu_s);
		value_set_integer(row, "written", (int64_t)spent->written);
		value_set_integer(row, "net", (int64_t)spent->net);
		value_set(tokens, at->row.name, row);
	}
	value_set_integer(used, "day", day);
	value_set(used, "tokens", tokens);
	buf_init(&text, USED_MAX);
	(void)value_print(used, 0, &text);
	if (!fd_replace_file(service->options.used_file, buf_str(&text), &err))
		complain(service, err.text);
	buf_fini(&text);
}

/* Tokens. */

static void token_free(struct mcp_token *token)
{
	service_token_fini(&token->row);
	value_free(token->ended);
	free(token);
}

/* Can TOKEN be kept to what its line says? */
static bool token_fits(const struct mcp_service *service,
		       const struct service_token *token, struct err *err)
{
	const bool day = service_quota_needs_group(&token->quota);
	const struct mcp_service_host *host = &service->options.host;

	if (service->settings->cells == SERVICE_SHARED &&
	    (day || token->quota.net_day > 0 || token->agent != NULL ||
	     token->policy != NULL))
		return err_set(err, EINVAL,
			       "rights and the use of a day are those of a cell, and "
			       "`service.cell` is `shared`: take `token` or `session`");
	if (day && !service->options.estimates && service->options.counts != NULL &&
	    !service->options.counts(&token->quota, err))
		return err_while(err, "a quota is counted by a control group (--allow-estimates: "
				      "by estimates, which a program can escape)");
	return host->check == NULL || host->check(host->context, token, err);
}

/* Read LINE, the one with NUMBER, into a new token before *FIRST. */
static bool token_read(const struct mcp_service *service, struct str line, size_t number,
		       struct mcp_token **first, struct err *err)
{
	const char *path = service->settings->tokens;
	auto_value struct value *value = NULL;
	struct mcp_token *token;

	if (!value_parse(line, 0, &value, err) ||
	    !config_check_rows(service_token_rows, value, err))
		return err_while(err, "%s: line %zu", path, number);
	token = memory_alloc(sizeof(*token));
	service_token_read(value, &token->row);
	token->next = *first;
	*first = token;
	for (const struct mcp_token *at = token->next; at != NULL; at = at->next) {
		if (strcmp(at->row.name, token->row.name) == 0 ||
		    strcmp(at->row.sha256, token->row.sha256) == 0)
			return err_set(err, EINVAL,
				       "%s: line %zu: the name or the hash stands in a line "
				       "above",
				       path, number);
	}
	return token_fits(service, &token->row, err) ||
	       err_while(err, "%s: line %zu", path, number);
}

/* A line without a token: empty, or a comment. */
static bool is_idle_line(struct str line)
{
	return line.size == 0 || line.data[0] == '#' || str_starts(line, STR("//"));
}

static bool tokens_read(const struct mcp_service *service, struct mcp_token **tokens,
			struct err *err)
{
	const char *path = service->settings->tokens;
	size_t number = 0, count = 0;
	struct str rest, line;
	struct buf text;
	bool ok;

	buf_init(&text, TOKENS_TEXT_MAX);
	ok = service->options.host.read(service->options.host.context, path, &text, err);
	rest = buf_str(&text);
	while (ok && str_next_line(&rest, &line)) {
		number++;
		if (is_idle_line(str_trim(line)))
			continue;
		ok = (++count <= TOKENS_MAX ||
		      err_set(err, E2BIG, "%s: at most %d tokens are taken", path,
			      TOKENS_MAX)) &&
		     token_read(service, str_trim(line), number, tokens, err);
	}
	buf_fini(&text);
	return ok;
}

static void tell_token(struct mcp_service *service, const struct mcp_token *token,
		       const char *what)
{
	(void)tell(service,
		   &(struct mcp_record){.what = MCP_TOLD_TOKEN,
					.token = token->row.name,
					.text = what},
		   NULL);
}

/* TOKEN is no good any more: the transport tells WHY, and ends what it has open. */
static void token_revoke(struct mcp_service *service, const struct mcp_token *token,
			 const char *how)
{
	struct buf why;

	if (service->revoke == NULL)
		return;
	buf_init(&why, SENTENCE_MAX);
	(void)buf_addf(&why, "The token %s %s.", token->row.name, how);
	service->revoke(service->leave_context, token, why.data);
	buf_fini(&why);
}

static void end_cells_of(struct mcp_service *service, const struct mcp_token *token,
			 const char *why)
{
	for (struct mcp_cell *at = service->cells; at != NULL; at = at->next) {
		if (at->token == token)
			mcp_cell_end(at, why);
	}
}

/* The last token NAME that is gone; NULL: there was none. */
static const struct mcp_token *token_gone(const struct mcp_token *first, const char *name)
{
	while (first != NULL && (!first->gone || strcmp(first->row.name, name) != 0))
		first = first->next;
	return first;
}

/* NEW has used what OLD (or NULL), which had its name, has used. */
static void take_over(struct mcp_token *new, const struct mcp_token *old)
{
	if (old == NULL)
		return;
	new->spent = old->spent;
	new->minute_ms = old->minute_ms;
	new->calls_minute = old->calls_minute;
}

/*
 * NEW has been read in the place of OLD (or NULL), which has the same name. The cells of a
 * token that is another one now, or has other rights, end.
 */
static void token_replace(struct mcp_service *service, struct mcp_token *old,
			  struct mcp_token *new)
{
	const bool same = old != NULL && strcmp(old->row.sha256, new->row.sha256) == 0 &&
			  service_token_has_rights(&old->row, &new->row);

	if (same) {
		struct service_token row = old->row;

		old->row = new->row;
		old->expired = false;
		new->row = row;
		token_free(new);
		return;
	}
	if (old == NULL)
		take_over(new, token_gone(service->tokens, new->row.name));
	if (old != NULL) {
		take_over(new, old);
		new->cpu_s = old->cpu_s;
		old->cpu_s = 0;
		old->gone = true;
		token_revoke(service, old, "was changed");
		end_cells_of(service, old, "its token was changed");
	}
	new->next = service->tokens;
	service->tokens = new;
	tell_token(service, new, old != NULL ? "changed" : "added");
}

/* Take the tokens READ in the place of those that there are. */
static void tokens_replace(struct mcp_service *service, struct mcp_token *read)
{
	struct mcp_token *next;

	for (struct mcp_token *at = service->tokens; at != NULL; at = at->next) {
		if (at->gone || token_find(read, at->row.name) != NULL)
			continue;
		at->gone = true;
		token_revoke(service, at, "was removed");
		end_cells_of(service, at, "its token was removed");
		tell_token(service, at, "removed");
	}
	for (; read != NULL; read = next) {
		next = read->next;
		token_replace(service, token_find(service->tokens, read->row.name), read);
	}
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Is a token there? */
static bool has_tokens(const struct mcp_service *service)
{
	const struct mcp_token *at = service->tokens;

	while (at != NULL && at->gone)
		at = at->next;
	return at != NULL;
}

/*
 * Read the tokens file. SEEN, its status before (or NULL): a file that changes meanwhile is not
 * taken, and *CHANGED says so. A file that has lost all its tokens is rather a fault than meant.
 */
static bool tokens_load(struct mcp_service *service, const struct stat *seen,
			bool *changed, struct err *err)
{
	const char *path = service->settings->tokens;
	struct mcp_token *read = NULL;
	struct stat now = {0};
	bool ok = tokens_read(service, &read, err);

	if (seen != NULL) {
		if (stat(path, &now) != 0)
			now = (struct stat){0};
		*changed = !same_file(seen, &now);
	}
	if (ok && read == NULL && has_tokens(service))
		ok = err_set(err, EINVAL,
			     "%s: it has no token any more; the last one ends by its "
			     "`expires`, or with the service",
			     path);
	if (ok && (seen == NULL || !*changed)) {
		tokens_replace(service, read);
		return true;
	}
	for (struct mcp_token *next; read != NULL; read = next) {
		next = read->next;
		token_free(read);
	}
	return false;
}

/*
 * Has the tokens file, whose status is NOW, been left alone for a moment? One that is written anew
 * in its place is empty first, and then has some of its lines.
 */
static bool file_rests(struct mcp_service *service, const struct stat *now)
{
	const int64_t at = clock_now_ms();

	if (!same_file(now, &service->resting)) {
		service->resting = *now;
		service->rested_ms = at;
	}
	if (at - service->rested_ms >= REST_MS)
		return true;
	if (service->rested_ms + REST_MS < service->tick.due_ms)
		service->tick.due_ms = service->rested_ms + REST_MS;
	return false;
}

/*
 * Read the file again when it has changed. A fault is told once for each change. A change may
 * follow another one so closely that the file looks the same: look again until the last one is
 * old enough.
 */
static void tokens_look(struct mcp_service *service)
{
	struct stat now = {0};
	int64_t age_ns;
	struct err err;
	bool told, changed = false;

	if (service->settings->tokens == NULL)
		return;
	if (stat(service->settings->tokens, &now) != 0)
		now = (struct stat){0};
	if (same_file(&now, &service->seen) || !file_rests(service, &now))
		return;
	told = same_file(&now, &service->told);
	service->seen = now;
	age_ns = clock_wall_ns() - clock_ns(&now.st_ctim);
	/* A stamp of the future is one from before the clock was set back. */
	if (age_ns >= 0 && age_ns < STAMP_NS)
		service->seen = (struct stat){.st_size = -1};
	if (tokens_load(service, &now, &changed, &err) || told)
		return;
	if (changed) {
		service->seen = (struct stat){.st_size = -1};
		return;
	}
	service->told = now;
	(void)err_while(&err, "the tokens stay as they were");
	complain(service, err.text);
}

/*
 * TOKEN has not expired now. It may have expired before the clock was set back: the next time is
 * told again.
 */
static void token_note_good(struct mcp_token *token)
{
	token->expired = false;
}

bool mcp_service_has_tokens(const struct mcp_service *service)
{
	return service->settings->tokens != NULL;
}

static bool same_hash(const char *a, const char *b)
{
	unsigned differs = 0;

	for (size_t i = 0; i < HASH_HEX; i++)
		differs |= (unsigned char)a[i] ^ (unsigned char)b[i];
	return differs == 0;
}

struct mcp_token *mcp_service_token(struct mcp_service *service, struct str bearer,
				    struct err *err)
{
	struct mcp_token *found = NULL, *good = NULL;
	char hash[HASH_HEX + 1];

	if (service->settings->tokens == NULL)
		return service->tokens;
	tokens_look(service);
	hash_text(bearer, hash);
	for (struct mcp_token *at = service->tokens; at != NULL; at = at->next) {
		if (!at->gone && same_hash(at->row.sha256, hash))
			found = at;
	}
	if (bearer.size == 0)
		(void)err_set(err, EACCES, "A bearer token is needed.");
	else if (found == NULL)
		(void)err_set(err, EACCES,
			      "This token is not known here; ask the person who runs the "
			      "service for one.");
	else if (found->row.expires_ms <= clock_wall_ms())
		(void)err_set(err, EACCES,
			      "The token %s has expired (%s); ask the person who runs the "
			      "service for another one.",
			      found->row.name, found->row.expires);
	else
		good = found;
	if (good != NULL)
		token_note_good(good);
	return good;
}

bool mcp_service_new_token(const char *path, struct str text, const char *name,
			   struct buf *token, struct err *err)
{
	char hex[TOKEN_HEX + 1] = "", hash[HASH_HEX + 1];
	struct str rest = text, line;
	struct buf row;
	int fd;
	bool ok = true;

	if (!service_is_name(str_of(name)))
		return err_set(err, EINVAL,
			       "--new-token: a name has 1 to %d letters, digits, \"-\" and \"_\"",
			       SERVICE_NAME_MAX);
	while (str_next_line(&rest, &line)) {
		auto_value struct value *value = NULL;

		if (value_parse(str_trim(line), 0, &value, NULL) &&
		    str_is(value_str(value_member(value, "name")), name))
			return err_set(err, EEXIST,
				       "--new-token %s: %s has a token of this name; remove its "
				       "line first",
				       name, path);
	}
	if (!text_random_hex(hex, TOKEN_HEX))
		abort();
	(void)buf_addf(token, TOKEN_PREFIX "%s", hex);
	hash_text(buf_str(token), hash);
	buf_init(&row, SENTENCE_MAX);
	if (text.size > 0 && text.data[text.size - 1] != '\n')
		(void)buf_addc(&row, '\n');
	(void)buf_addf(&row, "{\"name\": \"%s\", \"sha256\": \"%s\"}\n", name, hash);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		ok = err_set(err, errno, "%s: %s", path, strerror(errno));
	ok = ok && fd_write_all(fd, row.data, row.size, err);
	if (ok && fsync(fd) != 0)
		ok = err_set(err, errno, "%s: %s", path, strerror(errno));
	fd_close(&fd);
	buf_fini(&row);
	return ok;
}

/* Cells. */

static struct mcp_cell *cell_find(struct mcp_service *service,
				  const struct mcp_token *token, const char *name)
{
	struct mcp_cell *at = service->cells;

	while (at != NULL && (at->life != MCP_CELL_OPEN || at->token != token ||
			      strcmp(at->name, name) != 0))
		at = at->next;
	return at;
}

/* Is the former cell NAME of TOKEN over? False: BUSY says that it ends. */
static bool former_is_over(const struct mcp_service *service, const struct mcp_token *token,
			   const char *name, struct mcp_busy *busy)
{
	const struct mcp_cell *const lists[] = {service->cells, service->closing};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		for (const struct mcp_cell *at = lists[i]; at != NULL; at = at->next) {
			/* A token that was changed has its name, and so its folders. */
			if (at->life == MCP_CELL_OPEN || strcmp(at->name, name) != 0 ||
			    strcmp(at->token->row.name, token->row.name) != 0)
				continue;
			(void)err_set(&busy->why, MCP_CODE_BUSY,
				      "The cell %s is ending, because %s; ask again in a second, "
				      "and a new one begins.",
				      name, at->why);
			(void)refuse(busy, STATUS_BUSY, RETRY_S, NULL, 0);
			busy->kind = "ending";
			return false;
		}
	}
	return true;
}

/* Is there room for one more cell of TOKEN? */
static bool has_room(const struct mcp_service *service, const struct mcp_token *token,
		     struct mcp_busy *busy)
{
	const struct service *settings = service->settings;
	const uint64_t quota = token->row.quota.cells;
	const bool by_quota = quota > 0 && quota < settings->max_cells_per_token;
	const uint64_t most = by_quota ? quota : settings->max_cells_per_token;

	if (service->draining) {
		(void)err_set(&busy->why, MCP_CODE_BUSY,
			      "The server is ending and makes no more cells.");
		return refuse(busy, STATUS_BUSY, RETRY_S, "drain_s", settings->drain_s);
	}
	if (token->cells >= most) {
		(void)err_set(&busy->why, MCP_CODE_BUSY,
			      "The token %s has as many cells as it may have (%" PRIu64
			      "): end a session, or wait until one ends.",
			      token->row.name, most);
		return refuse(busy, STATUS_TOO_MANY, RETRY_CELL_S,
			      by_quota ? "cells" : "max_cells_per_token", (double)most);
	}
	if (service->cell_count >= settings->max_cells) {
		(void)err_set(&busy->why, MCP_CODE_BUSY,
			      "There are as many cells as there may be (%" PRIu64
			      "): wait until one ends.",
			      settings->max_cells);
		return refuse(busy, STATUS_BUSY, RETRY_CELL_S, "max_cells",
			      (double)settings->max_cells);
	}
	return true;
}

static void mcp_cell_free(struct mcp_cell *cell)
{
	free(cell->name);
	free(cell->why);
	free(cell);
}

static struct service_names names_of(const struct mcp_cell *cell)
{
	return (struct service_names){.token = cell->token->row.name,
				      .cell = cell->name,
				      .id = cell->id};
}

/* Does another cell work in the folder of CELL? */
static bool workspace_is_shared(const struct mcp_cell *cell)
{
	const struct mcp_cell *at = cell->service->cells;

	if (cell->place.folder == NULL)
		return false;
	while (at != NULL && (at == cell || at->place.folder == NULL ||
			      strcmp(at->place.folder, cell->place.folder) != 0))
		at = at->next;
	return at != NULL;
}

/* Make the server of CELL, and what it needs before. */
static bool mcp_cell_open(struct mcp_cell *cell, const char *address, struct err *err)
{
	struct mcp_service *service = cell->service;
	const struct mcp_service_host *host = &service->options.host;
	struct mcp_wish wish = {
		.token = cell->token->row.name,
		.cell = cell->name,
		.id = cell->id,
		.client = address,
		.agent = cell->token->row.agent,
		.policy = cell->token->row.policy,
	};

	if (!workspaces_make(&service->workspaces, &cell->place, names_of(cell), err)) {
		complain(service, err->text);
		return err_set(err, err->code,
			       "The workspace of the cell could not be made (%s).",
			       strerror(err->code));
	}
	wish.workspace = cell->place.folder;
	wish.state = cell->place.state;
	struct mcp_record record = {.what = MCP_TOLD_OPEN,
				    .token = wish.token,
				    .cell = wish.cell,
				    .text = address};

	if (!tell(service, &record, err))
		return false;
	if (host->open(host->context, &wish, (struct mcp_observer){cell_tell, cell},
		       &cell->mcp, &cell->kept, err))
		return true;
	record.what = MCP_TOLD_CLOSE;
	record.text = "it could not be made";
	(void)tell(service, &record, NULL);
	return false;
}

/* The last cell of this name has ended: the next call is told so, once. */
static void tell_of_former(struct mcp_cell *cell)
{
	struct mcp_token *token = cell->token;
	const char *why = value_text(value_member(token->ended, cell->name));
	struct buf text;

	if (why == NULL)
		return;
	buf_init(&text, SENTENCE_MAX);
	(void)buf_addf(&text,
		       "[glovebox: the cell %s has ended, because %s. This call ran in a new one: "
		       "jobs, and what was in /tmp, are gone.]",
		       cell->name, why);
	mcp_set_notice(cell->mcp, text.data);
	buf_fini(&text);
	value_remove(token->ended, cell->name);
}

/* A new cell; NAME NULL: of one session, which alone has its id. */
static struct mcp_cell *mcp_cell_new(struct mcp_service *service, struct mcp_token *token,
				     const char *name, enum mcp_comes comes,
				     const char *address, struct mcp_busy *busy)
{
	struct mcp_cell *cell;

	if ((name != NULL && !former_is_over(service, token, name, busy)) ||
	    !has_room(service, token, busy) || !has_left(token, busy) ||
	    (comes != MCP_IS_COUNTED && !count_call(token, busy)))
		return NULL;
	cell = memory_alloc(sizeof(*cell));
	cell->service = service;
	cell->token = token;
	cell->of_a_session = name == NULL;
	if (!text_random_hex(cell->id, WORKSPACES_ID))
		abort();
	cell->name = memory_copy(name != NULL ? name : cell->id);
	cell->opened_ms = cell->used_ms = clock_now_ms();
	if (!mcp_cell_open(cell, address, &busy->why)) {
		busy->status = STATUS_BUSY;
		busy->retry_s = RETRY_SET_UP_S;
		busy->kind = "set_up";
		if (busy->why.code >= 0)
			busy->why.code = MCP_CODE_INTERNAL;
		/* Rights of its own may be what is wrong. */
		if (token->row.agent == NULL && token->row.policy == NULL)
			service->failed_ms = clock_now_ms();
		workspaces_leave(&service->workspaces, &cell->place, names_of(cell),
				 WORKSPACE_FAILED, false);
		mcp_cell_free(cell);
		return NULL;
	}
	cell->next = service->cells;
	service->cells = cell;
	service->cell_count++;
	token->cells++;
	tell_of_former(cell);
	return cell;
}

struct mcp_cell *mcp_service_cell(struct mcp_service *service, struct mcp_token *token,
				  const char *name, enum mcp_comes comes,
				  const char *address, struct mcp_busy *busy)
{
	const enum service_cells cells = service->settings->cells;
	const bool begins = comes == MCP_BEGINS_SESSION;
	const bool own = begins && cells == SERVICE_PER_SESSION;
	struct mcp_cell *cell;

	*busy = (struct mcp_busy){0};
	if (cells == SERVICE_SHARED)
		return service->shared;
	if (name != NULL && !begins && cells == SERVICE_PER_SESSION) {
		if (!service_is_name(str_of(name))) {
			(void)err_set(&busy->why, MCP_CODE_INVALID,
				      "Glovebox-Cell: a name has 1 to %d letters, digits, \"-\" "
				      "and \"_\".",
				      SERVICE_NAME_MAX);
			return NULL;
		}
	} else {
		name = own ? NULL : ONLY_CELL;
	}
	cell = name != NULL ? cell_find(service, token, name) : NULL;
	if (cell == NULL)
		cell = mcp_cell_new(service, token, name, comes, address, busy);
	if (cell != NULL)
		mcp_cell_use(cell);
	return cell;
}

static size_t calls_of(const struct mcp_service *service, const struct mcp_token *token)
{
	size_t count = 0;

	for (const struct mcp_cell *at = service->cells; at != NULL; at = at->next) {
		if (at->token == token || at == service->shared)
			count += mcp_busy(at->mcp);
	}
	return count;
}

bool mcp_service_may_call(struct mcp_service *service, struct mcp_token *token,
			  struct mcp_busy *busy)
{
	const uint64_t most = service->settings->max_calls_per_token;

	*busy = (struct mcp_busy){0};
	if (!service->settings->given)
		return true;
	if (service->draining) {
		(void)err_set(&busy->why, MCP_CODE_BUSY,
			      "The server is ending and takes no more calls.");
		return refuse(busy, STATUS_BUSY, RETRY_S, "drain_s",
			      service->settings->drain_s);
	}
	if (calls_of(service, token) >= most) {
		(void)err_set(&busy->why, MCP_CODE_BUSY,
			      "As many calls of the token %s are under way as may be (%" PRIu64
			      "): wait for one to end, or cancel one.",
			      token->row.name, most);
		return refuse(busy, STATUS_TOO_MANY, RETRY_S, "max_calls_per_token",
			      (double)most);
	}
	return has_left(token, busy) && count_call(token, busy);
}

void mcp_cell_use(struct mcp_cell *cell)
{
	cell->used_ms = clock_now_ms();
}

/* Remember that CELL has ended, when a later request can name it. */
static void remember_end(struct mcp_cell *cell)
{
	struct mcp_token *token = cell->token;

	if (cell->of_a_session || token->gone)
		return;
	if (token->ended == NULL)
		token->ended = value_new_object();
	if (value_count(token->ended) >= ENDED_MAX) {
		auto_free char *first = memory_copy(value_key(value_first(token->ended)));

		value_remove(token->ended, first);
	}
	value_set_text(token->ended, cell->name, cell->why);
}

void mcp_cell_end(struct mcp_cell *cell, const char *why)
{
	struct mcp_service *service = cell->service;
	struct buf sentence;

	if (cell->life != MCP_CELL_OPEN || cell == service->shared)
		return;
	cell->life = MCP_CELL_ENDING;
	cell->why = memory_copy(why);
	cell->end_ms = clock_now_ms() + ENDING_MS;
	remember_end(cell);
	buf_init(&sentence, SENTENCE_MAX);
	(void)buf_addf(&sentence, "The cell ends, because %s.", why);
	mcp_stop_calls(cell->mcp, NULL, sentence.data);
	mcp_goodbye(cell->mcp, NULL, NULL);
	buf_fini(&sentence);
	/* The loop must turn to the settling, even if nothing else happens. */
	service->tick.due_ms = 0;
}

/* Nothing of CELL is under way, or its time is over. */
static void mcp_cell_close(struct mcp_cell *cell)
{
	struct mcp_service *service = cell->service;
	struct mcp_cell **at = &service->cells;
	const struct mcp_service_host *host = &service->options.host;
	const bool built =
		cell->mcp->session != NULL && session_is_built(cell->mcp->session);

	while (*at != cell)
		at = &(*at)->next;
	*at = cell->next;
	cell->next = service->closing;
	service->closing = cell;
	cell->life = MCP_CELL_CLOSING;
	if (service->leave != NULL)
		service->leave(service->leave_context, cell);
	sample(cell);
	mcp_free(cell->mcp);
	host->closed(host->context, cell->kept);
	workspaces_leave(&service->workspaces, &cell->place, names_of(cell),
			 built ? WORKSPACE_USED : WORKSPACE_UNUSED,
			 workspace_is_shared(cell));
	(void)tell(service,
		   &(struct mcp_record){.what = MCP_TOLD_CLOSE,
					.token = cell->token->row.name,
					.cell = cell->name,
					.text = cell->why},
		   NULL);
	/* The loop has turned: other cells may have begun to close, but none has done so. */
	for (at = &service->closing; *at != cell;)
		at = &(*at)->next;
	*at = cell->next;
	/* Its processes lived until now. */
	service->cell_count--;
	cell->token->cells--;
	mcp_cell_free(cell);
}

/* Ends of cells that nobody asks for. */

static bool is_broken(const struct mcp_cell *cell)
{
	const struct session *session = cell->mcp->session;

	return session != NULL ? session_broken(session) != NULL : cell->mcp->tried;
}

/*
 * Note, once for each cell, whether it could be made: the next client would meet the same fault. A
 * cell that breaks later has been broken by its own client.
 */
static void note_failure(struct mcp_service *service, struct mcp_cell *cell)
{
	const struct session *session = cell->mcp->session;
	/* Another fault is that of the rights of one token. */
	const bool failed =
		session != NULL ? session_broken(session) != NULL
				: cell->mcp->tried && cell->mcp->failure.code == ECHILD;
	const bool built = session != NULL && session_is_built(session);

	if (cell->noted || (!failed && !built))
		return;
	cell->noted = true;
	service->failed_ms = built ? 0 : clock_now_ms();
}

static void look_at_cell(struct mcp_service *service, struct mcp_cell *cell, int64_t now)
{
	const struct service *settings = service->settings;
	struct buf why;

	note_failure(service, cell);
	if (mcp_busy(cell->mcp) > 0)
		cell->used_ms = now;
	buf_init(&why, SENTENCE_MAX);
	if (is_broken(cell) && mcp_is_quiet(cell->mcp))
		(void)buf_adds(&why, "it could not be built, or broke");
	else if ((double)(now - cell->opened_ms) >= settings->life_s * SECOND_MS)
		(void)buf_addf(&why, "it had lived %.15g s", settings->life_s);
	else if ((double)(now - cell->used_ms) >= settings->idle_s * SECOND_MS)
		(void)buf_addf(&why, "nobody had used it for %.15g s", settings->idle_s);
	if (why.size > 0)
		mcp_cell_end(cell, why.data);
	buf_fini(&why);
}

static void look_at_token(struct mcp_service *service, struct mcp_token *token)
{
	struct mcp_busy busy = {0};
	struct buf why;

	if (token->gone)
		return;
	if (token->row.expires_ms <= clock_wall_ms()) {
		if (!token->expired) {
			tell_token(service, token, "expired");
			token_revoke(service, token, "has expired");
		}
		token->expired = true;
		end_cells_of(service, token, "its token has expired");
		return;
	}
	token_note_good(token);
	if (token->cells == 0 || !has_day_quota(token))
		return;
	for (struct mcp_cell *at = service->cells; at != NULL; at = at->next) {
		if (at->token == token)
			sample(at);
	}
	if (has_left(token, &busy))
		return;
	buf_init(&why, SENTENCE_MAX);
	(void)buf_addf(&why, "its token has used what it may use today (%s)", busy.limit);
	end_cells_of(service, token, why.data);
	buf_fini(&why);
}

static void tick_due(struct timer *timer)
{
	struct mcp_service *service = timer->context;
	const int64_t now = clock_now_ms();

	timer->due_ms = now + TICK_MS;
	tokens_look(service);
	for (struct mcp_cell *at = service->cells; at != NULL; at = at->next) {
		if (at->life == MCP_CELL_OPEN && at != service->shared)
			look_at_cell(service, at, now);
	}
	for (struct mcp_token *at = service->tokens; at != NULL; at = at->next)
		look_at_token(service, at);
	if (now >= service->save_ms)
		used_save(service);
	workspaces_settle(&service->workspaces);
}

/* The next cell that may be closed now; NULL: none. */
static struct mcp_cell *cell_to_close(const struct mcp_service *service)
{
	const int64_t now = clock_now_ms();
	struct mcp_cell *at = service->cells;

	while (at != NULL && (at->life != MCP_CELL_ENDING ||
			      (!mcp_is_quiet(at->mcp) && now < at->end_ms)))
		at = at->next;
	return at;
}

/* While the server drains: end the cells in which no call is under way, or all in the end. */
static void settle_drain(struct mcp_service *service)
{
	const bool late = clock_now_ms() >= service->drained_ms;

	for (struct mcp_cell *at = service->cells; at != NULL; at = at->next) {
		if (at->life == MCP_CELL_OPEN && (late || mcp_busy(at->mcp) == 0))
			mcp_cell_end(at, "the server ends");
	}
	if (late && service->settings->given && service->shared != NULL &&
	    service->shared->end_ms == 0) {
		service->shared->end_ms = clock_now_ms() + ENDING_MS;
		mcp_stop_calls(service->shared->mcp, NULL, "The server ends.");
	}
}

void mcp_service_settle(struct mcp_service *service)
{
	struct mcp_cell *cell;

	if (service->draining)
		settle_drain(service);
	while ((cell = cell_to_close(service)) != NULL)
		mcp_cell_close(cell);
	/* A cell that still has calls is looked at soon. */
	for (cell = service->cells; cell != NULL; cell = cell->next) {
		if (cell->life == MCP_CELL_ENDING && cell->end_ms < service->tick.due_ms)
			service->tick.due_ms = cell->end_ms;
	}
}

void mcp_service_drain(struct mcp_service *service)
{
	const int64_t now = clock_now_ms();

	if (service->draining)
		return;
	service->draining = true;
	service->drained_ms =
		service->settings->given
			? now + (int64_t)(service->settings->drain_s * SECOND_MS)
			: now;
	if (service->drained_ms < service->tick.due_ms)
		service->tick.due_ms = service->drained_ms;
}

void mcp_service_goodbye(const struct mcp_service *service)
{
	for (struct mcp_cell *at = service->cells; at != NULL; at = at->next)
		mcp_goodbye(at->mcp, NULL, NULL);
}

bool mcp_service_is_drained(const struct mcp_service *service)
{
	const struct mcp_cell *shared = service->shared;

	if (!service->draining)
		return false;
	if (shared == NULL)
		return service->cells == NULL;
	return !service->settings->given || mcp_busy(shared->mcp) == 0 ||
	       (shared->end_ms > 0 && clock_now_ms() >= shared->end_ms);
}

/* The whole. */

static void shared_open(struct mcp_service *service)
{
	struct mcp_cell *cell = memory_alloc(sizeof(*cell));

	service->everyone = memory_alloc(sizeof(*service->everyone));
	service->everyone->row.name = memory_copy(ANYONE);
	cell->service = service;
	cell->token = service->everyone;
	cell->name = memory_copy(ONLY_CELL);
	cell->mcp = service->options.shared;
	cell->mcp->options.observer = (struct mcp_observer){cell_tell, cell};
	cell->opened_ms = clock_now_ms();
	service->cells = service->shared = cell;
	service->cell_count = 1;
}

static bool load(struct mcp_service *service, struct err *err)
{
	struct mcp_token *only;

	if (service->settings->tokens != NULL) {
		if (stat(service->settings->tokens, &service->seen) != 0)
			return err_set(err, EINVAL,
				       "%s: %s; glovebox mcp --new-token NAME makes the first "
				       "token",
				       service->settings->tokens, strerror(errno));
		if (!tokens_load(service, NULL, NULL, err)) {
			err->code = EINVAL;
			return false;
		}
		used_load(service);
		service->seen.st_size = -1; /* it may have changed since */
		return true;
	}
	only = memory_alloc(sizeof(*only));
	only->row.name = memory_copy(ANYONE);
	only->row.expires_ms = INT64_MAX;
	service->tokens = only;
	return true;
}

bool mcp_service_open(const struct mcp_service_options *options,
		      struct mcp_service **opened, struct err *err)
{
	struct mcp_service *service = memory_alloc(sizeof(*service));

	service->options = *options;
	service->settings = options->settings;
	service->workspaces = (struct workspaces){.settings = options->settings,
						  .root = options->root,
						  .complain = options->complain,
						  .context = options->host.context,
						  .lock = -1};
	service->desk = mcp_new(&(struct mcp_options){.loop = options->loop,
						      .version = options->version,
						      .instructions = ""});
	service->tick = (struct timer){.due_ms = clock_now_ms() + TICK_MS,
				       .due = tick_due,
				       .context = service};
	loop_add_timer(options->loop, &service->tick);
	if (!load(service, err)) {
		mcp_service_close(service);
		return false;
	}
	if (options->shared != NULL)
		shared_open(service);
	else
		workspaces_sweep(&service->workspaces);
	*opened = service;
	return true;
}

void mcp_service_close(struct mcp_service *service)
{
	struct mcp_token *next;

	if (service == NULL)
		return;
	if (service->shared != NULL) {
		service->shared->mcp->options.observer = (struct mcp_observer){0};
		service->cells = NULL;
		mcp_cell_free(service->shared);
		service->shared = NULL;
	}
	for (struct mcp_cell *at = service->cells, *later; at != NULL; at = later) {
		later = at->next;
		mcp_cell_end(at, "the server ends");
		mcp_cell_close(at);
	}
	loop_remove_timer(&service->tick);
	used_save(service);
	workspaces_close(&service->workspaces);
	for (struct mcp_token *at = service->tokens; at != NULL; at = next) {
		next = at->next;
		token_free(at);
	}
	if (service->everyone != NULL)
		token_free(service->everyone);
	metrics_fini(&service->metrics);
	mcp_free(service->desk);
	free(service);
}

void mcp_service_on_leave(struct mcp_service *service,
			  void (*leave)(void *context, struct mcp_cell *cell),
			  void (*revoke)(void *context, const struct mcp_token *token,
					 const char *why),
			  void *context)
{
	service->leave = leave;
	service->revoke = revoke;
	service->leave_context = context;
}

struct mcp *mcp_service_desk(struct mcp_service *service)
{
	return service->desk;
}

const struct service *mcp_service_settings(const struct mcp_service *service)
{
	return service->settings;
}

/* For those who watch the service. */

bool mcp_service_is_ready(struct mcp_service *service, struct buf *out)
{
	auto_value struct value *told = value_new_object();
	const bool full = service->shared == NULL &&
			  service->cell_count >= service->settings->max_cells;
	const bool failed =
		service->failed_ms > 0 && clock_now_ms() - service->failed_ms < FAILED_MS;
	const struct mcp_service_host *host = &service->options.host;
	const bool stuck = host->stuck != NULL && host->stuck(host->context);
	const char *reason = service->draining ? "draining"
			     : stuck           ? "no_audit"
			     : failed          ? "no_cell"
			     : full            ? "full"
					       : NULL;

	value_set_boolean(told, "ready", reason == NULL);
	if (reason != NULL)
		value_set_text(told, "reason", reason);
	value_set_integer(told, "cells", (int64_t)service->cell_count);
	value_set_integer(told, "max_cells", (int64_t)service->settings->max_cells);
	(void)value_print(told, 0, out);
	(void)buf_addc(out, '\n');
	return reason == NULL;
}

/* The states of cells as those who watch them want to know them. */
static void print_cells(const struct mcp_service *service, struct buf *out)
{
	enum { UNUSED, IDLE, BUSY, ENDING, STATES };
	static const char *const names[STATES] = {"unused", "idle", "busy", "ending"};
	size_t counts[STATES] = {0};
	uint64_t memory = 0;

	for (const struct mcp_cell *at = service->cells; at != NULL; at = at->next) {
		struct accounts used = {0};

		counts[at->life == MCP_CELL_ENDING ? ENDING
		       : at->mcp->session == NULL  ? UNUSED
		       : mcp_busy(at->mcp) > 0     ? BUSY
						   : IDLE]++;
		if (at->mcp->session != NULL)
			session_accounts(at->mcp->session, &used, NULL);
		memory += used.memory_peak;
	}
	for (const struct mcp_cell *at = service->closing; at != NULL; at = at->next)
		counts[ENDING]++;
	metrics_print_head("glovebox_cells", "gauge", "Cells by what they do.", out);
	for (size_t i = 0; i < STATES; i++)
		(void)buf_addf(out, "glovebox_cells{state=\"%s\"} %zu\n", names[i],
			       counts[i]);
	metrics_print_head("glovebox_memory_bytes", "gauge",
			   "The most memory that each of these cells has used, added up.",
			   out);
	(void)buf_addf(out, "glovebox_memory_bytes %" PRIu64 "\n", memory);
}

static void print_tokens(const struct mcp_service *service, struct buf *out)
{
	double others = 0;
	size_t count = 0;

	metrics_print_head("glovebox_cpu_seconds_total", "counter",
			   "Processor time of the cells of a token.", out);
	for (const struct mcp_token *at = service->tokens; at != NULL; at = at->next) {
		if (at->gone || count++ >= METRICS_TOKENS_MAX)
			others += at->cpu_s;
		else
			(void)buf_addf(out,
				       "glovebox_cpu_seconds_total{token=\"%s\"} %.6f\n",
				       at->row.name, at->cpu_s);
	}
	if (service->everyone != NULL)
		others += service->everyone->cpu_s;
	if (others > 0 || count > METRICS_TOKENS_MAX)
		(void)buf_addf(out, "glovebox_cpu_seconds_total{token=\"other\"} %.6f\n",
			       others);
}

void mcp_service_print_metrics(struct mcp_service *service, struct buf *out)
{
	for (struct mcp_cell *at = service->cells; at != NULL; at = at->next)
		sample(at);
	if (service->options.host.dropped != NULL)
		service->metrics.dropped =
			service->options.host.dropped(service->options.host.context);
	print_cells(service, out);
	metrics_print(&service->metrics, out);
	print_tokens(service, out);
	metrics_print_head("glovebox_build_info", "gauge", "The program that serves.", out);
	(void)buf_addf(out, "glovebox_build_info{version=\"%s\"} 1\n",
		       service->options.version);
}
