"""assay.jax with the JAX that is installed; exits with 77, which ctest counts as skipped, where there is none."""
import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
try:
    import jax
except ImportError:
    sys.exit(77)

import assay.jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

MESH, SPLIT = {"X": 4, "Y": 2}, ({"up": P("X", "Y"), "down": P("Y", "X")}, P("X"))


def step(weights, batch):
    def loss(weights):
        return jnp.mean((jax.nn.gelu(batch @ weights["up"]) @ weights["down"] - batch) ** 2)

    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, jax.grad(loss)(weights))


def arguments(width, inner, rows, make):
    return {"up": make((width, inner)), "down": make((inner, width))}, make((rows, width))


small = arguments(64, 128, 32, lambda shape: jnp.sin(jnp.arange(float(shape[0] * shape[1]))).reshape(shape))
checked = assay.jax.check(step, *small, mesh=MESH, in_shardings=SPLIT)
assert checked.outcome == "ok" and checked.check.expected_error < 1e-5, checked.check

large = arguments(8192, 28672, 16384, lambda shape: jax.ShapeDtypeStruct(shape, jnp.bfloat16))
plan = assay.jax.plan(step, *large, mesh=MESH, in_shardings=SPLIT, on="tpu-v5p:2x2x2")
assert plan.devices == 8 and plan.time.seconds > 1e-3 and len(plan.collectives) > 1, plan
assert all("with_sharding_constraint" in line for line in assay.jax.constraints(plan))

try:
    assay.jax.plan(step, *small, mesh=MESH, in_shardings=P("X"))
except ValueError as error:
    assert "one entry for each of the 2 arguments" in str(error)
else:
    raise AssertionError("one sharding for two arguments was taken")
