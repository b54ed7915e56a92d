# SPDX-License-Identifier: GPL-3.0-or-later
"""The spheres of View: Spheres, drawn into memory where this Blender's gpu module works without a window (5.2 and later)."""

import math

import harness
from harness import bpy, check, check_equal, np, room

SIZE = 128


def gpu_module():
    """Blender's gpu module, ready to draw."""
    import gpu

    try:
        if hasattr(gpu, "init"):
            gpu.init()
        gpu.types.GPUOffScreen(4, 4).free()
    except (SystemError, RuntimeError) as error:
        raise harness.Skip(f"Blender's gpu module needs a window here: {error}") from None
    return gpu


def drawn(gpu, arrays, shape, is_flat):
    """Colour (SIZE, SIZE, 4) and depth (SIZE, SIZE) of grains of sphere radius 0.3 seen from (0, 0, 5) downwards."""
    viewport = room("viewport")
    view = np.eye(4)
    view[2, 3] = -5.0
    near, far = 1.0, 20.0
    projection = np.zeros((4, 4))
    if is_flat:
        projection[0, 0] = projection[1, 1] = 0.5
        projection[2, 2], projection[2, 3], projection[3, 3] = -2 / (far - near), -(far + near) / (far - near), 1.0
    else:
        projection[0, 0] = projection[1, 1] = 2.5
        projection[2, 2], projection[2, 3], projection[3, 2] = -(far + near) / (far - near), -2 * far * near / (far - near), -1.0
    target = gpu.types.GPUOffScreen(SIZE, SIZE, format="RGBA32F")
    with target.bind():
        frame = gpu.state.active_framebuffer_get()
        frame.clear(color=(0.0, 0.0, 0.0, 0.0), depth=1.0)
        ids = np.arange(len(arrays["position"]), dtype=np.int32)
        batch = viewport.make_batch(arrays, ids, np.full(len(ids), 0.3, np.float32), True)
        colours = [(0.2, 0.1, 0.05), (0.5, 0.3, 0.15), (0.8, 0.7, 0.5)]
        viewport.draw_batch(batch, True, view, projection, (0, 0, SIZE, SIZE), shape, colours)
        colour = np.array(frame.read_color(0, 0, SIZE, SIZE, 4, 0, "FLOAT").to_list(), np.float32)
        depth = np.array(frame.read_depth(0, 0, SIZE, SIZE).to_list(), np.float32)
    target.free()
    z = depth.reshape(SIZE, SIZE) * 2 - 1
    if is_flat:
        away = (z * (far - near) + far + near) / 2
    else:
        away = 2 * far * near / (far + near - z * (far - near))
    return colour.reshape(SIZE, SIZE, 4), away


def traced(centres, is_flat):
    """Distance along the view axis to spheres of radius 0.3, traced through the middle of every pixel; inf beside them."""
    at = (np.arange(SIZE) + 0.5) / SIZE * 2 - 1
    x, y = np.meshgrid(at, at)
    scale = 2.0 if is_flat else 0.4
    origin = np.stack([x * scale, y * scale, np.zeros_like(x)], -1) if is_flat else np.zeros((SIZE, SIZE, 3))
    way = np.zeros((SIZE, SIZE, 3)) if is_flat else np.stack([x * scale, y * scale, -np.ones_like(x)], -1)
    way[..., 2] = -1.0
    length = np.linalg.norm(way, axis=-1, keepdims=True)
    way = way / length
    found = np.full((SIZE, SIZE), np.inf)
    for centre in centres:
        to = np.asarray(centre) - (0, 0, 5) - origin
        b = (to * way).sum(-1)
        d = 0.09 - ((to - b[..., None] * way) ** 2).sum(-1)
        hit = np.where(d >= 0, (b - np.sqrt(np.maximum(d, 0))) * -way[..., 2], np.inf)
        found = np.minimum(found, hit)
    return found


def check_drawn(gpu, places, turns, shape, offsets, is_flat):
    arrays = {"position": np.array(places, np.float32), "rotation": np.array(turns, np.float32)}
    colour, away = drawn(gpu, arrays, shape, is_flat)
    centres = (arrays["position"][:, None].astype(np.float64) + 0.3 * harness.rotate(arrays["rotation"], offsets)).reshape(-1, 3)
    expected = traced(centres, is_flat)
    is_drawn, is_hit = colour[:, :, 3] > 0.5, np.isfinite(expected)
    wrong = int((is_drawn != is_hit).sum())
    both = is_drawn & is_hit
    error = float(np.abs(away - expected)[both].max())
    rim = 2 * math.sqrt(math.pi * is_hit.sum())
    print(f"  {shape}, {'flat' if is_flat else 'perspective'}: {is_hit.sum()} pixels, {wrong} of the silhouette off, depth within {error:.2g} m")
    check(is_hit.sum() > 500, "the scene is not in the picture")
    check(wrong <= 0.05 * rim, f"{wrong} pixels of a rim of about {rim:.0f} are on the wrong side")
    check(error < 1e-3, f"depth is off by up to {error:g} m")
    light = colour[both][:, :3].mean(axis=1)
    check(light.std() > 0.05, f"the spheres are drawn without light and shade ({light.std():.3f})")


def test_spheres_are_drawn_where_rays_meet_them():
    gpu = gpu_module()
    places, turns = [(0.2, -0.1, 0.0), (-0.6, 0.4, 0.3), (0.5, 0.5, -1.0)], [(1, 0, 0, 0)] * 3
    for is_flat in (False, True):
        check_drawn(gpu, places, turns, "SPHERE", np.zeros((1, 3)), is_flat)


def test_grains_of_four_spheres_are_turned():
    gpu = gpu_module()
    half = math.sqrt(0.5)
    tetrahedron = room("engine").core.tetrahedron(1.0)
    for is_flat in (False, True):
        check_drawn(gpu, [(0.1, 0.2, 0.0), (-0.9, -0.6, 0.2)], [(half, half, 0, 0), (0.6, 0, 0.8, 0)], "TETRAHEDRON", tetrahedron, is_flat)


def test_nothing_is_drawn_during_a_render_or_in_the_background():
    scene = harness.baked_scene(frame_end=3, radius=0.04)
    viewport, playback = room("viewport"), room("playback")
    scene.barchan_look.view = "SPHERES"
    scene.frame_set(2)
    check_equal(viewport.is_active(scene), False, "active in the background")
    arrays = playback.read(scene.barchan.folder, 2).arrays
    playback.drawn[scene.session_uid] = arrays
    check_equal(viewport.is_active(scene), True, "active with something to draw")
    playback.on_render_start(scene)
    check_equal(viewport.is_active(scene), False, "active while rendering")
    playback.on_render_end(scene)
    check_equal(len(harness.drawn_points(scene)[0]), 0, "points that the node group makes for the view")
    check_equal(bpy.app.background, True, "background")


if __name__ == "__main__":
    harness.main(globals())
