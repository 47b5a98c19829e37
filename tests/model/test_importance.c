/* importance: that of several rows is the mean of each alone; more rows than there is room for are left out. */
#include "model/importance.h"
#include "tests/model/tiny.h"

enum { N = 150, LOOKED = IMPORTANCE_ROWS + 2 };

static int32_t ids[TINY_CTX];

/* Reads the prompt and rows behind it, of which those from `first` to before `end` are watched. */
static void judge(const tiny *t, importance *im, float *out, int32_t first, int32_t end)
{
    seq_state *s = tiny_seq(t);
    tiny_run(t, s, ids, N, false, false);
    importance_begin(im, N);
    for (int32_t i = 0; i < LOOKED; i++) {
        importance_watch(i >= first && i < end ? im : NULL, t->sc);
        tiny_run(t, s, ids + N + i, 1, true, false);
    }
    importance_watch(NULL, t->sc);
    while (importance_next(im, s)) {
    }
    memcpy(out, importance_get(im), N * sizeof *out);
    seq_state_destroy(s);
}

int main(void)
{
    static float alone[LOOKED][N], together[N], first[N];
    importance *im = NULL;
    err_detail d = {0};
    CHECK_INT(tiny_ids(ids, TINY_CTX), 730);
    tiny t = tiny_open(2, ~0u, KV_F32);
    CHECK_OK(importance_create(&im, model_get_config(t.m), t.c, N, &d), d);
    for (int32_t i = 0; i < LOOKED; i++) {
        judge(&t, im, alone[i], i, i + 1);
        CHECK(i == 0 || memcmp(alone[i], alone[0], sizeof alone[0]) != 0);
    }
    for (int32_t n = 1; n <= LOOKED; n++) {
        const int32_t seen = n < IMPORTANCE_ROWS ? n : IMPORTANCE_ROWS;
        judge(&t, im, together, 0, n);
        for (int32_t i = 0; i < N; i++) {
            double mean = 0;
            for (int32_t r = 0; r < seen; r++) {
                mean += (double)alone[r][i] / seen;
            }
            CHECK_NEAR(together[i], mean, 1e-6);
        }
        if (n == IMPORTANCE_ROWS) {
            memcpy(first, together, sizeof first);
        }
        CHECK(n < IMPORTANCE_ROWS || memcmp(first, together, sizeof first) == 0);
    }
    importance_destroy(im);
    importance_destroy(NULL);
    tiny_close(&t);
    CHECK_DONE();
}
