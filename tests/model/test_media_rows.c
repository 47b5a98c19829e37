/* Rows of an image that see each other in sliding layers: what comes later changes what comes before,
 * inside the image alone; and neither the pieces of a forward, nor company, nor a state that was kept
 * changes any bit. */
#include "tests/model/tiny.h"

#include "base/log.h"

enum { N = 150, IMAGE = 40, ROWS = 70, WIDTH = 64, AFTER = 20 };

static int32_t ids[N], embed_rows[ROWS];
static position positions[N];
static float embeds[ROWS * WIDTH];

/* The rows from `first` on of n: their hidden states, [n, WIDTH]. small: in pieces. */
static void read_rows(const tiny *t, seq_state *s, float *out, int32_t first, int32_t n, bool small,
                      bool exact)
{
    err_detail d = {0};
    int32_t rows[ROWS], n_rows = 0;
    for (int32_t i = 0; i < ROWS; i++) {
        if (embed_rows[i] >= first && embed_rows[i] < first + n) {
            rows[n_rows++] = embed_rows[i] - first;
        }
    }
    const batch_run run = {.seq = s, .n_rows = n, .exact_rows = exact};
    const batch b = {.n_rows = n,
                     .tokens = ids + first,
                     .positions = positions + first,
                     .runs = &run,
                     .n_runs = 1,
                     .embed_rows = rows,
                     .embeds = embeds,
                     .n_embed_rows = n_rows};
    CHECK_OK(decoder_begin(t->m, t->c, &b, t->sc, &d), d);
    int32_t n_pieces = 1;
    while (decoder_next(t->m, t->sc, small)) {
        n_pieces++;
    }
    CHECK((small && nn_many_is_exact(t->c)) == (n_pieces > 2 * model_get_config(t->m)->n_layers));
    memcpy(out, decoder_hidden(t->sc, 0), (size_t)n * WIDTH * sizeof *out);
}

static bool same_rows(const float *a, const float *b, int32_t first, int32_t n)
{
    return memcmp(a + first * WIDTH, b + first * WIDTH, (size_t)n * WIDTH * sizeof *a) == 0;
}

/* Empties a sequence, and what its blocks held before is another text's. */
static void forget(const tiny *t, seq_state *s)
{
    seq_state_reset(s);
    (void)tiny_run(t, s, ids + 1, N - 1, false, false);
    seq_state_reset(s);
}

static void check_rows(const char *name, bool both_ways)
{
    char dir[4096];
    err_detail d = {0};
    static float whole[N * WIDTH], other[N * WIDTH];
    snprintf(dir, sizeof dir, "%s", check_data(name));
    tiny t = tiny_open_as(&(tiny_options){.dir = dir, .n_threads = 2, .cpu_mask = ~0u, .type = KV_F32});
    seq_state *s = tiny_seq(&t), *restored = tiny_seq(&t);
    CHECK(model_get_config(t.m)->media_see_both_ways == both_ways);
    read_rows(&t, s, whole, 0, N, false, false);
    forget(&t, s);
    read_rows(&t, s, other, 0, N, true, false);
    CHECK(same_rows(whole, other, 0, N));

    forget(&t, s);
    embeds[(ROWS - 1) * WIDTH] += 1.0f; /* of the last row */
    read_rows(&t, s, other, 0, N, false, false);
    /* Elsewhere how many rows an expert has may change the last bit of each. */
    CHECK(nn_many_is_exact(t.c) ? same_rows(whole, other, 0, IMAGE)
                                : tiny_difference(other, whole, IMAGE * WIDTH) < 1e-4);
    CHECK(same_rows(whole, other, IMAGE + ROWS - 5, 1) == !both_ways);
    CHECK(!same_rows(whole, other, IMAGE + ROWS - 1, 1));
    embeds[(ROWS - 1) * WIDTH] -= 1.0f;

    forget(&t, s);
    read_rows(&t, s, other, 0, IMAGE, false, false);
    read_rows(&t, s, other + IMAGE * WIDTH, IMAGE, ROWS, false, true); /* exact rows see them as well */
    CHECK(tiny_difference(other + IMAGE * WIDTH, whole + IMAGE * WIDTH, ROWS * WIDTH) < 2e-4);

    seq_snapshot *snap = seq_state_snapshot(s);
    CHECK(snap != NULL);
    read_rows(&t, s, whole, IMAGE + ROWS, AFTER, false, false);
    CHECK_OK(seq_state_restore(restored, snap, &d), d);
    read_rows(&t, restored, other, IMAGE + ROWS, AFTER, false, false);
    CHECK(same_rows(whole, other, 0, AFTER));
    seq_snapshot_free(snap);
    seq_state_destroy(s);
    seq_state_destroy(restored);
    tiny_close(&t);
}

int main(void)
{
    setenv("XDG_CACHE_HOME", "/proc/none", 1);
    log_set_level(LOG_OFF);
    for (int32_t i = 0; i < N; i++) {
        ids[i] = (int32_t)((uint32_t)i * 2654435761u % 1500);
        positions[i] = (position){i, i, i};
    }
    for (int32_t i = 0; i < ROWS; i++) {
        embed_rows[i] = IMAGE + i;
    }
    for (int32_t i = 0; i < ROWS * WIDTH; i++) {
        embeds[i] = sinf((float)i * 1.7f);
    }
    check_rows("tiny_gemma4_images", true);
    check_rows("tiny_gemma4_clipped", false);
    CHECK_DONE();
}
