// One loop for each function; the compiler makes vector code of it. Threads get blocks, each through the same loop: of a
// loop that is parallel itself the compiler calls the scalar functions of the library of mathematics.

#include "peer.h"

#define BLOCK 16384

// Calls `kernel(from, count)` for each block.
#define BLOCKS(n, reduction, kernel)                                                                                   \
    if ((n) <= MANY) {                                                                                                 \
        const int64_t from = 0, count = (n);                                                                           \
        kernel;                                                                                                        \
    } else {                                                                                                           \
        _Pragma(reduction) for (int64_t from = 0; from < (n); from += BLOCK) {                                         \
            const int64_t count = (n) - from < BLOCK ? (n) - from : BLOCK;                                             \
            kernel;                                                                                                    \
        }                                                                                                              \
    }
#define PARALLEL "omp parallel for"

static void polynomial_block(const real *restrict x, real *restrict y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = ((R(0.3) * x[i] - R(1.1)) * x[i] + R(0.7)) * x[i] + R(0.25);
}

PEER(polynomial) {
    BLOCKS(size[0], PARALLEL, polynomial_block(IN(0) + from, OUT(0) + from, count))
}

static void tanh_block(const real *restrict x, real *restrict y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = tanh(R(1.3) * x[i] + R(0.2)) * x[i];
}

// The case is called tanh, which is taken.
PEER(tanh_) {
    BLOCKS(size[0], PARALLEL, tanh_block(IN(0) + from, OUT(0) + from, count))
}

static void gelu_erf_block(const real *restrict x, real *restrict y, real *restrict d, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        real below = R(0.5) * (R(1) + erf(x[i] * R(0.70710678118654752)));
        y[i] = x[i] * below;
        d[i] = below + x[i] * R(0.39894228040143268) * exp(R(-0.5) * x[i] * x[i]);
    }
}

PEER(gelu_erf) {
    BLOCKS(size[0], PARALLEL, gelu_erf_block(IN(0) + from, OUT(0) + from, OUT(1) + from, count))
}

static void gelu_tanh_block(const real *restrict x, real *restrict y, real *restrict d, int64_t n) {
    const real a = R(0.79788456080286536), b = R(0.044715);
    for (int64_t i = 0; i < n; i++) {
        real square = x[i] * x[i];
        real t = tanh(a * x[i] * (R(1) + b * square));
        real below = R(0.5) * (R(1) + t);
        y[i] = x[i] * below;
        d[i] = below + R(0.5) * x[i] * (R(1) - t * t) * a * (R(1) + R(3) * b * square);
    }
}

PEER(gelu_tanh) {
    BLOCKS(size[0], PARALLEL, gelu_tanh_block(IN(0) + from, OUT(0) + from, OUT(1) + from, count))
}

static real sum_exp_block(const real *restrict x, int64_t n) {
    real sum = 0;
    for (int64_t i = 0; i < n; i++) sum += exp(x[i] - R(2.5));
    return sum;
}

PEER(sum_exp) {
    real sum = 0;
    BLOCKS(size[0], "omp parallel for reduction(+ : sum)", sum += sum_exp_block(IN(0) + from, count))
    OUT(0)[0] = sum;
}
