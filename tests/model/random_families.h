/* random_families: one small config of each family, for random_checkpoint.h. Vocabulary and width
 * are those of tiny.h. */
#ifndef PARLEY_TESTS_MODEL_RANDOM_FAMILIES_H
#define PARLEY_TESTS_MODEL_RANDOM_FAMILIES_H

#include "tests/model/random_checkpoint.h"

#define RANDOM_SIZES                                                                                         \
    "\"vocab_size\":1888,\"hidden_size\":64,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_"     \
    "dim\":16,"                                                                                              \
    "\"rms_norm_eps\":1e-6,\"max_position_embeddings\":4096,\"num_hidden_layers\":4"
#define RANDOM_DELTA                                                                                         \
    ",\"linear_num_key_heads\":2,\"linear_num_value_heads\":4,\"linear_key_head_dim\":16,"                   \
    "\"linear_value_head_dim\":16,\"layer_types\":[\"linear_attention\",\"full_attention\","                 \
    "\"linear_attention\",\"full_attention\"]"
#define RANDOM_MOE ",\"num_experts\":6,\"num_experts_per_tok\":2,\"moe_intermediate_size\":24"
#define RANDOM_MAMBA                                                                                         \
    ",\"mamba_num_heads\":6,\"mamba_head_dim\":20,\"n_groups\":2,\"ssm_state_size\":24,\"mlp_hidden_act\":"  \
    "\"relu2\",\"intermediate_size\":80,\"time_step_limit\":[0.05,1.5]"
#define RANDOM_ROPE(more) ",\"rope_parameters\":{\"rope_theta\":10000,\"rope_type\":\"default\"" more "}"

#define RANDOM_GEMMA                                                                                         \
    ",\"layer_types\":[\"sliding_attention\",\"full_attention\",\"sliding_attention\",\"full_attention\"],"  \
    "\"sliding_window\":20,\"final_logit_softcapping\":30,\"hidden_activation\":\"gelu_pytorch_tanh\","      \
    "\"rope_parameters\":{\"full_attention\":{\"rope_theta\":1000000,\"rope_type\":\"proportional\","        \
    "\"partial_rotary_factor\":0.25},\"sliding_attention\":{\"rope_theta\":10000,\"rope_type\":\"default\"}" \
    "}"

typedef struct random_family {
    const char *name;
    unsigned forms;
    const char *config;
} random_family;

