/* claim: a counted, renewed object of a store that says who works on a shard. */

#include "fleet/batch/claim.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/value.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
	CLAIM_MAX = 16 << 10, /* bytes of one */
	TOKEN_BYTES = 16,
	TOKEN_ROOM = 2 * TOKEN_BYTES + 1,
	HOLDER_ROOM = 160,
	PLACE_ROOM = 128, /* of the name of a machine and its like */
	STAT_MAX = 4 << 10,
	START_FIELD = 20, /* of /proc/PID/stat, counted behind the name of the program */
	SECOND_MS = 1000,
};

struct fleet_claim {
	struct fleet_store *store;
	char name[FLEET_NAME_BYTES];
	size_t shard, shards;
	bool mine;
	char token[TOKEN_ROOM]; /* ours, in each of our records */
	int64_t count, renewed_ms;
	/* Of somebody else's: */
	char holder[HOLDER_ROOM];
	char seen[HASH_HEX + 1]; /* of the record at the first look; "": none yet */
	int64_t seen_ms;
};

struct fleet_claim *fleet_claim_new(struct fleet_store *store, const char *job,
				    size_t shard, size_t shards)
{
	struct fleet_claim *claim = memory_alloc(sizeof(*claim));

	claim->store = store;
	claim->shard = shard;
	claim->shards = shards;
	(void)snprintf(claim->name, sizeof(claim->name), "jobs/%s/claims/%zu-of-%zu.json",
		       job, shard, shards);
	return claim;
}

void fleet_claim_free(struct fleet_claim *claim)
{
	free(claim);
}

const char *fleet_claim_holder(const struct fleet_claim *claim)
{
	return claim->holder;
}

/* Our own name. */

/* The first line of the file PATH in TEXT; "" when it cannot be read. */
static void read_line(const char *path, char text[PLACE_ROOM])
{
	struct buf bytes;

	buf_init(&bytes, STAT_MAX);
	(void)fd_read_at(AT_FDCWD, path, &bytes);
	(void)snprintf(text, PLACE_ROOM, "%.*s", (int)strcspn(bytes.data, "\n"), bytes.data);
	buf_fini(&bytes);
}

/* When the process PID was started, in ticks since the boot; "" when there is none. */
static void read_start(int64_t pid, char text[PLACE_ROOM])
{
	char path[PLACE_ROOM];
	struct str rest, word = {0};
	struct buf bytes;
	const char *end;

	text[0] = '\0';
	(void)snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
	buf_init(&bytes, STAT_MAX);
	if (fd_read_at(AT_FDCWD, path, &bytes)) {
		/* The name of the program may have blanks and brackets. */
		end = strrchr(bytes.data, ')');
		rest = str_of(end != NULL ? end + 1 : "");
		for (int i = 0; i < START_FIELD && str_next_word(&rest, &word); i++)
			/* A zombie does nothing any more. */
			if (i == 0 && str_is(word, "Z"))
				rest = STR("");
		if (rest.size > 0)
			(void)snprintf(text, PLACE_ROOM, "%.*s", (int)word.size, word.data);
	}
	buf_fini(&bytes);
}

static void read_pids(char text[PLACE_ROOM])
{
	const ssize_t size = readlink("/proc/self/ns/pid", text, PLACE_ROOM - 1);

	text[size > 0 ? size : 0] = '\0';
}

/* The task of a Slurm array that we are, which never runs twice at the same time; or "". */
static void read_scheduler(char text[PLACE_ROOM])
{
	const char *job = getenv("SLURM_ARRAY_JOB_ID"),
		   *task = getenv("SLURM_ARRAY_TASK_ID");
	const char *process = getenv("SLURM_PROCID"), *step = getenv("SLURM_STEP_ID");

	text[0] = '\0';
	if (job != NULL && task != NULL)
		(void)snprintf(text, PLACE_ROOM, "slurm %.32s %.32s %.32s %.16s", job,
			       task, process != NULL ? process : "0",
			       step != NULL ? step : "batch");
}

static struct value *print_claim(const struct fleet_claim *claim)
{
	struct value *value = value_new_object();
	char text[PLACE_ROOM];

