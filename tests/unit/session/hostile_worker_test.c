/*
 * Tests of what a session makes of a worker that was taken over: garbage, floods, frames out of
 * order, results that are none, or too much of one. The call fails or is ended in time, the
 * session goes on, and no memory or descriptor stays with it. The worker is this file's tool.
 */
#include "../base/unit.h"
#include "room.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "process/frame.h"
#include "tool/call.h"
#include "tool/tool.h"

enum {
	TIMEOUT_MS = 1500,
	/* sanitizers make it 50 times slower, a slow and busy machine 10 times; far from for ever */
	SOON_MS = 90000,
	REPEATS = 20000,
	GROWTH_MAX_KIB = 700 << 10, /* with sanitizers, whose own part is the most of it */
};

/* Raw bytes, all of them, whatever the front thinks of them. */
static void put(const struct call *call, const void *bytes, size_t size)
{
	const char *at = bytes;

	while (size > 0) {
		ssize_t n = send(call->control_fd, at, size, MSG_NOSIGNAL);
		if (n <= 0)
			_exit(1); /* we were let go */
		at += n;
		size -= (size_t)n;
	}
}

static void put_frame(const struct call *call, int kind, struct str payload)
{
	unsigned char header[FRAME_HEADER] = {(unsigned char)kind};

	for (int i = 0; i < 4; i++)
		header[4 + i] = (unsigned char)(payload.size >> (8 * i));
	put(call, header, sizeof(header));
	put(call, payload.data, payload.size);
}

static void put_many(const struct call *call, int kind, struct str payload, int times)
{
	for (int i = 0; i < times; i++)
		put_frame(call, kind, payload);
}

static void noise(const struct call *call)
{
	char bytes[4096];
	unsigned state = 1;

	for (int round = 0; round < 64; round++) {
		for (size_t i = 0; i < sizeof(bytes); i++) {
			state = state * 1103515245 + 12345;
			bytes[i] = (char)(state >> 16);
		}
		put(call, bytes, sizeof(bytes));
	}
}

static void too_long(const struct call *call)
{
	put(call, "\x0a\0\0\0\xff\xff\xff\xff", FRAME_HEADER);
}

static void odd_header(const struct call *call)
{
	put(call, "\x0a\x01\x02\x03\x01\0\0\0x", FRAME_HEADER + 1);
}

/* The rest of the frame never comes. */
static void half_frame(const struct call *call)
{
	char *much = memory_array(1, 8 << 20);

	put(call, "\x0a\0\0\0\0\0\0\x05", FRAME_HEADER);
	for (int i = 0; i < 8; i++)
		put(call, much, 8 << 20);
	free(much);
}

static void output_flood(const struct call *call)
{
	char *much = memory_array(1, 1 << 20);

	for (;;)
		put_frame(call, FRAME_STDOUT, (struct str){much, 1 << 20});
}

static void frames_of_nothing(const struct call *call)
{
	for (;;)
		put_frame(call, FRAME_STDERR, STR(""));
}

static void every_kind(const struct call *call)
{
	for (int kind = 0; kind < 256; kind++) {
		if (kind != FRAME_RESULT && kind != FRAME_REFUSED)
			put_frame(call, kind, STR("{\"x\":[1,2]}"));
	}
}

static void answers_to_nothing(const struct call *call)
{
	put_many(call, FRAME_ANSWER, STR("{}"), REPEATS);
	put_many(call, FRAME_ENDING, STR(""), REPEATS);
	put_many(call, FRAME_READY, STR(""), REPEATS);
}

static void refusal(const struct call *call)
{
	put_frame(call, FRAME_REFUSED, STR("\x1b[2J no cell\n\nfor you"));
}

static void result_of_noise(const struct call *call)
{
	char bytes[512];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 7);
	put_frame(call, FRAME_RESULT, (struct str){bytes, sizeof(bytes)});
}

/* Descriptors that nobody asked for, with each frame as many as fit. */
static void descriptors(const struct call *call)
{
	const int fds[FRAME_FDS_MAX] = {0, 1, 2, 0, 1};

	for (int i = 0; i < 2000; i++) {
		if (!frame_send(call->control_fd, FRAME_STDOUT, STR("x"), fds,
				FRAME_FDS_MAX, CLOCK_NEVER, NULL))
			_exit(1);
	}
}

/* A result in the form of a result; with PART, which is a text of JSON, in place of one. */
static void put_result(const struct call *call, const char *before, struct str piece,
		       size_t times, const char *after, bool as_seen)
{
	struct tool_result result;
	struct buf text, json;

	buf_init(&json, 80 << 20);
	buf_init(&text, FRAME_MAX);
	tool_result_init(&result);
	result.status = RESULT_DONE;
	/* A place holder of the right size is made, and filled with what no value could hold. */
	(void)buf_adds(&json, before);
	for (size_t i = 0; i < times; i++)
		(void)buf_addstr(&json, piece);
	(void)buf_adds(&json, after);
	struct value *holder = value_new_object();
	auto_free char *filler = memory_array(1, json.size + 1);
	memset(filler, 'a', json.size - strlen("{\"k\":\"\"}"));
	value_set_text(holder, "k", filler);
	if (as_seen)
		result.seen = holder;
	else
		result.details = holder;
	assert_true(tool_result_print(&result, &text));
	const size_t at = str_find(buf_str(&text), STR("{\"k\":\"aaaa"), 0);
	assert_true(at != (size_t)-1 && at + json.size <= text.size);
	memcpy(text.data + at, json.data, json.size);
	put_frame(call, FRAME_RESULT, buf_str(&text));
	tool_result_fini(&result);
	buf_fini(&text);
	buf_fini(&json);
}

