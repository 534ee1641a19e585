#!/usr/bin/env python3
"""jax_programs.py OUT: lowers small JAX programs over a mesh of eight virtual CPU devices, and runs them.

Writes OUT/NAME.mlir, what jax.jit(...).lower(...).as_text() says, and OUT/values.npz with arguments (NAME.in0, ...) and
the results of one device (NAME.out0, ...), or of all where the program says what each does. tests/data/jax/ holds what it wrote; `assay run NAME.mlir --inputs values.npz:NAME.in --expect
values.npz:NAME.out` executes the plan of each and compares."""

import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P

PROGRAMS = {}
rng = np.random.default_rng(7)


def floats(*shape):
    """Multiples of 1/16 within one, which short formats hold as well."""
    return (rng.integers(-16, 17, shape) / 16).astype(np.float32)


def whole(most, *shape):
    return rng.integers(0, most, shape).astype(np.int32)


def program(axes, *arguments):
    """A function with the shape of its mesh and its arguments, each with the axes that split it."""

    def keep(function):
        PROGRAMS[function.__name__] = (axes, function, arguments)
        return function

    return keep


XY = {"X": 4, "Y": 2}


@program(XY, (floats(16, 32), P("X")), (floats(32, 64), P(None, "Y")), (floats(64, 32), P("Y")), (floats(32), P()))
def norm_and_feed_forward_grad(x, up, down, gain):
    def loss(x, up, down, gain):
        normed = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * gain
        return jnp.mean(jnp.square(jax.nn.gelu(normed @ up) @ down + x))

    return jax.value_and_grad(loss, argnums=(1, 2, 3))(x, up, down, gain)


@program(XY, (floats(8, 4, 16), P("X", "Y")), (floats(8, 32, 4, 16), P("X", None, "Y")),
         (floats(8, 32, 4, 16), P("X", None, "Y")), (floats(8, 4, 16), P("X", "Y")), (np.int32(5), P()))
def decode_step(q, keys, values, fresh, at):
    keys = lax.dynamic_update_slice(keys, fresh[:, None], (0, at, 0, 0))
    values = lax.dynamic_update_slice(values, fresh[:, None] * 2, (0, at, 0, 0))
    scores = jnp.einsum("bhd,bshd->bhs", q, keys) / 4
    scores = jnp.where(jnp.arange(32) <= at, scores, -jnp.inf)
    return jnp.einsum("bhs,bshd->bhd", jax.nn.softmax(scores), values), keys


@program(XY, (floats(64, 16), P("Y", None)), (floats(16, 64), P(None, "Y")), (whole(64, 8, 16), P("X")),
         (whole(64, 8, 16), P("X")))
def vocabulary_grad(table, head, tokens, targets):
    def loss(table, head):
        logits = jnp.tanh(table[tokens]) @ head
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1)
        return -picked.mean()

    return jax.value_and_grad(loss, argnums=(0, 1))(table, head)


@program(XY, (floats(8, 16, 16), P("X", "Y")), (floats(4, 1, 16), P()), (floats(8, 16, 16, 4), P("X", "Y")),
         (floats(3, 3, 4, 8), P()))
