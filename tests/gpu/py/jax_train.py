"""A compiled JAX training step: a small network learns, gradients agree with finite differences, and a random key gives the
known numbers."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp
import numpy as np


def network(parameters, x):
    for w, b in parameters[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = parameters[-1]
    return x @ w + b


def loss(parameters, x, y):
    return jnp.mean((network(parameters, x) - y) ** 2)


@jax.jit
def step(parameters, x, y):
    value, gradients = jax.value_and_grad(loss)(parameters, x, y)
    return value, jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, parameters, gradients)


assert jax.devices()[0].platform in ("gpu", "cuda")
with jax.default_matmul_precision("highest"):
    key = jax.random.PRNGKey(7)
    sizes = [16, 64, 64, 1]
    parameters = []
    for a, b in zip(sizes, sizes[1:]):
        key, use = jax.random.split(key)
        parameters.append((jax.random.normal(use, (a, b)) / np.sqrt(a), jnp.zeros(b)))
    x = jax.random.normal(key, (512, 16))
    y = jnp.sin(x.sum(axis=1, keepdims=True) * 0.3)
    small = jax.tree_util.tree_map(lambda p: p, parameters)
    gradient = jax.grad(loss)(small, x, y)[0][0][0, 0]
    shift = 1e-2
    up, down = (loss([(small[0][0].at[0, 0].add(s), small[0][1])] + small[1:], x, y) for s in (shift, -shift))
    assert abs(float(gradient) - float(up - down) / (2 * shift)) < 1e-3, (gradient, up, down)
    values = []
    for _ in range(200):
        value, parameters = step(parameters, x, y)
        values.append(float(value))
assert values[-1] < values[0] / 3, values[::50]
doubled = jax.lax.scan(lambda c, _: (c * 2, c), jnp.ones(4), None, length=10)[0]
assert np.array_equal(np.asarray(doubled), np.full(4, 1024.0))
print("CHECK first %.5f" % values[0])
print("PASS jax_train %.5f" % values[-1])
