#!/usr/bin/env python3
"""Set predicted steps beside those that XLA was measured to take on one GPU.

    export_programs.py --gpu                                              the programs, into build/gpu
    score.py bench/gpu/h100.json --cluster clusters/h100-xla.yaml         a table, and its medians
    score.py FILE.json --cluster FILE.yaml [--programs DIR] [--binary shardwright] [NAME...]

FILE.json is what tools/measure_on_gpu.py wrote; those of this folder leave out single kernels. Each program is planned
for one device with its batch whole. Seconds are those of queued steps; memory is arguments, results and temporaries.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def predict(binary, program, cluster):
    """Seconds, bytes and kernels of a step."""
    with tempfile.TemporaryDirectory() as folder:
        plan, trace = f"{folder}/plan", f"{folder}/trace"
        command = [binary, "plan", program, "--cluster", cluster, "--devices", "1", "--microbatches", "1", "-q", "-o", plan]
        subprocess.run(command, check=True)
        command = [binary, "simulate", plan, "--json", "--trace", trace]
        step = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        events = json.loads(pathlib.Path(trace).read_text())
    events = events if isinstance(events, list) else events["traceEvents"]
    return step["step_time_s"], step["peak_bytes"], sum(event["ph"] == "X" for event in events)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=pathlib.Path)
    parser.add_argument("names", nargs="*", help="programs; all that were measured if none is named")
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build" / "gpu")
    parser.add_argument("--binary", default=str(ROOT / "build" / "shardwright"))
    options = parser.parse_intermixed_args()
    document = json.loads(options.measured.read_text())
    unknown = [name for name in options.names if name not in document["programs"]]
    if unknown:
        parser.error(f"{options.measured} has no {', '.join(unknown)}")
    seconds, memory = [], []
    print(f"{document['device']}, JAX {document['jax']}")
    print(f"{'program':18} {'measured':>10} {'predicted':>10} {'error':>7} {'GiB':>6} {'predicted':>10} {'error':>7} {'kernels':>8} {'predicted':>10}")
    for name, row in document["programs"].items():
        if options.names and name not in options.names:
            continue
        step, peak, kernels = predict(options.binary, options.programs / f"{name}.hlo.gz", options.cluster)
        seconds.append(step / row["stream_s"] - 1)
        memory.append(peak / row["peak_bytes"] - 1)
        print(
            f"{name:18} {row['stream_s'] * 1e3:7.2f} ms {step * 1e3:7.2f} ms {seconds[-1]:+7.1%} "
            f"{row['peak_bytes'] / 2**30:6.2f} {peak / 2**30:10.2f} {memory[-1]:+7.1%} {row['kernels']:8} {kernels:10}"
        )
    medians = (f"{statistics.median(map(abs, errors)):.1%}" for errors in (seconds, memory))
    print("median error: {} of seconds, {} of memory".format(*medians))
    return 0


if __name__ == "__main__":
    sys.exit(main())
