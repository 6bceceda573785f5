// Programs of GradBench with derivatives worked out by hand: clustering, least squares, log-sum-exp, bundle adjustment and
// a mixture of Gaussians.

#include <string.h>

#include "peer.h"

// More than any distance here: the compiler is told that nothing is infinite.
#define FAR R(1e30)
#define PLACES(i) ((const int64_t *)in[i])

// Centroids are taken in tiles that stay in the first cache while a block of points passes by.
#define TILE 128
#define POINTS 64

// The nearest centroid of some points and its squared distance. `t` has the centroids with dimensions as rows.
static inline void nearest(const real *restrict t, const real *restrict p, int64_t k, int64_t count, int64_t d,
                           real *restrict least, int64_t *restrict at) {
    for (int64_t i = 0; i < count; i++) least[i] = FAR, at[i] = 0;
    for (int64_t from = 0; from < k; from += TILE) {
        const int64_t width = k - from < TILE ? k - from : TILE;
        for (int64_t i = 0; i < count; i++) {
            real square[TILE], smallest = FAR;
            for (int64_t j = 0; j < width; j++) {
                real sum = 0;
                for (int64_t l = 0; l < d; l++) {
                    real off = p[i * d + l] - t[l * k + from + j];
                    sum += off * off;
                }
                square[j] = sum;
                smallest = sum < smallest ? sum : smallest;
            }
            if (smallest < least[i]) {
                int64_t j = 0;
                while (square[j] != smallest) j++;
                least[i] = smallest;
                at[i] = from + j;
            }
        }
    }
}

// A number of dimensions that is known lets the compiler keep a point in registers.
static void nearest_of(const real *t, const real *p, int64_t k, int64_t count, int64_t d, real *least, int64_t *at) {
    if (d == 8) nearest(t, p, k, count, 8, least, at);
    else nearest(t, p, k, count, d, least, at);
}

static real *transposed(const real *c, int64_t k, int64_t d) {
    real *t = malloc(sizeof(real) * k * d);
    for (int64_t j = 0; j < k; j++)
        for (int64_t l = 0; l < d; l++) t[l * k + j] = c[j * d + l];
    return t;
}

PEER(kmeans_cost) {
    const int64_t k = size[0], n = size[1], d = size[2];
    const real *p = IN(1);
    real *t = transposed(IN(0), k, d), total = 0;
#pragma omp parallel for reduction(+ : total) if (n * k > MANY)
    for (int64_t from = 0; from < n; from += POINTS) {
        const int64_t count = n - from < POINTS ? n - from : POINTS;
        real least[POINTS];
        int64_t at[POINTS];
        nearest_of(t, p + from * d, k, count, d, least, at);
        for (int64_t i = 0; i < count; i++) total += least[i];
    }
    free(t);
    OUT(0)[0] = total;
}

PEER(kmeans) {
    const int64_t k = size[0], n = size[1], d = size[2];
    const real *c = IN(0), *p = IN(1);
    real *t = transposed(c, k, d), *sums = OUT(0);
    int64_t *all = malloc(sizeof(int64_t) * n), *counts = calloc(k, sizeof(int64_t));
#pragma omp parallel for if (n * k > MANY)
    for (int64_t from = 0; from < n; from += POINTS) {
        const int64_t count = n - from < POINTS ? n - from : POINTS;
        real least[POINTS];
        nearest_of(t, p + from * d, k, count, d, least, all + from);
    }
    memset(sums, 0, sizeof(real) * k * d);
    for (int64_t i = 0; i < n; i++) {
        counts[all[i]]++;
        for (int64_t l = 0; l < d; l++) sums[all[i] * d + l] += p[i * d + l];
    }
    for (int64_t j = 0; j < k; j++)
        for (int64_t l = 0; l < d; l++) sums[j * d + l] = c[j * d + l] - sums[j * d + l] / counts[j];
    free(t);
    free(all);
    free(counts);
}

PEER(llsq) {
    const int64_t n = size[0], m = size[1];
    const real *x = IN(0);
    real *restrict g = OUT(0);
    memset(g, 0, sizeof(real) * m);
    for (int64_t i = 0; i < n; i++) {
        const real t = R(-1) + R(2) * i / (n - 1);
        real off = (t > 0) - (t < 0), power = 1;
        for (int64_t j = 0; j < m; j++) {
            off -= x[j] * power;
            power *= t;
        }
        power = 1;
        for (int64_t j = 0; j < m; j++) {
            g[j] -= off * power;
            power *= t;
        }
    }
}

