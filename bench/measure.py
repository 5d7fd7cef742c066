"""What bench/check-ratios and bench/run share: interleaved runs, so that only ratios are compared.

A machine is never quiet, and two runs one after the other see different noise. Runs that alternate
see the same noise, and their medians can be divided by each other.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("CAPGATE_BUILD", ROOT / "build/release"))
CAPGATE = BUILD / "bin/capgate"
COMPILE_BENCH = BUILD / "bench/compile_bench"
GITHUB = ROOT / "examples/github.json"
NODE = os.environ.get("NODE", "node")


def need_programs():
    for program in (CAPGATE, COMPILE_BENCH):
        if not program.exists():
            sys.exit(f"{program} is missing: run ./dev build")


def manifest(shape, count):
    """The path of a generated manifest."""
    path = BUILD / "bench/manifests" / f"{shape}-{count}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        subprocess.run([ROOT / "bench/make-manifest", shape, str(count)], stdout=out, check=True)
    return path


def compile_command(path, target="bwrap"):
    return [str(CAPGATE), "compile", str(path), "--target", target]


def run_once(command):
    """Seconds from spawn to exit; what the program prints goes nowhere."""
    discard = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
    start = time.perf_counter_ns()
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=discard)
    status = os.waitpid(pid, 0)[1]
    seconds = (time.perf_counter_ns() - start) / 1e9
    if status != 0:
        sys.exit(f"failed: {' '.join(command)}")
    return seconds


def spawn_seconds(commands, rounds, pick):
    """Seconds of each command; `commands` is {name: argv}, `pick` chooses among the rounds. Each is
    run twice and its second run counts: what ran before has left its own data in the caches, which
    a short program would pay for. The first round only warms up."""
    times = {name: [] for name in commands}
    for _ in range(rounds + 1):
        for name, command in commands.items():
            run_once(command)
            times[name].append(run_once(command))
    return {name: pick(taken[1:]) for name, taken in times.items()}


def spawn_medians(commands, rounds):
    return spawn_seconds(commands, rounds, statistics.median)


def spawn_best(commands, rounds):
    """For limits: noise only ever adds time, and most to what is short."""
    return spawn_seconds(commands, rounds, min)


def in_process(paths, rows, seconds=0.1, repetitions=5):
    """Processor seconds of each row ("bwrap/github"), the best of interleaved repetitions: noise
    only ever adds time."""
    command = [
        COMPILE_BENCH, *paths, f"--benchmark_filter=^({'|'.join(rows)})/",
        "--benchmark_enable_random_interleaving=true", f"--benchmark_min_time={seconds}",
        f"--benchmark_repetitions={repetitions}", "--benchmark_format=json",
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    best = {}
    for run in json.loads(done.stdout)["benchmarks"]:
        if run["run_type"] != "iteration":
            continue
        if run.get("error_occurred"):
            sys.exit(f"failed: {run['name']}: {run['error_message']}")
        taken = run["cpu_time"] / 1e6  # compile_bench counts in microseconds
        best[run["run_name"]] = min(taken, best.get(run["run_name"], taken))
    return best
