"""Exports a trained state as a checkpoint that transformers loads.

usage: export.py STATE_DIR MODEL_DIR       reads state.pt and tokenizer.json, writes the checkpoint (bf16) with all its side files
"""
import json
import os
import sys

import torch

import data
import model as M

HERE = os.path.dirname(os.path.abspath(__file__))


def config(tok):
    from transformers import Qwen3_5Config

    C, i = M.CFG, tok.token_to_id
    return Qwen3_5Config(
        tie_word_embeddings=True,
        image_token_id=i("<|image_pad|>"),
        video_token_id=i("<|video_pad|>"),
        vision_start_token_id=i("<|vision_start|>"),
        vision_end_token_id=i("<|vision_end|>"),
        text_config=dict(
            vocab_size=C["vocab"],
            hidden_size=C["hidden"],
            intermediate_size=C["mlp"],
            num_hidden_layers=C["layers"],
            num_attention_heads=C["heads"],
            num_key_value_heads=C["kv"],
            head_dim=C["hd"],
            linear_num_key_heads=C["gheads"],
            linear_num_value_heads=C["gheads"],
            linear_key_head_dim=C["gdim"],
            linear_value_head_dim=C["gdim"],
            linear_conv_kernel_dim=C["conv"],
            rms_norm_eps=C["eps"],
            max_position_embeddings=32768,
            rope_parameters=dict(
                rope_type="default",
                rope_theta=C["theta"],
                mrope_section=list(C["sections"]),
                mrope_interleaved=True,
                partial_rotary_factor=C["rotary"] / C["hd"],
            ),
            tie_word_embeddings=True,
            eos_token_id=i("<|endoftext|>"),
            bos_token_id=None,
            pad_token_id=None,
        ),
        vision_config=dict(
            depth=C["vdepth"],
            hidden_size=C["vhidden"],
            num_heads=C["vheads"],
            intermediate_size=C["vmlp"],
            patch_size=16,
            temporal_patch_size=2,
            spatial_merge_size=2,
            num_position_embeddings=C["vside"] ** 2,
            in_channels=3,
            out_hidden_size=C["hidden"],
        ),
    )


def wrap(tok):
    from transformers import PreTrainedTokenizerFast

    t = PreTrainedTokenizerFast(tokenizer_object=tok, eos_token="<|im_end|>", pad_token="<|endoftext|>", clean_up_tokenization_spaces=False)
    t.chat_template = open(os.path.join(HERE, "chat_template.jinja")).read()
    t.model_max_length = 32768
    for n, x in (
        ("image_token", "<|image_pad|>"),
        ("video_token", "<|video_pad|>"),
        ("vision_bos_token", "<|vision_start|>"),
        ("vision_eos_token", "<|vision_end|>"),
    ):
        setattr(t, n, x)
    return t


def export(state_dir, out):
    from transformers import Qwen3_5ForConditionalGeneration, Qwen2VLImageProcessor
    from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor
    from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor
    from safetensors.torch import load_file, save_file

    os.makedirs(out, exist_ok=True)
    sd = torch.load(os.path.join(state_dir, "state.pt"), map_location="cpu")
    sd = M.fit({k.replace("_orig_mod.", ""): v for k, v in sd.items()})
    tok = data.load_tokenizer(os.path.join(state_dir, "tokenizer.json"))
    m = Qwen3_5ForConditionalGeneration(config(tok))
    miss, extra = m.load_state_dict({k: v for k, v in sd.items() if not k.startswith("mtp.")}, strict=False)
    assert set(miss) <= {"lm_head.weight"} and not extra, (miss, extra)
    m.tie_weights()
    m.to(torch.bfloat16).save_pretrained(out)
    f = os.path.join(out, "model.safetensors")
    t = load_file(f)
    t.update({k: v.to(torch.bfloat16).contiguous() for k, v in sd.items() if k.startswith("mtp.")})
    save_file(t, f, metadata={"format": "pt"})
    c = json.load(open(os.path.join(out, "config.json")))
    c["text_config"]["mtp_num_hidden_layers"] = 1
    c["text_config"]["mtp_use_dedicated_embeddings"] = False
    json.dump(c, open(os.path.join(out, "config.json"), "w"), indent=2)
    tk = wrap(tok)
    tpl = tk.chat_template
    kw = dict(patch_size=16, temporal_patch_size=2, merge_size=2, image_mean=[0.5] * 3, image_std=[0.5] * 3)
    ip = Qwen2VLImageProcessor(size={"shortest_edge": data.IMAGE_MIN, "longest_edge": data.IMAGE_MAX}, **kw)
    vp = Qwen3VLVideoProcessor(
        size={"shortest_edge": data.VIDEO_MIN, "longest_edge": data.VIDEO_MAX},
        fps=2,
        min_frames=data.VIDEO_FRAMES[0],
        max_frames=data.VIDEO_FRAMES[1],
        **kw,
    )
    Qwen3VLProcessor(image_processor=ip, tokenizer=tk, video_processor=vp, chat_template=tpl).save_pretrained(out)
    for n, p, cls in (("preprocessor_config.json", ip, "image_processor_type"), ("video_preprocessor_config.json", vp, "video_processor_type")):
        d = json.loads(p.to_json_string())
        d["processor_class"] = "Qwen3VLProcessor"
        json.dump(d, open(os.path.join(out, n), "w"), indent=2)
    i = tok.token_to_id
    json.dump(
        dict(
            bos_token_id=i("<|endoftext|>"),
            eos_token_id=[i("<|im_end|>"), i("<|endoftext|>")],
            pad_token_id=i("<|endoftext|>"),
            do_sample=True,
            temperature=0.3,
            top_k=20,
            top_p=0.95,
        ),
        open(os.path.join(out, "generation_config.json"), "w"),
        indent=2,
    )
    print(
        "exported",
        len(t),
        "tensors",
        sum(x.numel() for x in t.values()),
        "parameters",
        {n: os.path.getsize(os.path.join(out, n)) for n in sorted(os.listdir(out))},
        flush=True,
    )


if __name__ == "__main__":
    export(sys.argv[1], sys.argv[2])
