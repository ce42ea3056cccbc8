/* frame_fuzz: any bytes as a stream of frames, in pieces of any size. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "process/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A socket pair's buffer takes this without a reader. */
enum { INPUT_MAX = 64 << 10 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame_reader reader;
	struct frame frame;
	int ends[2];

	if (size < 1 || size > INPUT_MAX ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return 0;
	frame_reader_init(&reader);
	size_t piece = (size_t)data[0] + 1;
	for (size_t at = 1; at < size; at += piece) {
		size_t length = size - at < piece ? size - at : piece;
		if (write(ends[0], data + at, length) != (ssize_t)length)
			abort();
		if (!frame_fill(&reader, ends[1], NULL))
			break;
		while (frame_next(&reader, &frame)) {
			if (frame.payload.size > FRAME_MAX || frame.fd_count != 0)
				abort();
		}
	}
	frame_reader_fini(&reader);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	return 0;
}
