"""The command `shardwright`, run for its plans."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import warnings
import weakref


# Lines that sum up what the JSON object has, and are no remarks.
SUMMARY = re.compile(r"^shardwright: (gap |.* on \d+ devices: step )")


class ShardwrightError(Exception):
    """What is wrong, in one line."""


class ShardwrightWarning(UserWarning):
    """What was assumed, in one line."""


def binary():
    """The path of the command: $SHARDWRIGHT, the one inside of the package, or that of $PATH."""
    inside = pathlib.Path(__file__).parent / "bin" / "shardwright"
    found = os.environ.get("SHARDWRIGHT") or (str(inside) if inside.exists() else shutil.which("shardwright"))
    if not found:
        raise ShardwrightError(
            "the command shardwright is not found: build it, and put it on $PATH or name it in $SHARDWRIGHT"
        )
    return found


def path_of(value, what="path"):
    """A path that a user gave."""
    try:
        return pathlib.Path(value)
    except TypeError:
        raise ShardwrightError(f"{what}: expected the name of a file, found {type(value).__name__}") from None


def run(*words):
    """Run a command of shardwright, and return what it prints; raise its one line of error."""
    try:
        done = subprocess.run([binary(), *map(str, words)], capture_output=True, text=True)
    except OSError as trouble:
        raise ShardwrightError(f"{binary()}: {trouble.strerror}") from None
    except ValueError as trouble:  # a null byte in a word
        raise ShardwrightError(f"{binary()}: {trouble}") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line] or [f"exit code {done.returncode}"]
        raise ShardwrightError(lines[-1].removeprefix("shardwright: "))
    for line in done.stderr.splitlines():
        if line.startswith("shardwright: ") and not SUMMARY.search(line):
            words = line.removeprefix("shardwright: ").removeprefix("warning: ")
            warnings.warn(words, ShardwrightWarning, stacklevel=3)
    return done.stdout


class Plan:
    """A plan: its file, and what it predicts. Plan(path) opens one that was made before, by `plan` or the
    command.

    path     the plan file, which `shardwright run`, `verify`, `explain` and `simulate` take
    summary  the JSON object of `shardwright plan --json`
    """

    def __init__(self, path, summary=None, folder=None, statics=None):
        self.path = str(path_of(path))
        self._made_here = summary is not None
        self.summary = json.loads(run("explain", path, "--json")) if summary is None else summary
        if folder is not None:  # it is temporary, and lives as long as its plan
            weakref.finalize(self, folder.close)
        self._statics = statics  # what is no array in the arguments that it was made for, if that is known

    def __repr__(self):
        return f"Plan({self.path!r}, {self.summary.get('chosen')!r})"

    def explain(self):
        """What the plan does, as text."""
        return run("explain", self.path)

    def show(self):
        print(self.explain(), end="")

    def verify(self, seed=0):
        """Run one step partitioned and one serial on random inputs, and compare all outputs; raise
        if any differs. Returns the JSON object of `shardwright verify --json`."""
        return json.loads(run("verify", self.path, "--json", "--seed", seed))

    def _program(self):
        from .documents import Place, read_json

        program = Place(read_json(self.path), self.path)["program"]
        return (program if isinstance(program.value, str) else program["path"]).word()  # plans with stages name it so

    def _sidecar(self):
        """That beside the program, which `plan` writes beside the plan, and the command where it was."""
        from .documents import read_json

        program = self._program().removesuffix(".gz")
        beside, named = (pathlib.Path(p).with_suffix(".inputs.json") for p in (self.path, program))
        return read_json(beside if beside.exists() else named)

    def apply(self, step, devices=None, attention=None):
        """A function with the signature of the step, which JAX runs as the plan says on as many
        devices as the plan has (docs/python.md). attention: "cudnn" or "ops", as
        `shardwright export --attention` takes it."""
        from .apply import apply

        return apply(self.path, step, devices, attention, self._statics, None if self._made_here else self._program())

    def compare(self, step, *args, devices=None, **kwargs):
        """Run one step in JAX, on one device and under the plan, and compare every device's part of
        every output by the rule of `shardwright verify`; what rounding alone moves in JAX's own step
        is allowed to differ. Returns {"ok", "outputs": [{"name", "error", "tolerance", "ok"}],
        "xla", "plan"}: the last two are {"peak_bytes", "flops"} of a device, as XLA's
        memory_analysis and cost_analysis have them of what it compiled, and as the plan has. Of a plan
        with stages the "xla" has no peak_bytes, and the plan no flops."""
        from .apply import load_in_all
        from .compare import compare

        result = compare(load_in_all(self.path, devices), step, args, kwargs, self._sidecar())
        return result | {"plan": self._costs()}

    def _costs(self):
        if "n_stages" in self.summary:
            return {"peak_bytes": max(stage["peak_bytes"] for stage in self.summary["stages"]), "flops": None}
        played = json.loads(run("simulate", self.path, "--json"))
        return {"peak_bytes": played["peak_bytes"], "flops": played["flops"]}


# Options of `plan` that go to the export.
FOR_EXPORT = ("learning_rate", "tokens", "vocabulary", "loss", "pairs")
# Those that Python has in other words.
NOT_HERE = {"output": "path= names the plan", "help": "docs/commands.md has them all"}


def plan(step, *args, cluster=None, devices=None, strategy=None, path=None, **options):
    """Export a step and plan it for a cluster.

    cluster   a cluster file
    devices   a part of the cluster: 8, or "2x4"
    strategy  what `shardwright plan --strategy` takes; the fastest is searched if it is not given
    path      the plan file; the program stands beside it, as NAME.hlo.gz. Both are temporary if it
              is not given, and in all processes of JAX but the first
    options   arguments of the step by keyword (of a step that takes any, **batch, arrays and trees
              of some); those that `export` takes (learning_rate, tokens,
              vocabulary, loss, pairs); other options of `shardwright plan`: memory="16GiB" is
              --memory 16GiB, untied=True is --untied
    """
    from . import step as step_module
    from .calls import takes
    from .processes import own_number

    if cluster is None:
        raise ShardwrightError("cluster: expected a cluster file")
    for key in options.keys() & NOT_HERE.keys():
        raise ShardwrightError(f"{key}: no option in Python; {NOT_HERE[key]}")
    for_export = {key: options.pop(key) for key in FOR_EXPORT if key in options}
    kwargs = {key: options.pop(key) for key in list(options) if takes(step, key, options[key])}
    with contextlib.ExitStack() as folder:
        if own_number() != 0 or path is None:
            path = pathlib.Path(folder.enter_context(tempfile.TemporaryDirectory(prefix="shardwright-"))) / "step.plan"
        plan_path = path_of(path)
        program = plan_path.with_name(plan_path.stem + ".hlo.gz")
        _, call = step_module.write(step, args, kwargs, program, **for_export)
        words = ["plan", program, "--cluster", cluster, "-o", plan_path, "--json"]
        words += ["--devices", devices] if devices is not None else []
        words += ["--strategy", strategy] if strategy is not None else []
        for key, value in options.items():
            name = "--" + key.replace("_", "-")
            words += [] if value is False or value is None else [name] if value is True else [name, value]
        return Plan(plan_path, json.loads(run(*words)), folder.pop_all(), call.statics())