def convolutions(sequence, taps, images, kernel):
    causal = lax.conv_general_dilated(sequence, taps, (1,), [(3, 0)], dimension_numbers=("NWC", "WIO", "NWC"),
                                      feature_group_count=16)
    wide = lax.conv_transpose(images, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    dilated = lax.conv_general_dilated(images, kernel, (1, 1), "SAME", rhs_dilation=(2, 2),
                                       dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return causal, wide.sum((1, 2)), dilated


@program(XY, (floats(8, 16, 16), P("X")), (floats(4, 1, 16), P()))
def depthwise_convolution_grad(x, taps):
    def loss(x, taps):
        out = lax.conv_general_dilated(x, taps, (1,), [(3, 0)], dimension_numbers=("NWC", "WIO", "NWC"),
                                       feature_group_count=16)
        return jnp.sum(jnp.tanh(out))

    return jax.grad(loss, argnums=(0, 1))(x, taps)


@program(XY, (floats(8, 16, 16, 4), P("X", None, "Y")))
def pooling_grad(x):
    def loss(x):
        largest = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        mean = lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME") / 9
        return jnp.sum(largest * largest) + jnp.sum(jnp.sin(mean))

    return jax.grad(loss)(x)


@program(XY, (floats(12, 8, 16), P(None, "X")), (floats(16, 16), P(None, "Y")), (floats(8, 16), P("X", "Y")))
def recurrence_both_ways(inputs, weights, start):
    def step(state, x):
        state = jnp.tanh(state @ weights + x)
        return state, state.sum(-1)

    forward, sums = lax.scan(step, start, inputs)
    backward, _ = lax.scan(step, start, inputs, reverse=True)
    return forward, backward, sums


@program(XY, (floats(16, 16), P("X")), (floats(16), P()))
def newton(a, b):
    a = a @ a.T / 16 + jnp.eye(16)

    def goes_on(state):
        return (jnp.linalg.norm(state[1]) > 1e-4) & (state[2] < 40)

    def step(state):
        x, r, n = state
        x = x + 0.2 * r
        return x, b - a @ x, n + 1

    x, residual, rounds = lax.while_loop(goes_on, step, (jnp.zeros(16), b, 0))
    return x, lax.fori_loop(0, 5, lambda i, s: s * 0.5 + a[i], x), rounds


@program(XY, (floats(16, 8), P("X", "Y")), (np.int32(1), P()), (floats(8, 8), P("Y")))
def branches(x, which, w):
    chosen = lax.switch(which, [lambda y: y + 1, lambda y: jnp.sin(y @ w), lambda y: y * 2], x)
    return lax.cond(chosen.sum() > 0, lambda y: y, lambda y: -y * 3, chosen)


@program(XY, (floats(16, 32), P("X", "Y")), (whole(9, 16, 32), P("X", "Y")))
def orders(x, keys):
    by_key, moved = lax.sort((keys, x), dimension=1, num_keys=1)
    largest, places = lax.top_k(x, 5)
    return (by_key, moved, jnp.argsort(x, axis=0), largest, places, jnp.cumsum(x, 1), lax.cumprod(x / 2 + 1, axis=0),
            lax.cummax(x, axis=1, reverse=True))


@program(XY, (floats(16, 32), P("X", "Y")))
def extremes(x):
    return (jnp.argmax(x, 1), jnp.argmin(x, 0), x.max(), x.min(1), jnp.all(x < 1, 1), jnp.any(x > 0.9, 0), x.prod(1),
            jax.nn.logsumexp(x, 1), jnp.quantile(x, 0.25, axis=1))


@program(XY, (floats(32, 16), P("X", "Y")), (whole(32, 24), P()), (floats(24, 16), P("X", "Y")),
         (np.sort(whole(8, 24)), P()))
def scatters(x, places, updates, segments):
    return (x.at[places].add(updates), x.at[places].max(updates), x.at[places].min(0.0), x.at[3:7].set(updates[:4]),
            jax.ops.segment_sum(updates, segments, 8), x.at[places, 2].multiply(0.5))


@program(XY, (floats(32, 16, 8), P("X", None, "Y")), (whole(32, 12), P()), (whole(16, 12), P()),
         (whole(16, 32, 3), P("X")))
def gathers(x, rows, columns, each):
    return x[rows, columns], x[rows], x[:, columns], jax.vmap(lambda a, i: a[i])(x, each), x[-5:, ::3, 1]


@program(XY, (floats(8, 16, 4, 8), P("X", None, "Y")), (floats(8, 4, 8, 16), P("X", "Y")), (floats(16, 8, 12), P()))
def contractions(a, b, c):
    return (jnp.einsum("bshd,bhde->bse", a, b), jnp.einsum("bshd,sde->bhe", a, c), jnp.tensordot(a, b, ((0, 2), (0, 1))),
            jnp.einsum("bshd,bthd->bhst", a, a))


@program(XY, (floats(32, 16), P("X", "Y")))
def collectives_by_hand(x):
    mesh = jax.make_mesh((4, 2), ("X", "Y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("X", "Y"),
                       out_specs=(P("X", "Y"), P(None, "Y"), P("X", "Y"), P("X", "Y"), P("X", "Y")), check_vma=False)
    def device(part):
        gathered = lax.all_gather(part, "Y", axis=1, tiled=True)
        scattered = lax.psum_scatter(gathered, "Y", scatter_dimension=1, tiled=True)
        ring = lax.ppermute(part, "X", [(i, (i + 1) % 4) for i in range(4)])
        swapped = lax.all_to_all(part, "X", split_axis=1, concat_axis=0, tiled=True)
        return (part / lax.psum(jnp.abs(part).sum(), ("X", "Y")), lax.pmax(part, "X"),
                scattered * (1 + lax.axis_index("X")), ring, swapped.reshape(part.shape))

    return device(x)


@program(XY, (floats(16, 32), P("X", "Y")), (floats(32, 24), P("Y")))
def partly_by_hand(x, w):
    mesh = jax.make_mesh((4, 2), ("X", "Y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P("X"), P()), out_specs=P("X"), axis_names={"X"},
                       check_vma=False)
    def device(part, w):
        return jax.nn.relu(part @ w) + lax.pmean(part.sum(), "X")

    return device(x, w)


@program(XY, (floats(64, 16), P("X")), (floats(16, 8), P()), (floats(8, 16, 32), P("Y")), (floats(8, 32, 16), P("Y")))
def experts_with_capacity_grad(x, router, up, down):
    def loss(router, up, down):
        weights, chosen = lax.top_k(jax.nn.softmax(x @ router), 2)
        slots = jax.nn.one_hot(chosen, 8).reshape(128, 8)
        place = jnp.cumsum(slots, 0) * slots - 1
        mask = (jax.nn.one_hot(place.astype(jnp.int32), 20) * slots[..., None]).reshape(64, 2, 8, 20)
        dispatched = jnp.einsum("tkec,td->ecd", mask, x)
        made = jnp.einsum("ecf,efd->ecd", jax.nn.silu(jnp.einsum("ecd,edf->ecf", dispatched, up)), down)
        return jnp.mean(jnp.square(jnp.einsum("tkec,tk,ecd->td", mask, weights, made) - x))

    return jax.value_and_grad(loss, argnums=(0, 1, 2))(router, up, down)


@program({"X": 8}, (floats(64, 32), P("X")), (floats(8, 32, 16), P()), (np.array([3, 9, 0, 20, 7, 5, 12, 4], np.int32), P()))
def ragged_products(rows, matrices, sizes):
    return lax.ragged_dot(rows, matrices, sizes)


@program(XY, (floats(16, 32), P("X")), (np.array([3, 11], np.uint32), P()))
def random_numbers(x, key):
    key = jax.random.wrap_key_data(key)
    keep, noise, pick = jax.random.split(key, 3)
    dropped = jnp.where(jax.random.bernoulli(keep, 0.75, x.shape), x / 0.75, 0)
    return dropped, x + jax.random.normal(noise, x.shape), jax.random.categorical(pick, x * 4)


@program(XY, (floats(16, 8), P("X")), (floats(8, 8), P(None, "Y")))
def second_derivatives(x, w):
    def f(w, row):
        return jnp.sum(jnp.sin(row @ w) ** 2)

    each = jax.vmap(jax.grad(f), (None, 0))(w, x)
    total = lambda w: jax.vmap(f, (None, 0))(w, x).sum()
    return each, jax.jvp(jax.grad(total), (w,), (jnp.ones_like(w),))[1]


@program(XY, (floats(32, 64).astype(jnp.bfloat16), P("X", "Y")), (floats(64, 32).astype(jnp.bfloat16), P("Y", "X")),
         (floats(16, 32).astype(jnp.bfloat16), P("X")), (floats(32, 64), P("X", "Y")), (floats(64, 32), P("Y", "X")))
def mixed_precision_step(up, down, x, up_moment, down_moment):
    def loss(up, down):
        return jnp.mean(jnp.square((jax.nn.silu(x @ up) @ down).astype(jnp.float32)))

    value, grads = jax.value_and_grad(loss, argnums=(0, 1))(up, down)
    grads = [g.astype(jnp.float32) for g in grads]
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in grads))
    grads = [g * jnp.minimum(1.0, 1.0 / norm) for g in grads]
    moments = [0.9 * m + 0.1 * g for m, g in zip((up_moment, down_moment), grads)]
    return value, *[(w.astype(jnp.float32) - 0.01 * m).astype(jnp.bfloat16) for w, m in zip((up, down), moments)], *moments


@program(XY, (rng.integers(-128, 128, (32, 64)).astype(np.int8), P("X", "Y")),
         (rng.integers(-128, 128, (64, 16)).astype(np.int8), P("Y")), (floats(32, 1) + 2, P("X")),
         (rng.integers(0, 2**32, (16, 8), dtype=np.uint32), P("X")))
def whole_numbers(a, b, scales, bits):
    product = lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
    quantised = jnp.clip(jnp.round(product * scales / 512), -127, 127).astype(jnp.int8)
    mixed = (bits ^ (bits >> 16)) * np.uint32(0x85EBCA6B)
    return quantised, mixed, lax.population_count(bits), lax.clz(bits), -7 // (1 + product % 5), product.sum()


@program(XY, (floats(3, 2, 16, 32), P(None, None, "Y", "X")), (floats(3, 2, 32, 16), P(None, None, "X", "Y")),
         (floats(8, 16), P("X")))
def nested_layers_grad(ups, downs, x):
    @jax.checkpoint
    def layer(x, weights):
        up, down = weights
        return x + jnp.tanh(x @ up) @ down / 4, None

    def block(x, weights):
        return lax.scan(layer, x, weights)[0], None

    def loss(ups, downs):
        return jnp.mean(lax.scan(jax.checkpoint(block), x, (ups, downs))[0] ** 2)

    return jax.value_and_grad(loss, argnums=(0, 1))(ups, downs)


@program(XY, (floats(16, 32), P("X", "Y")), (floats(8, 32), P("X", "Y")))
def pieces(x, y):
    joined = jnp.concatenate([x, y, x[::2]], 0)
    return (jnp.roll(x, 3, 1), jnp.pad(x, ((1, 2), (0, 3)), constant_values=2), x[::-1, ::-1], joined,
            jnp.stack([y, y + 1], 1).reshape(16, 32), x.reshape(4, 4, 2, 16).transpose(2, 0, 3, 1), jnp.tril(x),
            jnp.repeat(y, 2, 0), jnp.diff(x, axis=1))


@program(XY, (floats(16, 32), P("X", "Y")))
def functions(x):
    inside = jnp.clip(x, -0.9, 0.9)
    return (lax.erf(x), lax.erf_inv(inside), lax.lgamma(x + 3), jnp.arctan2(x, x + 2), jnp.expm1(x), jnp.log1p(x * 0.5),
            jnp.cbrt(x), jnp.arcsin(inside), jnp.arctanh(inside), jnp.sinh(x), jnp.tan(x), jnp.sign(x), jnp.floor(x * 3),
            jnp.ceil(x * 3), jnp.round(x * 8), x % 0.3, jnp.power(x + 2, 1.5), x.astype(jnp.float16).astype(jnp.float32))


@program({"data": 2, "tensor": 4}, (floats(4, 32, 4, 8), P("data", None, "tensor")),
         (floats(4, 32, 4, 8), P("data", None, "tensor")), (floats(4, 32, 4, 8), P("data", None, "tensor")))
def attention_in_blocks(q, k, v):
    def block(carry, start):
        sums, largest, out = carry
        keys = lax.dynamic_slice_in_dim(k, start, 8, 1)
        values = lax.dynamic_slice_in_dim(v, start, 8, 1)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, keys)
        scores = jnp.where(jnp.arange(32)[:, None] >= start + jnp.arange(8), scores, -1e30)
        top = jnp.maximum(largest, scores.max(-1))
        p = jnp.exp(scores - top[..., None])
        old = jnp.exp(largest - top)
        return (sums * old + p.sum(-1), top, out * old[..., None] + jnp.einsum("bhqk,bkhd->bhqd", p, values)), None

    start = (jnp.zeros((4, 4, 32)), jnp.full((4, 4, 32), -1e30), jnp.zeros((4, 4, 32, 8)))
    (sums, _, out), _ = lax.scan(block, start, jnp.arange(0, 32, 8))
    return out / sums[..., None]


def main(folder):
    os.makedirs(folder, exist_ok=True)
    values = {}
    for name, (axes, function, arguments) in PROGRAMS.items():
        mesh = jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=(jax.sharding.AxisType.Auto,) * len(axes))
        shardings = tuple(NamedSharding(mesh, spec) for _, spec in arguments)
        given = [jnp.asarray(value) for value, _ in arguments]
        try:
            with jax.set_mesh(mesh):
                lowered = jax.jit(function, in_shardings=shardings).lower(*given)
                results = lowered.compile()(*[jax.device_put(a, s) for a, s in zip(given, shardings)])
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}")
            continue
        with open(os.path.join(folder, name + ".mlir"), "w") as out:
            out.write(lowered.as_text())
        alone = jax.jit(function)(*given) if "by_hand" not in name else results
        worst = 0.0
        for kind, arrays in (("in", given), ("out", jax.tree.leaves(alone))):
            for i, array in enumerate(arrays):
                array = np.asarray(array)
                values[f"{name}.{kind}{i}"] = array.astype(np.float32) if array.dtype == jnp.bfloat16 else array
        for a, b in zip(jax.tree.leaves(results), jax.tree.leaves(alone)):
            a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
            worst = max(worst, float(np.max(np.abs(a - b)) / max(1e-30, np.max(np.abs(b)))) if a.size else 0.0)
        print(f"{name}: {len(jax.tree.leaves(results))} results, {worst:.1e} from one device")
    np.savez_compressed(os.path.join(folder, "values.npz"), **values)


if __name__ == "__main__":
    main(sys.argv[1])
