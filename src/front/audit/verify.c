/* glovebox audit: checks the chain of an audit. */

#include "audit/chain.h"
#include "audit/ledger.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/value.h"
#include "front/verb.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 256 << 10 };

#define REMEDY                                                                         \
	"compare the chain with the last head that was told before (--head, from the " \
	"journal); then move the folder away, and the next program begins another chain"

static const struct option_row verify_options[] = {
	{"key-file", 0, OPTION_TEXT, "FILE", "check each line's HMAC with this key"},
	{"head", 0, OPTION_TEXT, "N:DIGITS",
	 "the chain must reach this head, which was told"},
	{"json", 0, OPTION_FLAG, NULL, "print one JSON object instead"},
	OPTION_ROW_HELP,
	{0},
};

/* The check of several files, one behind the other. */
struct verifying {
	struct chain_check check;
	const char *path;
	uint64_t line, lines; /* of this file, of all files */
	struct err why;       /* of the first broken line */
	bool unreadable;      /* why is not about a line */
	bool json;
	uint64_t cuts;        /* records of lines that were gone */
	const char *cut_path; /* the place of the first one */
	uint64_t cut_line;
	struct chain_cut cut;
	uint64_t warnings; /* records that no head was there, in a chain that never had one */
};

/* CUT is no more than the record of a chain that had no head yet, because it is older than heads. */
static bool is_warning(const struct chain_cut *cut)
{
	return !cut->had_head && strchr(cut->head, ':') == NULL &&
	       strcmp(cut->head, "changed") != 0;
}

/* Say what CUT, a record, tells. */
static void print_cut(const struct chain_cut *cut, struct err *sentence)
{
	if (is_warning(cut))
		(void)err_set(sentence, EPROTO,
			      "the audit had no head before this line: nothing in the folder "
			      "says whether lines are gone there");
	else if (cut->lost > 0)
		(void)err_set(sentence, EPROTO,
			      "lines before this one are gone (%" PRIu64
			      ", up to the head %s)",
			      cut->lost, cut->head);
	else if (strchr(cut->head, ':') != NULL)
		(void)err_set(sentence, EPROTO,
			      "lines before this one were cut off or changed: the head %s is "
			      "not among them",
			      cut->head);
	else
		(void)err_set(sentence, EPROTO,
			      "lines before this one may be gone: the file of the head was %s",
			      strcmp(cut->head, "none") == 0 ? "missing" : cut->head);
}

static void take_cut(struct verifying *verifying)
{
	const struct chain_cut *cut = &verifying->check.cut;
	const bool warns = is_warning(cut);
	struct err sentence = {0};

	if (warns) {
		verifying->warnings++;
	} else if (verifying->cuts++ == 0) {
		verifying->cut_path = verifying->path;
		verifying->cut_line = verifying->line;
		verifying->cut = *cut;
	}
	if (verifying->json)
		return;
	print_cut(cut, &sentence);
	(void)verb_complain(CODE_FAILED, "audit verify: %s%s:%" PRIu64 ": %s",
			    warns ? "warning: " : "", verifying->path, verifying->line,
			    sentence.text);
}

/*
 * Check the line TEXT. WHOLE: it has its line end. A last line without one was torn while it was
 * written, or its end was cut off.
 */
static bool take_line(struct verifying *verifying, struct str text, bool whole)
{
	verifying->line++;
	if (!whole)
		return err_set(&verifying->why, EPROTO,
			       "has no line end: it was torn, or the file was cut");
	if (!chain_check_line(&verifying->check, text, &verifying->why))
		return false;
	verifying->lines++;
	if (verifying->check.cut.found)
		take_cut(verifying);
	return true;
}

static bool verify_open_file(struct verifying *verifying, int fd)
{
	auto_free char *piece = memory_alloc(PIECE);
	struct buf line;
	ssize_t got = 0;
	bool ok = true;

	buf_init(&line, CHAIN_LINE_MAX);
	while (ok) {
		struct str bytes;

		got = read(fd, piece, PIECE);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		bytes = (struct str){piece, (size_t)got};
		while (ok && buf_take_line(&line, &bytes)) {
			ok = line.overflowed ? take_line(verifying, (struct str){0}, true)
					     : take_line(verifying, buf_str(&line), true);
			buf_clear(&line);
		}
	}
	if (ok && got < 0) {
		verifying->unreadable = true;
		ok = err_set(&verifying->why, errno, "%s", strerror(errno));
	}
	if (ok && line.size > 0)
		ok = take_line(verifying, buf_str(&line), false);
	buf_fini(&line);
	return ok;
}

static bool verify_file(struct verifying *verifying, const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	verifying->path = path;
	verifying->line = 0;
	if (fd < 0) {
		verifying->unreadable = true;
		return err_set(&verifying->why, errno, "%s", strerror(errno));
	}
	return verify_open_file(verifying, fd);
}

