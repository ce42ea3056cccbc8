/* Fuzz target of files/undo_log: a log as a worker may have left it. */
#include "base/fd.h"
#include "files/record.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool take(void *context, const struct undo_change *change)
{
	(void)context;
	if (!record_path_is_sound(change->path) ||
	    change->path.data[change->path.size] != '\0')
		abort();
	return true;
}

static bool take_note(void *context, const struct undo_note *note)
{
	(void)context;
	if (note->kind > UNDO_NOTE_CLOSED || note->path.data[note->path.size] != '\0' ||
	    strnlen(note->temp, sizeof(note->temp)) == sizeof(note->temp) ||
	    strnlen(note->keep, sizeof(note->keep)) == sizeof(note->keep) ||
	    (note->path.size > 0 && !record_path_is_sound(note->path)))
		abort();
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct undo_reader reader = {.change = take, .note = take_note};
	struct err err = {0};
	int fd = -1;

	if (!fd_memory_file("log", (struct str){(const char *)data, size}, &fd, &err))
		abort();
	if (!undo_log_read(&reader, fd, &err) && err.text[0] == '\0')
		abort();
	if (reader.sound > size || reader.over > reader.sound)
		abort();
	fd_close(&fd);
	return 0;
}
