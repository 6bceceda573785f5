// The energy gradient of bodies, and Jacobians of two chains of small matrices worked out by hand. Points lie together
// in memory; a block of them is spread out first, so that every operation is one of vectors.

#include "peer.h"

#define MOST_BODIES 4096

PEER(nbody) {
    const int64_t n = size[0];
    const real *restrict p = IN(0), *restrict m = IN(1);
    real *restrict d = OUT(1);
    static real x[MOST_BODIES], y[MOST_BODIES], z[MOST_BODIES];
    if (n > MOST_BODIES) abort();
    for (int64_t i = 0; i < n; i++) x[i] = p[3 * i], y[i] = p[3 * i + 1], z[i] = p[3 * i + 2];
    real energy = 0;
#pragma omp parallel for reduction(+ : energy) if (n * n > MANY)
    for (int64_t i = 0; i < n; i++) {
        real e = 0, gx = 0, gy = 0, gz = 0;
        for (int64_t j = 0; j < n; j++) {
            real dx = x[i] - x[j], dy = y[i] - y[j], dz = z[i] - z[j];
            real inverse = R(1) / sqrt(dx * dx + dy * dy + dz * dz + R(0.01));
            real part = m[j] * inverse, force = part * inverse * inverse;
            e += part;
            gx += force * dx;
            gy += force * dy;
            gz += force * dz;
        }
        energy += m[i] * e;
        d[3 * i] = m[i] * gx;
        d[3 * i + 1] = m[i] * gy;
        d[3 * i + 2] = m[i] * gz;
    }
    OUT(0)[0] = R(-0.5) * energy;
}

#define BLOCK 128

// The Jacobian's columns: how the three results change with each coordinate.
typedef struct {
    real v[9][BLOCK];
} jacobians;

static inline void gather(const real *p, int64_t n, real (*restrict c)[BLOCK]) {
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) c[k][i] = p[3 * i + k];
}

// Sines and cosines in loops of their own: of both in one loop the compiler makes `sincos`, which has no vector version.
static inline void angles(int first, real (*restrict c)[BLOCK], int64_t n, real (*restrict s)[BLOCK],
                          real (*restrict t)[BLOCK]) {
    for (int k = first; k < 3; k++)
        for (int64_t i = 0; i < n; i++) s[k][i] = sin(c[k][i]);
    for (int k = first; k < 3; k++)
        for (int64_t i = 0; i < n; i++) t[k][i] = cos(c[k][i]);
}

static inline void scatter(real *restrict d, int64_t n, const jacobians *j) {
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 9; k++) d[9 * i + k] = j->v[k][i];
}

