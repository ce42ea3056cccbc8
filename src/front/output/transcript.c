/* transcript: plays a record to a screen that writes into a file. */

#include "front/output/transcript.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/value.h"
#include "store/journal.h"
#include "tool/event.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { TRANSCRIPT_MAX = 256 << 20, CUT_MAX = 64 << 20 };

struct play {
	struct transcript *transcript;
	struct event_sink sink;
};

static bool play_event(void *context, int64_t number, const char *kind, int64_t wall_ms,
		       struct str json)
{
	const struct play *play = context;
	struct transcript *transcript = play->transcript;
	auto_value struct value *line = NULL;
	const int64_t from = lseek(transcript->fd, 0, SEEK_END);
	struct event event = {.kind = EVENT_NOTICE,
			      .text = STR("An event of the record cannot be read.")};
	bool is_call;

	(void)number;
	(void)kind;
	(void)wall_ms;
	is_call = event_parse(json, &line, &event, NULL) && event.kind == EVENT_TOOL_ENDED;
	(void)play->sink.event(play->sink.context, &event, NULL);
	if (is_call) {
		char first = 0;

		/* A blank line stands before it. */
		(void)!pread(transcript->fd, &first, 1, from);
		transcript->call_from = from + (first == '\n');
		transcript->call_end = lseek(transcript->fd, 0, SEEK_END);
	}
	return from < TRANSCRIPT_MAX;
}

/* The number of the line, of 1, in which the offset AT of FD is. */
static size_t line_at(int fd, int64_t at)
{
	char bytes[16 << 10];
	int64_t seen = 0;
	size_t line = 1;

	while (seen < at) {
		const int64_t most = at - seen < (int64_t)sizeof(bytes)
					     ? at - seen
					     : (int64_t)sizeof(bytes);
		const ssize_t got = pread(fd, bytes, (size_t)most, seen);

		if (got <= 0)
			break;
		for (ssize_t i = 0; i < got; i++)
			line += bytes[i] == '\n';
		seen += got;
	}
	return line;
}

bool transcript_open(const char *id, const struct screen_options *look,
		     struct transcript *transcript, struct err *err)
{
	struct screen_options options = *look;
	struct play play = {.transcript = transcript};
	struct journal *journal = NULL;
	struct screen *screen;
	bool read = false;

	*transcript = (struct transcript){.fd = -1};
	options.full = true;
	if (!fd_memory_file("transcript", STR(""), &transcript->fd, err))
		return false;
	screen = screen_new(transcript->fd, &options);
	play.sink = screen_sink(screen);
	read = journal_open_default(&journal, err) &&
	       journal_read(journal, id, NULL, play_event, &play, err);
	journal_close(journal);
	screen_free(screen);
	transcript->call_line = line_at(transcript->fd, transcript->call_from);
	return read && (lseek(transcript->fd, 0, SEEK_SET) == 0 ||
			err_set(err, errno, "the transcript: %s", strerror(errno)));
}

bool transcript_cut(struct transcript *transcript, struct err *err)
{
	const int64_t size = transcript->call_end - transcript->call_from;
	struct buf text;
	bool cut;
	int fd = -1;

	if (size <= 0)
		return err_set(err, ENOENT, "There was no call yet.");
	buf_init(&text, CUT_MAX);
	if (size > CUT_MAX)
		(void)err_set(err, EFBIG, "The last call is too large to be shown alone.");
	else if (pread(transcript->fd, buf_reserve(&text, (size_t)size), (size_t)size,
		       transcript->call_from) == size)
		buf_commit(&text, (size_t)size);
	cut = text.size > 0 &&
	      fd_memory_file("transcript", str_trim(buf_str(&text)), &fd, err);
	buf_fini(&text);
	if (!cut)
		return false;
	fd_close(&transcript->fd);
	*transcript = (struct transcript){.fd = fd, .call_end = size, .call_line = 1};
	return true;
}

void transcript_close(struct transcript *transcript)
{
	fd_close(&transcript->fd);
}