	value_set_integer(value, "shard", (int64_t)claim->shard);
	value_set_integer(value, "shards", (int64_t)claim->shards);
	value_set_text(value, "holder", claim->token);
	value_set_integer(value, "count", claim->count);
	if (gethostname(text, sizeof(text)) < 0)
		text[0] = '\0';
	text[sizeof(text) - 1] = '\0';
	value_set_text(value, "host", text);
	read_line("/proc/sys/kernel/random/boot_id", text);
	value_set_text(value, "boot", text);
	read_pids(text);
	value_set_text(value, "pids", text);
	value_set_integer(value, "process", getpid());
	read_start(getpid(), text);
	value_set_text(value, "started", text);
	read_scheduler(text);
	if (text[0] != '\0')
		value_set_text(value, "scheduler", text);
	return value;
}

static enum fleet_put put_claim(struct fleet_claim *claim, enum fleet_put_how how,
				struct err *err)
{
	auto_value struct value *value = print_claim(claim);
	enum fleet_put put;
	struct buf text;

	buf_init(&text, CLAIM_MAX);
	(void)value_print(value, 0, &text);
	(void)buf_addc(&text, '\n');
	put = fleet_store_put(claim->store, claim->name, buf_str(&text), how, err);
	buf_fini(&text);
	return put;
}

/* A record of somebody else. */

enum holder_state { HOLDER_UNKNOWN, HOLDER_RUNS, HOLDER_ENDED };

static bool member_is(const struct value *record, const char *name, const char *text)
{
	const char *member = value_text(value_member(record, name));

	return member != NULL && member[0] != '\0' && strcmp(member, text) == 0;
}

/* Does the holder of RECORD run? Only a process that we could see is known to have ended. */
static enum holder_state find_holder(const struct value *record)
{
	const int64_t pid = value_integer(value_member(record, "process"));
	char text[PLACE_ROOM];

	read_line("/proc/sys/kernel/random/boot_id", text);
	if (!member_is(record, "boot", text)) {
		/*
		 * Two processes of one task of a scheduler on one machine may both live, so that
		 * its name decides about another machine, or another boot, only.
		 */
		read_scheduler(text);
		return member_is(record, "scheduler", text) ? HOLDER_ENDED : HOLDER_UNKNOWN;
	}
	read_pids(text);
	if (!member_is(record, "pids", text))
		return HOLDER_UNKNOWN;
	read_start(pid, text);
	if (!member_is(record, "started", text))
		return HOLDER_ENDED;
	/* Threads of one process that have a shard each: its units do. */
	return pid == getpid() ? HOLDER_UNKNOWN : HOLDER_RUNS;
}

static void tell_holder(struct fleet_claim *claim, const struct value *record)
{
	const char *host = value_text(value_member(record, "host"));

	(void)snprintf(claim->holder, sizeof(claim->holder), "%.100s, process %" PRId64,
		       host != NULL ? host : "?",
		       value_integer(value_member(record, "process")));
}

/* Read the record as it is now. HASH: of its bytes. False: ERR, ENOENT when there is none. */
static bool get_claim(const struct fleet_claim *claim, struct value **record,
		      char hash[HASH_HEX + 1], struct err *err)
{
	struct buf text;
	bool ok;

	buf_init(&text, CLAIM_MAX);
	ok = fleet_store_get(claim->store, claim->name, &text, err);
	if (ok) {
		hash_text(buf_str(&text), hash);
		/*
		 * A record that nobody can read counts as one that nobody changes any
		 * more.
		 */
		if (!value_parse(buf_str(&text), 0, record, NULL))
			*record = value_new_object();
	}
	buf_fini(&text);
	return ok;
}