static int print_json(const struct verifying *verifying, bool ok, FILE *out)
{
	auto_value struct value *told = value_new_object();
	struct err sentence = {0};

	value_set_boolean(told, "sound", ok && verifying->cuts == 0);
	value_set_integer(told, "lines", (int64_t)verifying->lines);
	value_set_integer(told, "first", (int64_t)verifying->check.first);
	value_set_integer(told, "last", (int64_t)verifying->check.seq);
	value_set_text(told, "head", verifying->check.prev);
	if (verifying->cuts > 0)
		value_set_integer(told, "cuts", (int64_t)verifying->cuts);
	if (verifying->warnings > 0)
		value_set_integer(told, "warnings", (int64_t)verifying->warnings);
	if (ok && verifying->cuts > 0) {
		print_cut(&verifying->cut, &sentence);
		value_set_text(told, "file", verifying->cut_path);
		value_set_integer(told, "line", (int64_t)verifying->cut_line);
		value_set_text(told, "why", sentence.text);
		value_set_text(told, "remedy", REMEDY);
	} else if (!ok) {
		value_set_text(told, "file", verifying->path);
		if (verifying->line > 0)
			value_set_integer(told, "line", (int64_t)verifying->line);
		value_set_text(told, "why", verifying->why.text);
	}
	(void)verb_print_json(told, 0, out);
	return ok && verifying->cuts == 0 ? CODE_DONE : CODE_FAILED;
}

static int print_result(const struct verifying *verifying, bool ok, FILE *out)
{
	const struct chain_check *check = &verifying->check;

	if (!ok && verifying->unreadable)
		return verb_complain(CODE_FAILED, "audit verify: %s: %s", verifying->path,
				     verifying->why.text);
	if (!ok && verifying->line == 0)
		return verb_complain(CODE_FAILED, "audit verify: %s", verifying->why.text);
	if (!ok)
		return verb_complain(CODE_FAILED,
				     "audit verify: %s:%" PRIu64 ": the line %s",
				     verifying->path, verifying->line, verifying->why.text);
	if (check->seq == 0) {
		(void)fputs("no lines\n", out);
		return CODE_DONE;
	}
	(void)fprintf(out,
		      "%" PRIu64 " lines %s, number %" PRIu64 " to %" PRIu64 "%s\n"
		      "head %" PRIu64 ":%s\n",
		      verifying->lines, verifying->cuts == 0 ? "are sound" : "fit together",
		      check->first, check->seq,
		      check->key.size > 0 ? ", with the key"
		      : check->has_hmac   ? "; their hmac was not checked (--key-file)"
					  : "",
		      check->seq, check->prev);
	if (check->first > 1)
		(void)fprintf(out,
			      "lines before number %" PRIu64
			      " are in earlier files, which were not given\n",
			      check->first);
	return verifying->cuts == 0 ? CODE_DONE
				    : verb_complain(CODE_FAILED, "audit verify: " REMEDY);
}

static bool read_key(const char *path, struct buf *key, struct err *err)
{
	if (!fd_read_file(path, LEDGER_KEY_MAX, key, err))
		return false;
	ledger_trim_key(key);
	return key->size >= LEDGER_KEY_MIN ||
	       err_set(err, EINVAL, "%s: a key has %d bytes or more", path, LEDGER_KEY_MIN);
}

static int verify_run(const struct options *options, FILE *out)
{
	const char *head = options_text(options, "head");
	const char *key_file = options_text(options, "key-file");
	struct verifying verifying = {0};
	struct err err = {0};
	struct buf key;
	bool ok = true;
	int code;

	buf_init(&key, LEDGER_KEY_MAX);
	if ((head != NULL && !chain_check_head(&verifying.check, head, &err)) ||
	    (key_file != NULL && !read_key(key_file, &key, &err))) {
		buf_fini(&key);
		return verb_complain(CODE_USAGE, "audit verify: %s", err.text);
	}
	verifying.check.key = buf_str(&key);
	verifying.json = options_given(options, "json");
	for (size_t i = 0; ok && i < options->word_count; i++)
		ok = verify_file(&verifying, options->words[i]);
	if (ok && !chain_check_end(&verifying.check, &verifying.why)) {
		verifying.line = 0;
		ok = false;
	}
	code = verifying.json ? print_json(&verifying, ok, out)
			      : print_result(&verifying, ok, out);
	buf_fini(&key);
	return code;
}

static const char verify_help[] =
	"Check the lines of an audit (docs/audit.md): each names the line before it, so that a\n"
	"line that was changed, removed, doubled or moved is found. Give all files of the chain,\n"
	"or the last ones, in their order. The first broken line is named, with what is wrong.\n\n"
	"The next program that writes notices lines that were cut off at the end, and records\n"
	"that; each such record is named, and the exit code is 1 until the folder is moved away.\n"
	"Before, they leave no trace in the files: --head compares the chain with a head that a\n"
	"service told to its journal, a line \"audit head N:DIGITS\". A chain that is older than\n"
	"heads has one record that it had none, which is a warning.\n"
	"A program that may write to the files can make the sums of all lines anew; --key-file\n"
	"checks what it cannot make, when the audit has a key.\n\n"
	"Exit codes: 0 all lines are sound, 1 a line is broken, a record says that lines are\n"
	"gone, or a file cannot be read, 2 the head or the key is none.";

const struct verb verb_audit_verify = {
	.name = "audit verify",
	.summary = "check the lines of an audit",
	.arguments = "FILE…",
	.help = verify_help,
	.example = "  glovebox audit verify /var/log/glovebox/audit-*.jsonl\n"
		   "  glovebox audit verify --key-file ~/audit.key --head "
		   "\"$(journalctl -u glovebox-mcp | sed -n 's/.*audit head //p' | tail -1)\" "
		   "/var/log/glovebox/audit-*.jsonl",
	.options = verify_options,
	.words_least = 1,
	.words_most = VERB_WORDS_ANY,
	.run = verify_run,
};
