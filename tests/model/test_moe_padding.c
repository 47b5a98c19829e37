/* Rows of a prompt come to experts in steps of 16: how much is computed beside what is needed, on a model of 80 experts
 * with a random router, for as many rows as the model is given together and for fewer. */
#include "tests/model/random_checkpoint.h"
#include "tests/model/tiny.h"

static const char CONFIG[] =
    "{\"model_type\":\"qwen3_5_moe\",\"text_config\":{\"vocab_size\":1888,\"hidden_size\":64,\"num_attention_"
    "heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":16,\"rms_norm_eps\":1e-6,\"max_position_embeddings\":4096,"
    "\"num_hidden_layers\":2,\"layer_types\":[\"full_attention\",\"full_attention\"],\"num_experts\":80,"
    "\"num_experts_per_tok\":8,\"moe_intermediate_size\":24,\"shared_expert_intermediate_size\":40,"
    "\"rope_parameters\":{\"rope_theta\":10000,\"rope_type\":\"default\",\"mrope_section\":[1,1,0]}}}";

/* Padding of n rows of the prompt / what its experts need. */
static double padding(tiny *t, int32_t n)
{
    static int32_t ids[TINY_ROWS];
    const model_config *cfg = model_get_config(t->m);
    for (int32_t i = 0; i < n; i++) {
        ids[i] = 5 + i * 7 % 1500;
    }
    seq_state *s = tiny_seq(t);
    const uint64_t before = nn_padding(t->c);
    tiny_run(t, s, ids, n, false, false);
    const double padded = (double)(nn_padding(t->c) - before);
    seq_state_destroy(s);
    return padded / (3.0 * n * cfg->n_experts_used * cfg->expert_size * cfg->hidden_size * cfg->n_layers);
}

/* Rows that have more experts together than are computed at once: each has the bits that it has alone. */
static void test_many_experts(void)
{
    enum { ROWS = NN_ROWS_EXACT };
    static const char MANY[] =
        "{\"model_type\":\"qwen3_5_moe\",\"text_config\":{\"vocab_size\":1888,\"hidden_size\":64,\"num_"
        "attention_"
        "heads\":4,\"num_key_value_heads\":2,\"head_dim\":16,\"rms_norm_eps\":1e-6,\"max_position_"
        "embeddings\":4096,"
        "\"num_hidden_layers\":2,\"layer_types\":[\"full_attention\",\"full_attention\"],\"num_experts\":40,"
        "\"num_experts_per_tok\":36,\"moe_intermediate_size\":24,\"shared_expert_intermediate_size\":40,"
        "\"rope_parameters\":{\"rope_theta\":10000,\"rope_type\":\"default\",\"mrope_section\":[1,1,0]}}}";
    char dir[FOLDER_NAME];
    float together[TINY_V];
    int32_t ids[ROWS];
    random_checkpoint_make(dir, MANY, 0);
    tiny t = tiny_open_as(&(tiny_options){.dir = dir, .n_threads = 2, .cpu_mask = ~0u, .type = KV_F32});
    seq_state *s = tiny_seq(&t);
    for (int32_t i = 0; i < ROWS; i++) {
        ids[i] = 5 + i * 7 % 1500;
    }
    memcpy(together, tiny_run(&t, s, ids, ROWS, true, false), sizeof together);
    seq_state_reset(s);
    const float *alone = NULL;
    for (int32_t i = 0; i < ROWS; i++) {
        alone = tiny_run(&t, s, ids + i, 1, true, false);
    }
    CHECK_SAME_FLOATS(alone, together, TINY_V);
    seq_state_reset(s);
    CHECK(tiny_difference(tiny_run(&t, s, ids, ROWS, false, false), together, TINY_V) < 1e-3);
    seq_state_destroy(s);
    tiny_close(&t);
}

int main(void)
{
    static char dir[FOLDER_NAME];
    test_many_experts();
    random_checkpoint_make(dir, CONFIG, 0);
    tiny t = tiny_open_as(&(tiny_options){
        .dir = dir, .n_threads = 1, .cpu_mask = test_cpu_mask(), .type = KV_F32, .fast = true});
    const int32_t rows = model_config_prompt_rows(model_get_config(t.m));
    CHECK_INT(rows, 960);
    const double few = padding(&t, 256), many = padding(&t, rows);
    printf("80 experts, 8 a row: %.1f %% of padding with 256 rows, %.1f %% with %d\n", 100 * few, 100 * many,
           rows);
    CHECK(!nn_many_is_exact(t.c) || (few > 0.25 && many > 0));
    CHECK(many <= 0.10);
    tiny_close(&t);
    model_config cfg = {.n_experts = 0};
    CHECK_INT(model_config_prompt_rows(&cfg), 512);
    cfg.n_experts = 256, cfg.n_experts_used = 8;
    CHECK_INT(model_config_prompt_rows(&cfg), 2048);
    cfg.n_experts = 128;
    CHECK_INT(model_config_prompt_rows(&cfg), 1536);
    CHECK_DONE();
}
