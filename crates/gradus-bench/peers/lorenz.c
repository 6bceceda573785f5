// The Lorenz system by Runge-Kutta of order 4, and its adjoint by hand: states are stored, the stages of a step are
// computed again on the way back.

#include "peer.h"

typedef struct {
    real x, y, z;
} state;

static const real SIGMA = R(10), RHO = R(28), BETA = R(8.0 / 3.0);

static inline state slope(state s) {
    return (state){SIGMA * (s.y - s.x), s.x * (RHO - s.z) - s.y, s.x * s.y - BETA * s.z};
}

// The transposed Jacobian of the slope at s, applied to b.
static inline state slope_back(state s, state b) {
    return (state){-SIGMA * b.x + (RHO - s.z) * b.y + s.y * b.z, SIGMA * b.x - b.y + s.x * b.z, -s.x * b.y - BETA * b.z};
}

static inline state moved(state s, state k, real h) {
    return (state){s.x + h * k.x, s.y + h * k.y, s.z + h * k.z};
}

static inline state step(state s, real h) {
    state k1 = slope(s);
    state k2 = slope(moved(s, k1, h / 2));
    state k3 = slope(moved(s, k2, h / 2));
    state k4 = slope(moved(s, k3, h));
    state k = {k1.x + 2 * (k2.x + k3.x) + k4.x, k1.y + 2 * (k2.y + k3.y) + k4.y, k1.z + 2 * (k2.z + k3.z) + k4.z};
    return moved(s, k, h / 6);
}

static inline state step_back(state s, state b, real h) {
    state s2 = moved(s, slope(s), h / 2);
    state s3 = moved(s, slope(s2), h / 2);
    state s4 = moved(s, slope(s3), h);
    const state zero = {0, 0, 0};
    state b4 = slope_back(s4, moved(zero, b, h / 6));
    state b3 = slope_back(s3, moved(moved(zero, b, h / 3), b4, h));
    state b2 = slope_back(s2, moved(moved(zero, b, h / 3), b3, h / 2));
    state b1 = slope_back(s, moved(moved(zero, b, h / 6), b2, h / 2));
    state sum = {b1.x + b2.x + b3.x + b4.x, b1.y + b2.y + b3.y + b4.y, b1.z + b2.z + b3.z + b4.z};
    return moved(b, sum, R(1));
}

PEER(lorenz) {
    const int64_t n = size[0];
    const real h = R(10) / n;
    state s = {IN(0)[0], IN(0)[1], IN(0)[2]};
    for (int64_t i = 0; i < n; i++) s = step(s, h);
    OUT(0)[0] = s.x;
    OUT(1)[0] = s.y;
    OUT(2)[0] = s.z;
}

PEER(lorenz_gradient) {
    const int64_t n = size[0];
    const real h = R(10) / n;
    // Kept between calls, as a program that calls this often would.
    static state *states = NULL;
    static int64_t room = 0;
    if (room < n) {
        free(states);
        states = malloc(n * sizeof(state));
        room = n;
    }
    state s = {IN(0)[0], IN(0)[1], IN(0)[2]};
    for (int64_t i = 0; i < n; i++) {
        states[i] = s;
        s = step(s, h);
    }
    state b = {1, 1, 1};
    for (int64_t i = n; i-- > 0;) b = step_back(states[i], b, h);
    OUT(0)[0] = s.x + s.y + s.z;
    OUT(1)[0] = b.x;
    OUT(1)[1] = b.y;
    OUT(1)[2] = b.z;
}
