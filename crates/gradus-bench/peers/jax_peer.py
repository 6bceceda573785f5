"""JAX as a peer. Every case is a function of its size that gives a function of its inputs."""

import time

import jax
import jax.numpy as jnp
from jax import lax

import jax_indexing
import jax_programs
import protocol

jax.config.update("jax_enable_x64", True)


def polynomial(_):
    return lambda x: ((0.3 * x - 1.1) * x + 0.7) * x + 0.25


def tanh(_):
    return lambda x: jnp.tanh(1.3 * x + 0.2) * x


def with_derivative(f):
    return lambda _: lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))


def gelu_erf(x):
    return 0.5 * x * (1 + lax.erf(x * 0.7071067811865476))


def gelu_tanh(x):
    return 0.5 * x * (1 + jnp.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def sum_exp(_):
    return lambda x: jnp.sum(jnp.exp(x - 2.5))


def drawn(draw):
    return lambda n: lambda x: draw(jax.random.wrap_key_data(words(x[0])), n)


def words(seed):
    return jnp.stack([jnp.uint32(0), seed.astype(jnp.uint32)])


def top_bits(key, n):
    return (jax.random.bits(key, (n,), jnp.uint32) >> 8).astype(jnp.float32)


def lorenz_step(s, h):
    def slope(s):
        x, y, z = s
        return (10.0 * (y - x), x * (28.0 - z) - y, x * y - (8.0 / 3.0) * z)

    def moved(s, k, h):
        return tuple(a + h * b for a, b in zip(s, k))

    k1 = slope(s)
    k2 = slope(moved(s, k1, h / 2))
    k3 = slope(moved(s, k2, h / 2))
    k4 = slope(moved(s, k3, h))
    return moved(s, tuple(a + 2 * (b + c) + d for a, b, c, d in zip(k1, k2, k3, k4)), h / 6)


def lorenz(n):
    return lambda x: lax.fori_loop(0, n, lambda _, s: lorenz_step(s, 10.0 / n), (x[0], x[1], x[2]))


def lorenz_gradient(n):
    def end(x):
        s, _ = lax.scan(lambda s, _: (lorenz_step(s, 10.0 / n), None), (x[0], x[1], x[2]), None, length=n)
        return s[0] + s[1] + s[2]

    return jax.value_and_grad(end)


def matmul(_):
    return lambda a, b: a @ b


def heavy(a):
    return a + 2 * a.shape[-1] * jnp.eye(a.shape[-1])


def symmetric(a):
    return heavy((a + jnp.swapaxes(a, -1, -2)) * 0.5)


def eigh(_):
    def f(a):
        w, v = jnp.linalg.eigh(symmetric(a))
        return w, jnp.abs(v)

    return f


def svd(_):
    def f(a):
        u, s, _ = jnp.linalg.svd(a, full_matrices=False)
        return s, jnp.abs(u)

    return f


def gaussian_process(_):
    def f(length, x, y):
        d = (x[:, None] - x[None, :]) / length
        l = jnp.linalg.cholesky(jnp.exp(-0.5 * d * d) + 0.1 * jnp.eye(x.shape[0]))
        return 0.5 * y @ jax.scipy.linalg.cho_solve((l, True), y) + jnp.sum(jnp.log(jnp.diagonal(l)))

    return jax.value_and_grad(f)


def kalman_gradient(_):
    def f(a, ys):
        eye, c = jnp.eye(4), jnp.array([[1.0, 0.0, 0.0, 0.0]])
        a = a * 0.1 + 0.8 * eye

        def step(carry, y):
            m, p = carry
            m, p = a @ m, a @ p @ a.T + 0.1 * eye
            s = c @ p @ c.T + 0.2
            v = y - c @ m
            gain = jnp.linalg.solve(s, c @ p).T
            term = 0.5 * (jnp.linalg.slogdet(s)[1] + v @ jnp.linalg.solve(s, v))
            return (m + gain @ v, p - gain @ c @ p), term

        return jnp.sum(lax.scan(step, (jnp.zeros(4), eye), ys)[1])

    return jax.value_and_grad(f)


def softmax(*_):
    return jax.value_and_grad(lambda x, w: jnp.sum(jax.nn.softmax(x, axis=-1) * w))


def logsumexp(*_):
    return jax.value_and_grad(lambda x, w: jnp.sum(jax.nn.logsumexp(x, axis=-1) * w))


def layer_norm(*_):
    def f(x, scale, shift, w):
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
        return jnp.sum((centred / jnp.sqrt(variance + 1e-5) * scale + shift) * w)

    return jax.value_and_grad(f, argnums=(0, 1, 2))


def perceptron(*_):
    rate, b1, b2, eps = 1e-3, 0.9, 0.999, 1e-8

    def loss(p, x, labels):
        h = jax.nn.relu(x @ p[0] + p[1])
        h = jax.nn.relu(h @ p[2] + p[3])
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(h @ p[4] + p[5]) * labels, axis=-1))

    def train(*inputs):
        p, m, v = inputs[:6], inputs[6:12], inputs[12:18]
        t, x, labels = inputs[18:]
        l, g = jax.value_and_grad(loss)(p, x, labels)
        c1, c2 = 1 - b1**t, 1 - b2**t
        m = [b1 * a + (1 - b1) * b for a, b in zip(m, g)]
        v = [b2 * a + (1 - b2) * b * b for a, b in zip(v, g)]
        p = [a - rate * (b / c1) / (jnp.sqrt(c / c2) + eps) for a, b, c in zip(p, m, v)]
        return l, p, m, v

    return train


