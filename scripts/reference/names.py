"""The names of JAX's functions, each with what it is here.

    python scripts/reference/names.py

reads the names from the installed JAX and writes them to `docs/names/*.txt`, a line for each: `name = path` where the function is here, `name - why`
where it is not. Answers that are there stay; a new name gets `name ?`, which `crates/gradus/tests/names.rs` refuses until it has an answer.
"""

import pathlib
import types

import jax
import jax.lax
import jax.nn
import jax.numpy
import jax.scipy.special
import jax.scipy.stats


def functions(module):
    public = (n for n in dir(module) if not n.startswith("_"))
    return [n for n in public if callable(getattr(module, n)) and not isinstance(getattr(module, n), type)]


def names():
    stats = jax.scipy.stats
    densities = functions(stats)
    for n in dir(stats):
        if isinstance(getattr(stats, n), types.ModuleType):
            densities += [f"{n}.{f}" for f in functions(getattr(stats, n))]
    return {
        "jax.numpy": functions(jax.numpy),
        "jax.scipy.special": functions(jax.scipy.special),
        "jax.scipy.stats": densities,
        "jax.nn": functions(jax.nn),
        "jax.lax": functions(jax.lax),
    }


def main():
    folder = pathlib.Path(__file__).parents[2] / "docs/names"
    folder.mkdir(exist_ok=True)
    for module, found in names().items():
        path = folder / f"{module}.txt"
        old = path.read_text().splitlines() if path.exists() else []
        answers = {line.split()[0]: line for line in old if line and not line.startswith("#")}
        head = f"# The functions of {module} in JAX {jax.__version__}, and what they are here. See scripts/reference/names.py."
        lines = [answers.get(n, f"{n} ?") for n in sorted(set(found))]
        path.write_text("\n".join([head, *lines]) + "\n")
        print(f"{module}: {len(lines)} names, {sum(line.endswith(' ?') for line in lines)} without an answer")


if __name__ == "__main__":
    main()