static const random_family RANDOM_FAMILIES[] = {
    {"qwen3_5", 0,
     "{\"model_type\":\"qwen3_5\",\"text_config\":{" RANDOM_SIZES RANDOM_DELTA
     ",\"intermediate_size\":80,\"mtp_num_hidden_layers\":1" RANDOM_ROPE(",\"mrope_section\":[1,1,0]") "}}"},
    {"qwen3_5_moe", 0,
     "{\"model_type\":\"qwen3_5_moe\",\"text_config\":{" RANDOM_SIZES RANDOM_DELTA RANDOM_MOE
     ",\"shared_expert_intermediate_size\":40,\"mtp_num_hidden_layers\":1" RANDOM_ROPE(
         ",\"mrope_section\":[1,1,0]") "}}"},
    {"qwen3_5_moe_text", RANDOM_PER_EXPERT | RANDOM_TEXT_ONLY,
     "{\"model_type\":\"qwen3_5_moe_text\"," RANDOM_SIZES RANDOM_DELTA RANDOM_MOE
     ",\"shared_expert_intermediate_size\":40,\"mtp_num_hidden_layers\":1" RANDOM_ROPE(
         ",\"mrope_section\":[1,1,0]") "}"},
    {"qwen3_next", RANDOM_PER_EXPERT | RANDOM_TEXT_ONLY | RANDOM_FUSED_DELTA | RANDOM_NOT_GGUF,
     "{\"model_type\":\"qwen3_next\"," RANDOM_SIZES RANDOM_DELTA RANDOM_MOE
     ",\"shared_expert_intermediate_size\":40,\"intermediate_size\":80,\"mlp_only_layers\":[1],"
     "\"norm_topk_prob\":true" RANDOM_ROPE("") "}"},
    {"qwen3", RANDOM_TEXT_ONLY,
     "{\"model_type\":\"qwen3\"," RANDOM_SIZES ",\"intermediate_size\":80" RANDOM_ROPE("") "}"},
    {"qwen3_moe", RANDOM_PER_EXPERT | RANDOM_TEXT_ONLY | RANDOM_NOT_GGUF,
     "{\"model_type\":\"qwen3_moe\"," RANDOM_SIZES RANDOM_MOE
     ",\"intermediate_size\":80,\"decoder_sparse_step\":2,\"norm_topk_prob\":false" RANDOM_ROPE("") "}"},
    {"qwen3_vl", RANDOM_NOT_GGUF,
     "{\"model_type\":\"qwen3_vl\",\"vision_config\":{\"deepstack_visual_indexes\":[0,2]},\"text_config\":"
     "{" RANDOM_SIZES ",\"intermediate_size\":80" RANDOM_ROPE(",\"mrope_section\":[4,2,2]") "}}"},
    {"qwen3_vl_moe", RANDOM_TURNED | RANDOM_NOT_GGUF,
     "{\"model_type\":\"qwen3_vl_moe\",\"vision_config\":{\"deepstack_visual_indexes\":[0,2]},\"text_"
     "config\":{" RANDOM_SIZES RANDOM_MOE RANDOM_ROPE(",\"mrope_section\":[4,2,2]") "}}"},
    {"nemotron_h", RANDOM_PER_EXPERT | RANDOM_TEXT_ONLY | RANDOM_NOT_GGUF,
     "{\"model_type\":\"nemotron_h\"," RANDOM_SIZES RANDOM_MAMBA ",\"hybrid_override_pattern\":\"M*-M\"}"},
    {"nemotron_h_moe", RANDOM_PER_EXPERT | RANDOM_TEXT_ONLY | RANDOM_NOT_GGUF,
     "{\"model_type\":\"nemotron_h\"," RANDOM_SIZES RANDOM_MAMBA
     ",\"layers_block_type\":[\"mamba\",\"moe\",\"attention\",\"moe\"],\"n_routed_experts\":8,\"num_experts_"
     "per_"
     "tok\":3,\"moe_intermediate_size\":24,\"moe_shared_expert_intermediate_size\":40,\"moe_latent_size\":32,"
     "\"n_group\":4,\"topk_group\":2,\"routed_scaling_factor\":2.5}"},
    {"minimax_m2", RANDOM_PER_EXPERT | RANDOM_TEXT_ONLY,
     "{\"model_type\":\"minimax_m2\"," RANDOM_SIZES
     ",\"intermediate_size\":24,\"num_local_experts\":6,\"num_experts_per_tok\":2" RANDOM_ROPE(
         ",\"partial_rotary_factor\":0.5") "}"},
    {"gemma4", RANDOM_TEXT_ONLY | RANDOM_NOT_GGUF,
     "{\"model_type\":\"gemma4\",\"vision_config\":{},\"text_config\":{" RANDOM_SIZES RANDOM_GEMMA
     ",\"intermediate_size\":80,\"num_kv_shared_layers\":2,\"use_double_wide_mlp\":true,"
     "\"hidden_size_per_layer_input\":8,\"vocab_size_per_layer_input\":1888,\"global_head_dim\":32}}"},
    {"gemma4_text", RANDOM_TEXT_ONLY,
     "{\"model_type\":\"gemma4_text\"," RANDOM_SIZES RANDOM_GEMMA
     ",\"intermediate_size\":80,\"attention_k_eq_v\":true,\"enable_moe_block\":true,\"num_experts\":6,"
     "\"top_k_experts\":2,\"moe_intermediate_size\":24,\"per_layer_config\":{\"1\":{\"head_dim\":32,"
     "\"num_key_value_heads\":1},\"3\":{\"head_dim\":32,\"num_key_value_heads\":1}}}"},
    {"gpt_oss", RANDOM_ALTERNATING | RANDOM_TEXT_ONLY,
     "{\"model_type\":\"gpt_oss\"," RANDOM_SIZES ",\"num_local_experts\":6,\"num_experts_per_tok\":2,"
     "\"intermediate_size\":32,\"attention_bias\":true,\"sliding_window\":20,\"rope_parameters\":{"
     "\"rope_theta\":10000,\"rope_type\":\"yarn\",\"factor\":8,\"original_max_position_embeddings\":64,"
     "\"truncate\":false}}"},
    {"llama", RANDOM_TEXT_ONLY,
     "{\"model_type\":\"llama\"," RANDOM_SIZES
     ",\"intermediate_size\":80,\"rope_parameters\":{\"rope_theta\":"
     "500000,\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"
     "\"original_max_position_embeddings\":64}}"},
    {"ministral3", RANDOM_TEXT_ONLY,
     "{\"model_type\":\"ministral3\"," RANDOM_SIZES
     ",\"intermediate_size\":80,\"rope_parameters\":{\"rope_theta"
     "\":10000,\"rope_type\":\"yarn\",\"factor\":16,\"original_max_position_embeddings\":16,\"llama_4_"
     "scaling_"
     "beta\":0.1}}"},
    {"granite", RANDOM_TEXT_ONLY,
     "{\"model_type\":\"granite\"," RANDOM_SIZES ",\"intermediate_size\":80,\"embedding_multiplier\":6,"
     "\"attention_multiplier\":0.1,\"residual_multiplier\":0.4,\"logits_scaling\":3" RANDOM_ROPE("") "}"},
    {"qwen2", RANDOM_TEXT_ONLY | RANDOM_NOT_GGUF,
     "{\"model_type\":\"qwen2\"," RANDOM_SIZES ",\"intermediate_size\":80,\"use_sliding_window\":true,"
     "\"sliding_window\":20,\"max_window_layers\":2" RANDOM_ROPE("") "}"},
    {"smollm3", RANDOM_TEXT_ONLY,
     "{\"model_type\":\"smollm3\"," RANDOM_SIZES
     ",\"intermediate_size\":80,\"no_rope_layers\":[1,1,1,0]" RANDOM_ROPE("") "}"},
    {"glm4_moe", RANDOM_PER_EXPERT | RANDOM_TEXT_ONLY,
     "{\"model_type\":\"glm4_moe\"," RANDOM_SIZES ",\"intermediate_size\":80,\"n_routed_experts\":8,\"num_"
     "experts_per_tok\":2,\"moe_intermediate_size\":24,"
     "\"n_shared_experts\":2,\"first_k_dense_replace\":1,\"attention_bias\":true,\"use_qk_norm\":true,"
     "\"n_group\":2,\"topk_group\":1,\"routed_scaling_factor\":1.5" RANDOM_ROPE("") "}"},
};

#endif
