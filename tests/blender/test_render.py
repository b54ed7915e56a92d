# SPDX-License-Identifier: GPL-3.0-or-later
"""What is rendered: not blank, the same as a still and in an animation, and blurred by motion."""

import harness
from harness import FOLDER, bpy, check, check_equal, np

RESOLUTION = (160, 120)


def render_scene(engine, frame_end=12, radius=0.03, **options):
    scene = harness.baked_scene(frame_end=frame_end, radius=radius, **options)
    harness.add_camera(scene, (0.0, -2.2, 1.0), (0.0, 0.0, 0.3))
    bpy.data.objects["Floor"].hide_render = True
    scene.world = bpy.data.worlds.new("World")
    scene.render.engine = engine
    scene.render.resolution_x, scene.render.resolution_y = RESOLUTION
    scene.render.film_transparent = True
    scene.render.image_settings.file_format = "PNG"
    scene.render.image_settings.color_mode = "RGBA"
    if engine == "CYCLES":
        scene.cycles.samples = 8
        scene.cycles.seed = 0
        scene.cycles.use_denoising = False
        scene.cycles.use_adaptive_sampling = False
    elif "EEVEE" in engine:
        scene.eevee.taa_render_samples = 1
    return scene


def still(scene, name):
    """Pixels (height, width, 4) of the current frame."""
    path = FOLDER / f"{name}.png"
    scene.render.filepath = str(path)
    bpy.ops.render.render(write_still=True)
    return load(path)


def load(path):
    image = bpy.data.images.load(str(path))
    values = np.empty(len(image.pixels), np.float32)
    image.pixels.foreach_get(values)
    bpy.data.images.remove(image)
    return values.reshape(RESOLUTION[1], RESOLUTION[0], 4)


def covered(picture):
    """Share of the picture that grains cover: everything else is transparent."""
    return float((picture[:, :, 3] > 0.5).mean())


def check_drawn(picture, what):
    share = covered(picture)
    colours = picture[picture[:, :, 3] > 0.9][:, :3]
    spread = float(colours.std()) if len(colours) else 0.0
    print(f"  {what}: {100 * share:.1f} % covered, spread of values {spread:.3f}")
    check(0.02 < share < 0.9, f"{what}: grains cover {100 * share:.1f} % of the picture, expected 2 to 90 %")
    check(spread > 0.02, f"{what}: the grains are drawn without light and shade (spread {spread:.3f})")


def check_render(engine, display):
    scene = render_scene(engine)
    scene.barchan.display = display
    scene.frame_set(6)
    check_drawn(still(scene, f"{engine}_{display}"), f"{engine} {display}")
    return scene


def test_cycles_renders_points():
    check_render("CYCLES", "POINTS")


def test_cycles_renders_grains():
    check_render("CYCLES", "GRAINS")


def test_workbench_renders_points():
    check_render("BLENDER_WORKBENCH", "POINTS")


def test_workbench_renders_grains():
    check_render("BLENDER_WORKBENCH", "GRAINS")


def test_cycles_draws_points_as_round_as_grains():
    # Both displays show the same spheres; the low-poly ones lie inside the true ones, by up to a tenth of a radius.
    pictures = []
    for display in ("POINTS", "GRAINS"):
        scene = render_scene("CYCLES")
        scene.barchan.display = display
        scene.frame_set(9)
        pictures.append(still(scene, f"compare_{display}"))
    difference = float(np.abs(pictures[0][:, :, 3] - pictures[1][:, :, 3]).mean())
    print(f"  coverage {covered(pictures[0]):.4f} and {covered(pictures[1]):.4f}, mean difference {difference:.4f}")
    check(difference < 0.03, f"points and grains differ by {difference:.4f} of the picture, expected under 0.03")


def check_wet(engine):
    """Wet grains are darker, and coloured by their minerals; rounded meshes and points carry the same shades."""
    looks = {}
    for display in ("POINTS", "GRAINS"):
        for wet in (0.0, 1.0):
            scene = render_scene(engine)
            scene.barchan.display = display
            scene.barchan_look.kind = "ROUNDED"
            scene.barchan_look.wet = wet
            scene.frame_set(6)
            picture = still(scene, f"wet_{engine}_{display}_{wet}")
            looks[display, wet] = picture[picture[:, :, 3] > 0.9][:, :3].mean(axis=0)
    print("  " + ", ".join(f"{key[0]} {key[1]:g}: {value.round(3).tolist()}" for key, value in looks.items()))
    for display in ("POINTS", "GRAINS"):
        dry, wet = looks[display, 0.0], looks[display, 1.0]
        check(dry[0] > 1.15 * dry[2], f"{engine} {display}: dry sand is not reddish: {dry}")
        check(wet.mean() < 0.9 * dry.mean(), f"{engine} {display}: wet sand is {wet.mean() / dry.mean():.2f} as bright as dry")


