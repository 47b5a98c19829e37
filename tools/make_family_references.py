"""make_family_references: two tiny random checkpoints of each plain family, and what Hugging Face transformers computes
from them in float32.

    python3 tools/make_family_references.py OUT [NAME...]   (PyTorch, transformers 5.17, safetensors; seconds on a CPU)

writes OUT/NAME, folders as tools/make_reference.py does, with one case each (`text`), without tokenizers. Copies lie in
tests/data/families.
"""
import copy
import os
import sys
import traceback

import torch
import transformers

import make_reference as reference

VOCABULARY, WIDTH, TOKENS = 128, 24, 44
SIZES = dict(vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=16, max_position_embeddings=512, eos_token_id=2, bos_token_id=1,
             pad_token_id=0, rms_norm_eps=1e-5)
EXPERTS = dict(num_experts_per_tok=2, n_routed_experts=8, moe_intermediate_size=12, n_shared_experts=1)
MAMBA = dict(SIZES, mamba_num_heads=4, mamba_head_dim=8, n_groups=2, ssm_state_size=12, chunk_size=16, conv_kernel=4,
             use_mamba_kernels=False, moe_shared_expert_intermediate_size=20, routed_scaling_factor=2.5,
             norm_topk_prob=True, layer_norm_epsilon=1e-5, num_nextn_predict_layers=0, **EXPERTS)
del MAMBA["num_hidden_layers"], MAMBA["rms_norm_eps"]


def rope(kind="default", theta=10000.0, **more):
    return dict(rope_parameters=dict(rope_type=kind, rope_theta=theta, **more))


LLAMA3 = rope("llama3", 500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
YARN = rope("yarn", 10000.0, factor=4.0, original_max_position_embeddings=128)
MINISTRAL = rope("yarn", 10000.0, factor=16.0, original_max_position_embeddings=32, beta_fast=32.0, beta_slow=1.0,
                 mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1)

# name: the class without "Config" and "ForCausalLM", and what its config is made of
MODELS = {
    "llama": ("Llama", dict(SIZES, **LLAMA3, tie_word_embeddings=True)),
    "llama_linear": ("Llama", dict(SIZES, **rope("linear", factor=4.0), tie_word_embeddings=False, head_dim=8)),
    "mistral": ("Mistral", dict(SIZES, **rope(theta=1e6), sliding_window=None, tie_word_embeddings=False)),
    "mistral_window": ("Mistral", dict(SIZES, **rope(), sliding_window=12, tie_word_embeddings=True)),
    "ministral3": ("Ministral3", dict(SIZES, **MINISTRAL, tie_word_embeddings=False)),
    "ministral3_tied": ("Ministral3", dict(SIZES, **MINISTRAL, tie_word_embeddings=True, num_key_value_heads=1)),
    "qwen2": ("Qwen2", dict(SIZES, **YARN, tie_word_embeddings=True)),
    "qwen2_window": ("Qwen2", dict(SIZES, **rope(theta=1e6), tie_word_embeddings=False, use_sliding_window=True,
                                   sliding_window=12, max_window_layers=1)),
    "glm4_moe": ("Glm4Moe", dict(SIZES, **EXPERTS, **rope(theta=1e6, partial_rotary_factor=0.5), use_qk_norm=False,
                                 attention_bias=True, first_k_dense_replace=1, n_group=1, topk_group=1,
                                 routed_scaling_factor=1.0, norm_topk_prob=True, tie_word_embeddings=False)),
    "glm4_moe_normed": ("Glm4Moe", dict(SIZES, **EXPERTS, **rope(partial_rotary_factor=0.5), use_qk_norm=True,
                                        attention_bias=False, first_k_dense_replace=0, n_group=4, topk_group=2,
                                        routed_scaling_factor=2.5, norm_topk_prob=True, tie_word_embeddings=True)),
    "granite": ("Granite", dict(SIZES, **rope(), embedding_multiplier=6.0, attention_multiplier=0.09,
                                residual_multiplier=0.4, logits_scaling=3.0, tie_word_embeddings=True)),
    "granite_biased": ("Granite", dict(SIZES, **rope(theta=5e6), embedding_multiplier=12.0, attention_multiplier=0.3,
                                       residual_multiplier=0.22, logits_scaling=8.0, attention_bias=True,
                                       tie_word_embeddings=False)),
    "smollm3": ("SmolLM3", dict(SIZES, **rope(theta=2e6), num_hidden_layers=3, no_rope_layer_interval=3,
                                tie_word_embeddings=True)),
    "smollm3_plain": ("SmolLM3", dict(SIZES, **YARN, no_rope_layers=[0, 1], tie_word_embeddings=False)),
    "nemotron_h": ("NemotronH", dict(MAMBA, layers_block_type=["linear_attention", "mlp", "full_attention", "moe"],
                                     n_group=4, topk_group=2, tie_word_embeddings=False)),
    "nemotron_h_latent": ("NemotronH", dict(MAMBA, layers_block_type=["moe", "linear_attention", "full_attention"],
                                            moe_latent_size=16, n_group=1, topk_group=1, tie_word_embeddings=False)),
    "minimax_m2": ("MiniMaxM2", dict(SIZES, **rope(theta=5e6, partial_rotary_factor=0.5), num_local_experts=6,
                                     num_experts_per_tok=2, tie_word_embeddings=False)),
    "minimax_m2_tied": ("MiniMaxM2", dict(SIZES, **rope(partial_rotary_factor=0.25), num_local_experts=8,
                                          num_experts_per_tok=3, num_key_value_heads=4, tie_word_embeddings=True)),
}


def values(name, shape):
    """Larger than at the start of training, so that every part matters."""
    x = torch.randn(shape)
    if "norm" in name and name.endswith("weight"):
        return 1.0 + 0.1 * x
    if name.endswith("A_log") or name.endswith("dt_bias"):
        return 0.7 * x
    if len(shape) == 1:
        return 0.3 * x
    return x * (0.6 / shape[-1] ** 0.5 + 0.05)


def randomise(model):
    named = [*model.named_parameters(), *((n, b) for n, b in model.named_buffers() if "correction_bias" in n)]
    with torch.no_grad():
        for name, p in sorted(named, key=lambda item: item[0]):
            p.copy_(values(name, p.shape).bfloat16())


def make(out, name):
    kind, fields = MODELS[name]
    folder = f"{out}/{name}"
    torch.manual_seed(sorted(MODELS).index(name) + 1)
    config = getattr(transformers, f"{kind}Config")(**fields)
    model = getattr(transformers, f"{kind}ForCausalLM")(config)
    randomise(model)
    copy.deepcopy(model).to(torch.bfloat16).save_pretrained(folder)
    ids = torch.randint(3, VOCABULARY, (1, TOKENS))
    case, _ = reference.compute(model.eval(), {"input_ids": ids})
    reference.save_case(folder, "text", case)
    if os.path.exists(f"{folder}/generation_config.json"):
        os.remove(f"{folder}/generation_config.json")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    failed = []
    for each in sys.argv[2:] or MODELS:
        try:
            make(sys.argv[1], each)
        except Exception:
            traceback.print_exc()
            failed.append(each)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)
