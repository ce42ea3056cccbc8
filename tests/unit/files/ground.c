/* ground: see ground.h. */
#include "ground.h"

#include "../base/tree.h"
#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void ground_at(struct ground *here, const char *path, char out[256])
{
	(void)snprintf(out, 256, "%s/%s", here->base, path);
}

void ground_put(struct ground *here, const char *path, const char *content)
{
	char absolute[256];

	ground_at(here, path, absolute);
	auto_close int fd = open(absolute, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_true(fd_write_all(fd, content, strlen(content), NULL));
}

void ground_folder(struct ground *here, const char *path)
{
	char absolute[256];

	ground_at(here, path, absolute);
	assert_int_equal(mkdir(absolute, 0755), 0);
}

void ground_link(struct ground *here, const char *target, const char *path)
{
	char absolute[256];

	ground_at(here, path, absolute);
	assert_int_equal(symlink(target, absolute), 0);
}

void ground_assert_holds(struct ground *here, const char *path, const char *content)
{
	char absolute[256];
	struct buf found;
	struct err err;

	ground_at(here, path, absolute);
	buf_init(&found, 1 << 20);
	if (!fd_read_file(absolute, 1 << 20, &found, &err))
		fail_msg("%s", err.text);
	assert_string_equal(found.data, content);
	buf_fini(&found);
}

int ground_set_up(void **state)
{
	struct ground *here = memory_alloc(sizeof(*here));
	char lib[96];
	char blocked[128];
	char pattern[96];
	struct err err;

	(void)snprintf(here->base, sizeof(here->base), "/tmp/glovebox-unit-XXXXXX");
	assert_non_null(mkdtemp(here->base));
	ground_folder(here, "ws");
	ground_folder(here, "ws/src");
	ground_folder(here, "ws/blocked");
	ground_folder(here, "lib");
	ground_folder(here, "docs");
	ground_folder(here, "secret");
	ground_put(here, "ws/src/a.c", "int a;\n");
	ground_put(here, "ws/blocked/key", "key\n");
	ground_put(here, "lib/lib.h", "lib\n");
	ground_put(here, "secret/data", "SECRET\n");
	ground_put(here, "single", "one file\n");
	(void)snprintf(here->workspace, sizeof(here->workspace), "%s/ws", here->base);
	(void)snprintf(lib, sizeof(lib), "%s/lib", here->base);
	(void)snprintf(blocked, sizeof(blocked), "%s/blocked", here->workspace);
	(void)snprintf(pattern, sizeof(pattern), "%s/docs", here->base);
	char single[96];

	(void)snprintf(single, sizeof(single), "%s/single", here->base);
	const struct files_root roots[] = {{here->workspace, true, NULL},
					   {lib, false, NULL},
					   {pattern, true, "*.md"},
					   {single, false, NULL}};
	const char *const blocked_list[] = {blocked, NULL};

	assert_true(files_open(roots, UNIT_COUNT(roots), here->workspace, blocked_list,
			       &here->files, &err));
	*state = here;
	return 0;
}

int ground_tear_down(void **state)
{
	struct ground *here = *state;

	files_close(here->files);
	tree_remove(here->base);
	free(here);
	return 0;
}

int ground_reach(struct ground *here, const char *path, enum files_want want, char found[64])
{
	struct file file;
	struct err err = {0};
	int code = 0;

	file_init(&file);
	found[0] = '\0';
	if (!files_reach(here->files, path, want, &file, &err)) {
		code = err.code;
		assert_true(code != 0);
		assert_int_equal(file.fd, -1);
	} else if (want == FILES_READ) {
		ssize_t size = read(file.fd, found, 63);

		assert_true(size >= 0);
		found[size] = '\0';
	}
	file_fini(&file);
	return code;
}

bool ground_refuse_openat2(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {UNIT_COUNT(filter), filter};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
