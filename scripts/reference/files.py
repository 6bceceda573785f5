"""Files as NumPy and safetensors write them, for `crates/gradus/tests/library_files.rs`.

    python -m venv venv && venv/bin/pip install -r scripts/reference/requirements.txt
    venv/bin/python scripts/reference/files.py

writes into `crates/gradus/tests/data/files`. With a folder as an argument it reads instead what that test left there (`GRADUS_KEEP_FILES=folder`), and
holds it against the numbers that the test wrote.
"""

import pathlib
import sys
import zipfile

import ml_dtypes
import numpy as np
import safetensors.numpy

sys.dont_write_bytecode = True
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "crates" / "gradus" / "tests" / "data" / "files"
MATRIX = np.arange(6, dtype=np.float64).reshape(2, 3) / 4


def write():
    FOLDER.mkdir(exist_ok=True)
    np.save(FOLDER / "columns.npy", np.asfortranarray(MATRIX))
    np.save(FOLDER / "swapped.npy", np.array([[1, -2], [3, 40000]], dtype=">i4"))
    np.save(FOLDER / "swapped_complex.npy", np.array([1 + 2j, -3.5j], dtype=">c16"))
    with open(FOLDER / "version2.npy", "wb") as out:
        np.lib.format.write_array(out, np.array([True, False]), version=(2, 0))
    np.save(FOLDER / "records.npy", np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]))
    np.savez_compressed(FOLDER / "compressed.npz", **{"layers.0.weights": MATRIX, "scale": np.float32(2.5), "halves": MATRIX.astype(np.float16)})
    np.savez(FOLDER / "brain.npz", x=MATRIX.astype(ml_dtypes.bfloat16))
    safetensors.numpy.save_file(
        {"layers.0.weights": MATRIX, "flags": np.array([True, False]), "empty": np.zeros((0, 3), np.float32)},
        FOLDER / "model.safetensors",
        metadata={"format": "np"},
    )


def read(folder):
    folder = pathlib.Path(folder)
    found = np.load(folder / "every.npz")
    assert zipfile.ZipFile(folder / "every.npz").testzip() is None
    names = ["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "c64", "c128"]
    kinds = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
    wanted = np.array([[0, 1, 2], [3, 4, 5]])
    for name, kind in zip(names, kinds):
        assert found[name].dtype == np.dtype(kind), (name, found[name].dtype)
        assert (found[name] == wanted.astype(kind)).all(), name
    assert (found["bf16"].view(ml_dtypes.bfloat16) == wanted.astype(ml_dtypes.bfloat16)).all()
    tensors = safetensors.numpy.load_file(folder / "most.safetensors")
    for name, kind in zip(names[:-1], kinds):
        assert (tensors[name] == wanted.astype(kind)).all(), name
    print("as they should be")


if __name__ == "__main__":
    read(sys.argv[1]) if len(sys.argv) > 1 else write()