def lstm(*_):
    def f(by_input, by_state, bias, xs):
        def step(carry, x):
            h, c = carry
            i, f, g, o = jnp.split(x @ by_input + h @ by_state + bias, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        start = jnp.zeros_like(xs[0])
        _, hs = lax.scan(step, (start, start), xs)
        return jnp.mean(hs * hs)

    return jax.value_and_grad(f, argnums=(0, 1, 2))


def conv(*size):
    strides, layout = (size[5], size[5]), ("NHWC", "HWIO", "NHWC")
    return lambda x, w: lax.conv_general_dilated(x, w, strides, "SAME", dimension_numbers=layout)


def conv_gradient(*size):
    f = conv(*size)
    return jax.grad(lambda x, w: jnp.sum(f(x, w) ** 2), argnums=(0, 1))


def max_pool(*_):
    windows = (1, 2, 2, 1)
    return jax.value_and_grad(lambda x, w: jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, windows, windows, "VALID") * w))


def fft(n):
    return lambda x: jnp.fft.irfft(jnp.fft.rfft(x), n)


def complex_chain(_):
    def f(re, im):
        z = jax.lax.complex(re, im)
        w = z * z * 0.5 + jnp.conj(z)
        w = jnp.exp(w) / (z + 3.0)
        return w.real, w.imag

    return f


def spectral(n):
    waves = jnp.arange(n // 2 + 1, dtype=jnp.float64)
    slope = 1j * waves
    damping = 1.0 / (1.0 + waves * waves * 1e-5)

    def step(z, _):
        flow = jnp.fft.rfft(jnp.square(jnp.fft.irfft(z, n)) * 0.5)
        return (z - slope * flow * 1e-3) * damping, None

    return lambda u: jnp.fft.irfft(jax.lax.scan(step, jnp.fft.rfft(u), None, length=100)[0], n)


def nbody(_):
    def energy(p, m):
        d = p[:, None, :] - p[None, :, :]
        squares = jnp.sum(d * d, axis=-1) + 0.01
        return -0.5 * jnp.sum(m[:, None] * m[None, :] / jnp.sqrt(squares))

    return jax.value_and_grad(energy)


def chain3(_):
    def f(p):
        (sa, sb, sc), (ca, cb, cc) = jnp.sin(p), jnp.cos(p)
        about_x = jnp.array([[1.0, 0.0, 0.0], [0.0, ca, -sa], [0.0, sa, ca]])
        about_y = jnp.array([[cb, 0.0, sb], [0.0, 1.0, 0.0], [-sb, 0.0, cb]])
        about_z = jnp.array([[cc, -sc, 0.0], [sc, cc, 0.0], [0.0, 0.0, 1.0]])
        v = about_z @ (about_y @ (about_x @ (p + jnp.array([0.3, -0.2, 1.5], p.dtype))))
        y = v / jnp.sqrt(jnp.sum(v * v))
        return jnp.stack([y[0] / (y[2] + 2), y[1] / (y[2] + 2), y[2]])

    return jax.vmap(jax.jacfwd(f))


def chain4(_):
    def f(p):
        x, y, z = p
        sy, cy, sz, cz = jnp.sin(y), jnp.cos(y), jnp.sin(z), jnp.cos(z)
        about_z = jnp.array([[cy, -sy, 0, 0], [sy, cy, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], p.dtype)
        about_x = jnp.array([[1, 0, 0, 0], [0, cz, -sz, 0], [0, sz, cz, 0], [0, 0, 0, 1]], p.dtype)
        shift = jnp.array([[1, 0, 0, 0.5 * z], [0, 1, 0, -x], [0, 0, 1, 0.25], [0, 0, 0, 1]], p.dtype)
        see = jnp.array([[1.2, 0, 0, 0], [0, 1.2, 0, 0], [0, 0, 1.1, 1], [0, 0, 1, 4]], p.dtype)
        h = see @ shift @ about_x @ about_z @ jnp.concatenate([p, jnp.ones(1, p.dtype)])
        return h[:3] / h[3]

    return jax.vmap(jax.jacfwd(f))


def call():
    return jax.grad(lambda x: jnp.sin(x * x))


def chain(n):
    def f(x):
        y = x
        for i in range(n):
            y = y * x if i % 3 == 0 else y + (0.5 + i * 1e-6) if i % 3 == 1 else jnp.sin(y)
        return y

    return f


RATE = 1e-3


def training(precision=None, half=False):
    """A step of gradient descent through layers of tanh; the last two inputs are the examples."""

    def make(*_):
        def loss(weights, x, y):
            h = x
            for w in weights:
                h = jnp.tanh(jnp.dot(h, w, precision=precision))
            return jnp.mean((h - y) ** 2)

        def step(*inputs):
            *weights, x, y = inputs
            return [w - RATE * g for w, g in zip(weights, jax.grad(loss)(weights, x, y))]

        return step

    return halved(make) if half else make


def attention(*_):
    def loss(q, k, v):
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5
        mixed = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), v)
        return jnp.sum((mixed**2).astype(jnp.float32))

    return jax.grad(loss, argnums=(0, 1, 2))


