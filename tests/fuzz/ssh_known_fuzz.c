/*
 * ssh_known_fuzz: any bytes as a file of known hosts. The lines that come out are read
 * again as the same keys, and a key that is revoked is none of them.
 */
#include "base/memory.h"
#include "ssh/known.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINES_MAX = 4 << 20 };

static void read_known(struct ssh_known *known, const char *host, struct str text)
{
	ssh_known_init(known);
	assert(ssh_known_set_host(known, str_of(host), NULL));
	ssh_known_read(known, text);
}

static void check(const char *host, struct str text)
{
	struct ssh_known known, again;
	struct buf lines, twice;

	buf_init(&lines, LINES_MAX);
	buf_init(&twice, LINES_MAX);
	read_known(&known, host, text);
	ssh_known_print(&known, &lines);
	read_known(&again, host, buf_str(&lines));
	ssh_known_print(&again, &twice);
	assert(str_equal(buf_str(&lines), buf_str(&twice)));
	assert(again.count <= known.count && again.revoked.size == 0);
	ssh_known_fini(&again);
	ssh_known_fini(&known);
	buf_fini(&twice);
	buf_fini(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *copy = memory_alloc(size + 1);

	memcpy(copy, data, size);
	check("git.example", (struct str){copy, size});
	check("git.example:2222", (struct str){copy, size});
	return 0;
}