def test_wet_sand_is_darker_in_cycles():
    check_wet("CYCLES")


def check_animation(engine):
    """Every frame of an animation equals the still of that frame."""
    scene = render_scene(engine)
    scene.frame_start, scene.frame_end = 5, 7
    scene.render.filepath = str(FOLDER / f"animation_{engine}_")
    scene.frame_set(1)
    bpy.ops.render.render(animation=True)
    frames = [load(FOLDER / f"animation_{engine}_{frame:04d}.png") for frame in (5, 6, 7)]
    scene.frame_set(6)
    difference = float(np.abs(still(scene, f"still_{engine}") - frames[1]).max())
    check_equal(difference, 0.0, f"{engine}: largest difference of still and animation frame")
    moved = float(np.abs(frames[0] - frames[2]).mean())
    check(moved > 1e-3, f"{engine}: frames 5 and 7 differ by {moved:g} only, the grains did not move")


def test_animation_frames_equal_stills_in_workbench():
    check_animation("BLENDER_WORKBENCH")


def test_animation_frames_equal_stills_in_cycles():
    check_animation("CYCLES")


def test_motion_blur_smears_falling_grains_in_both_displays():
    # Grains fall about 1.6 m/s at this frame: 7 cm or two radii per frame. Sharp edges along z must become softer.
    for display in ("POINTS", "GRAINS"):
        sharpness = []
        for is_blurred in (False, True):
            scene = render_scene("CYCLES", frame_end=5)
            scene.barchan.display = display
            scene.cycles.samples = 32
            scene.render.use_motion_blur = is_blurred
            scene.render.motion_blur_shutter = 1.0
            scene.frame_set(4)
            alpha = still(scene, f"blur_{display}_{is_blurred}")[:, :, 3]
            sharpness.append(float(np.abs(np.diff(alpha, axis=0)).mean()))
        print(f"  {display}: vertical gradient {sharpness[0]:.4f} sharp, {sharpness[1]:.4f} blurred")
        check(sharpness[1] < 0.9 * sharpness[0], f"{display}: motion blur changed the gradient from {sharpness[0]:.4f} "
              f"to {sharpness[1]:.4f}, expected less than nine tenths")


def streak(display, shutter, speed=1.0):
    """Length in m of the streak of a single grain of radius 0.05 that moves 0.3 m along x per frame; speed: of the playback."""
    import test_playback

    scene = test_playback.made_scene(f"streak_{display}_{shutter}_{speed}", count=1)
    settings = scene.barchan_look
    scene.barchan.display = display
    settings.kind = "ROUNDED" if display == "GRAINS" else "SPHERES"
    settings.timing = "OVERRIDE"
    for frame in (1, 11):
        settings.frame = 6.0 + speed * (frame - 6)
        settings.keyframe_insert("frame", frame=frame)
    for curve in harness.room("follow").curves(scene).values():
        for point in curve.keyframe_points:
            point.interpolation = "LINEAR"
    harness.add_camera(scene, (1.8, -3.0, 0.0), (1.8, 0.0, 0.0))
    scene.camera.data.type = "ORTHO"
    scene.camera.data.ortho_scale = 0.8
    scene.render.engine = "CYCLES"
    scene.cycles.samples = 64
    scene.cycles.use_denoising = scene.cycles.use_adaptive_sampling = False
    scene.render.resolution_x, scene.render.resolution_y = RESOLUTION
    scene.render.film_transparent = True
    scene.render.image_settings.file_format = "PNG"
    scene.render.image_settings.color_mode = "RGBA"
    scene.render.use_motion_blur = shutter > 0.0
    scene.render.motion_blur_shutter = max(shutter, 0.01)
    scene.frame_set(6)
    alpha = still(scene, f"streak_{display}_{shutter}_{speed}")[:, :, 3]
    # Across the grain's middle. A disc of width D smeared over a way L is max(D, L) wide at half its height.
    row = alpha[alpha.shape[0] // 2 - 2 : alpha.shape[0] // 2 + 2].mean(axis=0)
    return 0.8 / RESOLUTION[0] * float((row > 0.5 * row.max()).sum())


def test_streaks_are_as_long_as_the_way_for_points_and_grains_at_any_speed():
    for display in ("POINTS", "GRAINS"):
        for shutter, speed, expected in ((1.0, 1.0, 0.3), (1.0, 0.5, 0.15)):
            length = streak(display, shutter, speed)
            print(f"  {display}, shutter {shutter}, speed {speed}: {length:.3f} m")
            # A pixel is 5 mm, and 64 samples leave noise at the ends.
            check(abs(length - expected) <= 0.015, f"{display}, shutter {shutter}, speed {speed}: streak of {length:.3f} m, "
                  f"expected {expected:.3f} m")


if __name__ == "__main__":
    harness.main(globals())
