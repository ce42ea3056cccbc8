/* pty: typing, printing, sizes and ends of a terminal, with a program that has it. */
#include "process/follow.h"
#include "process/pty.h"

#include "base/clock.h"
#include "base/fd.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { DEADLINE_S = 20, PRINTED_MAX = 1 << 20 };

struct scene {
	struct pty pty;
	int typing[2], printing[2];
	struct program_run run;
	struct buf printed;
};

static void scene_open(struct scene *scene, const char *const *argv)
{
	static const char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
	struct err err = {0};

	memset(scene, 0, sizeof(*scene));
	buf_init(&scene->printed, PRINTED_MAX);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, scene->typing),
			 0);
	assert_true(fd_pipe(scene->printing, &err));
	if (!pty_open(&scene->pty, (struct pty_size){33, 77}, scene->typing[0],
		      scene->printing[1], &err))
		fail_msg("%s", err.text);
	program_run_init(&scene->run);
	scene->run.start.argv = argv;
	scene->run.start.environment = environment;
	for (int i = 0; i < 3; i++)
		scene->run.start.fds[i] = scene->pty.slave;
	scene->run.start.terminal = true;
	scene->run.pty = &scene->pty;
	scene->run.deadline_ms = clock_deadline(DEADLINE_S);
}

static void type(struct scene *scene, char kind, const void *bytes, size_t size)
{
	char packet[1 + PTY_PACKET];

	packet[0] = kind;
	memcpy(packet + 1, bytes, size);
	assert_int_equal(send(scene->typing[1], packet, 1 + size, 0), 1 + size);
}

static void play(struct scene *scene)
{
	struct err err = {0};

	if (!follow_program(&scene->run, &err))
		fail_msg("%s", err.text);
	pty_close(&scene->pty);
	fd_close(&scene->printing[1]);
	assert_true(fd_read_all(scene->printing[0], &scene->printed, "printed", &err));
}

static void scene_close(struct scene *scene)
{
	program_run_fini(&scene->run);
	buf_fini(&scene->printed);
	fd_close(&scene->printing[0]);
	fd_close(&scene->typing[0]);
	fd_close(&scene->typing[1]);
}

static void it_is_the_programs_own_terminal(void **state)
{
	static const char *const argv[] = {
		"sh", "-c",
		"test -t 0 && test -t 1 && test -t 2 && stty size && : < /dev/tty", NULL};
	struct scene scene;

	(void)state;
	scene_open(&scene, argv);
	play(&scene);
	assert_string_equal(scene.printed.data, "33 77\r\n");
	assert_int_equal(scene.run.exit_code, 0);
	scene_close(&scene);
}

static void what_is_typed_arrives_and_ends(void **state)
{
	static const char *const argv[] = {"sh", "-c", "stty -echo; echo go; cat", NULL};
	struct scene scene;

	(void)state;
	scene_open(&scene, argv);
	type(&scene, PTY_TYPED, "one\ntwo", 7);
	type(&scene, PTY_ENDED, "", 0);
	play(&scene);
	assert_non_null(strstr(scene.printed.data, "one\r\ntwo"));
	assert_int_equal(scene.run.ending, PROGRAM_ENDED);
	scene_close(&scene);
}

static void a_new_size_is_told(void **state)
{
	static const char *const argv[] = {"sh", "-c", "read -r line; stty size", NULL};
	const struct pty_size size = {40, 132};
	struct scene scene;

	(void)state;
	scene_open(&scene, argv);
	type(&scene, PTY_RESIZED, &size, sizeof(size));
	type(&scene, PTY_TYPED, "\n", 1);
	play(&scene);
	assert_non_null(strstr(scene.printed.data, "40 132"));
	scene_close(&scene);
}

static void odd_packets_do_nothing(void **state)
{
	static const char *const argv[] = {"sh", "-c", "read x; stty size", NULL};
	struct scene scene;

	(void)state;
	scene_open(&scene, argv);
	type(&scene, PTY_RESIZED, "\1", 1);
	type(&scene, '?', "what", 4);
	type(&scene, PTY_TYPED, "", 0);
	type(&scene, PTY_TYPED, "\n", 1);
	play(&scene);
	assert_non_null(strstr(scene.printed.data, "33 77"));
	scene_close(&scene);
}

static void without_a_reader_it_prints_on(void **state)
{
	static const char *const argv[] = {"sh", "-c", "seq 1 50000; exit 9", NULL};
	struct scene scene;
	struct err err = {0};

	(void)state;
	(void)signal(SIGPIPE, SIG_IGN); /* as in a worker */
	scene_open(&scene, argv);
	fd_close(&scene.printing[0]);
	assert_true(follow_program(&scene.run, &err));
	assert_int_equal(scene.run.exit_code, 9);
	pty_close(&scene.pty);
	fd_close(&scene.printing[1]);
	scene_close(&scene);
}

static void closing_its_terminal_is_no_end(void **state)
{
	static const char *const argv[] = {"sh", "-c",
					   "echo out; exec <&- >&- 2>&-; sleep 0.1; exit 5",
					   NULL};
	struct scene scene;

	(void)state;
	scene_open(&scene, argv);
	play(&scene);
	assert_string_equal(scene.printed.data, "out\r\n");
	assert_int_equal(scene.run.exit_code, 5);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_the_programs_own_terminal),
		cmocka_unit_test(what_is_typed_arrives_and_ends),
		cmocka_unit_test(a_new_size_is_told),
		cmocka_unit_test(odd_packets_do_nothing),
		cmocka_unit_test(without_a_reader_it_prints_on),
		cmocka_unit_test(closing_its_terminal_is_no_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
