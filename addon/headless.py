# SPDX-License-Identifier: GPL-3.0-or-later
"""headless: the command line inside Blender: arguments -> a bake of the open file, lines on the terminal, an exit code.

Comes in: what stands behind `blender -b FILE.blend --command barchan`, or what `python -m barchan bake` hands over. Goes
out: frames in the cache; progress on standard error, or one JSON object per line; one JSON object on standard output at the
end; the .blend with the sand in it where it had none. Everything else that this process prints, Blender and other add-ons
included, goes to standard error. Main thread; the work is on the thread of bake.py, so that a signal stops it at once.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import signal
import sys
import threading
import time
import traceback

import bpy

from . import bake, engine, export, job, operators, picture, playback, properties

DONE, FAILED, USAGE, SIGNALLED = 0, 1, 2, 128  # exit codes; a signal's number is added to the last
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOK_SECONDS = 0.1  # between two looks at the bake


class Parser(argparse.ArgumentParser):
    """Blender ends with the code that a command returns; argparse would end the process itself."""

    def exit(self, status=0, message=None):
        if message:
            sys.stderr.write(message)
        raise SystemExit(status)


def make_parser():
    parser = Parser(prog="barchan", description="Barchan: sand for Blender, without a window.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    engine.core.bake_command.add_options(commands.add_parser("bake", help="bake the sand of a .blend file into its cache folder"))
    preview = commands.add_parser("preview", help="draw the cached frames of a .blend file, without a render")
    engine.core.preview_command.add_options(preview, is_file_needed=False)
    preview.set_defaults(is_preview=True, report_fd=None)
    return parser


@contextlib.contextmanager
def reports_apart(descriptor):
    """Yields the stream of our reports; what anybody else prints to standard output goes to standard error meanwhile."""
    sys.stdout.flush()
    own = descriptor if descriptor is not None else os.dup(1)
    before = os.dup(1)
    os.dup2(2, 1)
    stream = os.fdopen(own, "w", encoding="utf-8")
    try:
        yield stream
    finally:
        stream.close()
        sys.stdout.flush()
        os.dup2(before, 1)
        os.close(before)


class Stopped(Exception):
    """A signal came before the bake had started."""


class Watch:
    """Signals as a wish to stop: the bake is cancelled once it runs, and what comes before it is left. The second signal
    ends the process at once; the frames on disk are whole at any moment."""

    def __init__(self):
        self.number = 0
        self.run = None
        self._before = {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) != signal.SIG_IGN:  # nohup
                    self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _on_signal(self, number, _frame):
        if self.number:
            os._exit(SIGNALLED + number)
        self.number = number
        if self.run is not None:
            self.run.cancel()

    def check(self):
        if self.number:
            raise Stopped


def open_file(path):
    path = os.path.abspath(path)
    if not os.path.isfile(path):
        raise job.BakeError(f"There is no file '{path}'; give the path of a .blend file")
    try:
        bpy.ops.wm.open_mainfile(filepath=path)
    except RuntimeError as error:
        raise job.BakeError(f"Blender cannot open '{path}' ({' '.join(str(error).split())}); save it again")


def choose_scene(name):
    """The scene to bake; the window's where none is named, as the export reads it from the context."""
    if name is None:
        return bpy.context.scene
    scene = bpy.data.scenes.get(name)
    if scene is None:
        known = ", ".join(f"'{one.name}'" for one in bpy.data.scenes)
        raise job.BakeError(f"There is no scene '{name}' in this file; it has {known}")
    for window in bpy.context.window_manager.windows:
        window.scene = scene
    return scene


@contextlib.contextmanager
def range_of(scene, frames):
    """The scene's range to bake is this one inside the block; None = as it is set."""
    settings = scene.barchan
    before = (settings.frame_start, settings.frame_end, settings.use_scene_range)
    if frames is not None:
        settings.frame_start, settings.frame_end = frames
        settings.use_scene_range = False
    try:
        yield
    finally:
        settings.frame_start, settings.frame_end, settings.use_scene_range = before


