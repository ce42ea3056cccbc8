/*
 * Fuzzes what comes from the caller of an engine, or from a client of exec-server: the input is split into lines in pieces of
 * changing size (serve/caller.c), and the parameters of each message are checked by the rows of
 * its method (serve/engine.c). Each line that is no message is answered, and no answer to one
 * breaks the line.
 */
#include <assert.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "mcp/message.h"
#include "process/loop.h"
#include "serve/caller.h"
#include "serve/engine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PIECE = 4096 };

static void take_messages(struct caller *caller)
{
	struct mcp_message message = {0};

	while (caller_next(caller, &message)) {
		assert(message.kind != 0);
		if (message.method != NULL)
			(void)engine_check(message.method, message.params);
		(void)caller_answered(&message);
		mcp_message_fini(&message);
	}
}

/* BARE: the messages of `glovebox exec-server`, which have no member `jsonrpc`. */
static void converse(const uint8_t *data, size_t size, bool bare)
{
	struct str rest = {(const char *)data, size};
	const size_t piece = size > 0 ? 1 + data[0] * 16U : PIECE;
	const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct loop *loop = loop_new();
	struct caller caller;

	assert(fd >= 0);
	caller_open(&caller, loop, fd, fd);
	caller.bare = bare;
	while (rest.size > 0) {
		const struct str part = str_part(rest, 0, piece < PIECE ? piece : PIECE);

		rest = str_part(rest, part.size, rest.size);
		(void)buf_addstr(&caller.in, part);
		take_messages(&caller);
		assert(caller.in.size == 0);
		assert(strchr(caller.out.waiting.data, '\n') == NULL ||
		       caller.out.waiting.data[caller.out.waiting.size - 1] == '\n');
		caller_settle(&caller);
	}
	caller_close(&caller);
	loop_free(loop);
	(void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	converse(data, size, false);
	converse(data, size, true);
	return 0;
}
