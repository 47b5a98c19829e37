/* What a model of each family takes: parameters, bytes as stored and in blocks, of a token, of sequences of some lengths and
 * of memory to work in: model_sizes.txt. What is counted twice or left out shows nowhere else. */
#include "base/log.h"
#include "model/cost.h"
#include "model/importance.h"
#include "model/layers.h"
#include "tests/model/random_families.h"
#include "tests/model/tiny.h"
#include "tests/model/tool.h"
#include "tests/recorded.h"

static const char PLAIN[] =
    "{\"model_type\":\"qwen3\"," RANDOM_SIZES ",\"intermediate_size\":80" RANDOM_ROPE("") "}";

static void tell_weights(bytes *out, const model *m)
{
    static const int BITS[][2] = {{0, 0}, {8, 8}, {4, 8}, {5, 0}, {0, 4}};
    bytes_printf(out, "  %llu parameters, %llu bytes; in blocks", (unsigned long long)model_n_params(m),
                 (unsigned long long)model_weight_bytes(m));
    for (size_t i = 0; i < ARRAY_LEN(BITS); i++) {
        bytes_printf(out, " %d/%d: %llu", BITS[i][0], BITS[i][1],
                     (unsigned long long)model_weight_bytes_as(m, BITS[i][0], BITS[i][1]));
    }
    bytes_append_str(out, "; of types");
    for (dtype type = 0; type < DTYPES; type++) {
        if (model_type_bytes(m, type) > 0) {
            bytes_printf(out, " %s: %llu", dtype_name(type), (unsigned long long)model_type_bytes(m, type));
        }
    }
    bytes_append_char(out, '\n');
}

static void tell_types(bytes *out, const model *m)
{
    static const int32_t LENGTHS[] = {64, 65, 1000, 4096, 100000};
    const model_config *cfg = model_get_config(m);
    for (kv_type type = KV_F32; type < KV_TYPES; type++) {
        const model_cost cost = model_costs(m, type);
        bytes_printf(out,
                     "  type %d: a step %.0f, of which a token before %.0f; blocks %zu, %zu, %zu; states",
                     (int)type, cost.step_bytes, cost.slot_bytes, kv_pool_block_bytes(cfg, type, false),
                     kv_pool_block_bytes(cfg, type, true), kv_pool_window_bytes(cfg, type));
        for (size_t i = 0; i < ARRAY_LEN(LENGTHS); i++) {
            bytes_printf(out, " %zu",
                         seq_state_bytes(cfg, type, i % 2, LENGTHS[i]) -
                             seq_state_bytes(cfg, type, i % 2, 1));
        }
        bytes_printf(out, "; of its own %zu\n", seq_state_own_bytes(cfg, type));
    }
}

static void tell(bytes *out, const char *name, const model *m)
{
    const model_config *cfg = model_get_config(m);
    const model_cost cost = model_costs(m, KV_F32);
    bytes_printf(out, "%s\n", name);
    tell_weights(out, m);
    tell_types(out, m);
    bytes_printf(out, "  products: layers %.0f, head %.0f, of a token before %.0f\n  blocks of rows",
                 cost.layer_flops, cost.head_flops, cost.slot_flops);
    for (int32_t rows = 1; rows <= 16; rows *= 4) {
        bytes_printf(out, " %zu", seq_state_rows_bytes(cfg, rows));
    }
    bytes_append_str(out, "; windows");
    for (int32_t n = 1; n <= 1 << 18; n *= 64) {
        bytes_printf(out, " %zu", kv_pool_window_blocks_for(cfg, n));
    }
    bytes_append_str(out, "; to work in");
    for (int32_t rows = 1; rows <= 512; rows *= 8) {
        bytes_printf(out, " %zu/%zu", layer_work_floats(cfg, (size_t)rows),
                     decoder_scratch_bytes(m, rows, 1) - decoder_scratch_bytes(m, 1, 1));
    }
    bytes_printf(out, "; logits %zu, importance %zu\n",
                 decoder_scratch_bytes(m, 1, 3) - decoder_scratch_bytes(m, 1, 1),
                 importance_bytes(cfg, 1000) - importance_bytes(cfg, 0));
}

int main(void)
{
    bytes told = bytes_empty(1 << 20);
    log_set_level(LOG_OFF);
    for (size_t i = 0; i < ARRAY_LEN(RANDOM_FAMILIES); i++) {
        char dir[FOLDER_NAME];
        model *m = NULL;
        err_detail d = {0};
        random_checkpoint_make(dir, RANDOM_FAMILIES[i].config, RANDOM_FAMILIES[i].forms);
        CHECK_OK(model_open(&m, dir, &(model_open_options){.weights_only = true}, &d), d);
        if (m) {
            tell(&told, RANDOM_FAMILIES[i].name, m);
        }
        model_close(m);
    }
    char dir[FOLDER_NAME], gguf[FOLDER_NAME + 8]; /* matrices that are in blocks already */
    model *m = NULL;
    err_detail d = {0};
    random_checkpoint_make(dir, PLAIN, RANDOM_TEXT_ONLY);
    snprintf(gguf, sizeof gguf, "%s/m.gguf", dir);
    CHECK_INT(tool_run_3("make_gguf", dir, gguf, "q8_0"), 0);
    CHECK_OK(model_open(&m, gguf, &(model_open_options){.weights_only = true}, &d), d);
    if (m) {
        tell(&told, "in blocks of 8 bits", m);
    }
    model_close(m);
    recorded_check("model/model_sizes.txt", bytes_str(&told));
    bytes_deinit(&told);
    CHECK_DONE();
}
