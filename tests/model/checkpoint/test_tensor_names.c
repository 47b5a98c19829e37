/* tensor_names: what families publish, under canonical names. */
#include "tests/check.h"

#include "base/compiler.h"
#include "model/checkpoint/tensor_names.h"

int main(void)
{
    static const struct {
        const char *stored, *canonical;
    } names[] = {
        {"model.language_model.layers.0.mlp.up_proj.weight", "layers.0.mlp.up_proj.weight"},
        {"language_model.model.norm.weight", "norm.weight"},
        {"language_model.lm_head.weight", "lm_head.weight"},
        {"model.visual.blocks.0.norm1.weight", "visual.blocks.0.norm1.weight"},
        {"lm_head.weight", "lm_head.weight"},
        {"model.vision_tower.encoder.layers.1.mlp.up_proj.linear.weight",
         "visual.encoder.layers.1.mlp.up_proj.weight"},
        {"vision_tower.encoder.layers.1.mlp.up_proj.input_max",
         "visual.encoder.layers.1.mlp.up_proj.input_max"},
        {"embed_vision.embedding_projection.scales", "visual.embedding_projection.scales"},
        {"language_model.model.layers.4.experts.switch_glu.up_proj.weight", "layers.4.mlp.experts.up_proj"},
        {"language_model.model.layers.4.experts.switch_glu.up_proj.scales",
         "layers.4.mlp.experts.up_proj.scales"},
        {"language_model.model.layers.4.router.per_expert_scale", "layers.4.mlp.gate.per_expert_scale"},
        {"model.layers.4.mlp.linear.weight", "layers.4.mlp.linear.weight"},
        {"backbone.embeddings.weight", "embed_tokens.weight"},
        {"backbone.norm_f.weight", "norm.weight"},
        {"backbone.layers.12.norm.weight", "layers.12.input_layernorm.weight"},
        {"backbone.layers.0.mixer.norm.weight", "layers.0.mamba.norm.weight"},
        {"backbone.layers.0.mixer.D", "layers.0.mamba.D"},
        {"backbone.layers.0.mixer.in_proj.weight.q8", "layers.0.mamba.in_proj.weight.q8"},
        {"backbone.layers.3.mixer.o_proj.weight", "layers.3.self_attn.o_proj.weight"},
        {"backbone.layers.1.mixer.gate.e_score_correction_bias", "layers.1.mlp.gate.e_score_correction_bias"},
        {"backbone.layers.1.mixer.experts.17.up_proj.weight", "layers.1.mlp.experts.17.up_proj.weight"},
        {"backbone.layers.1.mixer.shared_experts.down_proj.weight",
         "layers.1.mlp.shared_expert.down_proj.weight"},
        {"model.layers.2.block_sparse_moe.gate.weight", "layers.2.mlp.gate.weight"},
        {"model.layers.2.block_sparse_moe.e_score_correction_bias",
         "layers.2.mlp.gate.e_score_correction_bias"},
        {"model.layers.2.block_sparse_moe.experts.5.w1.weight", "layers.2.mlp.experts.5.gate_proj.weight"},
        {"model.layers.2.block_sparse_moe.experts.5.w2.weight", "layers.2.mlp.experts.5.down_proj.weight"},
        {"model.layers.2.block_sparse_moe.experts.5.w3.weight", "layers.2.mlp.experts.5.up_proj.weight"},
        {"backbone.layers.1.mixer.switch_mlp.fc1.weight", "layers.1.mlp.switch_mlp.up_proj.weight"},
        {"backbone.layers.1.mixer.switch_mlp.fc2.scales", "layers.1.mlp.switch_mlp.down_proj.scales"},
        {"model.layers.2.block_sparse_moe.switch_mlp.up_proj.weight",
         "layers.2.mlp.switch_mlp.up_proj.weight"},
        {"model.layers.0.mlp.router.bias", "layers.0.mlp.gate.bias"},
        {"model.layers.0.mlp.experts.gate_proj.weight", "layers.0.mlp.experts.gate_proj"},
        {"model.layers.0.mlp.experts.down_proj.bias", "layers.0.mlp.experts.down_proj_bias"},
        {"model.layers.0.mlp.experts.down_proj_bias", "layers.0.mlp.experts.down_proj_bias"},
        {"model.language_model.layers.5.router.per_expert_scale", "layers.5.mlp.gate.per_expert_scale"},
        {"model.language_model.layers.5.router.proj.weight", "layers.5.mlp.gate.weight"},
        {"model.language_model.layers.5.experts.gate_up_proj", "layers.5.mlp.experts.gate_up_proj"},
        {"layers.x.mixer.D", "layers.x.mixer.D"},
        {"", ""},
    };
    arena *memory = arena_create(1 << 20);
    CHECK(memory != NULL);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *name = tensor_name_make(memory, names[i].stored);
        CHECK(name && strcmp(name, names[i].canonical) == 0);
    }
    arena_destroy(memory);
    CHECK_DONE();
}
