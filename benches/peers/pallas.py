"""Grouped-query attention as JAX Pallas kernels in TPU interpret mode, checked and timed, as JSON."""

import argparse
import functools
import json
import math
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

KEYS = 64  # keys of a block, as in kernbench's kernels
H_Q, H_KV, D = 32, 8, 128
GROUP = H_Q // H_KV
SCALE = 1 / math.sqrt(D)


def interpret_mode():
    """What asks the installed version for the TPU simulation rather than the plain interpreter."""
    for name in ("InterpretParams", "TPUInterpretParams"):
        if hasattr(pltpu, name):
            return getattr(pltpu, name)()
    raise SystemExit(f"jax {jax.__version__} has no TPU interpret mode; install the pinned version")


def flash_kernel(q, k, v, o, m, l, acc, *, causal, rows_per_query):
    """One block of keys of one head: a running softmax in scratch (FlashAttention, algorithm 1).

    Row i of q (rows, d) is query i / rows_per_query; k and v are (keys, d).
    """
    block = pl.program_id(1)
    rows = q.shape[1]

    @pl.when(block == 0)
    def _():
        m[...] = jnp.full_like(m, -jnp.inf)
        l[...] = jnp.zeros_like(l)
        acc[...] = jnp.zeros_like(acc)

    def update():
        s = jax.lax.dot_general(
            q[0], k[0], (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32
        )
        s = s * SCALE
        if causal:
            i = jax.lax.broadcasted_iota(jnp.int32, s.shape, 0) // rows_per_query
            j = jax.lax.broadcasted_iota(jnp.int32, s.shape, 1) + block * KEYS
            s = jnp.where(i >= j, s, -jnp.inf)
        m_new = jnp.maximum(m[...], s.max(axis=1, keepdims=True))
        p = jnp.exp(s - m_new)
        alpha = jnp.exp(m[...] - m_new)
        l[...] = l[...] * alpha + p.sum(axis=1, keepdims=True)
        pv = jnp.dot(p.astype(v.dtype), v[0], preferred_element_type=jnp.float32)
        acc[...] = acc[...] * alpha + pv
        m[...] = m_new

    # Query i sees keys up to i, so a block that starts after the last query is skipped. Block 0 is
    # seen by every query: no row's maximum is -inf afterwards.
    if causal:
        pl.when(block * KEYS * rows_per_query < rows)(update)
    else:
        update()

    @pl.when(block == pl.num_programs(1) - 1)
    def _():
        o[0] = (acc[...] / l[...]).astype(o.dtype)


def flash_attention(q, k, v, *, causal, per_kv_head):
    """Attention of q (h_q, t_q, d) over k, v (h_kv, s, d): grid of heads and key blocks.

    per_kv_head: a step serves the whole group of query heads that share a KV head, else one of them.
    """
    h_q, t_q, d = q.shape
    share = GROUP if per_kv_head else 1
    rows = t_q * share
    # (heads, t_q * share, d): the heads of a query follow each other.
    q = q.reshape(h_q // share, share, t_q, d).swapaxes(1, 2).reshape(h_q // share, rows, d)
    of_head = pl.BlockSpec((1, rows, d), lambda h, b: (h, 0, 0))
    of_keys = pl.BlockSpec((1, KEYS, d), lambda h, b: (h * share // GROUP, b, 0))
    o = pl.pallas_call(
        functools.partial(flash_kernel, causal=causal, rows_per_query=share),
        out_shape=jax.ShapeDtypeStruct(q.shape, q.dtype),
        grid=(h_q // share, k.shape[1] // KEYS),
        in_specs=[of_head, of_keys, of_keys],
        out_specs=of_head,
        scratch_shapes=[
            pltpu.VMEM((rows, 1), jnp.float32),
            pltpu.VMEM((rows, 1), jnp.float32),
            pltpu.VMEM((rows, d), jnp.float32),
        ],
        interpret=interpret_mode(),
    )(q, k, v)
    return o.reshape(h_q // share, t_q, share, d).swapaxes(1, 2).reshape(h_q, t_q, d)


def oracle(q, k, v, causal):
    """The attention in f64, and the sum of the magnitudes of its terms."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = np.repeat(k, GROUP, axis=0), np.repeat(v, GROUP, axis=0)
    s = q @ k.swapaxes(1, 2) * SCALE
    if causal:
        i, j = np.indices(s.shape[1:])
        s = np.where(i >= j, s, -np.inf)
    p = np.exp(s - s.max(axis=2, keepdims=True))
    p /= p.sum(axis=2, keepdims=True)
    return p @ v, p @ np.abs(v)


def timed(f, *args):
    """The result and the seconds it took."""
    start = time.perf_counter()
    out = jax.block_until_ready(f(*args))
    return np.asarray(out), time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--t-q", type=int, required=True, help="queries of each head")
    parser.add_argument("--s-kv", type=int, required=True, help="keys of each head; a multiple of 64")
    parser.add_argument("--causal", action="store_true", help="query i sees keys up to i")
    parser.add_argument("--per-kv-head", action="store_true", help="a step serves a group of query heads")
    parser.add_argument("--warm", type=int, default=7, help="timed calls after the first")
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    shapes = [(H_Q, args.t_q, D), (H_KV, args.s_kv, D), (H_KV, args.s_kv, D)]
    inputs = [rng.standard_normal(shape).astype(np.float16) for shape in shapes]
    f = functools.partial(flash_attention, causal=args.causal, per_kv_head=args.per_kv_head)
    f = jax.jit(f)
    on_device = [jnp.asarray(x) for x in inputs]
    out, cold = timed(f, *on_device)
    warm = sorted(timed(f, *on_device)[1] for _ in range(args.warm))

    # The weights are rounded to f16 before the second product, the output after it: half an ulp
    # each, 2^-11; a tenth more for the sums in f32.
    expected, magnitude = oracle(*inputs, args.causal)
    error = np.abs(out.astype(np.float64) - expected)
    bound = 1.1 * 2.0**-10 * magnitude
    worst = np.unravel_index(np.argmax(error / bound), error.shape)
    print(json.dumps({
        "jax": jax.__version__,
        "correct": bool((error <= bound).all()),
        "max_error": float(error[worst]),
        "error_bound": float(bound[worst]),
        "cold_s": cold,
        "warm_s": warm,
    }))


if __name__ == "__main__":
    main()
