"""NumPy as a peer: array code without a compiler, and through its matrix product OpenBLAS."""

import time

import numpy as np
from scipy.special import erf

import protocol


def polynomial(_):
    return lambda x: ((0.3 * x - 1.1) * x + 0.7) * x + 0.25


def tanh(_):
    return lambda x: np.tanh(1.3 * x + 0.2) * x


def gelu_erf(_):
    def f(x):
        below = 0.5 * (1 + erf(x * 0.7071067811865476))
        return x * below, below + x * 0.3989422804014327 * np.exp(-0.5 * x * x)

    return f


def gelu_tanh(_):
    a, b = 0.7978845608028654, 0.044715

    def f(x):
        square = x * x
        t = np.tanh(a * x * (1 + b * square))
        below = 0.5 * (1 + t)
        return x * below, below + 0.5 * x * (1 - t * t) * a * (1 + 3 * b * square)

    return f


def sum_exp(_):
    return lambda x: np.sum(np.exp(x - 2.5))


def matmul(_):
    return lambda a, b: a @ b


def softmax(*_):
    def f(x, w):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        s = e / e.sum(axis=-1, keepdims=True)
        value = (s * w).sum(axis=-1, keepdims=True)
        return value.sum(), s * (w - value)

    return f


def logsumexp(*_):
    def f(x, w):
        most = x.max(axis=-1, keepdims=True)
        e = np.exp(x - most)
        total = e.sum(axis=-1, keepdims=True)
        return (w * (most + np.log(total))[:, 0]).sum(), e * (w[:, None] / total)

    return f


def layer_norm(*_):
    def f(x, scale, shift, w):
        centred = x - x.mean(axis=-1, keepdims=True)
        inverse = 1 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)
        normal = centred * inverse
        g = w * scale
        d = inverse * (g - g.mean(axis=-1, keepdims=True) - normal * (g * normal).mean(axis=-1, keepdims=True))
        return ((normal * scale + shift) * w).sum(), d, (w * normal).sum(axis=0), w.sum(axis=0)

    return f


def fft(n):
    return lambda x: np.fft.irfft(np.fft.rfft(x), n)


def complex_chain(_):
    def f(re, im):
        z = re + 1j * im
        w = z * z * 0.5 + np.conj(z)
        w = np.exp(w) / (z + 3.0)
        return w.real, w.imag

    return f


class Peer:
    cases = {
        "polynomial": polynomial,
        "tanh": tanh,
        "gelu_erf": gelu_erf,
        "gelu_tanh": gelu_tanh,
        "sum_exp": sum_exp,
        "matmul": matmul,
        "softmax": softmax,
        "logsumexp": logsumexp,
        "layer_norm": layer_norm,
        "fft": fft,
        "complex": complex_chain,
    }

    def prepare(self, function, inputs):
        started = time.perf_counter_ns()
        self.out = function(*inputs)
        first = time.perf_counter_ns() - started
        self.function, self.inputs = function, inputs
        return first

    def run(self, reps):
        function, inputs = self.function, self.inputs
        for _ in range(reps):
            function(*inputs)

    def results(self):
        return self.out if isinstance(self.out, tuple) else [self.out]

    def memory(self):
        return "none"

    def version(self):
        blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        return f"numpy {np.__version__} with {blas['name']} {blas['version']}"


if __name__ == "__main__":
    protocol.serve(Peer())
