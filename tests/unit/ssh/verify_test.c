/* verify: signatures that ssh-agent has made, and what is wrong about them. */
#include "../base/unit.h"

#include "base/buf.h"
#include "ssh/message.h"
#include "ssh/verify.h"

/* clang-format off */
static const struct {
	const char *name, *key, *signature;
	bool fine;
} made[] = {
	{"ed25519, flags 0",
	 ("AAAAC3NzaC1lZDI1NTE5AAAAIIKjITr1V5U2AMmTXHFLJCsnp/7XQCm74OYHb4HcMBxG"),
	 ("AAAAC3NzaC1lZDI1NTE5AAAAQNfk7Mz3uOU2T6BjduNdLBb65oIbe+Gk14i/lEV+AvE11TBt"
		"ILkgRJFq0Mwol5Acw96TjGquTO6vfnXG0hPWOwQ="),
	 true},
	{"p256, flags 0",
	 ("AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBNIvsk924Q8VU2skYEnd"
		"L9/psAW4volLVVRkzMIVr8U7xIaGliH0ZyTmyWE1YMQPO5zHVgRNxUTpdY4/m/TfV9E="),
	 ("AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAABJAAAAIBgJ4L1O2KVwyWdZgt0MtjqiHimbmy5O"
		"iT22yf5uP6FuAAAAIQDbk7L4dzDOgVkBlagxShLUx1jfIunaHckkUq++SW7w7g=="),
	 true},
	{"p384, flags 0",
	 ("AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBMEZPUomlkfs+/WnWUUf"
		"8IwNj3Wsf+ncaE25UyYhHeOjwBZjvvsF1WwHOw02GmD3svYpS2Lp9+t2uniXEcFdOHTOKCqg"
		"v+3ZpCj+ctCgpuSv27QbIOckpJyPL09zAHjddQ=="),
	 ("AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAABoAAAAMEH0+yD4K4AZBYLDzqZNrhY9AY/HHkdZ"
		"dDHQ3EWfMohGsbf70QuKbTj9l4O//jQ+QAAAADA1ruUf8PtzHpNVho1bEswP9Oo/v/aGdtsk"
		"6+oAub6IcasSm2jl7RngzXenH9YT78Q="),
	 true},
	{"p521, flags 0",
	 ("AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBAC7n8j5eAuKBrfOClTU"
		"DOJL7GlxX8UKJtOIZ3rdTkreVlh1cjZys+NVmNNN181CZqcp04KMmxLBbz8nVK1YPDTCSQGj"
		"6K7gipGkulaQnh/FcnptzWy7gsgWQlG1fvWQdxc2PD2fKcgaR1QwglVp+yTkeQeqZPrutB/R"
		"GeQPBpXKq07Rkw=="),
	 ("AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAACLAAAAQToDo6F62nF91gZFhWChAaVnM4TPSBcK"
		"LEacv0BlOJ3f4NlQUCBWX/WQ9qMgSVvjEF1mXoxy6G1Ovlvhh1ygx5L5AAAAQgCJjYtiZT5A"
		"dKnJw6Lzm48YisQC8shkdFB9BmiMrwie+KUITnWeK+ehhLyveDSe0ABvucMzYGqdXTq8IEkl"
		"QmKqxQ=="),
	 true},
	{"rsa, flags 2",
	 ("AAAAB3NzaC1yc2EAAAADAQABAAABAQCmiL2UzTgw2MqH2wz6hXe6XvZLqyCH+GzXgU67FxPG"
		"UfAC4m3xTz06QTwQdBG1UnWrW717yeWJzZ0OMnpMUvBnhMSL6QvSvqKmhyZMGR6HbdOohsMb"
		"D5K/b2Xx0t2FcNU1QDA1GlX8qcG86up4gEyOCDVgBbRQQDaFUr4mR6K3lriS6NINh6bB4kmu"
		"zsznAccjyPhx92VslxMXdV6FP2ZVNgaDMtjtshF6DQzhHbQ6DoCQqFd7iEMCUQcR/ZulwPE2"
		"mCpxepcsIPdHR/I32aXdjL30twakN2Xh1JOsHcdG9cu4wwSBVCD0izTOfkYmpNhe9A0agAnP"
		"bH8hl7a8WDzr"),
	 ("AAAADHJzYS1zaGEyLTI1NgAAAQBqgnbCBeplw+bSjiDjnwTtc2gzYoc53RNnZp0nPknhUrSP"
		"rSsWGzKfxWmInWJP3iAUhZd5aHRxOhQDcop578gHVBS6YZlWaFdGV4yD1DBItJ5Hb2Un7r1P"
		"yWt7LY/x6HVQCRc2IKl84rttUx6RzEa+pgh/c/09Q0fQY8qwe0bTCmcNTEmO2yKCFATHPbaW"
		"qpxca5nRRYx+pCuBE2vtP1Y/E3ns4ZYg7aXdTk1ztStlLQSm6+0f0SGRGM5OO6TcZThMvzM1"
		"o8uy7frMC/hTD4OHnl7AxOXI/xJwaEKOo5LDmC/31dUbqnZrYs9FxG3l6VUQBef4Atp9gjv3"
		"5makUbPP"),
	 true},
	{"rsa, flags 4",
	 ("AAAAB3NzaC1yc2EAAAADAQABAAABAQCmiL2UzTgw2MqH2wz6hXe6XvZLqyCH+GzXgU67FxPG"
		"UfAC4m3xTz06QTwQdBG1UnWrW717yeWJzZ0OMnpMUvBnhMSL6QvSvqKmhyZMGR6HbdOohsMb"
		"D5K/b2Xx0t2FcNU1QDA1GlX8qcG86up4gEyOCDVgBbRQQDaFUr4mR6K3lriS6NINh6bB4kmu"
		"zsznAccjyPhx92VslxMXdV6FP2ZVNgaDMtjtshF6DQzhHbQ6DoCQqFd7iEMCUQcR/ZulwPE2"
		"mCpxepcsIPdHR/I32aXdjL30twakN2Xh1JOsHcdG9cu4wwSBVCD0izTOfkYmpNhe9A0agAnP"
		"bH8hl7a8WDzr"),
	 ("AAAADHJzYS1zaGEyLTUxMgAAAQAzL7LTuQetjunkknDjE9J8csX1SyyZxqbbnOKjojX984eY"
		"Ukwb9unr1yIMmRqAKjCGJQuT/s9hBA7rqR3CqI42p1TkjL94PlXfWEnZgtWtw3shD0wgVlFF"
		"H+S936xNtafTX6zgE18lMLZu0drr/pcB3ZDJtC8+CTByFihKSG9pbk2FEl3p1X2nlFkRYEjz"
		"Lh0LCxEachYzW9A2IT6hdreSd3ddUr9bgoyzlBIF8mUMppRSfyVj+Nz93p4tCB1UaH5V5Hgs"
		"g4dgWwBaH0kFU5eLjc9ujgDDCJ4FvIQryhImgAh4+wALGDbkBW0bu9LQZjVujjR6m4ED1KgW"
		"7CtGKFem"),
	 true},
	{"rsa, flags 0",
	 ("AAAAB3NzaC1yc2EAAAADAQABAAABAQCmiL2UzTgw2MqH2wz6hXe6XvZLqyCH+GzXgU67FxPG"
		"UfAC4m3xTz06QTwQdBG1UnWrW717yeWJzZ0OMnpMUvBnhMSL6QvSvqKmhyZMGR6HbdOohsMb"
		"D5K/b2Xx0t2FcNU1QDA1GlX8qcG86up4gEyOCDVgBbRQQDaFUr4mR6K3lriS6NINh6bB4kmu"
		"zsznAccjyPhx92VslxMXdV6FP2ZVNgaDMtjtshF6DQzhHbQ6DoCQqFd7iEMCUQcR/ZulwPE2"
		"mCpxepcsIPdHR/I32aXdjL30twakN2Xh1JOsHcdG9cu4wwSBVCD0izTOfkYmpNhe9A0agAnP"
		"bH8hl7a8WDzr"),
	 ("AAAAB3NzaC1yc2EAAAEAFOXCp75lrkybpZN8ntymKbICijApTY549qvpYsrbMoz1ymuIUH2p"
		"Hr7Bcdhx/2v9DcAwjopeZ/SO5+9xy+sLxnUBt9VOkUf9/u30pwQYP7IlxJGGGJTevtGs6DBb"
		"rM3ItaSWG4XZbuDMJrZDGrQO2ce6uc+rbey25fEd+XB41IAvKZsnb22pJSJnKSxhCK4D/xGx"
		"Qf4163Ds+qVe5ILvRqpjFq7+QXPefmYm9SkqitDfOTvWrF38XdHSVS0rYK+/VD/Pp2MPA6dS"
		"p2jqno53nNg93/w+4Ly4s4RQxiKtj5bHzy2dOkPQTr9Sp36G6ouis9UG7NFMHwUZtuZgdLyK"
		"qw=="),
	 false},
	{"rsa1024, flags 2",
	 ("AAAAB3NzaC1yc2EAAAADAQABAAAAgQDRIoZSp/jgNCVoCamQ1RdsyOLF1UIdVXiMGCdSCnHo"
		"B5ptlJjngSuO+xqwYLmqHkwIMW2eY1oslRIfOLfZAARCa2AHaD7VcHQYeWkRMohQ+hXW+bJ/"
		"BSVjtRMliZ4CFWzLrIHdr470yddjwEvnsyNFCVDjcw3nXq6WlD82v1EDiw=="),
	 ("AAAADHJzYS1zaGEyLTI1NgAAAIAVGeVJsUNn+OxtvJBxnQYr8Syp4V2Vc6p4kLXSGja/081h"
		"GjtW5wjzo5K610fTQFb9iGc6O7HL3A9WeH7okm6GPiILXEA6pTJW7zHIlcuZZPcvqV6XENcZ"
		"HysYakMIZBVR+fOYRxvta6+T4DpgaRLorNlJPzfqk62ROaxs0i46bQ=="),
	 false},
};
/* clang-format on */

