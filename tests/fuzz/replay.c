/*
 * replay: main of a fuzz target where there is no libFuzzer. Plays every file of the
 * folders (or the files) given through the target once, in the order of their names.
 */
#include "base/buf.h"
#include "base/fd.h"

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * libFuzzer's own -max_len default is 1 MiB beyond its corpus; a seed is smaller still.
 */
enum { SEED_MAX = 1 << 20, NAME_MAX_BYTES = 4096 };

static bool replay_file(const char *path)
{
	struct err err;
	struct buf seed;
	bool read;

	buf_init(&seed, SEED_MAX);
	read = fd_read_file(path, SEED_MAX, &seed, &err);
	if (read)
		(void)LLVMFuzzerTestOneInput((const uint8_t *)seed.data, seed.size);
	else
		(void)fprintf(stderr, "%s\n", err.text);
	buf_fini(&seed);
	return read;
}

static bool replay_folder(const char *folder, size_t *played)
{
	struct dirent **entries = NULL;
	int count = scandir(folder, &entries, NULL, alphasort);
	bool ok = count >= 0;

	if (!ok)
		perror(folder);
	for (int i = 0; i < count; i++) {
		char path[NAME_MAX_BYTES];

		(void)snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		if (entries[i]->d_name[0] != '.') {
			ok = replay_file(path) && ok;
			(*played)++;
		}
		free(entries[i]);
	}
	free(entries);
	return ok;
}

int main(int argc, char **argv)
{
	size_t played = 0;
	bool ok = argc > 1;

	for (int i = 1; i < argc; i++) {
		struct stat st;

		if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode)) {
			ok = replay_folder(argv[i], &played) && ok;
		} else {
			ok = replay_file(argv[i]) && ok;
			played++;
		}
	}
	(void)printf("# %zu inputs\n", played);
	return ok && played > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
