/* hash: the published SHA-256 examples (FIPS 180-4), ids that differ and have their form. */
#include "base/hash.h"

#include <errno.h>
#include <openssl/evp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/size.h"
#include "tests/check.h"
#include "tests/one_fails.h"

static void check_sha(const void *data, size_t n, const char *expected)
{
    uint8_t digest[HASH_BYTES];
    char hex[2 * HASH_BYTES + 1];
    hash_sha256(digest, data, n);
    hash_hex(hex, digest, sizeof digest);
    CHECK_STR(hex, expected);
}

static void test_sha(void)
{
    check_sha("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_sha(NULL, 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_sha("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

/* Pieces give what the whole gives, and a blob of git its name: `printf 'hello\n' | git hash-object --stdin`. */
static void test_streams(void)
{
    static const char text[] = "hello\n";
    uint8_t whole[HASH_BYTES], digest[HASH_BYTES];
    char hex[2 * HASH_BYTES + 1];
    hash_stream *h = hash_stream_create();
    for (size_t i = 0; h && i < strlen(text); i++) {
        hash_stream_add(h, text + i, 1);
    }
    hash_stream_add(h, NULL, 0);
    hash_stream_end(h, digest);
    hash_stream_destroy(h);
    hash_sha256(whole, text, strlen(text));
    CHECK(memcmp(whole, digest, sizeof whole) == 0);
    h = hash_stream_create_git(strlen(text));
    hash_stream_add(h, text, strlen(text));
    hash_stream_end(h, digest);
    hash_stream_destroy(h);
    hash_hex(hex, digest, 20);
    CHECK_STR(hex, "ce013625030ba8dba906f756967f9e9ca394464a");
    hash_stream_destroy(NULL);
}

static void test_parse_hex(void)
{
    static const struct {
        const char *text;
        bool good;
    } CASES[] = {
        {"00112233445566778899aabbccddeeff00112233445566778899aabbccddee0f", true},
        {"00112233445566778899aabbccddeeff00112233445566778899aabbccddee0", false},
        {"00112233445566778899aabbccddeeff00112233445566778899aabbccddee0f0", false},
        {"", false},
        {"g0112233445566778899aabbccddeeff00112233445566778899aabbccddee0f", false},
        {"00112233445566778899aabbccddeeff00112233445566778899aabbccddee0 ", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        uint8_t out[HASH_BYTES];
        char hex[2 * HASH_BYTES + 1];
        CHECK_INT(hash_parse_hex(out, CASES[i].text), CASES[i].good);
        if (CASES[i].good) {
            hash_hex(hex, out, sizeof out);
            CHECK_STR(hex, CASES[i].text);
        }
    }
}

static void test_ids(void)
{
    char a[64], b[64], small[8];
    hash_random_id(a, sizeof a, "resp_");
    hash_random_id(b, sizeof b, "resp_");
    CHECK_INT(strlen(a), 5 + HASH_ID_CHARS);
    CHECK(strncmp(a, "resp_", 5) == 0);
    CHECK_INT(strspn(a + 5, "0123456789abcdef"), HASH_ID_CHARS);
    CHECK(strcmp(a, b) != 0);
    hash_random_id(small, sizeof small, "r_");
    CHECK_INT(strlen(small), sizeof small - 1);
    CHECK(hash_random_u64() != hash_random_u64());
}

/* What the system's generator says, byte by byte, while every other call fails. */
static bool is_counting;
static uint8_t n_random;

ssize_t __real_getrandom(void *to, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t n, unsigned flags)
{
    static bool fails;
    if (!is_counting) {
        return __real_getrandom(to, n, flags);
    }
    fails = !fails;
    if (fails || n == 0) {
        errno = EINTR;
        return -1;
    }
    *(uint8_t *)to = n_random++;
    return 1;
}

static void test_random(void)
{
    char id[64];
    is_counting = true;
    hash_random_id(id, sizeof id, "r_");
    CHECK_STR(id, "r_000102030405060708090a0b0c0d0e0f");
    n_random = 1;
    const uint64_t value = hash_random_u64();
    CHECK(memcmp(&value, "\1\2\3\4\5\6\7\x08", 8) == 0);
    is_counting = false;
}

/* A library that refuses: there is no stream, and no sum is made up. */
ONE_FAILS(EVP_MD_CTX *, EVP_MD_CTX_new, (void), (), NULL)
ONE_FAILS(int, EVP_DigestInit_ex, (EVP_MD_CTX * c, const EVP_MD *kind, ENGINE *by), (c, kind, by), 0)
ONE_FAILS(int, EVP_DigestUpdate, (EVP_MD_CTX * c, const void *data, size_t n), (c, data, n), 0)
ONE_FAILS(int, EVP_DigestFinal_ex, (EVP_MD_CTX * c, unsigned char *out, unsigned *n), (c, out, n), 0)
ONE_FAILS(int, EVP_Digest,
          (const void *data, size_t n, unsigned char *out, unsigned *length, const EVP_MD *kind, ENGINE *by),
          (data, n, out, length, kind, by), 0)

static void test_refused(void)
{
    static const char *const BEFORE[] = {"EVP_MD_CTX_new", "EVP_DigestInit_ex"}, *const LATER[] = {
                                                                                     "EVP_DigestUpdate",
                                                                                     "EVP_DigestFinal_ex",
                                                                                     "EVP_Digest"};
    for (size_t i = 0; i < ARRAY_LEN(BEFORE); i++) {
        one_fails(BEFORE[i], 1);
        CHECK(!hash_stream_create() && one_fails_over());
        one_fails(BEFORE[i], 1);
        CHECK(!hash_stream_create_git(1) && one_fails_over());
    }
    for (size_t i = 0; i < ARRAY_LEN(LATER); i++) {
        const pid_t pid = fork();
        int status = 0;
        if (pid == 0) {
            uint8_t digest[HASH_BYTES];
            signal(SIGABRT, SIG_DFL);
            (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
            one_fails(LATER[i], 1);
            hash_stream *h = hash_stream_create();
            hash_stream_add(h, "abc", 3);
            hash_stream_end(h, digest);
            hash_sha256(digest, "abc", 3);
            _exit(0);
        }
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

static void test_clock(void)
{
    int64_t a = clock_ns();
    int64_t b = clock_ns();
    CHECK(b >= a);
    CHECK(clock_ms() >= (double)b / 1e6 - 1e-3);
    CHECK(clock_unix_s() > 1700000000);
}

static void test_size(void)
{
    size_t n = 0;
    CHECK(size_mul(&n, 3, 4) && n == 12);
    CHECK(!size_mul(&n, SIZE_MAX, 2));
    CHECK(size_add(&n, SIZE_MAX - 1, 1) && n == SIZE_MAX);
    CHECK(!size_add(&n, SIZE_MAX, 1));
}

int main(void)
{
    test_sha();
    test_streams();
    test_parse_hex();
    test_ids();
    test_random();
    test_refused();
    test_clock();
    test_size();
    CHECK_DONE();
}