def long_sum(x):
    gelu = 0.5 * x * (1 + jnp.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
    return jnp.sum(jnp.tanh(jnp.sin(x) * jnp.exp(-(x * x))) + gelu)


def halved(make):
    """The same function of inputs that are halves before it is called."""

    def made(*size):
        f = make(*size)
        f.halves = True
        return f

    return made


def product(*_):
    return lambda a, b: jnp.dot(a, b)


def small(*_):
    return lambda x: x * 2.0 + 1.0


def enqueued(make):
    """Calls follow each other without waiting; the last is waited for."""

    def made(*size):
        f = make(*size)
        f.enqueued = True
        return f

    return made


class Peer:
    cases = {
        "training": training(),
        "training_highest": training(precision="highest"),
        "training_bf16": training(half=True),
        "attention": attention,
        "attention_bf16": halved(lambda *_: (lambda g: lambda q, k, v: g(q, k, v))(attention())),
        "long_gradient": lambda *_: jax.grad(long_sum),
        "long_value_and_gradient": lambda *_: jax.value_and_grad(long_sum),
        "product_bf16": halved(product),
        "small": small,
        "small_enqueued": enqueued(small),
        "leaves_enqueued": enqueued(lambda *_: lambda *all: [x + 1.0 for x in all]),
        "polynomial": polynomial,
        "tanh": tanh,
        "gelu_erf": with_derivative(gelu_erf),
        "gelu_tanh": with_derivative(gelu_tanh),
        "sum_exp": sum_exp,
        "random_bits": drawn(top_bits),
        "random_uniform": drawn(lambda key, n: jax.random.uniform(key, (n,), jnp.float32)),
        "random_normal": drawn(lambda key, n: jax.random.normal(key, (n,), jnp.float32)),
        "lorenz": lorenz,
        "lorenz_gradient": lorenz_gradient,
        "matmul": matmul,
        "cholesky": lambda _: lambda a: jnp.linalg.cholesky(symmetric(a)),
        "linear_system": lambda _: lambda a, b: jnp.linalg.solve(heavy(a), b),
        "qr": lambda _: lambda a: tuple(jnp.linalg.qr(a)),
        "eigh": eigh,
        "svd": svd,
        "small_cholesky": lambda *_: lambda a, _: jnp.linalg.cholesky(symmetric(a)),
        "small_systems": lambda *_: lambda a, b: jnp.linalg.solve(heavy(a), b),
        "small_determinants": lambda *_: lambda a, _: jnp.linalg.slogdet(heavy(a))[1],
        "gaussian_process": gaussian_process,
        "kalman_gradient": kalman_gradient,
        "softmax": softmax,
        "logsumexp": logsumexp,
        "layer_norm": layer_norm,
        "perceptron": perceptron,
        "lstm": lstm,
        "conv": conv,
        "conv_gradient": conv_gradient,
        "max_pool": max_pool,
        "fft": fft,
        "complex": complex_chain,
        "spectral": spectral,
        "nbody": nbody,
        "chain3": chain3,
        "chain4": chain4,
        "call": call,
        "chain": chain,
    } | jax_programs.cases | jax_indexing.cases

    def prepare(self, f, inputs):
        self.function = self.inputs = self.out = None
        jax.clear_caches()
        dtype = jnp.bfloat16 if getattr(f, "halves", False) else None
        self.enqueued = getattr(f, "enqueued", False)
        inputs = jax.block_until_ready([jnp.asarray(x, dtype=dtype) for x in inputs])
        started = time.perf_counter_ns()
        function = jax.jit(f)
        out = jax.block_until_ready(function(*inputs))
        first = time.perf_counter_ns() - started
        self.function, self.inputs, self.out = function, inputs, out
        return first

    def run(self, reps):
        function, inputs = self.function, self.inputs
        if self.enqueued:
            for _ in range(reps):
                out = function(*inputs)
            jax.block_until_ready(out)
        elif isinstance(self.out, jax.Array):
            # The short way, so that a small call is not mostly a walk through the result.
            for _ in range(reps):
                function(*inputs).block_until_ready()
        else:
            for _ in range(reps):
                jax.block_until_ready(function(*inputs))

    def results(self):
        return jax.tree.leaves(self.out)

    def memory(self):
        analysis = self.function.lower(*self.inputs).compile().memory_analysis()
        return "none" if analysis is None else analysis.temp_size_in_bytes

    def version(self):
        return f"jax {jax.__version__}, jaxlib {jax.lib.__version__}"


if __name__ == "__main__":
    # The compiler and its threads exist before the first case is timed.
    jax.block_until_ready(jax.jit(lambda x: x + 1)(jnp.zeros(3)))
    protocol.serve(Peer())