PEER(llsq_short) { llsq(size, in, out); }

PEER(lse) {
    const int64_t n = size[0];
    const real *x = IN(0);
    real *restrict g = OUT(0), most = x[0], sum = 0;
#pragma omp parallel for reduction(max : most) if (n > MANY)
    for (int64_t i = 0; i < n; i++) most = x[i] > most ? x[i] : most;
#pragma omp parallel for reduction(+ : sum) if (n > MANY)
    for (int64_t i = 0; i < n; i++) sum += g[i] = exp(x[i] - most);
    const real part = 1 / sum;
#pragma omp parallel for if (n > MANY)
    for (int64_t i = 0; i < n; i++) g[i] *= part;
}

static inline void cross(const real *a, const real *b, real *c) {
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

static inline real dot(const real *a, const real *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

// A turned point, how it changes with the point (rows of a matrix) and with each number of the rotation.
static inline void turn(const real *rotation, const real *x, real *y, real r[3][3], real by[3][3]) {
    const real square = dot(rotation, rotation);
    if (square == 0) {
        real off[3];
        cross(rotation, x, off);
        for (int i = 0; i < 3; i++) {
            real e[3] = {i == 0, i == 1, i == 2};
            y[i] = x[i] + off[i];
            cross(e, x, by[i]);
            for (int j = 0; j < 3; j++) r[i][j] = i == j;
        }
        r[0][1] = -rotation[2], r[0][2] = rotation[1], r[1][0] = rotation[2];
        r[1][2] = -rotation[0], r[2][0] = -rotation[1], r[2][1] = rotation[0];
        return;
    }
    const real angle = sqrt(square), inverse = 1 / angle, s = sin(angle), c = cos(angle), d = 1 - c;
    const real w[3] = {rotation[0] * inverse, rotation[1] * inverse, rotation[2] * inverse};
    const real along = dot(w, x);
    real side[3];
    cross(w, x, side);
    for (int i = 0; i < 3; i++) y[i] = c * x[i] + s * side[i] + d * along * w[i];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) r[i][j] = d * w[i] * w[j] + (i == j ? c : 0);
    r[0][1] -= s * w[2], r[0][2] += s * w[1], r[1][0] += s * w[2];
    r[1][2] -= s * w[0], r[2][0] -= s * w[1], r[2][1] += s * w[0];
    for (int i = 0; i < 3; i++) {
        // The axis moves across itself, the angle by what of the step is along it.
        real dw[3], moved[3];
        for (int j = 0; j < 3; j++) dw[j] = ((i == j) - w[i] * w[j]) * inverse;
        cross(dw, x, moved);
        const real dalong = dot(dw, x);
        for (int j = 0; j < 3; j++)
            by[i][j] = w[i] * (c * side[j] - s * x[j] + s * along * w[j]) + s * moved[j] +
                       d * (dw[j] * along + w[j] * dalong);
    }
}

PEER(ba) {
    const int64_t count = size[2];
    const real *cameras = IN(0), *points = IN(1), *weights = IN(2), *features = IN(5);
    const int64_t *camera = PLACES(3), *point = PLACES(4);
    real *restrict blocks = OUT(0), *restrict by_weight = OUT(1);
#pragma omp parallel for if (count > 1024)
    for (int64_t o = 0; o < count; o++) {
        const real *cam = cameras + 11 * camera[o], *x = points + 3 * point[o], w = weights[o];
        const real off[3] = {x[0] - cam[3], x[1] - cam[4], x[2] - cam[5]};
        real y[3], r[3][3], by[3][3];
        turn(cam, off, y, r, by);
        const real depth = 1 / y[2], p[2] = {y[0] * depth, y[1] * depth}, f = cam[6];
        const real square = p[0] * p[0] + p[1] * p[1];
        const real far = 1 + cam[9] * square + cam[10] * square * square, slope = 2 * (cam[9] + 2 * cam[10] * square);
        for (int i = 0; i < 2; i++) {
            real *row = blocks + 30 * o + 15 * i;
            // How the place changes with the turned point.
            const real a = w * f * (slope * p[i] * p[0] + (i == 0 ? far : 0));
            const real b = w * f * (slope * p[i] * p[1] + (i == 1 ? far : 0));
            const real e[3] = {a * depth, b * depth, -(a * p[0] + b * p[1]) * depth};
            for (int j = 0; j < 3; j++) {
                row[j] = dot(e, by[j]);
                row[11 + j] = e[0] * r[0][j] + e[1] * r[1][j] + e[2] * r[2][j];
                row[3 + j] = -row[11 + j];
            }
            row[6] = w * p[i] * far;
            row[7] = i == 0 ? w : 0;
            row[8] = i == 1 ? w : 0;
            row[9] = w * f * p[i] * square;
            row[10] = row[9] * square;
            row[14] = p[i] * far * f + cam[7 + i] - features[2 * o + i];
        }
        by_weight[o] = -2 * w;
    }
}

// One thread: GradBench's own has its gradients in one place, too.
PEER(gmm) {
    const int64_t d = size[0], k = size[1], n = size[2], below = d * (d - 1) / 2;
    const real *alpha = IN(0), *mu = IN(1), *q = IN(2), *l = IN(3), *x = IN(4);
    real *restrict by_alpha = OUT(0), *restrict by_mu = OUT(1), *restrict by_q = OUT(2), *restrict by_l = OUT(3);
    real *memory = malloc(sizeof(real) * (3 * k * d + 2 * k + d));
    real *diagonal = memory, *centred = memory + k * d, *turned = memory + 2 * k * d;
    real *sums = memory + 3 * k * d, *terms = sums + k, *back = terms + k;
    memset(by_mu, 0, sizeof(real) * k * d);
    memset(by_l, 0, sizeof(real) * k * below);
    memset(by_q, 0, sizeof(real) * k * d);
    memset(by_alpha, 0, sizeof(real) * k);
    for (int64_t i = 0; i < k * d; i++) diagonal[i] = exp(q[i]);
    for (int64_t c = 0; c < k; c++) {
        sums[c] = 0;
        for (int64_t i = 0; i < d; i++) sums[c] += q[c * d + i];
    }
    for (int64_t o = 0; o < n; o++) {
        real most = -FAR, total = 0;
        for (int64_t c = 0; c < k; c++) {
            real *restrict z = centred + c * d, *restrict y = turned + c * d, square = 0;
            for (int64_t i = 0; i < d; i++) z[i] = x[o * d + i] - mu[c * d + i];
            for (int64_t i = 0; i < d; i++) y[i] = diagonal[c * d + i] * z[i];
            const real *column = l + c * below;
            for (int64_t i = 0; i < d; column += d - 1 - i, i++)
                for (int64_t j = i + 1; j < d; j++) y[j] += column[j - i - 1] * z[i];
            for (int64_t i = 0; i < d; i++) square += y[i] * y[i];
            terms[c] = alpha[c] + sums[c] - R(0.5) * square;
            most = terms[c] > most ? terms[c] : most;
        }
        for (int64_t c = 0; c < k; c++) total += terms[c] = exp(terms[c] - most);
        for (int64_t c = 0; c < k; c++) {
            const real part = terms[c] / total, *restrict z = centred + c * d, *restrict y = turned + c * d;
            by_alpha[c] += part;
            for (int64_t i = 0; i < d; i++) back[i] = diagonal[c * d + i] * y[i];
            for (int64_t i = 0; i < d; i++) by_q[c * d + i] += part * (1 - back[i] * z[i]);
            const real *column = l + c * below;
            real *restrict slope = by_l + c * below;
            for (int64_t i = 0; i < d; column += d - 1 - i, slope += d - 1 - i, i++) {
                real sum = 0;
                const real share = part * z[i];
                for (int64_t j = i + 1; j < d; j++) {
                    sum += column[j - i - 1] * y[j];
                    slope[j - i - 1] -= share * y[j];
                }
                back[i] += sum;
            }
            for (int64_t i = 0; i < d; i++) by_mu[c * d + i] += part * back[i];
        }
    }
    real most = alpha[0], total = 0;
    for (int64_t c = 0; c < k; c++) most = alpha[c] > most ? alpha[c] : most;
    for (int64_t c = 0; c < k; c++) total += exp(alpha[c] - most);
    for (int64_t c = 0; c < k; c++) by_alpha[c] -= n * exp(alpha[c] - most) / total;
    // The prior, with a precision of one and no further degrees of freedom.
    for (int64_t i = 0; i < k * d; i++) by_q[i] -= diagonal[i] * diagonal[i];
    for (int64_t i = 0; i < k * below; i++) by_l[i] -= l[i];
    free(memory);
}
