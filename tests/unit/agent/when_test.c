/* when: texts of times, and the calendar with its odd days. */
#include "agent/when.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The one form of TEXT; "! sentence" when it is refused. */
static void assert_means(const char *text, const char *wanted)
{
	struct err err = {0};
	struct when when;
	struct buf form;

	buf_init(&form, 4096);
	if (when_parse(str_of(text), &when, &err))
		when_print(&when, &form);
	else
		(void)buf_addf(&form, "! %s", err.text);
	if (wanted[0] == '!' ? strstr(form.data, wanted + 1) == NULL || form.data[0] != '!'
			     : strcmp(form.data, wanted) != 0)
		fail_msg("\"%s\" means \"%s\", not \"%s\"", text, form.data, wanted);
	buf_fini(&form);
}

static void words_mean_one_thing(void **state)
{
	static const char *const rows[][2] = {
		{"every weekday at 9", "0 9 * * 1-5"},
		{"Every Weekday at 9:30", "30 9 * * 1-5"},
		{"daily at 7:30 and 19:30", "30 7,19 * * *"},
		{"every day at noon", "0 12 * * *"},
		{"daily", "0 0 * * *"},
		{"at 6pm", "0 18 * * *"},
		{"at 12am", "0 0 * * *"},
		{"hourly", "0 * * * *"},
		{"@hourly", "0 * * * *"},
		{"every minute", "* * * * *"},
		{"every hour", "0 * * * *"},
		{"every 90 minutes", "every 90 minutes"},
		{"every 2 days", "every 2880 minutes"},
		{"every 1 minute", "every 1 minute"},
		{"every monday and friday at 18:00", "0 18 * * 1,5"},
		{"on mondays, tuesdays and sundays at 8", "0 8 * * 0-2"},
		{"weekly", "0 0 * * 0"},
		{"weekly on thu at 8", "0 8 * * 4"},
		{"every weekend at 10", "0 10 * * 0,6"},
		{"monthly", "0 0 1 * *"},
		{"monthly on the 1st and 15th at 8", "0 8 1,15 * *"},
		{"on the last day of every month at 18:30", "30 18 L * *"},
		{"on the 31st at 9", "0 9 31 * *"},
		{"yearly on 29 february at 12", "0 12 29 2 *"},
		{"every year", "0 0 1 1 *"},
		{"every monday in july at 9", "0 9 * 7 1"},
		{"0 9 * * 1-5", "0 9 * * 1-5"},
		{"*/15 8-17/3 * jan,JUL mon-fri", "0,15,30,45 8,11,14,17 * 1,7 1-5"},
		{"0 0 * * 7", "0 0 * * 0"},
		{"0 0 1,L 2 *", "0 0 1,L 2 *"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_means(rows[i][0], rows[i][1]);
		assert_means(rows[i][1], rows[i][1]);
	}
}

static void what_is_not_understood_is_named(void **state)
{
	static const char *const rows[][2] = {
		{"", "!no time is given"},
		{"sometimes", "!\"sometimes\" is not understood"},
		{"every full moon", "!\"full\" is not understood"},
		{"every day at 25", "!\"25\" is no time of day"},
		{"every day at 9:75", "!\"9:75\" is no time of day"},
		{"every day at", "!is no time of day"},
		{"daily at 9 and 10:30", "!has other minutes"},
		{"daily weekly", "!says another time how often"},
		{"every 90 minutes at 9", "!is an interval with a day or a time"},
		{"every 0 minutes", "!less than a minute"},
		{"every 99999 weeks", "!more than a year"},
		{"every 3 months", "!no unit of an interval"},
		{"every hour at 9", "!has a time of day"},
		{"on the 32nd", "!no day of a month"},
		{"on the 1st and monday", "!days of the month and of the week"},
		{"60 * * * *", "!minute \"60\" is none"},
		{"* 24 * * *", "!hour \"24\" is none"},
		{"* * 0 * *", "!day of the month \"0\""},
		{"* * * 13 *", "!month \"13\""},
		{"* * * * 8", "!day of the week \"8\""},
		{"5-1 * * * *", "!minute \"5-1\""},
		{"1/5 * * * *", "!minute \"1/5\""},
		{"1, * * * *", "!minute \"1,\""},
		{"* * * *", "!there are 4"},
		{"* * * * * *", "!behind the five fields"},
		{"*/0 * * * *", "!minute \"*/0\""},
		{"every day at 9\xff", "!is no text"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_means(rows[i][0], rows[i][1]);
}

/* COUNT runs of TEXT after AFTER_S in ZONE, as a person there has them. */
static void assert_runs(const char *text, const char *zone, int64_t after_s, size_t count,
			const char *wanted)
{
	struct err err = {0};
	struct when when;
	struct buf runs;

	buf_init(&runs, 4096);
	if (!when_parse(str_of(text), &when, &err))
		fail_msg("%s: %s", text, err.text);
	for (size_t i = 0; i < count; i++) {
		int64_t next_s;

		if (!when_next(&when, zone, 0, after_s, &next_s)) {
			(void)buf_adds(&runs, "never\n");
			break;
		}
		assert_true(next_s > after_s);
		when_add_moment(next_s, zone, &runs);
		(void)buf_addc(&runs, '\n');
		after_s = next_s;
	}
	assert_string_equal(runs.data, wanted);
	buf_fini(&runs);
}

enum {
	AT_2026_11_23 = 1795392000, /* 00:00 UTC, a Monday */
	AT_2026_03_28 = 1774656000, /* the day before summer time begins in Berlin */
	AT_2026_10_24 = 1792800000, /* the day before it ends there */
	AT_2027_01_01 = 1798761600,
};

static void the_next_runs_follow_each_other(void **state)
{
	(void)state;
	assert_runs("every weekday at 9", "UTC", AT_2026_11_23 + 4 * 86400, 3,
		    "Fri 2026-11-27 09:00 UTC\nMon 2026-11-30 09:00 UTC\n"
		    "Tue 2026-12-01 09:00 UTC\n");
	assert_runs("0 9 * * *", "UTC", AT_2026_11_23 + 9 * 3600, 1,
		    "Tue 2026-11-24 09:00 UTC\n");
	assert_runs("every 90 minutes", "UTC", AT_2026_11_23, 2,
		    "Mon 2026-11-23 01:30 UTC\nMon 2026-11-23 03:00 UTC\n");
	/* Either of two restricted day fields. */
	assert_runs("0 0 13 * fri", "UTC", AT_2026_11_23, 3,
		    "Fri 2026-11-27 00:00 UTC\nFri 2026-12-04 00:00 UTC\n"
		    "Fri 2026-12-11 00:00 UTC\n");
}

static void months_end_where_they_end(void **state)
{
	(void)state;
	assert_runs("on the last day at 9", "UTC", AT_2027_01_01, 3,
		    "Sun 2027-01-31 09:00 UTC\nSun 2027-02-28 09:00 UTC\n"
		    "Wed 2027-03-31 09:00 UTC\n");
	assert_runs("on the 31st at 9", "UTC", AT_2027_01_01, 3,
		    "Sun 2027-01-31 09:00 UTC\nWed 2027-03-31 09:00 UTC\n"
		    "Mon 2027-05-31 09:00 UTC\n");
	assert_runs("0 0 30,L 2 *", "UTC", AT_2027_01_01, 2,
		    "Sun 2027-02-28 00:00 UTC\nTue 2028-02-29 00:00 UTC\n");
}

static void the_29th_of_february_comes_in_leap_years(void **state)
{
	(void)state;
	assert_runs("0 12 29 2 *", "UTC", AT_2027_01_01, 2,
		    "Tue 2028-02-29 12:00 UTC\nSun 2032-02-29 12:00 UTC\n");
	/* 2100 is none: eight years lie between. */
	assert_runs("0 12 29 2 *", "UTC", 3981398400, 1, "Fri 2104-02-29 12:00 UTC\n");
	assert_runs("0 12 30 2 *", "UTC", AT_2027_01_01, 1, "never\n");
}

static void an_hour_that_is_skipped_comes_later(void **state)
{
	(void)state;
	assert_runs("30 2 * * *", "Europe/Berlin", AT_2026_03_28, 3,
		    "Sat 2026-03-28 02:30 CET\nSun 2026-03-29 03:30 CEST\n"
		    "Mon 2026-03-30 02:30 CEST\n");
	assert_runs("30 1,2,3 29 3 *", "Europe/Berlin", AT_2026_03_28, 2,
		    "Sun 2026-03-29 01:30 CET\nSun 2026-03-29 03:30 CEST\n");
}

static void an_hour_that_comes_twice_counts_once(void **state)
{
	(void)state;
	assert_runs("30 2 * * *", "Europe/Berlin", AT_2026_10_24 + 3600, 2,
		    "Sun 2026-10-25 02:30 CEST\nMon 2026-10-26 02:30 CET\n");
	assert_runs("30 * 25 10 *", "Europe/Berlin", AT_2026_10_24 + 82800 + 3600, 3,
		    "Sun 2026-10-25 02:30 CEST\nSun 2026-10-25 02:30 CET\n"
		    "Sun 2026-10-25 03:30 CET\n");
}

static void the_zone_of_the_process_stays(void **state)
{
	struct when when;
	int64_t next_s;

	(void)state;
	(void)setenv("TZ", "America/New_York", 1);
	assert_true(when_parse(STR("daily at 9"), &when, NULL));
	assert_true(when_next(&when, "Asia/Tokyo", 0, AT_2026_11_23, &next_s));
	assert_int_equal(next_s, AT_2026_11_23 + 24 * 3600);
	assert_string_equal(getenv("TZ"), "America/New_York");
	assert_true(when_next(&when, NULL, 0, AT_2026_11_23, &next_s));
	assert_int_equal(next_s, AT_2026_11_23 + 14 * 3600);
	(void)unsetenv("TZ");
}

static void zones_are_names_of_the_table(void **state)
{
	static const char *const none[] = {
		"",        "Mars/Base",       "../../etc/passwd", "/etc/passwd",
		"Europe/", "Europe/Berlin\n", "Europe/../UTC"};
	struct err err;

	(void)state;
	assert_true(when_check_zone("Europe/Berlin", NULL));
	assert_true(when_check_zone("UTC", NULL));
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_false(when_check_zone(none[i], &err));
		assert_non_null(strstr(err.text, "time zone"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_mean_one_thing),
		cmocka_unit_test(what_is_not_understood_is_named),
		cmocka_unit_test(the_next_runs_follow_each_other),
		cmocka_unit_test(months_end_where_they_end),
		cmocka_unit_test(the_29th_of_february_comes_in_leap_years),
		cmocka_unit_test(an_hour_that_is_skipped_comes_later),
		cmocka_unit_test(an_hour_that_comes_twice_counts_once),
		cmocka_unit_test(the_zone_of_the_process_stays),
		cmocka_unit_test(zones_are_names_of_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
