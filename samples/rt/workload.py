"""Ray casting against spheres: what rt.cu runs, and the answer by numpy."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cccopt.emulator.semantics.rounding import fma32
from cccopt.harness.workload import Inputs, Launch, State, Zeros

Array = NDArray[Any]
F = np.float32

# name: (width, height, spheres, grid). Odd numbers at the small sizes, so that the last trips are partial.
_SIZES = {"small": (71, 43, 80, 2), "demo": (211, 119, 80, 4), "full": (4096, 2160, 80, 1056)}
SIZES = tuple(_SIZES)
RESULTS = ("image",)


def inputs(size: str, seed: int) -> Inputs:
    """Random spheres and room for the picture of that size."""
    width, height, count, grid = _SIZES[size]
    return picture(width, height, count, grid, seed)


def picture(width: int, height: int, count: int, grid: int, seed: int) -> Inputs:
    """A picture of ``width`` x ``height`` pixels with ``count`` spheres."""
    spheres, materials = random_spheres(count, seed)
    scene = {"spheres": spheres, "materials": materials}
    image = Zeros((height, width, 4), np.uint8)
    return {"width": width, "height": height, "grid": grid, "seed": seed, **scene, "image": image}


def launches(state: State) -> Generator[Launch, None, None]:
    """The whole picture in one launch."""
    spheres, materials = state["spheres"], state["materials"]
    assert isinstance(spheres, np.ndarray)
    size = np.int32(state["width"]), np.int32(state["height"])
    arguments = (*size, np.uint32(state["seed"]), np.int32(len(spheres)), spheres, materials, state["image"])
    yield Launch("rt", (int(state["grid"]), 1, 1), (256, 1, 1), arguments)


def hash32(x: NDArray[np.uint32]) -> Array:
    """The hash of rt.cuh."""
    x = x ^ x >> np.uint32(16)
    x = x * np.uint32(0x7FEB352D)
    x = x ^ x >> np.uint32(15)
    x = x * np.uint32(0x846CA68B)
    return np.asarray(x ^ x >> np.uint32(16))


def random_spheres(count: int, seed: int) -> tuple[Array, Array]:
    """Centres and squared radii, colours and inverse radii, as rt.cu makes them."""
    first = np.uint32(seed * 0x9E3779B9 & 0xFFFFFFFF)
    keys = (np.arange(count, dtype=np.uint32) + first)[:, None] * np.uint32(8) + np.arange(7, dtype=np.uint32)
    random = (hash32(keys) >> np.uint32(8)) / 2.0**24
    radius = ((2 + 3 * random[:, 3]) / 10).astype(F)
    x, y, z = (random[:, 0] - 0.5) * 12, (random[:, 1] - 0.5) * 6.5, 7 + 6 * random[:, 2]
    spheres = np.stack([x.astype(F), y.astype(F), z.astype(F), radius * radius], axis=1)
    return spheres, np.column_stack([random[:, 4:].astype(F), 1 / radius])


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The operations of rt.cuh on arrays, whose last axis is x, y and z, in the precision of ``real``."""

    real: type[np.floating[Any]]

    def fma(self, a: Any, b: Any, c: Any) -> Array:
        """a * b + c, rounded once in single precision."""
        a, b, c = np.broadcast_arrays(*(np.asarray(x, self.real) for x in (a, b, c)))
        return fma32(a, b, c, "rn") if self.real is np.float32 else a * b + c

    def dot(self, a: Any, b: Any) -> Array:
        """The products summed up from the last to the first."""
        a, b = np.broadcast_arrays(np.asarray(a, self.real), np.asarray(b, self.real))
        return self.fma(a[..., 0], b[..., 0], self.fma(a[..., 1], b[..., 1], a[..., 2] * b[..., 2]))

    def along(self, a: Any, t: Any, b: Any) -> Array:
        """a + t * b."""
        return self.fma(np.asarray(t)[..., None], b, a)

    @property
    def light(self) -> Array:
        """The unit vector towards the light."""
        return np.array((0.48, 0.6, -0.64), F).astype(self.real)