def make_run(scene, arguments, tell):
    """The bake, not started, and the fingerprint of what it is made of. tell: of export.make_job."""
    if arguments.folder is not None:
        scene.barchan.folder = os.path.abspath(bpy.path.abspath(arguments.folder))
    if properties.is_folder_temporary(scene):
        raise job.BakeError("The file has no name, so its frames would be lost at the end; give FILE.blend or --folder PATH")
    changes = {}
    if arguments.threads is not None:
        changes["threads"] = arguments.threads
    if arguments.engine is not None:
        changes["engine"] = arguments.engine.upper()
    is_elsewhere = scene != bpy.context.scene
    override = contextlib.nullcontext()
    if is_elsewhere:
        override = bpy.context.temp_override(scene=scene, view_layer=scene.view_layers[0])
    with override, range_of(scene, arguments.frames), playback.paused():
        the_job = dataclasses.replace(export.make_job(bpy.context, tell), **changes)
        settings = export.fingerprint(scene)
    is_resumed = arguments.resume or arguments.from_frame is not None
    return bake.Bake(the_job, resume=is_resumed, resume_frame=arguments.from_frame), settings


def tell_reading(arguments, stream, watch):
    """A function for export.make_job: progress as of a bake, and the place where a signal ends the reading."""
    bar, last = bake.TerminalBar(sys.stderr), [-1]

    def tell(share):
        watch.check()
        progress = bake.Progress("EXPORTING", share_read=share)
        if not arguments.json:
            bar(progress)
        elif int(100 * share) != last[0]:
            last[0] = int(100 * share)
            print(json.dumps(progress_report(progress)), file=stream, flush=True)

    return tell


def wait_for(run, arguments, stream):
    """Until the bake has ended: its progress on the terminal, or a JSON line per frame."""
    bar = None if arguments.json else bake.TerminalBar(sys.stderr)
    seen = None
    while True:
        run.join(LOOK_SECONDS)
        progress = run.progress
        if bar is not None:
            if progress != seen or progress.is_finished:
                bar(progress)
        elif seen is None or (progress.state, progress.frames_done) != (seen.state, seen.frames_done):
            print(json.dumps(progress_report(progress)), file=stream, flush=True)
        seen = progress
        if progress.is_finished:
            run.join()
            return


def progress_report(progress):
    return {
        "event": "progress",
        "state": progress.state,
        "frame": progress.frame,
        "frames_done": progress.frames_done,
        "frame_count": progress.frame_count,
        "percent": round(100 * progress.fraction, 2),
        "seconds_left": round(progress.seconds_left, 1) if progress.seconds_left >= 0 else None,
        "grains": progress.grain_count,
        "grain_steps_per_second": round(progress.grain_steps),
        "byte_estimate": progress.byte_estimate,
    }


def is_shown(scene, run, settings):
    """True when the open file shows what was baked already, and need not be written."""
    ob = playback.carrier(scene)
    return (
        ob is not None
        and len(ob.data.vertices) == run.progress.grain_count
        and len(scene.barchan.followers) == len(run.job.bodies)
        and scene.barchan.baked_settings == settings
    )


def save(scene, run, settings, arguments):
    """Puts the sand in the file where it is not; the path that was written, "" when none was."""
    is_due = bpy.data.filepath and (arguments.folder is not None or not is_shown(scene, run, settings))
    is_wanted = arguments.save_as is not None or (is_due and not arguments.no_save)
    operators.show_run(scene, run, settings)
    if not is_wanted:
        return ""
    path = os.path.abspath(arguments.save_as or bpy.data.filepath)
    try:
        bpy.ops.wm.save_as_mainfile(filepath=path)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise job.BakeError(f"The frames are baked, but '{path}' cannot be written ({reason}); give --save-as another PATH")
    return path