static enum fleet_claimed create(struct fleet_claim *claim, int64_t now_ms, struct err *err)
{
	uint8_t random[TOKEN_BYTES];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
		(void)err_set(err, errno, "no random number: %s", strerror(errno));
		return FLEET_CLAIM_FAILED;
	}
	for (size_t i = 0; i < sizeof(random); i++)
		(void)snprintf(claim->token + 2 * i, 3, "%02x", random[i]);
	claim->count = 1;
	switch (put_claim(claim, FLEET_IF_NEW, err)) {
	case FLEET_PUT_DONE:
		claim->mine = true;
		claim->renewed_ms = now_ms;
		claim->seen[0] = '\0';
		return FLEET_CLAIM_MINE;
	case FLEET_PUT_THERE:
		return FLEET_CLAIM_UNSURE;
	default:
		return FLEET_CLAIM_FAILED;
	}
}

/* Is the record in the store ours? EEXIST: it is somebody else's. */
static bool is_ours(const struct fleet_claim *claim, struct err *err)
{
	auto_value struct value *record = NULL;
	char hash[HASH_HEX + 1];

	if (!get_claim(claim, &record, hash, err))
		return err->code == ENOENT;
	return member_is(record, "holder", claim->token) ||
	       err_set(err, EEXIST, "shard %zu of %zu is worked on by somebody else",
		       claim->shard, claim->shards);
}

/* Replace the stale record with the hash HASH, unless it has changed at the last moment. */
static enum fleet_claimed take_over(struct fleet_claim *claim, const char *hash,
				    int64_t now_ms, struct err *err)
{
	auto_value struct value *record = NULL;
	enum fleet_claimed claimed;
	char now[HASH_HEX + 1];

	if (get_claim(claim, &record, now, err)) {
		if (strcmp(now, hash) != 0)
			return FLEET_CLAIM_LIVES;
		if (!fleet_store_remove(claim->store, claim->name, err))
			return FLEET_CLAIM_FAILED;
	} else if (err->code != ENOENT) {
		return FLEET_CLAIM_FAILED;
	}
	claimed = create(claim, now_ms, err);
	/*
	 * Another process that looked at the same time may have removed our claim, and
	 * made its own.
	 */
	if (claimed == FLEET_CLAIM_MINE && !is_ours(claim, err)) {
		claim->mine = false;
		return err->code == EEXIST ? FLEET_CLAIM_LIVES : FLEET_CLAIM_FAILED;
	}
	return claimed;
}

enum fleet_claimed fleet_claim_take(struct fleet_claim *claim, int64_t now_ms,
				    struct err *err)
{
	auto_value struct value *record = NULL;
	enum fleet_claimed claimed = create(claim, now_ms, err);
	char hash[HASH_HEX + 1];

	if (claimed != FLEET_CLAIM_UNSURE)
		return claimed;
	if (!get_claim(claim, &record, hash, err))
		return err->code == ENOENT ? create(claim, now_ms, err)
					   : FLEET_CLAIM_FAILED;
	tell_holder(claim, record);
	switch (find_holder(record)) {
	case HOLDER_RUNS:
		return FLEET_CLAIM_LIVES;
	case HOLDER_ENDED:
		return take_over(claim, hash, now_ms, err);
	default:
		break;
	}
	if (claim->seen[0] == '\0') {
		memcpy(claim->seen, hash, sizeof(hash));
		claim->seen_ms = now_ms;
	}
	if (strcmp(claim->seen, hash) != 0)
		return FLEET_CLAIM_LIVES;
	return now_ms - claim->seen_ms >= FLEET_CLAIM_STALE_S * SECOND_MS
		       ? take_over(claim, hash, now_ms, err)
		       : FLEET_CLAIM_UNSURE;
}

bool fleet_claim_renew(struct fleet_claim *claim, int64_t now_ms, struct err *err)
{
	if (!claim->mine || now_ms - claim->renewed_ms < FLEET_CLAIM_RENEW_S * SECOND_MS)
		return true;
	if (!is_ours(claim, err)) {
		claim->mine = err->code != EEXIST;
		return false;
	}
	claim->count++;
	if (put_claim(claim, FLEET_REPLACE, err) == FLEET_PUT_FAILED)
		return false;
	claim->renewed_ms = now_ms;
	return true;
}

void fleet_claim_release(struct fleet_claim *claim)
{
	struct err err;

	if (claim->mine && is_ours(claim, &err))
		(void)fleet_store_remove(claim->store, claim->name, &err);
	claim->mine = false;
}
