"""The programs of GradBench in JAX: k-means and hand tracking in the fastest of the formulations that were tried on one core, the others as one writes them."""

import jax
import jax.numpy as jnp
from jax import lax


def kmeans_cost(*_):
    def cost(centroids, points):
        # One matrix product is faster than differences by a factor of six.
        squares = jnp.sum(points * points, 1)[:, None] + jnp.sum(centroids * centroids, 1) - 2 * points @ centroids.T
        return jnp.sum(jnp.min(squares, axis=1))

    return cost


def kmeans(_, __, d):
    def cost(centroids, points):
        # Dimension by dimension this is one loop for XLA; a sum over an axis is not.
        fixed = lax.stop_gradient(centroids)
        squares = sum((points[:, i][:, None] - fixed[:, i]) ** 2 for i in range(d))
        return jnp.sum((points - centroids[jnp.argmin(squares, axis=1)]) ** 2)

    def direction(centroids, points):
        gradient = jax.grad(lambda c: cost(c, points))
        slope, curvature = jax.jvp(gradient, (centroids,), (jnp.ones_like(centroids),))
        return slope / curvature

    return direction


def hand_angles(theta):
    fingers = theta[6:].reshape(5, 4)
    bend = jnp.pad(jnp.concatenate([fingers[:, :1], fingers[:, 2:]], 1), ((0, 0), (1, 0))).ravel()
    spread = jnp.pad(fingers[:, 1:2], ((0, 0), (1, 2))).ravel()
    return jnp.pad(jnp.stack([bend, spread, jnp.zeros_like(bend)], 1), ((1, 1), (0, 0)))


def hand_rotations(angles):
    (sx, sz, sy), (cx, cz, cy) = jnp.sin(angles).T, jnp.cos(angles).T
    entries = [cy * cz, sx * sy * cz - cx * sz, cx * sy * cz + sx * sz]
    entries += [cy * sz, sx * sy * sz + cx * cz, cx * sy * sz - sx * cz]
    entries += [-sy, sx * cy, cx * cy]
    return jnp.stack(entries, 1).reshape(-1, 3, 3)


def hand_rotation(vector):
    square = jnp.sum(vector * vector)
    turns = jnp.sqrt(square) >= 1e-4
    angle = jnp.sqrt(jnp.where(turns, square, 1.0))
    x, y, z = axis = vector / angle
    s, c = jnp.sin(angle), jnp.cos(angle)
    cross = jnp.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    full = jnp.eye(3) * c + jnp.outer(axis, axis) * (1 - c) + cross * s
    return jnp.where(turns, full, jnp.eye(3))


def hand_vertices(theta, relatives, inverses, positions, weights):
    turned = relatives[:, :, :3] @ hand_rotations(hand_angles(theta))
    relatives = jnp.concatenate([turned, relatives[:, :, 3:]], 2)
    # The fingers of a hand all at once, joint after joint.
    wrist, fingers, forearm = relatives[0], relatives[1:21].reshape(5, 4, 4, 4), relatives[21]
    chain = [wrist @ fingers[:, 0]]
    for joint in range(1, 4):
        chain.append(chain[-1] @ fingers[:, joint])
    chain = jnp.stack(chain, 1).reshape(20, 4, 4)
    absolutes = jnp.concatenate([wrist[None], chain, (wrist @ forearm)[None]])
    transforms = (absolutes @ inverses)[:, :3]
    # One product for all bones: four times faster than an einsum of the three.
    spread = (weights[:, :, None] * positions[:, None, :]).reshape(len(positions), -1)
    moved = spread @ transforms.transpose(0, 2, 1).reshape(-1, 3)
    return moved @ hand_rotation(theta[:3]).T + theta[3:6]


def ht_simple(*_):
    def error(theta, relatives, inverses, positions, weights, _, places, points):
        return (points - hand_vertices(theta, relatives, inverses, positions, weights)[places]).ravel()

    return jax.jacfwd(error)


def ht_complicated(*_):
    def error(shift, theta, relatives, inverses, positions, weights, triangles, places, points, us):
        corners = hand_vertices(theta, relatives, inverses, positions, weights)[triangles[places]]
        us = us + shift
        shares = jnp.concatenate([us, 1 - jnp.sum(us, -1, keepdims=True)], 1)
        return (points - jnp.sum(corners * shares[:, :, None], 1)).ravel()

    def jacobian(*inputs):
        by_us, by_theta = jax.jacfwd(error, argnums=(0, 1))(jnp.zeros(2), *inputs)
        return jnp.concatenate([by_us, by_theta], 1)

    return jacobian