def bake_file(arguments, stream, watch):
    """Opens, bakes, saves: the report that standard output gets. BakeError, Stopped."""
    start = time.monotonic()
    if arguments.file is not None:
        open_file(arguments.file)
    watch.check()
    scene = choose_scene(arguments.scene)
    run, settings = make_run(scene, arguments, tell_reading(arguments, stream, watch))
    watch.check()
    watch.run = bake.running = run
    try:
        run.start()
        if watch.number:
            run.cancel()
        wait_for(run, arguments, stream)
    finally:
        bake.running = watch.run = None
    for warning in run.warnings:
        print(f"barchan: warning: {warning}", file=sys.stderr)
    progress = run.progress
    report = {
        "event": "end",
        "state": progress.state,
        "file": bpy.data.filepath,
        "scene": scene.name,
        "folder": run.job.folder,
        "frames": [run.job.frame_start, run.job.frame_end],
        "frames_done": progress.frames_done,
        "baked": run.baked_count,
        "grains": progress.grain_count,
        "bodies": len(run.job.bodies),
        "engine": run.engine_name,
        "grain_steps_per_second": round(progress.grain_steps),
        "seconds": 0.0,
        "bytes": engine.core.list_frames(run.job.folder)[1] if os.path.isdir(run.job.folder) else 0,
        "saved": "",
        "warnings": run.warnings,
        "error": run.error,
    }
    if progress.frames_done and run.assembled is not None:
        try:
            report["saved"] = save(scene, run, settings, arguments)
        except job.BakeError as error:
            report["error"] = report["error"] or str(error)
    report["seconds"] = round(time.monotonic() - start, 3)
    return report


def preview_file(arguments, watch):
    """Opens and draws: the report that standard output gets. BakeError, Stopped."""
    start = time.monotonic()
    if arguments.file is not None:
        open_file(arguments.file)
    watch.check()
    scene = bpy.context.scene
    folder = properties.cache_folder(scene)
    if not os.path.isdir(folder):
        raise job.BakeError(f"There are no frames in '{folder}'; bake this file first")
    if arguments.out is None:
        arguments.out = engine.core.preview_command.default_out(bpy.data.filepath or folder)
    bar = engine.core.export_command.Bar(sys.stderr)
    try:
        report = picture.draw(scene, folder, arguments, bar, lambda: watch.number != 0)
    except engine.core.Cancelled:
        raise Stopped from None
    finally:
        bar.close()
    return {"event": "end", "state": "DONE", **report, "seconds": round(time.monotonic() - start, 3), "error": ""}


def main(words):
    """Runs the words of a command line: the exit code. Never raises."""
    if engine.core is None:
        print(f"barchan: {engine.problem}", file=sys.stderr, flush=True)
        return FAILED
    try:
        arguments = make_parser().parse_args(words)
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else USAGE
    with Watch() as watch, reports_apart(arguments.report_fd) as stream:
        try:
            is_preview = getattr(arguments, "is_preview", False)
            report = preview_file(arguments, watch) if is_preview else bake_file(arguments, stream, watch)
        except Stopped:
            report = {"event": "end", "state": "STOPPED", "error": ""}
        except (job.BakeError, engine.core.Error, OSError, MemoryError, ValueError) as error:
            report = {"event": "end", "state": "FAILED", "error": engine.sentence(error)}
        except Exception as error:  # our own bug: the farm gets a code and the trace
            traceback.print_exc()
            report = {"event": "end", "state": "FAILED", "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(report), file=stream, flush=True)
        if report["error"]:
            print(f"barchan: {report['error']}", file=sys.stderr, flush=True)
            return FAILED
        if report["state"] == "STOPPED":
            going_on = "" if getattr(arguments, "is_preview", False) else ", --resume goes on"
            print(f"barchan: stopped; the frames so far are kept{going_on}.", file=sys.stderr, flush=True)
            return SIGNALLED + watch.number
        return DONE


_command = None  # what register_cli_command gave


def register():
    global _command
    _command = bpy.utils.register_cli_command("barchan", main)


def unregister():
    global _command
    if _command is not None:
        bpy.utils.unregister_cli_command(_command)
        _command = None
