"""Portable bytecode for the tests of gradus-stablehlo, made by JAX: each program as text, and as bytecode of several versions.

    python scripts/reference/bytecode.py                  the files in crates/gradus-stablehlo/tests/data
    python scripts/reference/bytecode.py FOLDER OUT       the same of every `.mlir` file of a folder, in `OUT`

The text is what JAX's own reader of bytecode makes of the newest file, without locations, so that it says what a reader of the bytes must find.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax._src.interpreters import mlir
from jax._src.lib import _jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

VERSIONS = ["1.15.0", "1.9.0", "1.0.0", "0.19.0", "0.14.0", "0.11.0", "0.9.0"]
OWN_VERSIONS = ["1.15.0", "1.0.0", "0.9.0"]

# What JAX does not export by itself: constants of every width, and operations with uncommon attributes.
KINDS = """
module @kinds attributes {mhlo.note = "all kinds", mhlo.weights = [1 : i32, -2 : i64, 0.5 : f32, true, unit, @main]} {
  func.func private @elsewhere(tensor<2xi8>) -> tensor<2xi8>
  func.func public @main(%arg0: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<?x4xf32, #stablehlo.bounds<8, ?>>) -> tensor<2x3xf32> {
    %0 = stablehlo.constant dense<[true, false, true, true, false, false, true, false, true]> : tensor<9xi1>
    %1 = stablehlo.constant dense<[true, false]> : tensor<2xi1>
    %2 = stablehlo.constant dense<true> : tensor<3x5xi1>
    %3 = stablehlo.constant dense<false> : tensor<i1>
    %4 = stablehlo.constant dense<[-8, 7, -1]> : tensor<3xi4>
    %5 = stablehlo.constant dense<[0, 15, 8]> : tensor<3xui4>
    %6 = stablehlo.constant dense<[[1, -2], [3, 4]]> : tensor<2x2xi16>
    %7 = stablehlo.constant dense<18446744073709551615> : tensor<ui64>
    %8 = stablehlo.constant dense<[1.5, -0.0, 0x7FC0]> : tensor<3xbf16>
    %9 = stablehlo.constant dense<[(1.0, -2.0), (0.5, 0.0)]> : tensor<2xcomplex<f32>>
    %10 = stablehlo.constant dense<> : tensor<0x3xf64>
    %11 = stablehlo.constant dense<[0.5, 448.0]> : tensor<2xf8E4M3FN>
    %12 = stablehlo.uniform_quantize %arg0 : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8<-127:127>:f32, 0.5:3>>
    %13 = stablehlo.uniform_quantize %arg0 : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<u8:f32:1, {0.1:1, 0.2:2, 0.3:3}>>
    %14 = stablehlo.custom_call @away(%arg0) {called_computations = [@elsewhere], backend_config = "x", api_version = 2 : i32, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %15 = "stablehlo.all_reduce"(%14) <{channel_handle = #stablehlo.channel_handle<handle = 7, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %16 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %16 : tensor<f32>
    }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    stablehlo.custom_call @keep(%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13) {has_side_effect = true} : (tensor<9xi1>, tensor<2xi1>, tensor<3x5xi1>, tensor<i1>, tensor<3xi4>, tensor<3xui4>, tensor<2x2xi16>, tensor<ui64>, tensor<3xbf16>, tensor<2xcomplex<f32>>, tensor<0x3xf64>, tensor<2xf8E4M3FN>, tensor<2x3x!quant.uniform<i8<-127:127>:f32, 0.5:3>>, tensor<2x3x!quant.uniform<u8:f32:1, {0.1:1, 0.2:2, 0.3:3}>>) -> ()
    return %15 : tensor<2x3xf32>
  }
}
"""


def mlp():
    """A step of training."""

    def loss(parameters, x, y):
        hidden = jnp.tanh(x @ parameters[0] + parameters[1])
        return jnp.mean((hidden @ parameters[2] - y) ** 2)

    shapes = [(3, 4), (4,), (4, 2)], (5, 3), (5, 2)
    f32 = lambda shape: jax.ShapeDtypeStruct(shape, jnp.float32)
    return export.export(jax.jit(jax.value_and_grad(loss)))([f32(s) for s in shapes[0]], f32(shapes[1]), f32(shapes[2]))


def loops():
    """Loops, branches, and operations with records of dimensions."""

    def f(x, n):
        step = lambda carry, row: (carry * 0.5 + row, jnp.max(carry))
        last, maxima = lax.scan(step, x[0], x)
        count, _ = lax.while_loop(lambda s: (s[0] < n) & (s[1] > 1e-3), lambda s: (s[0] + 1, s[1] / 2), (0, 1.0))
        picked = lax.switch(count % 3, [jnp.sin, jnp.cos, lambda v: v[::-1]], last)
        ordered, order = lax.sort_key_val(picked, jnp.arange(4))
        pooled = lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 2), "SAME")
        image = lax.conv_general_dilated(x[None, None], jnp.ones((2, 1, 3, 3)), (2, 1), "SAME", rhs_dilation=(1, 2))
        spectrum = jnp.fft.rfft(ordered)
        return maxima, x.at[order[:2], 1].add(2.0), x[order], pooled, image, spectrum, lax.clamp(0.0, x, 1.0)

    return export.export(jax.jit(f))(jax.ShapeDtypeStruct((6, 4), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32))


def sizes():
    """Sizes that are symbols."""
    a, b = export.symbolic_shape("a, b", constraints=["a >= 2"])
    f = lambda x, y: jnp.concatenate([x @ y, jnp.zeros((1, x.shape[0]))]).reshape(-1)
    return export.export(jax.jit(f))(jax.ShapeDtypeStruct((a, b), jnp.float32), jax.ShapeDtypeStruct((b, a), jnp.float32))


def sharded():
    """An array on four devices."""
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
    split = NamedSharding(mesh, PartitionSpec("x", "y"))

    def f(v):
        rows = lax.with_sharding_constraint(v, NamedSharding(mesh, PartitionSpec("x", None)))
        total = jax.shard_map(lambda p: lax.psum(p, "x"), mesh=mesh, in_specs=PartitionSpec("x"), out_specs=PartitionSpec())
        return rows * 2, total(v)

    return export.export(jax.jit(f, in_shardings=split))(jax.ShapeDtypeStruct((4, 4), jnp.float32))


def write(text, name, out, versions):
    """A program as text and as bytecode of every version that can hold it."""
    with mlir.make_ir_context() as context:
        # Whatever comes back from bytecode brings the dialect of quantized types along, which JAX's own context lacks.
        stablehlo.deserialize_portable_artifact(context, stablehlo.serialize_portable_artifact(ir.Module.parse(""), versions[0]))
        parse = lambda: ir.Module.parse(text)
        newest = _jax.mlir.serialize_portable_artifact(parse(), versions[0], True)
        back = _jax.mlir.deserialize_portable_artifact(newest)
        (out / f"{name}.mlir").write_text(back.operation.get_asm(enable_debug_info=False))
        for version in versions:
            try:
                data = _jax.mlir.serialize_portable_artifact(parse(), version, True)
            except Exception as error:
                print(f"{name} {version}: {str(error).splitlines()[0][:100]}")
                continue
            (out / f"{name}.{version}.bc").write_bytes(data)
        with open(out / f"{name}.native.bc", "wb") as file:
            back.operation.write_bytecode(file)


def main():
    if len(sys.argv) == 3:
        source, out = Path(sys.argv[1]), Path(sys.argv[2])
        out.mkdir(parents=True, exist_ok=True)
        for path in sorted(source.glob("*.mlir")):
            try:
                write(path.read_text(), path.stem, out, VERSIONS)
            except Exception as error:
                print(f"{path.stem}: {str(error).splitlines()[0][:100]}")
        return
    out = Path(__file__).resolve().parents[2] / "crates/gradus-stablehlo/tests/data"
    out.mkdir(parents=True, exist_ok=True)
    programs = {make.__name__: make for make in (mlp, loops, sizes, sharded)}
    texts = {}
    for name, make in programs.items():
        with mlir.make_ir_context():
            module = _jax.mlir.deserialize_portable_artifact(make().mlir_module_serialized)
            # Without locations: they would name the files of this machine.
            texts[name] = module.operation.get_asm(enable_debug_info=False)
    texts["kinds"] = KINDS
    for name, text in texts.items():
        write(text, name, out, OWN_VERSIONS)


if __name__ == "__main__":
    main()
