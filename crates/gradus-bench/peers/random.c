// Random numbers of a key: Threefry-2x32 of the place of each element, and what is made of its bits. The seed is the first input,
// a whole number.

#include "peer.h"

#define BLOCK 16384

static inline uint32_t turned(uint32_t x, int by) { return x << by | x >> (32 - by); }

#define ROUND(by)                                                                                                      \
    a += b;                                                                                                            \
    b = turned(b, by) ^ a;
#define FOUR_ROUNDS(p, q, r, s) ROUND(p) ROUND(q) ROUND(r) ROUND(s)

// The 32 bits of element `high`·2^32 + `low`.
static inline uint32_t bits(uint32_t k0, uint32_t k1, uint32_t high, uint32_t low) {
    const uint32_t k2 = k0 ^ k1 ^ 0x1BD11BDA;
    uint32_t a = high + k0, b = low + k1;
    FOUR_ROUNDS(13, 15, 26, 6)
    a += k1, b += k2 + 1;
    FOUR_ROUNDS(17, 29, 16, 24)
    a += k2, b += k0 + 2;
    FOUR_ROUNDS(13, 15, 26, 6)
    a += k0, b += k1 + 3;
    FOUR_ROUNDS(17, 29, 16, 24)
    a += k1, b += k2 + 4;
    FOUR_ROUNDS(13, 15, 26, 6)
    a += k2, b += k0 + 5;
    return a ^ b;
}

static inline float unit(uint32_t bits) {
    union {
        uint32_t bits;
        float number;
    } u = {bits >> 9 | 0x3f800000};
    return u.number - 1.0f;
}

// The inverse of the error function (M. Giles, 2010), times √2.
static inline float normal(float x) {
    float w = -logf((1.0f - x) * (1.0f + x));
    const int central = w < 5.0f;
    const float at = central ? w - 2.5f : sqrtf(w) - 3.0f;
    float p = central ? 2.81022636e-08f : -0.000200214257f;
    p = p * at + (central ? 3.43273939e-07f : 0.000100950558f);
    p = p * at + (central ? -3.5233877e-06f : 0.00134934322f);
    p = p * at + (central ? -4.39150654e-06f : -0.00367342844f);
    p = p * at + (central ? 0.00021858087f : 0.00573950773f);
    p = p * at + (central ? -0.00125372503f : -0.0076224613f);
    p = p * at + (central ? -0.00417768164f : 0.00943887047f);
    p = p * at + (central ? 0.246640727f : 1.00167406f);
    p = p * at + (central ? 1.50140941f : 2.83297682f);
    return 1.41421356f * p * x;
}

// A block does not cross a multiple of 2^32, so its high word is one number.
#define BLOCK_OF(name, of_bits)                                                                                        \
    static void name(real *restrict y, uint64_t seed, int64_t from, int64_t count) {                                   \
        const uint32_t k0 = seed >> 32, k1 = seed, high = (uint64_t)from >> 32, low = from;                            \
        for (int64_t i = 0; i < count; i++) y[i] = of_bits(bits(k0, k1, high, low + (uint32_t)i));                     \
    }
#define BLOCKS(n, kernel)                                                                                              \
    const uint64_t seed = IN(0)[0];                                                                                    \
    if ((n) <= MANY) {                                                                                                 \
        kernel(OUT(0), seed, 0, (n));                                                                                  \
    } else {                                                                                                           \
        _Pragma("omp parallel for") for (int64_t from = 0; from < (n); from += BLOCK)                                  \
            kernel(OUT(0) + from, seed, from, (n) - from < BLOCK ? (n) - from : BLOCK);                                \
    }

#define TOP(bits) ((float)(int32_t)((bits) >> 8))
#define NORMAL(bits) normal(unit(bits) * 2.0f - 0.99999994f)
BLOCK_OF(bits_block, TOP)
BLOCK_OF(uniform_block, unit)
BLOCK_OF(normal_block, NORMAL)

PEER(random_bits) { BLOCKS(size[0], bits_block) }

PEER(random_uniform) { BLOCKS(size[0], uniform_block) }

PEER(random_normal) { BLOCKS(size[0], normal_block) }