static void millions_of_values(const struct call *call)
{
	put_result(call, "{\"d\":[[]", STR(",[]"), 20 << 20, "]}", false);
}

static void a_name_of_megabytes(const struct call *call)
{
	put_result(call, "{\"/", STR("xxxxxxxxxxxxxxxx"), 3 << 20, "\":\"abcdefabcdef\"}",
		   true);
}

static void a_folder_of_megabytes(const struct call *call)
{
	put_result(call, "{\"\":\"/", STR("xxxxxxxxxxxxxxxx"), 3 << 20, "\"}", true);
}

static const struct {
	const char *name;
	void (*play)(const struct call *call);
	bool answers;
} plays[] = {
	{"noise", noise},
	{"too long", too_long},
	{"odd header", odd_header},
	{"half frame", half_frame},
	{"output flood", output_flood},
	{"frames of nothing", frames_of_nothing},
	{"every kind", every_kind},
	{"answers to nothing", answers_to_nothing},
	{"refusal", refusal},
	{"result of noise", result_of_noise},
	{"descriptors", descriptors},
	{"millions of values", millions_of_values},
	{"a name of megabytes", a_name_of_megabytes, true},
	{"a folder of megabytes", a_folder_of_megabytes, true},
};

static enum result_status hostile(struct call *call, struct tool_result *result)
{
	const char *name = call_text(call, "play");

	for (size_t i = 0; i < UNIT_COUNT(plays); i++) {
		if (strcmp(plays[i].name, name) == 0)
			plays[i].play(call);
	}
	/* Nothing but a kill ends it. */
	while (result->status != RESULT_DONE)
		(void)pause();
	return RESULT_DONE;
}

static enum result_status honest(struct call *call, struct tool_result *result)
{
	(void)call;
	(void)buf_adds(&result->text, "as ever");
	return tool_done(result);
}

static const struct row hostile_params[] = {{"play", ROW_TEXT, true, "What"}, {0}};
static const struct row no_params[] = {{0}};
static const struct tool hostile_tool = {.name = "hostile",
					 .description = "Be hostile.",
					 .example = "{}",
					 .params = hostile_params,
					 .effects = EFFECT_READS,
					 .timeout_s = TIMEOUT_MS / 1000.0,
					 .answers = true,
					 .execute = hostile};
/* One call and no other goes to its worker: what it sends is a result. */
static const struct tool once_tool = {.name = "hostile_once",
				      .description = "Be hostile once.",
				      .example = "{}",
				      .params = hostile_params,
				      .effects = EFFECT_RUNS,
				      .timeout_s = TIMEOUT_MS / 1000.0,
				      .execute = hostile};
static const struct tool honest_tool = {.name = "honest",
					.description = "Be honest.",
					.example = "{}",
					.params = no_params,
					.effects = EFFECT_READS,
					.timeout_s = 60,
					.execute = honest};
static const struct tool *const tools[] = {&hostile_tool, &once_tool, &honest_tool, NULL};

/* The room keeps events; a flood of them is this test's. */
static bool forget(void *context, const struct event *event, struct err *err)
{
	(void)context;
	(void)event;
	(void)err;
	return true;
}

static int open_session(void **state)
{
	struct room *room = room_new();

	if (room == NULL)
		return -1;
	*state = room;
	const struct session_options options = {
		.take_policy = policy_new("test", room->folder),
		.tools = tools,
		.ready_workers = 1,
		.sink = {forget, room},
	};
	return room_open(room, options) ? 0 : -1;
}

static size_t open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(folder);
	while (readdir(folder) != NULL)
		count++;
	(void)closedir(folder);
	return count;
}

static long most_memory_kib(void)
{
	struct rusage used;

	assert_int_equal(getrusage(RUSAGE_SELF, &used), 0);
	return used.ru_maxrss;
}

static void be_honest(const struct room *room)
{
	struct tool_result result;

	room_call(room, "honest", "{}", &result);
	assert_int_equal(result.status, RESULT_DONE);
	assert_string_equal(result.text.data, "as ever");
	tool_result_fini(&result);
}

static void play_one(const struct room *room, const char *name, bool answers)
{
	struct tool_result result;
	char arguments[128];
	const int64_t began_ms = clock_now_ms();

	(void)snprintf(arguments, sizeof(arguments), "{\"play\": \"%s\"}", name);
	room_call(room, answers ? "hostile_once" : "hostile", arguments, &result);
	const int64_t took_ms = clock_now_ms() - began_ms;
	if (took_ms > SOON_MS)
		fail_msg("%s: %lld ms", name, (long long)took_ms);
	if (result.status == RESULT_FAILED && result.text.size == 0)
		fail_msg("%s: failed without a word", name);
	tool_result_fini(&result);
}

static void whatever_it_sends_the_session_goes_on(void **state)
{
	const struct room *room = *state;

	be_honest(room);
	const size_t descriptors_before = open_descriptors();
	for (size_t i = 0; i < UNIT_COUNT(plays); i++) {
		const long before = most_memory_kib();
		play_one(room, plays[i].name, plays[i].answers);
		be_honest(room);
		const long grown = most_memory_kib() - before;
		if (grown > GROWTH_MAX_KIB)
			fail_msg("%s: %ld KiB", plays[i].name, grown);
	}
	/* Two workers more or less are on their way at any time. */
	assert_true(open_descriptors() <= descriptors_before + 8);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test_setup_teardown(whatever_it_sends_the_session_goes_on,
						open_session, room_end),
	};

	session_role(argc, argv, tools);
	return cmocka_run_group_tests(cases, NULL, NULL);
}
