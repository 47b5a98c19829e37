"""Seedling in plain PyTorch, for training on packed rows. Parameter names and mathematics are those of Qwen3.5 in transformers.

Packed means: documents lie one after another in a row. `at` is a token's index in its document (0 wipes the recurrent state and
the convolution), attention runs over sequences given by their cumulative lengths.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

CFG = dict(
    vocab=3072,  # of a new model; fit() takes that of a checkpoint
    hidden=384,
    layers=8,
    heads=6,
    kv=2,
    hd=64,
    rotary=16,
    sections=(3, 3, 2),
    theta=10000.0,
    gheads=6,
    gdim=64,
    conv=4,
    mlp=832,
    eps=1e-6,
    vdepth=8,
    vhidden=256,
    vheads=4,
    vmlp=1024,
    vside=24,
)


def fit(state):
    """Makes models that are built from now on as wide in their vocabulary as the weights of a checkpoint, and gives these back."""
    CFG["vocab"] = len(state["model.language_model.embed_tokens.weight"])
    return state


class Norm(nn.Module):  # weight is stored minus one
    def __init__(s, n):
        super().__init__()
        s.weight = nn.Parameter(torch.zeros(n))

    def forward(s, x):
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + CFG["eps"]) * (1 + s.weight.float())).to(x.dtype)


class Holder(nn.Module):  # a module that only holds a weight
    def __init__(s, *shape, one=False):
        super().__init__()
        s.weight = nn.Parameter(torch.ones(*shape) if one else torch.zeros(*shape))


def linear(i, o, bias=False):
    return nn.Linear(i, o, bias=bias)


def attend(q, k, v, cu, longest, causal):
    """q [N, heads, d], k and v [N, kv heads, d]; sequences lie at cu[i]..cu[i+1]."""
    if q.is_cuda:
        return torch.ops.aten._flash_attention_forward(q.contiguous(), k.contiguous(), v.contiguous(), cu, cu, longest, longest, 0.0, causal, False)[
            0
        ]
    out = torch.empty_like(q)
    g = q.shape[1] // k.shape[1]
    for a, b in zip(cu[:-1].tolist(), cu[1:].tolist()):
        if a == b:
            continue
        Q, K, V = q[a:b].transpose(0, 1), k[a:b].repeat_interleave(g, 1).transpose(0, 1), v[a:b].repeat_interleave(g, 1).transpose(0, 1)
        S = Q @ K.transpose(1, 2) * q.shape[-1] ** -0.5
        if causal:
            S = S.masked_fill(torch.ones(b - a, b - a, dtype=torch.bool, device=q.device).triu(1), float("-inf"))
        out[a:b] = (S.softmax(-1) @ V).transpose(0, 1)
    return out


def rotate(x, cos, sin):  # x [N, h, d], cos/sin [N, r/2]: pairs (i, i + r/2) of the first r
    r = cos.shape[-1]
    c, s = cos[:, None], sin[:, None]
    a, b = x[..., :r].float(), x[..., r : 2 * r].float()
    return (
        torch.cat([a * c - b * s, b * c + a * s], -1).to(x.dtype)
        if x.shape[-1] == 2 * r
        else torch.cat([(a * c - b * s).to(x.dtype), (b * c + a * s).to(x.dtype), x[..., 2 * r :]], -1)
    )


class Attention(nn.Module):
    def __init__(s):
        super().__init__()
        H, n, k, d = CFG["hidden"], CFG["heads"], CFG["kv"], CFG["hd"]
        s.q_proj, s.k_proj, s.v_proj, s.o_proj = linear(H, n * 2 * d), linear(H, k * d), linear(H, k * d), linear(n * d, H)
        s.q_norm, s.k_norm = Norm(d), Norm(d)

    def forward(s, x, cos, sin, cu, longest):
        N = x.shape[0]
        n, d = CFG["heads"], CFG["hd"]
        q, g = s.q_proj(x).view(N, n, 2 * d).split(d, -1)
        k, v = s.k_proj(x).view(N, -1, d), s.v_proj(x).view(N, -1, d)
        o = attend(rotate(s.q_norm(q), cos, sin), rotate(s.k_norm(k), cos, sin), v, cu, longest, True)
        return s.o_proj((o * torch.sigmoid(g)).reshape(N, n * d))


def inverse(Lo):
    """(I + Lo)^-1 for strictly lower triangular 64 x 64: series inside 16 x 16 blocks, then over the blocks."""
    C = Lo.shape[-1]
    i = torch.arange(C, device=Lo.device) // 16
    D = torch.where(i[:, None] == i[None], -Lo, 0)
    I = torch.eye(C, device=Lo.device)
    D2 = D @ D
    D4 = D2 @ D2
    D8 = D4 @ D4
    P = I + D
    P = P + P @ D2
    P = P + P @ D4
    P = P + P @ D8
    E = P @ torch.where(i[:, None] == i[None], 0, Lo)
    E2 = E @ E
    Q = I - E
    return (Q + Q @ E2) @ P


class Inverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, Lo):
        T = inverse(Lo)
        ctx.save_for_backward(T)
        return T

    @staticmethod
    def backward(ctx, g):
        (T,) = ctx.saved_tensors
        Tt = T.transpose(-1, -2)
        return -(Tt @ g @ Tt).tril(-1)


def delta_rule(q, k, v, g, beta, C=64):
    """Gated delta rule in chunks. q, k, v [B, L, h, d] (q scaled, q and k normalized), g (log decay) and beta [B, L, h]; fp32."""
    B, L, h, d = q.shape
    n = L // C
    q, k, v = (x.view(B, n, C, h, d).permute(0, 3, 1, 2, 4) for x in (q, k, v))
    g, beta = (x.view(B, n, C, h).permute(0, 3, 1, 2) for x in (g, beta))
    G = g.cumsum(-1)
    low = torch.ones(C, C, dtype=torch.bool, device=q.device).tril()
    D = torch.where(low, (G[..., :, None] - G[..., None, :]).clamp(max=0).exp(), 0)
    kb = k * beta[..., None]
    T = Inverse.apply((kb @ k.transpose(-1, -2) * D).tril(-1))
    U = T @ (v * beta[..., None])
    W = T @ (kb * G.exp()[..., None])
    A = q @ k.transpose(-1, -2) * D
    last = G[..., -1:]
    Kd = (k * (last - G).exp()[..., None]).transpose(-1, -2)
    dec = last.exp()[..., None]
    S = torch.zeros(B, h, d, d, device=q.device, dtype=q.dtype)
    Ss, Ns = [], []
    for u, w, kd, e in zip(U.unbind(2), W.unbind(2), Kd.unbind(2), dec.unbind(2)):
        Ss.append(S)
        N = u - w @ S
        Ns.append(N)
        S = S * e + kd @ N
    O = (q * G.exp()[..., None]) @ torch.stack(Ss, 2) + A @ torch.stack(Ns, 2)
    return O.permute(0, 2, 3, 1, 4).reshape(B, L, h, d)


class Delta(nn.Module):
    def __init__(s):
        super().__init__()
        H, n, d = CFG["hidden"], CFG["gheads"], CFG["gdim"]
        s.in_proj_qkv, s.in_proj_z, s.in_proj_b, s.in_proj_a = linear(H, 3 * n * d), linear(H, n * d), linear(H, n), linear(H, n)
        s.conv1d = Holder(3 * n * d, 1, CFG["conv"])
        s.A_log = nn.Parameter(torch.zeros(n))
        s.dt_bias = nn.Parameter(torch.zeros(n))
        s.norm = Holder(d, one=True)
        s.out_proj = linear(n * d, H)

    def forward(s, x, at):  # x [B, L, H], at [B, L]
        B, L, _ = x.shape
        n, d = CFG["gheads"], CFG["gdim"]
        u, w = s.in_proj_qkv(x), s.conv1d.weight[:, 0]
        y = u * w[:, 3].to(u.dtype)
        for j in (1, 2, 3):
            y = y + F.pad(u, (0, 0, j, 0))[:, :L] * (at >= j)[..., None].to(u.dtype) * w[:, 3 - j].to(u.dtype)
        with torch.autocast(x.device.type, enabled=False):
            q, k, v = F.silu(y.float()).view(B, L, 3, n, d).unbind(2)
            q = q * torch.rsqrt((q * q).sum(-1, keepdim=True) + 1e-6) * d**-0.5
            k = k * torch.rsqrt((k * k).sum(-1, keepdim=True) + 1e-6)
        b, a, z = s.in_proj_b(x), s.in_proj_a(x), s.in_proj_z(x)
        with torch.autocast(x.device.type, enabled=False):
            g = -s.A_log.float().exp() * F.softplus(a.float() + s.dt_bias.float())
            g = torch.where((at == 0)[..., None], -40.0, g)
            o = delta_rule(q, k, v, g, b.float().sigmoid())
            o = o * torch.rsqrt(o.pow(2).mean(-1, keepdim=True) + CFG["eps"]) * s.norm.weight.float()
            o = o * F.silu(z.float()).view(B, L, n, d)
        return s.out_proj(o.reshape(B, L, n * d).to(x.dtype))


class Mlp(nn.Module):
    def __init__(s):
        super().__init__()
        H, I = CFG["hidden"], CFG["mlp"]
        s.gate_proj, s.up_proj, s.down_proj = linear(H, I), linear(H, I), linear(I, H)

    def forward(s, x):
        return s.down_proj(F.silu(s.gate_proj(x)) * s.up_proj(x))


class Layer(nn.Module):
    def __init__(s, full):
        super().__init__()
        s.full = full
        if full:
            s.self_attn = Attention()
        else:
            s.linear_attn = Delta()
        s.mlp, s.input_layernorm, s.post_attention_layernorm = Mlp(), Norm(CFG["hidden"]), Norm(CFG["hidden"])

    def forward(s, x, at, cos, sin, cu, longest):
        B, L, H = x.shape
        y = s.input_layernorm(x)
        y = s.self_attn(y.view(B * L, H), cos, sin, cu, longest).view(B, L, H) if s.full else s.linear_attn(y, at)
        x = x + y
        return x + s.mlp(s.post_attention_layernorm(x))


class Text(nn.Module):
    def __init__(s):
        super().__init__()
        s.embed_tokens = nn.Embedding(CFG["vocab"], CFG["hidden"])
        s.layers = nn.ModuleList(Layer(i % 4 == 3) for i in range(CFG["layers"]))
        s.norm = Norm(CFG["hidden"])


class VBlock(nn.Module):
    def __init__(s):
        super().__init__()
        v = CFG["vhidden"]
        s.norm1, s.norm2 = nn.LayerNorm(v, eps=1e-6), nn.LayerNorm(v, eps=1e-6)
        s.attn = nn.Module()
        s.attn.qkv, s.attn.proj = linear(v, 3 * v, True), linear(v, v, True)
        s.mlp = nn.Module()
        s.mlp.linear_fc1, s.mlp.linear_fc2 = linear(v, CFG["vmlp"], True), linear(CFG["vmlp"], v, True)

    def forward(s, x, cos, sin, cu, longest):
        N, v = x.shape
        q, k, w = s.attn.qkv(s.norm1(x)).view(N, 3, CFG["vheads"], -1).unbind(1)
        x = x + s.attn.proj(attend(rotate(q, cos, sin), rotate(k, cos, sin), w, cu, longest, False).reshape(N, v))
        return x + s.mlp.linear_fc2(F.gelu(s.mlp.linear_fc1(s.norm2(x)), approximate="tanh"))


class Vision(nn.Module):
    def __init__(s):
        super().__init__()
        v = CFG["vhidden"]
        s.patch_embed = nn.Module()
        s.patch_embed.proj = nn.Module()
        s.patch_embed.proj.weight = nn.Parameter(torch.zeros(v, 3, 2, 16, 16))
        s.patch_embed.proj.bias = nn.Parameter(torch.zeros(v))
        s.pos_embed = nn.Embedding(CFG["vside"] ** 2, v)
        s.blocks = nn.ModuleList(VBlock() for _ in range(CFG["vdepth"]))
        s.merger = nn.Module()
        s.merger.norm = nn.LayerNorm(v, eps=1e-6)
        s.merger.linear_fc1, s.merger.linear_fc2 = linear(4 * v, 4 * v, True), linear(4 * v, CFG["hidden"], True)

    def forward(s, store, first, second, grid, cu, longest):
        """store uint8 [n, 768]; first/second [N] rows of the two temporal slices; grid [N, 4] = row, column, grid height, width."""
        v = CFG["vhidden"]
        w = s.patch_embed.proj.weight
        st = (store.to(torch.bfloat16 if store.is_cuda and torch.is_autocast_enabled() else torch.float32) - 127.5) / 127.5
        z = st.view(-1, 3, 1, 256)
        x = torch.cat([z[first], z[second]], 2).view(-1, 1536)
        x = F.linear(x, w.view(v, 1536), s.patch_embed.proj.bias)
        S = CFG["vside"]
        g = grid.float()
        fr, fc = g[:, 0] * (S - 1) / (g[:, 2] - 1).clamp(min=1), g[:, 1] * (S - 1) / (g[:, 3] - 1).clamp(min=1)
        i = torch.arange(S, device=x.device).float()  # bilinear weights of the table's rows and columns
        with torch.autocast(x.device.type, enabled=False):
            wr, wc = (1 - (fr[:, None] - i).abs()).clamp(min=0), (1 - (fc[:, None] - i).abs()).clamp(min=0)
            pe = (wr[:, :, None] * wc[:, None]).view(-1, S * S) @ s.pos_embed.weight
        x = x + pe.to(x.dtype)
        m = v // CFG["vheads"] // 4
        inv = 10000.0 ** (-torch.arange(m, device=x.device).float() * 2 / (2 * m))
        a = torch.cat([g[:, :1] * inv, g[:, 1:2] * inv], -1)
        cos, sin = a.cos(), a.sin()
        for b in s.blocks:
            x = b(x, cos, sin, cu, longest)
        x = s.merger.norm(x).view(-1, 4 * v)
        return s.merger.linear_fc2(F.gelu(s.merger.linear_fc1(x)))


class Mtp(nn.Module):
    def __init__(s):
        super().__init__()
        H = CFG["hidden"]
        s.fc = linear(2 * H, H)
        s.layers = nn.ModuleList([Layer(True)])
        s.norm, s.pre_fc_norm_embedding, s.pre_fc_norm_hidden = Norm(H), Norm(H), Norm(H)


class Seedling(nn.Module):
    def __init__(s):
        super().__init__()
        s.model = nn.Module()
        s.model.language_model = Text()
        s.model.visual = Vision()
        s.mtp = Mtp()

    def init(s, seed=0):
        g = torch.Generator().manual_seed(seed)
        for n, p in s.named_parameters():
            r = lambda k: torch.empty(p.shape).normal_(0, k, generator=g)
            if n.endswith("A_log"):
                p.data = torch.log(torch.empty(p.shape).uniform_(1, 16, generator=g))
            elif n.endswith("dt_bias"):
                t = torch.exp(torch.empty(p.shape).uniform_(math.log(0.001), math.log(0.1), generator=g))
                p.data = t + torch.log(-torch.expm1(-t))
            elif "conv1d" in n:
                p.data = torch.empty(p.shape).uniform_(-0.5, 0.5, generator=g)
            elif "embed" in n and "patch" not in n:
                p.data = r(0.02)
            elif p.dim() >= 2:
                p.data = r(
                    (
                        0.25
                        if n.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight", "attn.proj.weight", "linear_fc2.weight"))
                        and "merger" not in n
                        else 1
                    )
                    * 0.6
                    / math.sqrt(p[0].numel())
                )
        return s

    def forward(s, b):
        """Hidden states after the final norm and of the MTP layer, both [rows * length, H]."""
        t = s.model.language_model
        B, L = b["ids"].shape
        H = CFG["hidden"]
        emb = t.embed_tokens(b["ids"])
        x = emb
        if b.get("store") is not None:
            f = s.model.visual(b["store"], b["first"], b["second"], b["grid"], b["vcu"], b["vlongest"])
            x = emb.view(-1, H).index_copy(0, b["vpos"], f.index_select(0, b["vfeat"]).to(emb.dtype)).view(B, L, H)
        half = CFG["rotary"] // 2
        inv = CFG["theta"] ** (-torch.arange(half, device=x.device).float() / half)
        axis = torch.tensor(
            [1 if i % 3 == 1 and i < 3 * CFG["sections"][1] else 2 if i % 3 == 2 and i < 3 * CFG["sections"][2] else 0 for i in range(half)],
            device=x.device,
        )
        a = b["pos"].view(-1, 3)[:, axis].float() * inv
        cos, sin = a.cos(), a.sin()
        if x.is_cuda and torch.is_autocast_enabled():
            x = x.to(torch.bfloat16)
            emb = emb.to(torch.bfloat16)
        for l in t.layers:
            x = l(x, b["at"], cos, sin, b["cu"], b["longest"])
        h = t.norm(x)
        m = s.mtp
        nxt = torch.cat([emb[:, 1:], emb[:, :1]], 1)
        y = m.fc(torch.cat([m.pre_fc_norm_embedding(nxt), m.pre_fc_norm_hidden(h)], -1))
        y = m.norm(m.layers[0](y, b["at"], cos, sin, b["cu"], b["longest"]))
        return h.view(-1, H), y.view(-1, H)

    def logits(s, h):
        return F.linear(h, s.model.language_model.embed_tokens.weight.to(h.dtype))


def lengths(ids2d):
    """Cumulative sequence lengths of rows of ids: a sequence is a run of equal numbers in one row."""
    import numpy as np

    r, l = ids2d.shape
    new = np.ones((r, l), bool)
    new[:, 1:] = ids2d[:, 1:] != ids2d[:, :-1]
    s = np.flatnonzero(new.reshape(-1))
    cu = np.append(s, r * l).astype(np.int32)
    return cu, int(np.diff(cu).max())
