"""Programs of JAX, planned, priced and checked on devices that nobody has to have.

    import assay.jax
    from jax.sharding import PartitionSpec as P
    plan = assay.jax.plan(step, weights, batch, mesh={"X": 4, "Y": 2}, in_shardings=(P("X", "Y"), P("X")), on="h100-sxm:8")
    assay.jax.check(step, weights, batch, mesh={"X": 4, "Y": 2}, in_shardings=(P("X", "Y"), P("X")))

Lowering is done by the JAX that is installed, for a mesh without devices; docs/programs.md says what an answer holds.
"""
import os
import tempfile

from ._ask import ask


def text(function, *arguments, mesh, in_shardings=None, platform="cpu"):
    """What the function is for a compiler: StableHLO with the shardings of its arguments.

    Arguments are arrays or shapes (`jax.ShapeDtypeStruct`), in trees of any kind; `mesh` has the sizes of its axes by name, or
    is a mesh of JAX; `in_shardings` has a PartitionSpec for each argument, or a tree of them, None for copies everywhere.
    """
    import jax

    if isinstance(mesh, dict):
        mesh = jax.sharding.AbstractMesh(
            tuple(mesh.values()), tuple(mesh), axis_types=(jax.sharding.AxisType.Auto,) * len(mesh)
        )
    elif isinstance(mesh, jax.sharding.Mesh):
        mesh = mesh.abstract_mesh
    everywhere = jax.sharding.PartitionSpec()

    def is_spec(value):
        return value is None or isinstance(value, jax.sharding.PartitionSpec)

    def shapes(spec, value):
        sharding = jax.sharding.NamedSharding(mesh, everywhere if spec is None else spec)

        def shape(leaf):
            leaf = leaf if hasattr(leaf, "dtype") else jax.numpy.asarray(leaf)
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)

        return jax.tree.map(shape, value)

    if in_shardings is None:
        in_shardings = (None,) * len(arguments)
    if is_spec(in_shardings) or len(in_shardings) != len(arguments):
        raise ValueError(f"in_shardings has one entry for each of the {len(arguments)} arguments, as in (P('X'), None)")
    given = jax.tree.map(shapes, tuple(in_shardings), arguments, is_leaf=is_spec)
    with jax.sharding.use_abstract_mesh(mesh):
        return jax.jit(function).trace(*given).lower(lowering_platforms=(platform,)).as_text()


def plan(function, *arguments, mesh, in_shardings=None, on=None, **options):
    """The answer of `assay run`: shardings, collectives and their bytes, memory, and with `on` a cluster the time."""
    return ask("run", eval=text(function, *arguments, mesh=mesh, in_shardings=in_shardings), on=on, **options)


def check(function, *arguments, mesh, in_shardings=None, **options):
    """The same answer, after the plan was executed on virtual devices and compared with what the function returns here.

    `answer.check` has the largest differences; where they are more than rounding, `answer.outcome` is check_failed.
    """
    import jax
    import numpy

    def array(leaf):
        leaf = numpy.asarray(leaf)
        return leaf if leaf.dtype.kind in "biu" or leaf.dtype.name in ("float16", "float32", "float64") else leaf.astype("float32")

    arrays = {f"in{i}": array(leaf) for i, leaf in enumerate(jax.tree.leaves(arguments))}
    results = jax.tree.leaves(jax.jit(function)(*arguments))
    arrays.update({f"out{i}": array(leaf) for i, leaf in enumerate(results)})
    program = text(function, *arguments, mesh=mesh, in_shardings=in_shardings)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "values.npz")
        numpy.savez(file, **arrays)
        return ask("run", eval=program, inputs=f"{file}:in", expect=f"{file}:out", **options)


def constraints(answer):
    """The constraints that would help, as lines to put into the program, the best first."""
    return [
        f"{pin.name} = jax.lax.with_sharding_constraint({pin.name}, {pin.constraint})  # line {pin.line}: {pin.gain}"
        for pin in answer.pins
    ]
