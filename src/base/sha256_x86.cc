#include "base/sha256_x86.h"

#include "base/assert.h"

#if defined(__x86_64__)

#include <immintrin.h>
// A C header: it knows bool under its C name only.
#define _Bool bool  // NOLINT(bugprone-reserved-identifier)
#include <sys/platform/x86.h>
#undef _Bool

namespace capgate {
namespace {

// The fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
alignas(16) constexpr std::uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#define CAPGATE_SHA __attribute__((target("sha,sse4.1,ssse3")))

CAPGATE_SHA __m128i load(const void* at) {
  return _mm_loadu_si128(static_cast<const __m128i*>(at));
}

// The instructions want the state as (a b e f) and (c d g h), highest word first.
struct Halves {
  __m128i abef;
  __m128i cdgh;
};

CAPGATE_SHA Halves split(const Sha256State& s) {
  const auto word = [&](std::size_t i) { return static_cast<int>(s[i]); };
  return {.abef = _mm_set_epi32(word(0), word(1), word(4), word(5)),
          .cdgh = _mm_set_epi32(word(2), word(3), word(6), word(7))};
}

CAPGATE_SHA void join(const Halves& halves, Sha256State& s) {
  alignas(16) std::array<std::uint32_t, 4> abef{};
  alignas(16) std::array<std::uint32_t, 4> cdgh{};
  _mm_store_si128(reinterpret_cast<__m128i*>(abef.data()), halves.abef);
  _mm_store_si128(reinterpret_cast<__m128i*>(cdgh.data()), halves.cdgh);
  s = {abef[3], abef[2], cdgh[3], cdgh[2], abef[1], abef[0], cdgh[1], cdgh[0]};
}

CAPGATE_SHA void fold_block(Halves& state, const unsigned char* data) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i w[4];
  for (std::size_t i = 0; i < 4; ++i) w[i] = _mm_shuffle_epi8(load(data + 16 * i), big_endian);

  const Halves before = state;
  for (std::size_t i = 0; i < 16; ++i) {  // four rounds each
    const __m128i sum = _mm_add_epi32(w[i % 4], load(round_constants + 4 * i));
    state.cdgh = _mm_sha256rnds2_epu32(state.cdgh, state.abef, sum);
    state.abef = _mm_sha256rnds2_epu32(state.abef, state.cdgh, _mm_shuffle_epi32(sum, 0x0e));
    if (i >= 12) continue;  // the message schedule is complete
    const __m128i last = w[(i + 3) % 4];
    const __m128i older = _mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]);
    const __m128i middle = _mm_alignr_epi8(last, w[(i + 2) % 4], 4);
    w[i % 4] = _mm_sha256msg2_epu32(_mm_add_epi32(older, middle), last);
  }
  state.abef = _mm_add_epi32(state.abef, before.abef);
  state.cdgh = _mm_add_epi32(state.cdgh, before.cdgh);
}

}  // namespace

bool has_sha_instructions() {
  return CPU_FEATURE_ACTIVE(SHA) && CPU_FEATURE_ACTIVE(SSE4_1) && CPU_FEATURE_ACTIVE(SSSE3);
}

CAPGATE_SHA void sha256_blocks(Sha256State& state, const unsigned char* data, std::size_t count) {
  Halves halves = split(state);
  for (std::size_t i = 0; i < count; ++i) fold_block(halves, data + 64 * i);
  join(halves, state);
}

}  // namespace capgate

#else

namespace capgate {

bool has_sha_instructions() { return false; }

void sha256_blocks(Sha256State&, const unsigned char*, std::size_t) { CAPGATE_ASSERT(false); }

}  // namespace capgate

#endif