PEER(chain3) {
    const int64_t n = size[0];
    const real *p = IN(0);
    real *d = OUT(0);
#pragma omp parallel for if (n > 1024)
    for (int64_t from = 0; from < n; from += BLOCK) {
        const int64_t count = n - from < BLOCK ? n - from : BLOCK;
        real c[3][BLOCK], s[3][BLOCK], t[3][BLOCK];
        jacobians j;
        gather(p + 3 * from, count, c);
        angles(0, c, count, s, t);
        for (int64_t i = 0; i < count; i++) {
            const real sa = s[0][i], ca = t[0][i], sb = s[1][i], cb = t[1][i], sc = s[2][i], cc = t[2][i];
            const real qx = c[0][i] + R(0.3), qy = c[1][i] - R(0.2), qz = c[2][i] + R(1.5);
            // q turned about x, then y, then z.
            const real ux = qx, uy = ca * qy - sa * qz, uz = sa * qy + ca * qz;
            const real vx = cb * ux + sb * uz, vy = uy, vz = cb * uz - sb * ux;
            const real wx = cc * vx - sc * vy, wy = sc * vx + cc * vy, wz = vz;
            // Columns of the rotation, and what the angles add to them: turning about x moves u by (0, -uz, uy).
            const real m00 = cc * cb, m10 = sc * cb, m20 = -sb;
            const real m01 = cc * sb * sa - sc * ca, m11 = sc * sb * sa + cc * ca, m21 = cb * sa;
            const real m02 = cc * sb * ca + sc * sa, m12 = sc * sb * ca - cc * sa, m22 = cb * ca;
            const real ax = sb * uy, ay = -uz, az = cb * uy;
            const real w0x = m00 + cc * ax - sc * ay, w0y = m10 + sc * ax + cc * ay, w0z = m20 + az;
            const real bx = vz, bz = -vx;
            const real w1x = m01 + cc * bx, w1y = m11 + sc * bx, w1z = m21 + bz;
            const real w2x = m02 - wy, w2y = m12 + wx, w2z = m22;
            // Rotations keep the length, so that of q is what w is divided by.
            const real inverse = R(1) / sqrt(qx * qx + qy * qy + qz * qz), square = inverse * inverse;
            const real nx = wx * inverse, ny = wy * inverse, nz = wz * inverse;
            const real depth = R(1) / (nz + R(2)), px = nx * depth, py = ny * depth;
#define COLUMN(k, dx, dy, dz, q)                                                                                       \
    {                                                                                                                  \
        const real l = (q) * square;                                                                                   \
        const real ex = (dx) * inverse - nx * l, ey = (dy) * inverse - ny * l, ez = (dz) * inverse - nz * l;           \
        j.v[k][i] = (ex - px * ez) * depth;                                                                            \
        j.v[3 + k][i] = (ey - py * ez) * depth;                                                                        \
        j.v[6 + k][i] = ez;                                                                                            \
    }
            COLUMN(0, w0x, w0y, w0z, qx)
            COLUMN(1, w1x, w1y, w1z, qy)
            COLUMN(2, w2x, w2y, w2z, qz)
#undef COLUMN
        }
        scatter(d + 9 * from, count, &j);
    }
}

PEER(chain4) {
    const int64_t n = size[0];
    const real *p = IN(0);
    real *d = OUT(0);
#pragma omp parallel for if (n > 1024)
    for (int64_t from = 0; from < n; from += BLOCK) {
        const int64_t count = n - from < BLOCK ? n - from : BLOCK;
        real c[3][BLOCK], s[3][BLOCK], t[3][BLOCK];
        jacobians j;
        gather(p + 3 * from, count, c);
        angles(1, c, count, s, t);
        for (int64_t i = 0; i < count; i++) {
            const real x = c[0][i], y = c[1][i], z = c[2][i];
            const real sy = s[1][i], cy = t[1][i], sz = s[2][i], cz = t[2][i];
            // Turned about z by y, about x by z, shifted, seen in perspective.
            const real ax = cy * x - sy * y, ay = sy * x + cy * y;
            const real by = cz * ay - sz * z, bz = sz * ay + cz * z;
            const real hx = R(1.2) * (ax + R(0.5) * z), hy = R(1.2) * (by - x), tz = bz + R(0.25);
            const real w = R(1) / (tz + R(4)), ox = hx * w, oy = hy * w, oz = (R(1.1) * tz + R(1)) * w;
            const real axy = -sy - ay, ayy = cy + ax;
#define COLUMN(k, dx, dy, dz)                                                                                          \
    {                                                                                                                  \
        const real ez = dz;                                                                                            \
        j.v[k][i] = (R(1.2) * (dx) - ox * ez) * w;                                                                     \
        j.v[3 + k][i] = (R(1.2) * (dy) - oy * ez) * w;                                                                 \
        j.v[6 + k][i] = (R(1.1) - oz) * ez * w;                                                                        \
    }
            COLUMN(0, cy, cz * sy - R(1), sz * sy)
            COLUMN(1, axy, cz * ayy, sz * ayy)
            COLUMN(2, R(0.5), -sz - bz, cz + by)
#undef COLUMN
        }
        scatter(d + 9 * from, count, &j);
    }
}