@dataclass(frozen=True, slots=True)
class Scene:
    """The spheres of one picture."""

    arithmetic: Arithmetic
    spheres: Array
    materials: Array

    def _meetings(self, k: int, origin: Array, direction: Array, without: Array) -> tuple[Array, Array]:
        """Which rays meet sphere ``k`` ahead of them, and how far along."""
        m = self.arithmetic
        to_centre = self.spheres[k, :3] - origin
        x, y, z = np.moveaxis(to_centre, -1, 0)
        nearest = m.dot(to_centre, direction)
        outside = m.fma(x, x, m.fma(y, y, m.fma(z, z, -self.spheres[k, 3])))
        depth = m.fma(nearest, nearest, -outside)
        hits = (depth > 0) & (nearest > 0) & (outside > 0) & (without != k)
        return hits, nearest - np.sqrt(np.where(hits, depth, 0))

    def first_hits(self, origin: Array, direction: Array, without: Array) -> tuple[Array, Array]:
        """The first sphere in the way of each ray, -1 for none, and how far along it is met."""
        first = np.full(len(direction), -1)
        distance = np.full(len(direction), 1e30, self.arithmetic.real)
        for k in range(len(self.spheres)):
            hits, t = self._meetings(k, origin, direction, without)
            nearer = hits & (t < distance)
            first[nearer], distance[nearer] = k, t[nearer]
        return first, distance

    def blocked(self, origin: Array, direction: Array, without: Array) -> Array:
        """Whether any sphere is in the way."""
        found = np.zeros(len(origin), bool)
        for k in range(len(self.spheres)):
            found |= self._meetings(k, origin, direction, without)[0]
        return found

    def normals(self, sphere: Array, point: Array) -> Array:
        """The unit vectors that stand on spheres at points of theirs."""
        return np.asarray((point - self.spheres[sphere, :3]) * self.materials[sphere, 3:])

    def lit(self, sphere: Array, diffuse: Array) -> Array:
        """The light that spheres send back without any gloss."""
        m = self.arithmetic
        factor = m.fma(diffuse, m.real(F(0.8)), m.real(F(0.2)))
        return np.asarray(self.materials[sphere, :3] * factor[:, None])

    def sky(self, direction: Array) -> Array:
        """The light from where no sphere is."""
        m = self.arithmetic
        height = np.abs(direction[:, 1])
        red, green = m.fma(height, -0.5, 1), m.fma(height, m.real(F(-0.3)), 1)
        return np.stack([red, green, np.ones_like(red)], axis=1)

    def shaded(self, origin: Array, direction: Array, sphere: Array, t: Array) -> Array:
        """The light that comes from points on spheres."""
        m = self.arithmetic
        point = m.along(origin, t, direction)
        normal = self.normals(sphere, point)
        mirrored = m.along(direction, -2 * m.dot(direction, normal), normal)
        diffuse = np.maximum(m.dot(normal, m.light), 0)
        diffuse = np.where(self.blocked(point, m.light, sphere), 0, diffuse)

        other, distance = self.first_hits(point, mirrored, sphere)
        there = self.normals(other, m.along(point, distance, mirrored))
        second = self.lit(other, np.maximum(m.dot(there, m.light), 0))
        reflection = np.where((other >= 0)[:, None], second, self.sky(mirrored))

        highlight = np.where(diffuse > 0, np.maximum(m.dot(mirrored, m.light), 0), 0)
        for _ in range(5):
            highlight = highlight * highlight
        own = m.fma(0.75, self.lit(sphere, diffuse), highlight[:, None])
        return m.fma(0.25, reflection, own)


def rendered(inputs: Mapping[str, Any], real: type[np.floating[Any]]) -> Array:
    """The picture in the precision of ``real``."""
    m = Arithmetic(real)
    scene = Scene(m, inputs["spheres"].astype(real), inputs["materials"].astype(real))
    width, height = int(inputs["width"]), int(inputs["height"])
    i = np.arange(width * height)
    random = hash32(i.astype(np.uint32) + np.uint32(int(inputs["seed"]) * 0x9E3779B9 & 0xFFFFFFFF))
    lens = [((r / 65536) - 0.5).astype(real) for r in (random & np.uint32(0xFFFF), random >> np.uint32(16))]
    origin = np.stack([*lens, np.zeros_like(lens[0])], axis=1)
    half_pixel = real(9) / real(width)
    x = m.fma(2 * (i % width) + 1 - width, half_pixel, -lens[0])
    y = m.fma(height - 1 - 2 * (i // width), half_pixel, -lens[1])
    way = np.stack([x, y, np.full_like(x, 20)], axis=1)
    direction = way * (1 / np.sqrt(m.dot(way, way)))[:, None]

    colour = scene.sky(direction)
    first, t = scene.first_hits(origin, direction, np.array(-1))
    hit = first >= 0
    colour[hit] = scene.shaded(origin[hit], direction[hit], first[hit], t[hit])
    levels = m.fma(np.minimum(colour, 1), 255, 0.5).astype(np.uint8)
    return np.dstack([levels.reshape(height, width, 3), np.full((height, width), 255, np.uint8)])


def reference(inputs: Mapping[str, Any]) -> Mapping[str, Array]:
    """The picture by numpy, rounded as in rt.cuh."""
    return {"image": rendered(inputs, np.float32)}


def check(result: Mapping[str, Any], expected: Mapping[str, Array]) -> str:
    """Every operation is correctly rounded and in a fixed order: the pictures must be equal."""
    wrong = np.argwhere(result["image"] != expected["image"])
    if not len(wrong):
        return ""
    row, column, _ = (int(x) for x in wrong[0])
    found, right = result["image"][row, column], expected["image"][row, column]
    return f"{len(wrong)} wrong levels; the pixel in row {row}, column {column} is {found}, not {right}"


def summary(image: Array) -> str:
    """The line that rt.cu prints for this picture."""
    red, green, blue, _ = image.reshape(-1, 4).sum(axis=0, dtype=np.uint64) / image[..., 0].size
    return f"pixels {image[..., 0].size} red {red:.3f} green {green:.3f} blue {blue:.3f}\n"
