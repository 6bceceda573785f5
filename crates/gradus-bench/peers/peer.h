// What all C peers share. Each file is compiled once with REAL=float and once with REAL=double; <tgmath.h> then picks
// expf or exp, and -ffast-math lets the compiler use the vector versions of libmvec.
//
// With -fopenmp the loops marked below use all cores; without, the marks mean nothing.

#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <tgmath.h>

typedef REAL real;
#define R(x) ((real)(x))

// Every peer has this signature: sizes, inputs, outputs. Callers own all memory and align it to 64 bytes.
#define PEER(name) void name(const int64_t *size, const void *const *in, void *const *out)
#define IN(i) ((const real *)__builtin_assume_aligned(in[i], 64))
#define OUT(i) ((real *)__builtin_assume_aligned(out[i], 64))

// Below this many elements starting threads costs more than it saves.
#define MANY 32768