def text_lstm(layers, length, bits):
    def loss(parameters, state, text):
        main, extra = parameters
        weights, biases = main[0::2].reshape(layers, 4, bits), main[1::2].reshape(layers, 4, bits)

        def step(carry, both):
            now, following = both
            x, states = now * extra[0], []
            for i, (h, c) in enumerate(carry):
                w, b = weights[i], biases[i]
                forget, update = jax.nn.sigmoid(x * w[0] + b[0]), jax.nn.sigmoid(h * w[1] + b[1])
                output, change = jax.nn.sigmoid(x * w[2] + b[2]), jnp.tanh(h * w[3] + b[3])
                c = c * forget + update * change
                x = output * jnp.tanh(c)
                states.append((x, c))
            guess = x * extra[1] + extra[2]
            guess = guess - jnp.log(jnp.sum(jnp.exp(guess)) + 2)
            return states, jnp.sum(following * guess)

        start = [(state[2 * i], state[2 * i + 1]) for i in range(layers)]
        _, gains = lax.scan(step, start, (text[:-1], text[1:]))
        return -jnp.sum(gains) / ((length - 1) * bits)

    return lambda main, extra, state, text: jax.grad(loss)((main, extra), state, text)


def gmm(d, _, n):
    rows, columns = zip(*[(i, j) for j in range(d) for i in range(j + 1, d)])
    rows, columns = jnp.array(rows), jnp.array(columns)

    def posterior(parameters, x):
        alpha, mu, q, l = parameters
        diagonals, sums = jnp.exp(q), jnp.sum(q, 1)
        lower = jnp.zeros((len(alpha), d, d)).at[:, rows, columns].set(l)
        centred = x[:, None, :] - mu
        turned = diagonals * centred + jnp.einsum("kij,nkj->nki", lower, centred)
        terms = alpha + sums - 0.5 * jnp.sum(turned * turned, -1)
        likelihood = jnp.sum(jax.nn.logsumexp(terms, axis=-1)) - n * jax.nn.logsumexp(alpha)
        return likelihood - 0.5 * (jnp.sum(diagonals**2) + jnp.sum(l * l))

    return lambda alpha, mu, q, l, x: jax.grad(posterior)((alpha, mu, q, l), x)


def cross(a, b):
    return jnp.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def ba(*_):
    def residual(block, feature):
        rotation, point = block[:3], block[11:14] - block[3:6]
        square = jnp.sum(rotation * rotation)
        turns = square != 0
        angle = jnp.sqrt(jnp.where(turns, square, 1.0))
        s, c, axis = jnp.sin(angle), jnp.cos(angle), rotation / angle
        far = point * c + cross(axis, point) * s + axis * (jnp.sum(axis * point) * (1 - c))
        seen = jnp.where(turns, far, point + cross(rotation, point))
        flat = seen[:2] / seen[2]
        square = jnp.sum(flat * flat)
        place = flat * (1 + block[9] * square + block[10] * square * square) * block[6] + block[7:9]
        return (place - feature) * block[14]

    def jacobian(cameras, points, weights, camera, point, features):
        blocks = jnp.concatenate([cameras[camera], points[point], weights[:, None]], 1)
        return jax.vmap(jax.jacrev(residual))(blocks, features), -2 * weights

    return jacobian


def llsq(n, m):
    def loss(x):
        t = jnp.linspace(-1.0, 1.0, n)
        powers = jnp.cumprod(jnp.concatenate([jnp.ones((1, n)), jnp.broadcast_to(t, (m - 1, n))]), axis=0)
        return 0.5 * jnp.sum((jnp.sign(t) - x @ powers) ** 2)

    return jax.grad(loss)


def lse(_):
    return jax.grad(lambda x: jax.nn.logsumexp(x))


cases = {
    "kmeans_cost": kmeans_cost,
    "kmeans": kmeans,
    "ht_simple": ht_simple,
    "ht_complicated": ht_complicated,
    "text_lstm": text_lstm,
    "gmm": gmm,
    "ba": ba,
    "llsq_short": llsq,
    "llsq": llsq,
    "lse": lse,
}
