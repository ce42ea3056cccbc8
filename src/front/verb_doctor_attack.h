/* verb_doctor_attack: `glovebox doctor --attack`, the score of the shipped attacks. */
#pragma once
#include <stdbool.h>

/* Play, print (JSON: one object), and return an exit code. */
int doctor_attack(bool json);
