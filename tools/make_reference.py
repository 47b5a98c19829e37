"""make_reference: tiny random checkpoints with experts, and what Hugging Face transformers computes from them in float32.

    python3 tools/make_reference.py OUT          (PyTorch, transformers 5.17, safetensors; a few seconds on a CPU)

writes OUT/tiny_moe (Qwen3 with experts, one layer without) and OUT/tiny_vl_moe (Qwen3-VL with experts), each a folder in
the published layout with cases/, as tools/check_reference.c describes them. Copies lie in tests/data. Weights are rounded
to bf16 before anything is computed; the rotary frequencies stay as they are.
"""
import copy
import inspect
import json
import os
import sys

import torch
import transformers
from safetensors.torch import save_file

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
            "<|video_pad|>"]
END, START, STOP, VISION, VISION_END, IMAGE, VIDEO = range(256, 263)
VOCABULARY, WIDTH, LAST, GREEDY = 264, 32, 16, 8
PATCH = 8


def byte_names():
    """The characters that stand for bytes in byte-level vocabularies."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    names, spare = {}, 256
    for byte in range(256):
        names[byte] = chr(byte) if byte in plain else chr(spare)
        spare += byte not in plain
    return names


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")


def write_tokenizer(folder):
    pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
               r"|\s*[\r\n]+|\s+(?!\S)|\s+")
    write_json(f"{folder}/tokenizer.json", {
        "version": "1.0",
        "added_tokens": [{"id": 256 + i, "content": s, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for i, s in enumerate(SPECIALS)],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}]},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {name: byte for byte, name in byte_names().items()}, "merges": []}})
    write_json(f"{folder}/tokenizer_config.json", {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"})
    write_json(f"{folder}/generation_config.json", {"eos_token_id": STOP})


def randomise(model):
    """Larger than at the start of training, so that layers and the choice of experts matter."""
    for name, p in sorted(model.named_parameters()):
        is_norm = "norm" in name and name.endswith("weight")
        with torch.no_grad():
            p.copy_(torch.randn(p.shape) * (0.1 if is_norm or p.dim() == 1 else 0.6 / p.shape[-1] ** 0.5 + 0.05))
            if is_norm:
                p.add_(1.0)


def finish(model, folder):
    randomise(model)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.bfloat16())
    copy.deepcopy(model).to(torch.bfloat16).save_pretrained(folder)
    write_tokenizer(folder)
    return model.eval()


def text_config(layers):
    return dict(vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=48, num_hidden_layers=layers,
                num_attention_heads=4, num_key_value_heads=2, head_dim=16, num_experts=6, num_experts_per_tok=2,
                moe_intermediate_size=16, max_position_embeddings=4096, decoder_sparse_step=1, eos_token_id=STOP)


def run(model, inputs):
    """One forward pass: its output, and what went into the decoder and came out of the tower."""
    seen = {"vision": []}
    inner = model.model
    decoder = getattr(inner, "language_model", inner)
    hooks = [decoder.register_forward_pre_hook(
        lambda _, args, kwargs: seen.update(positions=kwargs.get("position_ids")), with_kwargs=True)]
    if hasattr(inner, "visual"):
        hooks.append(inner.visual.register_forward_hook(lambda _, args, out: seen["vision"].append(out)))
    with torch.no_grad():
        out = model(**inputs, use_cache=False, output_hidden_states=True)
    for hook in hooks:
        hook.remove()
    return out, seen


def compute(model, inputs):
    out, seen = run(model, inputs)
    ids, hidden = inputs["input_ids"], out.hidden_states
    case = {"input_ids": ids[0], "logits_last": out.logits[0, -LAST:], "hidden_last": hidden[-1][0, -LAST:],
            "hidden_states": torch.stack([h[0] for h in hidden])}
    more, greedy = dict(inputs), []
    for _ in range(GREEDY):
        step, _ = run(model, more)
        token = step.logits[0, -1].argmax()
        greedy.append(token)
        more["input_ids"] = torch.cat([more["input_ids"], token.view(1, 1)], 1)
        if "mm_token_type_ids" in more:
            more["mm_token_type_ids"] = kinds(more["input_ids"])
    case["greedy"] = torch.stack(greedy)
    return case, seen


def kinds(ids):
    return (ids == IMAGE).long() + 2 * (ids == VIDEO).long()


def save_case(folder, name, case):
    os.makedirs(f"{folder}/cases", exist_ok=True)
    joined = {k: torch.cat(v) if isinstance(v, tuple) else v for k, v in case.items()}
    save_file({k: v.contiguous().clone() for k, v in joined.items()}, f"{folder}/cases/{name}.safetensors")


def make_text(out):
    folder = f"{out}/tiny_moe"
    cfg = transformers.Qwen3MoeConfig(**text_config(3), norm_topk_prob=True, mlp_only_layers=[1],
                                      tie_word_embeddings=True, rope_theta=10000.0)
    model = finish(transformers.Qwen3MoeForCausalLM(cfg), folder)
    case, _ = compute(model, {"input_ids": torch.randint(0, 256, (1, 28))})
    save_case(folder, "text", case)


def image_ids():
    text = lambda s: list(s.encode())
    frame = lambda time: text(f"<{time} seconds>") + [VISION] + [VIDEO] * 2 + [VISION_END]
    return text("A") + [VISION] + [IMAGE] * 2 + [VISION_END] + text(" and ") + frame("0.2") + frame("0.8") + text("?")


def make_images(out):
    folder = f"{out}/tiny_vl_moe"
    vision = dict(depth=2, hidden_size=16, intermediate_size=24, num_heads=2, in_channels=3, patch_size=PATCH,
                  spatial_merge_size=2, temporal_patch_size=2, out_hidden_size=WIDTH, num_position_embeddings=16,
                  deepstack_visual_indexes=[0])
    rope = dict(rope_type="default", rope_theta=10000.0, mrope_section=[4, 2, 2], mrope_interleaved=True)
    cfg = transformers.Qwen3VLMoeConfig(
        text_config=dict(**text_config(2), rope_parameters=rope), vision_config=vision, tie_word_embeddings=False,
        image_token_id=IMAGE, video_token_id=VIDEO, vision_start_token_id=VISION, vision_end_token_id=VISION_END)
    model = finish(transformers.Qwen3VLMoeForConditionalGeneration(cfg), folder)
    size = {"longest_edge": 65536, "shortest_edge": 1024}
    both = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "merge_size": 2, "patch_size": PATCH,
            "temporal_patch_size": 2, "size": size}
    write_json(f"{folder}/processor_config.json",
               {"image_processor": both, "video_processor": dict(both, fps=2, min_frames=4, max_frames=768)})
    save_case(folder, "text", compute(model, {"input_ids": torch.randint(0, 256, (1, 28))})[0])
    ids, row = torch.tensor([image_ids()]), 3 * 2 * PATCH * PATCH
    inputs = {"input_ids": ids, "pixel_values": torch.rand(8, row) * 2 - 1, "pixel_values_videos": torch.rand(16, row) * 2 - 1,
              "image_grid_thw": torch.tensor([[1, 2, 4]]), "video_grid_thw": torch.tensor([[2, 2, 4]])}
    for name in ("pixel_values", "pixel_values_videos"):
        inputs[name] = inputs[name].bfloat16().float()
    if "mm_token_type_ids" in inspect.signature(model.forward).parameters:
        inputs["mm_token_type_ids"] = kinds(ids)
    case, seen = compute(model, inputs)
    for name, result in zip(("image", "video"), seen["vision"]):
        case[f"{name}_features"] = result.pooler_output
        case[f"{name}_features_last_hidden"] = result.last_hidden_state
        case[f"{name}_features_deepstack"] = torch.stack(list(result.deepstack_features))
    for name in ("pixel_values", "pixel_values_videos"):
        case[name] = inputs[name].bfloat16()
    case["image_grid_thw"], case["video_grid_thw"] = inputs["image_grid_thw"], inputs["video_grid_thw"]
    case["position_ids"] = seen["positions"][-3:, 0]
    case["rope_delta"] = model.model.rope_deltas.view(-1)
    save_case(folder, "media", case)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.manual_seed(1)
    make_text(sys.argv[1])
    torch.manual_seed(2)
    make_images(sys.argv[1])
