// Softmax, layer norm and log-sum-exp of rows with the gradients of weighted sums, written as one pass over a row for
// each reduction, so that a row stays in the cache.

#include "peer.h"
#include <string.h>

PEER(softmax) {
    const int64_t rows = size[0], n = size[1];
    const real *x = IN(0), *w = IN(1);
    real *d = OUT(1);
    real total = 0;
#pragma omp parallel for reduction(+ : total) if (rows * n > MANY)
    for (int64_t r = 0; r < rows; r++) {
        const real *restrict xr = x + r * n, *restrict wr = w + r * n;
        real *restrict dr = d + r * n;
        real most = xr[0];
        for (int64_t i = 1; i < n; i++) most = xr[i] > most ? xr[i] : most;
        real sum = 0, dot = 0;
        for (int64_t i = 0; i < n; i++) {
            real e = exp(xr[i] - most);
            dr[i] = e;
            sum += e;
            dot += e * wr[i];
        }
        const real scale = R(1) / sum, value = dot * scale;
        for (int64_t i = 0; i < n; i++) dr[i] = dr[i] * scale * (wr[i] - value);
        total += value;
    }
    OUT(0)[0] = total;
}

PEER(logsumexp) {
    const int64_t rows = size[0], n = size[1];
    const real *x = IN(0), *w = IN(1);
    real *d = OUT(1);
    real total = 0;
#pragma omp parallel for reduction(+ : total) if (rows * n > MANY)
    for (int64_t r = 0; r < rows; r++) {
        const real *restrict xr = x + r * n;
        real *restrict dr = d + r * n;
        real most = xr[0];
        for (int64_t i = 1; i < n; i++) most = xr[i] > most ? xr[i] : most;
        real sum = 0;
        for (int64_t i = 0; i < n; i++) {
            real e = exp(xr[i] - most);
            dr[i] = e;
            sum += e;
        }
        const real scale = w[r] / sum;
        for (int64_t i = 0; i < n; i++) dr[i] *= scale;
        total += w[r] * (most + log(sum));
    }
    OUT(0)[0] = total;
}

PEER(layer_norm) {
    const int64_t rows = size[0], n = size[1];
    const real *x = IN(0), *scale = IN(1), *shift = IN(2), *w = IN(3);
    real *d = OUT(1), *d_scale = OUT(2), *d_shift = OUT(3);
    memset(d_scale, 0, n * sizeof(real));
    memset(d_shift, 0, n * sizeof(real));
    real total = 0;
#pragma omp parallel for reduction(+ : total, d_scale[:n], d_shift[:n]) if (rows * n > MANY)
    for (int64_t r = 0; r < rows; r++) {
        const real *restrict xr = x + r * n, *restrict wr = w + r * n;
        real *restrict dr = d + r * n;
        real sum = 0;
        for (int64_t i = 0; i < n; i++) sum += xr[i];
        const real mean = sum / n;
        real squares = 0;
        for (int64_t i = 0; i < n; i++) squares += (xr[i] - mean) * (xr[i] - mean);
        const real inverse = R(1) / sqrt(squares / n + R(1e-5));
        // g is the cotangent of the normal value; its mean, and its mean with the normal value, are taken off it.
        real value = 0, g_sum = 0, g_normal = 0;
        for (int64_t i = 0; i < n; i++) {
            real normal = (xr[i] - mean) * inverse, g = wr[i] * scale[i];
            value += wr[i] * (normal * scale[i] + shift[i]);
            g_sum += g;
            g_normal += g * normal;
            d_scale[i] += wr[i] * normal;
            d_shift[i] += wr[i];
        }
        const real a = g_sum / n, b = g_normal / n;
        for (int64_t i = 0; i < n; i++) {
            real normal = (xr[i] - mean) * inverse;
            dr[i] = inverse * (wr[i] * scale[i] - a - normal * b);
        }
        total += value;
    }
    OUT(0)[0] = total;
}