#define SIGNED STR("an identifier of a session")

static void read_base64(const char *text, struct buf *out)
{
	buf_init(out, SSH_KEY_MAX);
	assert_true(buf_base64_read(str_of(text), out));
}

static int load(void **state)
{
	struct err err = {0};

	(void)state;
	if (!ssh_verify_load(&err))
		fail_msg("%s", err.text);
	return 0;
}

static void each_kind_of_key_is_checked(void **state)
{
	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(made); i++) {
		struct buf key, signature;

		read_base64(made[i].key, &key);
		read_base64(made[i].signature, &signature);
		if (ssh_verify(buf_str(&key), SIGNED, buf_str(&signature)) != made[i].fine)
			fail_msg("%s", made[i].name);
		assert_false(ssh_verify(buf_str(&key), STR("another session"),
					buf_str(&signature)));
		buf_fini(&signature);
		buf_fini(&key);
	}
}

/* Change each byte in turn; ECDSA and RSA have no second form of a signature either. */
static void a_changed_signature_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(made); i++) {
		struct buf key, signature;

		read_base64(made[i].key, &key);
		read_base64(made[i].signature, &signature);
		for (size_t at = 0; at < signature.size; at++) {
			signature.data[at] ^= 1;
			if (ssh_verify(buf_str(&key), SIGNED, buf_str(&signature)))
				fail_msg("%s: byte %zu", made[i].name, at);
			signature.data[at] ^= 1;
		}
		for (size_t size = 0; size < signature.size; size++)
			assert_false(ssh_verify(buf_str(&key), SIGNED,
						str_part(buf_str(&signature), 0, size)));
		(void)buf_addc(&signature, 0);
		assert_false(ssh_verify(buf_str(&key), SIGNED, buf_str(&signature)));
		buf_fini(&signature);
		buf_fini(&key);
	}
}

static void a_key_of_another_kind_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(made); i++) {
		for (size_t j = 0; j < UNIT_COUNT(made); j++) {
			struct buf key, signature;

			read_base64(made[i].key, &key);
			read_base64(made[j].signature, &signature);
			if (strcmp(made[i].key, made[j].key) != 0)
				assert_false(ssh_verify(buf_str(&key), SIGNED,
							buf_str(&signature)));
			buf_fini(&signature);
			buf_fini(&key);
		}
	}
}

static void a_cut_key_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(made); i++) {
		struct buf key, signature;

		read_base64(made[i].key, &key);
		read_base64(made[i].signature, &signature);
		for (size_t size = 0; size < key.size; size++)
			assert_false(ssh_verify(str_part(buf_str(&key), 0, size), SIGNED,
						buf_str(&signature)));
		(void)buf_addc(&key, 0);
		assert_false(ssh_verify(buf_str(&key), SIGNED, buf_str(&signature)));
		buf_fini(&signature);
		buf_fini(&key);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_key_is_checked),
		cmocka_unit_test(a_changed_signature_is_refused),
		cmocka_unit_test(a_key_of_another_kind_is_refused),
		cmocka_unit_test(a_cut_key_is_refused),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
