/* crypt: the IDEA cipher on an array of bytes, encrypted and decrypted again, blocks shared among the threads.
 *
 *   crypt [THREADS [BYTES]]
 *
 * After Lai and Massey's description: 52 subkeys of 16 bits, eight rounds of multiplication modulo 65537, addition
 * modulo 65536 and exclusive or, and an output transformation; decryption is the same with inverted subkeys.
 * Race-free: a block is read and written by one thread, and a barrier lies between the two passes. */
#include "team.h"
#include <stdint.h>
#include <string.h>

enum { SUBKEYS = 52, ROUNDS = 8, BLOCK = 8 };

struct job {
    const uint8_t *plain;
    uint8_t *cipher, *back;
    uint16_t encrypt[SUBKEYS], decrypt[SUBKEYS];
    long blocks;
};

/* Multiplication modulo 65537, where 0 stands for 65536. */
static uint16_t multiply(uint32_t a, uint32_t b)
{
    if (!a) a = 0x10000;
    if (!b) b = 0x10000;
    return (uint16_t)((uint64_t)a * b % 0x10001);
}

/* a to the power of 65535 is its inverse modulo the prime 65537. */
static uint16_t invert(uint16_t a)
{
    uint16_t result = 1;
    for (unsigned power = 0xffff; power; power >>= 1) {
        if (power & 1) result = multiply(result, a);
        a = multiply(a, a);
    }
    return result;
}

static void make_keys(const uint16_t user[8], uint16_t encrypt[SUBKEYS], uint16_t decrypt[SUBKEYS])
{
    /* The user's 128 bits, and again after each rotation by 25 to the left. */
    for (int i = 0; i < SUBKEYS; i++) {
        int bit = 16 * (i % 8) + 25 * (i / 8);
        uint32_t two = (uint32_t)user[bit / 16 % 8] << 16 | user[(bit / 16 + 1) % 8];
        encrypt[i] = (uint16_t)(two >> (16 - bit % 16));
    }
    for (int round = 0; round <= ROUNDS; round++) {
        const uint16_t *from = encrypt + 6 * (ROUNDS - round);
        uint16_t *to = decrypt + 6 * round;
        int crossed = round > 0 && round < ROUNDS; // the middle words change places between rounds
        to[0] = invert(from[0]);
        to[1] = (uint16_t)-from[crossed ? 2 : 1];
        to[2] = (uint16_t)-from[crossed ? 1 : 2];
        to[3] = invert(from[3]);
        if (round < ROUNDS) {
            to[4] = from[-2];
            to[5] = from[-1];
        }
    }
}

static void cipher_block(const uint8_t *from, uint8_t *to, const uint16_t *key)
{
    uint16_t x[4];
    for (int i = 0; i < 4; i++)
        x[i] = (uint16_t)(from[2 * i] | from[2 * i + 1] << 8);
    for (int round = 0; round < ROUNDS; round++, key += 6) {
        x[0] = multiply(x[0], key[0]);
        x[1] = (uint16_t)(x[1] + key[1]);
        x[2] = (uint16_t)(x[2] + key[2]);
        x[3] = multiply(x[3], key[3]);
        uint16_t left = multiply(x[0] ^ x[2], key[4]);
        uint16_t right = multiply((uint16_t)((x[1] ^ x[3]) + left), key[5]);
        left = (uint16_t)(left + right);
        x[0] ^= right;
        x[3] ^= left;
        uint16_t kept = x[1] ^ left;
        x[1] = x[2] ^ right;
        x[2] = kept;
    }
    uint16_t out[4] = {multiply(x[0], key[0]), (uint16_t)(x[2] + key[1]), (uint16_t)(x[1] + key[2]),
                       multiply(x[3], key[3])};
    for (int i = 0; i < 4; i++) {
        to[2 * i] = (uint8_t)out[i];
        to[2 * i + 1] = (uint8_t)(out[i] >> 8);
    }
}

static void body(void *data)
{
    struct job *job = data;
    TEAM_FOR(i, job->blocks)
        cipher_block(job->plain + BLOCK * i, job->cipher + BLOCK * i, job->encrypt);
    team_barrier();
    TEAM_FOR(i, job->blocks)
        cipher_block(job->cipher + BLOCK * i, job->back + BLOCK * i, job->decrypt);
}

int main(int argc, char **argv)
{
    long threads = 2, bytes = 300000;
    team_arguments(argc, argv, &threads, &bytes);
    static struct job job;
    job.blocks = (bytes + BLOCK - 1) / BLOCK;
    size_t length = (size_t)job.blocks * BLOCK;
    uint8_t *plain = team_alloc(length, 1);
    job.cipher = team_alloc(length, 1);
    job.back = team_alloc(length, 1);
    uint32_t seed = 136506717;
    for (size_t i = 0; i < length; i++) {
        seed = seed * 1664525 + 1013904223;
        plain[i] = (uint8_t)(seed >> 24);
    }
    job.plain = plain;
    const uint16_t user[8] = {0x1f2e, 0x3d4c, 0x5b6a, 0x7988, 0x97a6, 0xb5c4, 0xd3e2, 0xf101};
    make_keys(user, job.encrypt, job.decrypt);
    team_run(threads, body, &job);
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ job.cipher[i]) * 1099511628211u;
    int same = !memcmp(plain, job.back, length) && memcmp(plain, job.cipher, length);
    printf("crypt %zu bytes: %016llx %s\n", length, (unsigned long long)sum, same ? "valid" : "INVALID");
    free(plain);
    free(job.cipher);
    free(job.back);
    return !same;
}
