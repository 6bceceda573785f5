// Operations on places of arrays as plain loops.

#include <string.h>

#include "peer.h"

#define PLACES(i) ((const int64_t *)in[i])
#define MOST 10

PEER(take) {
    const int64_t n = size[0], *at = PLACES(1);
    const real *restrict x = IN(0);
    real *restrict y = OUT(0);
#pragma omp parallel for if (n > MANY)
    for (int64_t i = 0; i < n; i++) y[i] = x[at[i]];
}

PEER(take_rows) {
    const int64_t n = size[0], width = size[1], *at = PLACES(1);
    const real *restrict x = IN(0);
    real *restrict y = OUT(0);
#pragma omp parallel for if (n * width > MANY)
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++) y[i * width + j] = x[at[i] * width + j];
}

PEER(scatter_add) {
    const int64_t n = size[0], *at = PLACES(1);
    const real *restrict x = IN(0);
    real *restrict y = OUT(0);
    memset(y, 0, sizeof(real) * n);
    for (int64_t i = 0; i < n; i++) y[at[i]] += x[i];
}

PEER(scatter_add_rows) {
    const int64_t n = size[0], width = size[1], *at = PLACES(1);
    const real *restrict x = IN(0);
    real *restrict y = OUT(0);
    memset(y, 0, sizeof(real) * n * width);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++) y[at[i] * width + j] += x[i * width + j];
}

// The smallest first, which is a loop of vectors; then its place.
PEER(argmin_rows) {
    const int64_t n = size[0], width = size[1];
    const real *x = IN(0);
    real *y = OUT(0);
#pragma omp parallel for if (n * width > MANY)
    for (int64_t i = 0; i < n; i++) {
        const real *row = x + i * width;
        real least = row[0];
        for (int64_t j = 1; j < width; j++) least = row[j] < least ? row[j] : least;
        int64_t j = 0;
        while (row[j] != least) j++;
        y[i] = j;
    }
}

PEER(argmax_columns) {
    const int64_t n = size[0], width = size[1];
    const real *restrict x = IN(0);
    real *restrict y = OUT(0), *restrict most = malloc(sizeof(real) * width);
    for (int64_t j = 0; j < width; j++) most[j] = x[j], y[j] = 0;
    for (int64_t i = 1; i < n; i++)
        for (int64_t j = 0; j < width; j++) {
            const int more = x[i * width + j] > most[j];
            y[j] = more ? i : y[j];
            most[j] = more ? x[i * width + j] : most[j];
        }
    free(most);
}

PEER(cumsum_last) {
    const int64_t n = size[0], width = size[1];
    const real *restrict x = IN(0);
    real *restrict y = OUT(0);
#pragma omp parallel for if (n * width > MANY)
    for (int64_t i = 0; i < n; i++) {
        real sum = 0;
        for (int64_t j = 0; j < width; j++) y[i * width + j] = sum += x[i * width + j];
    }
}

PEER(cumsum_first) {
    const int64_t n = size[0], width = size[1];
    const real *restrict x = IN(0);
    real *restrict y = OUT(0);
    memcpy(y, x, sizeof(real) * width);
    for (int64_t i = 1; i < n; i++)
        for (int64_t j = 0; j < width; j++) y[i * width + j] = y[(i - 1) * width + j] + x[i * width + j];
}

static int order(const void *a, const void *b) {
    const real x = *(const real *)a, y = *(const real *)b;
    return (x > y) - (x < y);
}

PEER(sort) {
    memcpy(OUT(0), IN(0), sizeof(real) * size[0]);
    qsort(OUT(0), size[0], sizeof(real), order);
}

PEER(sort_rows) {
    const int64_t n = size[0], width = size[1];
    real *y = OUT(0);
    memcpy(y, IN(0), sizeof(real) * n * width);
#pragma omp parallel for if (n * width > MANY)
    for (int64_t i = 0; i < n; i++) qsort(y + i * width, width, sizeof(real), order);
}

// The most so far in order; few numbers are larger than the last of them.
PEER(top_k) {
    const int64_t n = size[0], width = size[1];
    const real *x = IN(0);
    real *y = OUT(0);
#pragma omp parallel for if (n * width > MANY)
    for (int64_t i = 0; i < n; i++) {
        const real *row = x + i * width;
        real *best = y + i * MOST;
        for (int64_t j = 0; j < MOST; j++) best[j] = R(-1e30);
        for (int64_t j = 0; j < width; j++) {
            if (row[j] <= best[MOST - 1]) continue;
            int64_t at = MOST - 1;
            for (; at > 0 && best[at - 1] < row[j]; at--) best[at] = best[at - 1];
            best[at] = row[j];
        }
    }
}

PEER(stack) {
    const int64_t n = size[0];
    const real *restrict a = IN(0), *restrict b = IN(1);
    real *restrict y = OUT(0);
#pragma omp parallel for if (n > MANY)
    for (int64_t i = 0; i < n; i++) y[2 * i] = 2 * a[i], y[2 * i + 1] = a[i] + b[i];
}

PEER(concatenate) {
    const int64_t n = size[0], width = size[1];
    const real *restrict a = IN(0), *restrict b = IN(1);
    real *restrict y = OUT(0);
#pragma omp parallel for if (n * width > MANY)
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < width; j++) y[2 * i * width + j] = 2 * a[i * width + j];
        for (int64_t j = 0; j < width; j++) y[(2 * i + 1) * width + j] = a[i * width + j] + b[i * width + j];
    }
}

PEER(pad) {
    const int64_t n = size[0], width = size[1], wide = width + 2;
    const real *restrict x = IN(0);
    real *restrict y = OUT(0);
    memset(y, 0, sizeof(real) * wide);
#pragma omp parallel for if (n * width > MANY)
    for (int64_t i = 0; i < n; i++) {
        real *row = y + (i + 1) * wide;
        row[0] = row[wide - 1] = 0;
        for (int64_t j = 0; j < width; j++) row[j + 1] = 2 * x[i * width + j];
    }
    memset(y + (n + 1) * wide, 0, sizeof(real) * wide);
}

// Blocks that stay in the first cache from both sides.
#define SIDE 32

PEER(transpose) {
    const int64_t n = size[0], width = size[1];
    const real *restrict x = IN(0);
    real *restrict y = OUT(0);
#pragma omp parallel for if (n * width > MANY)
    for (int64_t from = 0; from < n; from += SIDE)
        for (int64_t left = 0; left < width; left += SIDE)
            for (int64_t j = left; j < width && j < left + SIDE; j++)
                for (int64_t i = from; i < n && i < from + SIDE; i++) y[j * n + i] = x[i * width + j];
}

PEER(transpose_rows) { transpose(size, in, out); }
