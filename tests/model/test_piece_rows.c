/* Into how many pieces a prompt is cut whose layers are computed in small ones, for lengths of prompts and of what stands
 * before them: piece_rows.txt. How many rows an attention takes at once changes no result, so that it shows here alone. */
#include "tests/model/random_families.h"
#include "tests/model/tiny.h"
#include "tests/recorded.h"

enum { MOST_PIECES = 20000 };

/* Calls until a forward of n rows behind `before` others is done. */
static int32_t count_pieces(const tiny *t, seq_state *s, int32_t before, int32_t n, const batch_mark *marks,
                            int32_t n_marks)
{
    static int32_t tokens[TINY_ROWS];
    static position p[TINY_ROWS];
    err_detail d = {0};
    int32_t n_pieces = 0;
    seq_state_reset(s);
    for (int32_t i = 0; i < TINY_ROWS; i++) {
        tokens[i] = i % 1000;
        p[i] = (position){before + i, before + i, before + i};
    }
    if (before > 0) {
        tiny_run(t, s, tokens, before, false, false);
    }
    const batch_run run = {.seq = s, .n_rows = n, .marks = marks, .n_marks = n_marks};
    const batch b = {.n_rows = n, .tokens = tokens, .positions = p, .runs = &run, .n_runs = 1};
    CHECK_OK(decoder_begin(t->m, t->c, &b, t->sc, &d), d);
    do {
        n_pieces++;
    } while (decoder_next(t->m, t->sc, true) && n_pieces < MOST_PIECES);
    CHECK_INT(seq_state_len(s), before + n);
    return n_pieces;
}

static void tell(bytes *out, const char *name, const char *dir)
{
    static const int32_t BEFORE[] = {0, 30, 64, 200, 600},
                         N[] = {1, 8, 9, 16, 17, 24, 32, 40, 48, 56, 63, 64, 65, 96, 127, 128, 129, 200, 257};
    tiny t = tiny_open_as(
        &(tiny_options){.dir = dir, .n_threads = 2, .cpu_mask = ~0u, .type = KV_F32, .fast = true});
    seq_state *s = tiny_seq(&t);
    CHECK(nn_many_is_exact(t.c));
    for (size_t i = 0; i < ARRAY_LEN(BEFORE); i++) {
        bytes_printf(out, "%s, %d before:", name, BEFORE[i]);
        for (size_t k = 0; k < ARRAY_LEN(N); k++) {
            bytes_printf(out, " %d", count_pieces(&t, s, BEFORE[i], N[k], NULL, 0));
        }
        bytes_append_char(out, '\n');
    }
    /* layers with states end pieces where one is to be taken */
    static const int32_t MARKS[][2] = {{1, 1},    {63, 63},   {64, 64},  {65, 65},
                                       {30, 100}, {128, 200}, {199, 200}};
    bytes_printf(out, "%s, marks:", name);
    for (size_t i = 0; i < ARRAY_LEN(MARKS); i++) {
        const batch_mark marks[] = {{MARKS[i][0], NULL}, {MARKS[i][1], NULL}};
        bytes_printf(out, " %d", count_pieces(&t, s, 0, 201, marks, ARRAY_LEN(marks)));
    }
    bytes_append_char(out, '\n');
    /* rows whose bits are theirs alone are not cut */
    seq_state_reset(s);
    static int32_t tokens[NN_ROWS_EXACT];
    static position p[NN_ROWS_EXACT];
    err_detail d = {0};
    int32_t n_pieces = 1;
    const batch_run run = {.seq = s, .n_rows = NN_ROWS_EXACT, .exact_rows = true};
    const batch b = {.n_rows = NN_ROWS_EXACT, .tokens = tokens, .positions = p, .runs = &run, .n_runs = 1};
    CHECK_OK(decoder_begin(t.m, t.c, &b, t.sc, &d), d);
    while (decoder_next(t.m, t.sc, true)) {
        n_pieces++;
    }
    CHECK_INT(n_pieces, 2 * model_get_config(t.m)->n_layers);
    seq_state_destroy(s);
    tiny_close(&t);
}

int main(void)
{
    static const char *const NAMES[] = {"qwen3_5", "nemotron_h", "gemma4", "gpt_oss", "glm4_moe"};
    char dir[FOLDER_NAME];
    compute *c = NULL;
    err_detail d = {0};
    CHECK_OK(
        compute_create(&c, &(compute_options){.n_threads = 1, .cpu_mask = test_cpu_mask(), .fast = true}, &d),
        d);
    const bool has_pieces = c && nn_many_is_exact(c);
    compute_destroy(c);
    if (!has_pieces) {
        return 77; /* prompts are computed whole on this processor */
    }
    bytes told = bytes_empty(1 << 16);
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        size_t at = 0;
        while (strcmp(RANDOM_FAMILIES[at].name, NAMES[i]) != 0) {
            at++;
        }
        random_checkpoint_make(dir, RANDOM_FAMILIES[at].config, RANDOM_FAMILIES[at].forms);
        tell(&told, NAMES[i], dir);
    }
    random_checkpoint_make(dir,
                           "{\"model_type\":\"qwen3\"," RANDOM_SIZES
                           ",\"intermediate_size\":80,\"num_hidden_layers\":20" RANDOM_ROPE("") "}",
                           RANDOM_TEXT_ONLY);
    tell(&told, "20 layers", dir);
    random_checkpoint_make(dir,
                           "{\"model_type\":\"qwen3\"," RANDOM_SIZES
                           ",\"intermediate_size\":80,\"num_hidden_layers\":36" RANDOM_ROPE("") "}",
                           RANDOM_TEXT_ONLY);
    tell(&told, "36 layers", dir);
    recorded_check("model/piece_rows.txt", bytes_str(&told));
    bytes_deinit(&told);
    CHECK_DONE();
}
